// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Registers and the admin queue: every status, every field that can be wrong.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

#define AT(type, member) offsetof(struct ferry_admin_##type, member)

static struct rig rig;
static struct host *host;

/* ---- a command with some bytes changed */

struct change {
	uint16_t opcode;	/* of the command that is changed */
	size_t offset;
	unsigned int bytes;
	uint64_t value;
	unsigned int hits;
};

static void change_command(void *arg, union ferry_admin_sqe *cmd)
{
	struct change *change = arg;
	uint64_t value = htole64(change->value);

	if (le16toh(cmd->head.opcode) != change->opcode)
		return;
	memcpy(cmd->bytes + change->offset, &value, change->bytes);
	change->hits++;
}

/* Each creation once; all of them succeed if nothing is changed. */
static bool create_eq(void)
{
	struct host_eq eq;
	bool ok = host_eq_create(host, &eq, 4, 2);

	if (ok)
		need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_EQ, eq.number, NULL),
			FERRY_ADMIN_OK);
	host_blocks_free(host, &eq.ring);
	return ok;
}

static bool create_context(void)
{
	struct host_context *context = host_context_create(host, 0);

	if (context)
		host_context_destroy(context);
	return context;
}

static bool create_record_page(void)
{
	struct host_context *context = host_context_create(host, 1);

	if (context)
		host_context_destroy(context);
	return context;
}

static bool create_pd(void)
{
	struct host_pd *pd = host_pd_create(rig.context[0]);

	if (pd)
		host_pd_destroy(pd);
	return pd;
}

static bool create_cq(void)
{
	struct host_cq *cq = host_cq_create(rig.context[0], 6);

	if (cq)
		host_cq_destroy(cq);
	return cq;
}

static bool create_qp(void)
{
	struct host_qp_spec spec = {
		.pd = rig.pd[0], .send_cq = rig.cq[0], .recv_cq = rig.cq[0],
		.sq_shift = 4, .rq_shift = 4,
	};
	struct host_qp *qp = host_qp_create(&spec);

	if (qp)
		host_qp_destroy(qp);
	return qp;
}

static bool create_mr(void)
{
	struct host_mr_spec spec = {
		.pd = rig.pd[0], .length = 100000, .offset = 77, .iova = 0x1000, .access = 1,
		.two_level = true,
	};
	struct host_mr *mr = host_mr_create(&spec);

	if (mr)
		host_mr_destroy(mr);
	return mr;
}

static bool set_gid(void)
{
	union ferry_admin_sqe cmd = {
		.set_gid.head.opcode = htole16(FERRY_ADMIN_SET_GID),
		.set_gid.index = htole16(5),
		.set_gid.valid = 1,
		.set_gid.vlan = htole16(0xffff),
		.set_gid.gid = { 0xfe, 0x80, [15] = 1 },
	};

	return host_admin(host, &cmd, NULL) == FERRY_ADMIN_OK;
}

static bool set_port(void)
{
	union ferry_admin_sqe cmd = {
		.set_port.head.opcode = htole16(FERRY_ADMIN_SET_PORT),
		.set_port.mtu = htole16(1500),
		.set_port.up = 1,
	};

	memcpy(cmd.set_port.mac, host->mac, 6);
	return host_admin(host, &cmd, NULL) == FERRY_ADMIN_OK;
}

static bool modify_cq(void)
{
	union ferry_admin_sqe cmd = {
		.modify_cq.head.opcode = htole16(FERRY_ADMIN_MODIFY_CQ),
		.modify_cq.cq = htole32(rig.cq[0]->number),
	};

	return host_admin(host, &cmd, NULL) == FERRY_ADMIN_OK;
}

static bool nop(void)
{
	return host_admin_object(host, FERRY_ADMIN_NOP, 0, NULL) == FERRY_ADMIN_OK;
}

static const struct command {
	uint16_t opcode;
	bool (*run)(void);
	size_t size;
} commands[] = {
	{ FERRY_ADMIN_NOP, nop, sizeof(struct ferry_admin_head) },
	{ FERRY_ADMIN_CREATE_EQ, create_eq, sizeof(struct ferry_admin_create_eq) },
	{ FERRY_ADMIN_CREATE_CONTEXT, create_context, sizeof(struct ferry_admin_head) },
	{ FERRY_ADMIN_ADD_RECORD_PAGE, create_record_page, sizeof(struct ferry_admin_set_page) },
	{ FERRY_ADMIN_CREATE_PD, create_pd, sizeof(struct ferry_admin_create_pd) },
	{ FERRY_ADMIN_CREATE_CQ, create_cq, sizeof(struct ferry_admin_create_cq) },
	{ FERRY_ADMIN_CREATE_QP, create_qp, sizeof(struct ferry_admin_create_qp) },
	{ FERRY_ADMIN_CREATE_MR, create_mr, sizeof(struct ferry_admin_create_mr) },
	{ FERRY_ADMIN_SET_GID, set_gid, sizeof(struct ferry_admin_set_gid) },
	{ FERRY_ADMIN_SET_PORT, set_port, sizeof(struct ferry_admin_set_port) },
	{ FERRY_ADMIN_MODIFY_CQ, modify_cq, sizeof(struct ferry_admin_modify_cq) },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void start(void)
{
	rig_init(&rig, &(struct rig_options) { .unconnected = true });
	host = rig.host[0];
}

static const struct command *command_by_opcode(uint16_t opcode)
{
	const struct command *c = commands;

	while (c->opcode != opcode)
		c++;
	return c;
}

/* The answer to a changed command; the last of them, if there are several. */
static void expect_refused(struct change *change, uint32_t detail, const char *what)
{
	unsigned int before = host->allocations;

	host->mangle = change_command;
	host->mangle_arg = change;
	need_that(!command_by_opcode(change->opcode)->run(), "%s: command %u with %#llx at %zu is taken",
		  what, change->opcode, (unsigned long long)change->value, change->offset);
	host->mangle = NULL;
	need_that(change->hits, "command %u was not posted", change->opcode);
	need_that(host->detail == detail, "command %u with %#llx at %zu: detail is %u, not %u",
		  change->opcode, (unsigned long long)change->value, change->offset,
		  host->detail, detail);
	need_eq(host->allocations, before);
	need(command_by_opcode(change->opcode)->run());
	need_eq(host->allocations, before);
}

/* ---- statuses */

static void all_commands_work(void)
{
	unsigned int i;

	start();
	for (i = 0; i < COMMANDS; i++)
		need_that(commands[i].run(), "command %u", commands[i].opcode);
	rig_free(&rig);
}

static void bad_opcode(void)
{
	static const unsigned int opcodes[] = { FERRY_ADMIN_OP_COUNT, 255, 256, 0xffff };
	unsigned int i;

	start();
	for (i = 0; i < 4; i++)
		need_eq(host_admin_object(host, opcodes[i], 0, NULL), FERRY_ADMIN_BAD_OPCODE);
	rig_free(&rig);
}

static void not_supported(void)
{
	static const unsigned int opcodes[] = {
		FERRY_ADMIN_CREATE_MW, FERRY_ADMIN_ATTACH_MCAST,
	};
	unsigned int i;

	start();
	for (i = 0; i < 2; i++)
		need_eq(host_admin_object(host, opcodes[i], 0, NULL), FERRY_ADMIN_NOT_SUPPORTED);
	rig_free(&rig);
}

/* Behind a command's end, and in its head, nothing may be set. */
static void reserved_bytes(void)
{
	unsigned int i;

	start();
	for (i = 0; i < COMMANDS; i++) {
		const size_t places[] = {
			offsetof(struct ferry_admin_head, rsvd), commands[i].size,
			commands[i].size + 9, FERRY_ADMIN_SQE_SIZE - 1,
		};
		unsigned int k;

		for (k = 0; k < 4; k++) {
			struct change change = {
				.opcode = commands[i].opcode, .offset = places[k], .bytes = 1,
				.value = 0x40,
			};

			expect_refused(&change, (uint32_t)places[k], "reserved");
		}
	}
	rig_free(&rig);
}

static void bad_param(void)
{
	static const struct {
		uint16_t opcode;
		size_t offset;
		unsigned int bytes;
		uint64_t value;
	} cases[] = {
		{ FERRY_ADMIN_CREATE_EQ, AT(create_eq, vector), 2, HOST_VECTORS },
		{ FERRY_ADMIN_CREATE_EQ, AT(create_eq, depth_shift), 1, 3 },
		{ FERRY_ADMIN_CREATE_EQ, AT(create_eq, depth_shift), 1, 17 },
		{ FERRY_ADMIN_CREATE_EQ, AT(create_eq, rsvd), 1, 1 },
		{ FERRY_ADMIN_CREATE_EQ, AT(create_eq, ci_addr), 1, 2 },
		{ FERRY_ADMIN_CREATE_EQ, AT(create_eq, ring.block_shift), 1, 11 },
		{ FERRY_ADMIN_CREATE_EQ, AT(create_eq, ring.count), 4, 0 },
		{ FERRY_ADMIN_ADD_RECORD_PAGE, AT(set_page, addr), 1, 8 },
		{ FERRY_ADMIN_ADD_RECORD_PAGE, AT(set_page, addr), 8, 0 },
		{ FERRY_ADMIN_CREATE_PD, AT(create_pd, rsvd), 1, 1 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, depth_shift), 1, 23 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, cq), 1, 1 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, slot_addr), 8, 0x1000 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, slot_addr), 8, 0 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, ring.block_shift), 1, 31 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, ring.levels), 1, 1 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, ring.levels), 1, 3 },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, ring.rsvd), 1, 1 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, type), 1, FERRY_QPT_COUNT },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, type), 1, FERRY_QPT_GSI },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, type), 1, FERRY_QPT_ETH },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, flags), 1, 2 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, sq_shift), 1, 15 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, rq_shift), 1, 15 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, sq_wqe_shift), 1, 5 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, sq_wqe_shift), 1, 10 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, rq_wqe_shift), 1, 4 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, rq_wqe_shift), 1, 10 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, sq_slot_addr), 1, 4 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, rq_slot_addr), 8, 0 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, rsvd), 1, 1 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, sq.count), 4, 0 },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, rq.count), 4, 0 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, access), 1, 0x20 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, access), 1, FERRY_ACCESS_REMOTE_WRITE },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, access), 1, FERRY_ACCESS_REMOTE_ATOMIC },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, flags), 1, 4 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, rsvd), 1, 1 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, length), 8, 0 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, length), 8, 1ull << 60 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, iova), 8, UINT64_MAX - 1000 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, offset), 8, 4096 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, pages.count), 4, 1 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, pages.block_shift), 1, 40 },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, pages.root), 1, 4 },
		{ FERRY_ADMIN_SET_GID, AT(set_gid, index), 2, 0x7fff },
		{ FERRY_ADMIN_SET_GID, AT(set_gid, valid), 1, 2 },
		{ FERRY_ADMIN_SET_GID, AT(set_gid, vlan), 2, 7 },
		{ FERRY_ADMIN_SET_GID, AT(set_gid, rsvd0), 1, 1 },
		{ FERRY_ADMIN_SET_PORT, AT(set_port, mtu), 2, 255 },
		{ FERRY_ADMIN_SET_PORT, AT(set_port, mtu), 2, 9001 },
		{ FERRY_ADMIN_SET_PORT, AT(set_port, up), 1, 2 },
		{ FERRY_ADMIN_SET_PORT, AT(set_port, promisc), 1, 2 },
		{ FERRY_ADMIN_SET_PORT, AT(set_port, mac), 1, 1 },
	};
	unsigned int i;

	start();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct change change = {
			.opcode = cases[i].opcode, .offset = cases[i].offset,
			.bytes = cases[i].bytes, .value = cases[i].value,
		};

		expect_refused(&change, (uint32_t)cases[i].offset, "parameter");
	}
	rig_free(&rig);
}

static void not_found(void)
{
	static const struct {
		uint16_t opcode;
		size_t offset;
	} cases[] = {
		{ FERRY_ADMIN_ADD_RECORD_PAGE, AT(set_page, context) },
		{ FERRY_ADMIN_CREATE_PD, AT(create_pd, context) },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, context) },
		{ FERRY_ADMIN_CREATE_CQ, AT(create_cq, eq) },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, context) },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, pd) },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, send_cq) },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, recv_cq) },
		{ FERRY_ADMIN_CREATE_QP, AT(create_qp, srq) },
		{ FERRY_ADMIN_CREATE_MR, AT(create_mr, pd) },
		{ FERRY_ADMIN_MODIFY_CQ, AT(modify_cq, cq) },
	};
	static const uint16_t objects[] = {
		FERRY_ADMIN_DESTROY_EQ, FERRY_ADMIN_DESTROY_CONTEXT, FERRY_ADMIN_DESTROY_PD,
		FERRY_ADMIN_DESTROY_CQ, FERRY_ADMIN_DESTROY_QP, FERRY_ADMIN_QUERY_QP,
		FERRY_ADMIN_DESTROY_SRQ, FERRY_ADMIN_QUERY_SRQ, FERRY_ADMIN_DESTROY_MR,
	};
	static const uint32_t numbers[] = { 0x00777777, 0xffffffff, 0x01000000 };
	unsigned int i, k;

	start();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (k = 0; k < 3; k++) {
			struct change change = {
				.opcode = cases[i].opcode, .offset = cases[i].offset, .bytes = 4,
				.value = numbers[k],
			};

			expect_refused(&change, numbers[k], "number");
		}
	}
	for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		for (k = 0; k < 3; k++) {
			need_eq(host_admin_object(host, objects[i], numbers[k], NULL),
				FERRY_ADMIN_NOT_FOUND);
			need_eq(host->detail, numbers[k]);
		}
		need_that(host_admin_object(host, objects[i], 0, NULL) == FERRY_ADMIN_NOT_FOUND,
			  "command %u finds number 0", objects[i]);
	}
	rig_free(&rig);
}

/* What belongs to another context is not found, either. */
static void other_context(void)
{
	struct host_context *context;
	struct host_pd *pd;
	struct host_cq *cq;
	struct change change = { .opcode = FERRY_ADMIN_CREATE_QP, .bytes = 4 };

	start();
	context = host_context_create(host, 1);
	need(context);
	pd = host_pd_create(context);
	cq = host_cq_create(context, 4);
	need(pd && cq);
	change.offset = AT(create_qp, pd);
	change.value = pd->number;
	expect_refused(&change, pd->number, "PD");
	change.offset = AT(create_qp, send_cq);
	change.value = cq->number;
	expect_refused(&change, cq->number, "CQ");
	change.offset = AT(create_qp, sq_slot_addr);
	change.bytes = 8;
	change.value = context->page[0]->dma;
	expect_refused(&change, AT(create_qp, sq_slot_addr), "slot");
	host_cq_destroy(cq);
	host_pd_destroy(pd);
	host_context_destroy(context);
	rig_free(&rig);
}

static unsigned int remove_record_page(void)
{
	union ferry_admin_sqe cmd = {
		.set_page.head.opcode = htole16(FERRY_ADMIN_REMOVE_RECORD_PAGE),
		.set_page.context = htole32(rig.context[0]->number),
		.set_page.addr = htole64(rig.context[0]->page[0]->dma),
	};

	return host_admin(host, &cmd, NULL);
}

static void busy(void)
{
	start();
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_EQ, host->eq.number, NULL),
		FERRY_ADMIN_BUSY);
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_CONTEXT, rig.context[0]->number, NULL),
		FERRY_ADMIN_BUSY);
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_PD, rig.pd[0]->number, NULL),
		FERRY_ADMIN_BUSY);
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_CQ, rig.cq[0]->number, NULL),
		FERRY_ADMIN_BUSY);
	need_eq(remove_record_page(), FERRY_ADMIN_BUSY);
	host_qp_destroy(rig.qp[0]);
	rig.qp[0] = NULL;
	/* The MR is left. */
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_PD, rig.pd[0]->number, NULL),
		FERRY_ADMIN_BUSY);
	rig_free(&rig);
}

/* Every allocation fails once: the command is refused, nothing stays behind. */
static void no_resources(void)
{
	unsigned int i, n;

	start();
	for (i = 0; i < COMMANDS; i++) {
		for (n = 1; ; n++) {
			unsigned int before = host->allocations;
			bool ok;

			host->alloc_fails_at = n;
			ok = commands[i].run();
			need_eq(host->allocations, before);
			if (host->alloc_fails_at)
				break;
			need_that(!ok, "command %u succeeds without memory", commands[i].opcode);
		}
		host->alloc_fails_at = 0;
		need(commands[i].run());
	}
	rig_free(&rig);
}

/* The pages of a list cannot be read. */
static void dma_fault(void)
{
	struct change change = {
		.opcode = FERRY_ADMIN_CREATE_MR, .offset = AT(create_mr, pages.root), .bytes = 8,
		.value = 0x5000,
	};

	start();
	host->mem.lenient = true;
	host->mangle = change_command;
	host->mangle_arg = &change;
	need(!create_mr());
	host->mangle = NULL;
	need(create_mr());
	rig_free(&rig);
}

static void refused(void)
{
	unsigned int i, k;

	start();
	for (i = 1; i < 5; i++) {
		ferry_engine_refuse(host->engine, i);
		for (k = 1; k < 7; k++)
			need_eq(host_admin_object(host, FERRY_ADMIN_NOP, 0, NULL),
				k == i ? FERRY_ADMIN_REFUSED : FERRY_ADMIN_OK);
	}
	rig_free(&rig);
}

/* Behind each reset one later, when the one before has been met. */
static void each_refused(void)
{
	struct host_options o = { .bare = true };
	unsigned int i, k;

	host = host_create(&o);
	ferry_engine_refuse(host->engine, FERRY_REFUSE_EACH);
	for (i = 1; i < 5; i++) {
		ferry_engine_reset(host->engine);
		ferry_engine_reset(host->engine);
		need(host_enable(host));
		for (k = 1; k < 7; k++)
			need_eq(host_admin_object(host, FERRY_ADMIN_NOP, 0, NULL),
				k == i ? FERRY_ADMIN_REFUSED : FERRY_ADMIN_OK);
	}
	host_destroy(host);
}

/* ---- queries */

static void limits(void)
{
	const struct ferry_device_limits *l;
	struct ferry_admin_cqe answer;

	start();
	l = &host->limits;
	need(le64toh(l->max_mr_size) >= 64ull << 30);
	need((le64toh(l->page_sizes) & 0x7ffff000) == 0x7ffff000);
	need(le64toh(l->max_msg_size) >= 1ull << 31);
	need(le32toh(l->max_qps) >= 16384);
	need(le32toh(l->max_cqs) >= 16384);
	need(le32toh(l->max_mrs) >= 262144);
	need(le32toh(l->max_sq_depth) >= 16384 && le32toh(l->max_rq_depth) >= 16384);
	need(le16toh(l->max_sge) >= 16);
	need(le16toh(l->max_inline) >= 128);
	need_eq(le32toh(l->caps), ferry_engine_reg_read(host->engine, FERRY_REG_CAPS));
	need_eq(host_admin_object(host, FERRY_ADMIN_QUERY_PORT, 0, &answer), FERRY_ADMIN_OK);
	need_eq(answer.port.link, 1);
	need_eq(le32toh(answer.port.speed_mbps), 100000);
	need_eq(le16toh(answer.port.mtu), 9000);
	need(!memcmp(answer.port.mac, host->mac, 6));
	rig_free(&rig);
}

/* MRs of all block sizes, and one whose list has a million pages. */
static void large_mrs(void)
{
	struct hostmem_chunk *leaf, *root, *page;
	union ferry_admin_sqe cmd = {
		.create_mr.head.opcode = htole16(FERRY_ADMIN_CREATE_MR),
		.create_mr.length = htole64(4ull << 30),
		.create_mr.pages.block_shift = 12,
		.create_mr.pages.levels = 2,
		.create_mr.pages.count = htole32(1 << 20),
	};
	struct ferry_admin_cqe answer;
	unsigned int shift, i;
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { 0 });
	host = rig.host[0];
	for (shift = 12; shift <= 30; shift++) {
		struct host_mr_spec spec = {
			.pd = rig.pd[0], .length = 3000, .offset = 4095, .block_shift = shift,
			.iova = 0xfffffff0, .access = RIG_ACCESS,
		};
		struct host_blocks blocks;
		struct host_mr over = { 0 };
		struct host_mr *mr;

		/* Without guards: a block may be a gigabyte. */
		need(host_blocks_alloc(host, &blocks, 8000, shift));
		over.blocks = blocks;
		spec.over = &over;
		mr = host_mr_create(&spec);
		need(mr);
		wr = rig_wr(&rig, 0, FERRY_WR_READ, 0, 100, 3000);
		wr.sge[0].key = mr->key;
		wr.sge[0].addr = spec.iova;
		rig_post(&rig, 0, &wr);
		rig_run(&rig);
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)(shift - 12));
		for (i = 0; i < 3000; i++)
			need_eq(*(uint8_t *)host_blocks_at(&blocks, 4095 + i),
				rig.image[1][100 + i]);
		host_mr_destroy(mr);
		host_blocks_free(host, &blocks);
	}
	/* Every entry of the root names one leaf, every entry of that one page. */
	page = hostmem_alloc(&host->mem, 4096, 4096);
	leaf = hostmem_alloc(&host->mem, 4096, 4096);
	root = hostmem_alloc(&host->mem, 16384, 4096);
	hostmem_allow(&host->mem, page->dma, 4096, HOSTMEM_READ);
	hostmem_allow(&host->mem, leaf->dma, 4096, HOSTMEM_READ);
	hostmem_allow(&host->mem, root->dma, 16384, HOSTMEM_READ);
	for (i = 0; i < 512; i++)
		((__le64 *)leaf->va)[i] = htole64(page->dma);
	for (i = 0; i < 2048; i++)
		((__le64 *)root->va)[i] = htole64(leaf->dma);
	memset(page->va, 0x3c, 4096);
	cmd.create_mr.pd = htole32(rig.pd[0]->number);
	cmd.create_mr.pages.root = htole64(root->dma);
	need_eq(host_admin(host, &cmd, &answer), FERRY_ADMIN_OK);
	leaf->gone = true;
	root->gone = true;
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 5000);
	wr.sge[0].addr = (4ull << 30) - 5000;
	wr.sge[0].key = le32toh(answer.number);
	rig_post(&rig, 0, &wr);
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 19);
	wr.sge[0].addr++;
	rig_post(&rig, 0, &wr);
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_LOC_PROT_ERR, 20);
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_MR, le32toh(answer.number), NULL),
		FERRY_ADMIN_OK);
	rig_free(&rig);
}

/* As many QPs as the device says, all with one ring and one slot. */
static void many_qps(void)
{
	struct host_blocks ring;
	struct host_slot slot;
	union ferry_admin_sqe cmd = {
		.create_qp.head.opcode = htole16(FERRY_ADMIN_CREATE_QP),
		.create_qp.sq_wqe_shift = 6,
		.create_qp.rq_wqe_shift = 5,
	};
	struct ferry_admin_cqe answer;
	struct host_list list;
	uint32_t *numbers;
	uint32_t most, i;

	start();
	most = le32toh(host->limits.max_qps) - 1; /* the rig has one */
	numbers = calloc(most, sizeof(*numbers));
	need(numbers);
	need(host_blocks_alloc(host, &ring, 4096, 12));
	host_blocks_allow(host, &ring, 0, 4096, HOSTMEM_READ);
	slot = host_slot_get(rig.context[0]);
	cmd.create_qp.context = htole32(rig.context[0]->number);
	cmd.create_qp.pd = htole32(rig.pd[0]->number);
	cmd.create_qp.send_cq = htole32(rig.cq[0]->number);
	cmd.create_qp.recv_cq = htole32(rig.cq[0]->number);
	cmd.create_qp.sq_slot_addr = htole64(host_slot_addr(&slot));
	cmd.create_qp.rq_slot_addr = htole64(host_slot_addr(&slot));
	host_list_build(host, &ring, false, &cmd.create_qp.sq, &list);
	host_list_build(host, &ring, false, &cmd.create_qp.rq, &list);
	for (i = 0; i < most; i++) {
		union ferry_admin_sqe copy = cmd;

		need_that(host_admin(host, &copy, &answer) == FERRY_ADMIN_OK, "QP %u", i);
		numbers[i] = le32toh(answer.number);
	}
	need_eq(host_admin(host, &cmd, NULL), FERRY_ADMIN_NO_RESOURCES);
	for (i = 0; i < most; i++)
		need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_QP, numbers[i], NULL),
			FERRY_ADMIN_OK);
	host_slot_put(&slot);
	host_blocks_free(host, &ring);
	free(numbers);
	rig_free(&rig);
}

/* ---- registers */

static uint32_t reg(uint32_t offset)
{
	return ferry_engine_reg_read(host->engine, offset);
}

static void registers(void)
{
	struct host_options o = { .seed = 5, .index = 9, .bare = true, .poll = true };
	uint32_t offset;

	host = host_create(&o);
	need_eq(reg(FERRY_REG_MAGIC), FERRY_MAGIC);
	need_eq(reg(FERRY_REG_VERSION), FERRY_VERSION);
	need(reg(FERRY_REG_CAPS) & FERRY_CAP_POLL);
	need_eq(reg(FERRY_REG_STATUS), FERRY_STATUS_LINK);
	need_eq(reg(FERRY_REG_CTRL), 0);
	need_eq(reg(FERRY_REG_VECTORS), HOST_VECTORS);
	need_eq(reg(FERRY_REG_MAC_LO), 0x0000fe02);
	need_eq(reg(FERRY_REG_MAC_HI), 0x0900);
	/* Read-only ones, and what is no register. */
	for (offset = 0; offset < FERRY_REGS_SIZE; offset += 4) {
		uint32_t before = reg(offset);

		if (offset >= FERRY_REG_ASQ_LO && offset <= FERRY_REG_ADMIN_DB)
			continue;
		if (offset == FERRY_REG_CTRL)
			continue;
		ferry_engine_reg_write(host->engine, offset, 0x5a5a5a5a);
		need_eq(reg(offset), before);
	}
	/* A doorbell before the device is enabled. */
	ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_DB, 1);
	host_run(host);
	need(host_enable(host));
	need_eq(reg(FERRY_REG_ASQ_LO), (uint32_t)host->asq->dma);
	ferry_engine_reg_write(host->engine, FERRY_REG_ASQ_LO, 0);
	ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_SHIFT, 0);
	ferry_engine_reg_write(host->engine, FERRY_REG_CTRL, 0);
	need_eq(reg(FERRY_REG_ASQ_LO), (uint32_t)host->asq->dma);
	need(reg(FERRY_REG_STATUS) & FERRY_STATUS_READY);
	need_eq(host_admin_object(host, FERRY_ADMIN_NOP, 0, NULL), FERRY_ADMIN_OK);
	ferry_engine_link(host->engine, false);
	need(!(reg(FERRY_REG_STATUS) & FERRY_STATUS_LINK));
	ferry_engine_reg_write(host->engine, FERRY_REG_CTRL, FERRY_CTRL_RESET);
	need_eq(reg(FERRY_REG_CTRL), 0);
	need_eq(reg(FERRY_REG_STATUS), 0);
	need_eq(reg(FERRY_REG_ASQ_LO), 0);
	host_destroy(host);
}

/* An admin queue that cannot be: fatal, until a reset. */
static void bad_admin_queue(void)
{
	static const struct {
		uint32_t offset, value;
	} cases[] = {
		{ FERRY_REG_ADMIN_SHIFT, 0 }, { FERRY_REG_ADMIN_SHIFT, 9 },
		{ FERRY_REG_ADMIN_SHIFT, 0xffffffff }, { FERRY_REG_ASQ_LO, 0x1008 },
		{ FERRY_REG_ACQ_LO, 0x1010 },
	};
	struct host_options o = { .seed = 5, .bare = true };
	unsigned int i;

	host = host_create(&o);
	for (i = 0; i < 5; i++) {
		ferry_engine_reg_write(host->engine, FERRY_REG_ASQ_LO, 0x10000);
		ferry_engine_reg_write(host->engine, FERRY_REG_ACQ_LO, 0x20000);
		ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_SHIFT, 4);
		ferry_engine_reg_write(host->engine, cases[i].offset, cases[i].value);
		ferry_engine_reg_write(host->engine, FERRY_REG_CTRL, FERRY_CTRL_ENABLE);
		host_run(host);
		need(reg(FERRY_REG_STATUS) & FERRY_STATUS_FATAL);
		need(!(reg(FERRY_REG_STATUS) & FERRY_STATUS_READY));
		need_eq(FERRY_STATUS_CAUSE(reg(FERRY_REG_STATUS)), FERRY_FATAL_ADMIN_DMA);
		ferry_engine_reg_write(host->engine, FERRY_REG_CTRL, FERRY_CTRL_RESET);
		need(!(reg(FERRY_REG_STATUS) & FERRY_STATUS_FATAL));
	}
	host_bring_up(host);
	host_destroy(host);
}

/* An index that is more than a ring ahead is none; a full ring is answered. */
static void admin_index(void)
{
	struct host_options o = { .seed = 6, .poll = true };
	unsigned int depth, i, k;

	host = host_create(&o);
	depth = 1u << host->admin_shift;
	for (k = 0; k < 40; k++) {
		for (i = 0; i < depth; i++) {
			union ferry_admin_sqe *cmd = (union ferry_admin_sqe *)host->asq->va +
						     ((host->admin_pi + i) & (depth - 1));

			memset(cmd, 0, sizeof(*cmd));
			cmd->head.id = htole16((uint16_t)i);
		}
		ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_DB,
				       host->admin_pi + depth + 1);
		ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_DB, host->admin_pi - 1);
		need(host_settle(host));
		host->admin_pi += depth;
		ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_DB, host->admin_pi);
		need(host_settle(host));
		for (i = 0; i < depth; i++, host->admin_ci++) {
			const struct ferry_admin_cqe *cqe = (struct ferry_admin_cqe *)host->acq->va +
							    (host->admin_ci & (depth - 1));

			need_eq(cqe->phase & 1, !((host->admin_ci >> host->admin_shift) & 1));
			need_eq(le16toh(cqe->id), i);
		}
	}
	host_destroy(host);
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TAP_TEST(all_commands_work, "OK"),
		TAP_TEST(bad_opcode, "BAD_OPCODE"),
		TAP_TEST(not_supported, "NOT_SUPPORTED"),
		TAP_TEST(reserved_bytes, "BAD_PARAM: reserved bytes, by their offset"),
		TAP_TEST(bad_param, "BAD_PARAM: each field, by its offset"),
		TAP_TEST(not_found, "NOT_FOUND: each number"),
		TAP_TEST(other_context, "objects of another context"),
		TAP_TEST(busy, "BUSY: what is in use is not destroyed"),
		TAP_TEST(no_resources, "NO_RESOURCES: every allocation fails once"),
		TAP_TEST(dma_fault, "DMA_FAULT: a page list that cannot be read"),
		TAP_TEST(refused, "REFUSED by the operator"),
		TAP_TEST(each_refused, "REFUSED one after the other"),
		TAP_TEST(limits, "limits and port are told"),
		TAP_TEST(large_mrs, "MRs of every block size, and of a million pages"),
		TAP_TEST(many_qps, "as many QPs as the device promises"),
		TAP_TEST(registers, "registers"),
		TAP_TEST(bad_admin_queue, "an admin queue that cannot be is fatal until reset"),
		TAP_TEST(admin_index, "admin index and laps"),
	};

	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
