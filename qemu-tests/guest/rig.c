// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

#define PORT		1
#define WAIT_WC_US	(20 * 1000 * 1000ull * tap_patience())
#define WAIT_EVENT_US	(10 * 1000 * 1000ull * tap_patience())
#define QUERY_ALL	(2 * IBV_QP_DEST_QPN - 1)

/* --------------------------------------------------------------------------- options */

struct options options = {
	.gid = -1,
	.iterations = 100,
	.memory = 32 << 20,
	.ack_timeout = 14,
};

static const struct option long_options[] = {
	{ "dev", required_argument, NULL, 'd' },
	{ "gid", required_argument, NULL, 'g' },
	{ "only", required_argument, NULL, 'o' },
	{ "list", no_argument, NULL, 'l' },
	{ "seed", required_argument, NULL, 's' },
	{ "seconds", required_argument, NULL, 't' },
	{ "iterations", required_argument, NULL, 'n' },
	{ "memory", required_argument, NULL, 'm' },
	{ "ack-timeout", required_argument, NULL, 'a' },
	{ "plain", no_argument, NULL, 'p' },
	{ "listen", required_argument, NULL, 'L' },
	{ "peer", required_argument, NULL, 'P' },
	{ }
};

static void usage(const char *program, const char *what)
{
	fprintf(stderr,
		"usage: %s [OPTION]...\n"
		"%s\n"
		"  --dev NAME      RDMA device (the first)\n"
		"  --gid INDEX     GID of port 1 (an IPv4 RoCEv2 one, else any RoCEv2 one)\n"
		"  --only TEXT     only tests whose name contains it\n"
		"  --list          name the tests and run none\n"
		"  --seed N        of everything random (1)\n"
		"  --seconds N     go on for so long, where a test repeats\n"
		"  --iterations N  repeat so often, where a test repeats (100)\n"
		"  --memory BYTES  register no more than that on one side (32 MiB)\n"
		"  --ack-timeout N a request is repeated when 4.096 us << N have passed (14)\n"
		"  --plain         no fences, receives before sends, no empty READs and WRITEs: Soft-RoCE\n"
		"                  fails otherwise\n"
		"  --listen PORT   two processes or hosts: wait for the other one\n"
		"  --peer HOST:PORT  ... and call it; both get the same other options\n",
		program, what);
	exit(2);
}

static uint64_t number(const char *text, const char *program, const char *what)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end)
		usage(program, what);
	return value;
}

void options_parse(int argc, char **argv, const char *what)
{
	int opt;

	options.seed = 1;
	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (opt) {
		case 'd': options.dev = optarg; break;
		case 'g': options.gid = number(optarg, argv[0], what); break;
		case 'o': options.only = optarg; break;
		case 'l': options.list = true; break;
		case 's': options.seed = number(optarg, argv[0], what); break;
		case 't': options.seconds = number(optarg, argv[0], what); break;
		case 'n': options.iterations = number(optarg, argv[0], what); break;
		case 'm': options.memory = number(optarg, argv[0], what); break;
		case 'a': options.ack_timeout = number(optarg, argv[0], what) % 32; break;
		case 'p': options.plain = true; break;
		case 'L': options.listen = optarg; break;
		case 'P': options.peer = optarg; break;
		default: usage(argv[0], what);
		}
	}
	if (optind != argc || (options.listen && options.peer))
		usage(argv[0], what);
}

/* ---------------------------------------------------------------------------- device */

struct ibv_context *open_device(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx = NULL;
	int i, count;

	list = need_ptr(ibv_get_device_list(&count));
	for (i = 0; i < count && !ctx; i++)
		if (!options.dev || !strcmp(ibv_get_device_name(list[i]), options.dev))
			ctx = need_ptr(ibv_open_device(list[i]));
	ibv_free_device_list(list);
	need_that(ctx, "no RDMA device %s", options.dev ? options.dev : "at all");
	return ctx;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

int find_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	int i, found = -1;

	need_ok(ibv_query_port(ctx, PORT, &port));
	for (i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(ctx, PORT, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (options.gid >= 0 ? i != options.gid : found >= 0 && !is_ipv4(&entry.gid))
			continue;
		*gid = entry.gid;
		found = i;
		if (options.gid >= 0 || is_ipv4(&entry.gid))
			break;
	}
	need_that(found >= 0, "no RoCEv2 GID that would do");
	return found;
}

uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

/* ---------------------------------------------------------------------------- memory */

static size_t page_round(size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page * page;
}

void region_create(struct region *region, struct ibv_pd *pd, size_t len, int access)
{
	size_t page = sysconf(_SC_PAGESIZE), size = page_round(len);

	region->len = len;
	region->addr = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(region->addr != MAP_FAILED);
	need_ok(mprotect(region->addr + size, page, PROT_NONE));
	region->mr = need_ptr(ibv_reg_mr(pd, region->addr, len, access));
}

void region_destroy(struct region *region)
{
	if (region->mr)
		need_ok(ibv_dereg_mr(region->mr));
	region->mr = NULL;
	need_ok(munmap(region->addr, page_round(region->len) + sysconf(_SC_PAGESIZE)));
}

struct ibv_sge region_sge(const struct region *region, size_t offset, uint32_t len)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)region->addr + offset,
		.length = len,
		.lkey = region->mr->lkey,
	};
}

uint64_t mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

void fill(void *to, size_t len, uint64_t seed)
{
	uint64_t word, base = mix64(seed);
	uint8_t *byte = to;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		word = base + i * 0x9e3779b97f4a7c15ull;
		word ^= word >> 32;
		memcpy(byte + i, &word, 8);
	}
	word = mix64(base + i);
	memcpy(byte + i, &word, len - i);
}

/* ------------------------------------------------------------------------- QP states */

static const char * const state_names[] = {
	[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
	[IBV_QPS_RTS] = "RTS", [IBV_QPS_SQD] = "SQD", [IBV_QPS_SQE] = "SQE",
	[IBV_QPS_ERR] = "ERR",
};

const char *state_name(enum ibv_qp_state state)
{
	return state <= IBV_QPS_ERR ? state_names[state] : "unknown";
}

struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_cq *cq, const struct rig_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = attr->send_wr,
			.max_recv_wr = attr->recv_wr,
			.max_send_sge = attr->send_sge,
			.max_recv_sge = attr->recv_sge,
			.max_inline_data = attr->inline_bytes,
		},
		.qp_type = IBV_QPT_RC,
	};

	return need_ptr(ibv_create_qp(pd, &init));
}

void qp_destroy(struct ibv_qp **qp)
{
	need_ok(ibv_destroy_qp(*qp));
	*qp = NULL;
}

void qp_to_init(struct ibv_qp *qp, const struct rig_attr *attr)
{
	struct ibv_qp_attr to = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = attr->qp_access,
	};

	need_ok(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_ACCESS_FLAGS));
}

void qp_to_rtr(struct ibv_qp *qp, const struct rig_attr *attr, const struct remote_qp *remote)
{
	union ibv_gid own;
	struct ibv_qp_attr to = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = attr->mtu,
		.dest_qp_num = remote->qpn,
		.rq_psn = remote->psn,
		.max_dest_rd_atomic = attr->rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer,
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.grh = {
				.dgid = remote->gid,
				.sgid_index = find_gid(qp->context, &own),
				.hop_limit = 64,
			},
		},
	};

	need_ok(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER));
}

void qp_to_rts(struct ibv_qp *qp, const struct rig_attr *attr, uint32_t psn)
{
	struct ibv_qp_attr to = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.max_rd_atomic = attr->rd_atomic,
	};

	need_ok(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr to = { .qp_state = state };

	need_ok(ibv_modify_qp(qp, &to, IBV_QP_STATE));
}

struct ibv_qp_attr qp_query(struct ibv_qp *qp, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr unused;
	struct ibv_qp_attr attr;

	need_ok(ibv_query_qp(qp, &attr, QUERY_ALL, init ? init : &unused));
	return attr;
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	return qp_query(qp, NULL).qp_state;
}

/* ------------------------------------------------------------------------------- rig */

struct rig_attr rig_defaults(void)
{
	return (struct rig_attr) {
		.send_wr = 64,
		.recv_wr = 64,
		.send_sge = 4,
		.recv_sge = 4,
		.cqe = 256,
		.qp_access = ACCESS_ALL,
		.mtu = IBV_MTU_1024,
		.timeout = options.ack_timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.rd_atomic = 4,
		.same_pd = true,
		.bytes = 64 << 10,
		.access = ACCESS_ALL,
	};
}

void end_create(struct end *end, struct ibv_pd *pd, const struct rig_attr *attr, uint64_t seed)
{
	end->pd = pd;
	if (attr->events)
		end->channel = need_ptr(ibv_create_comp_channel(pd->context));
	end->cq = need_ptr(ibv_create_cq(pd->context, attr->cqe, NULL, end->channel, 0));
	end->qp = qp_create(end->pd, end->cq, attr);
	end->psn = mix64(options.seed + seed) & 0xffffff;
	region_create(&end->mem, end->pd, attr->bytes, attr->access);
	fill(end->mem.addr, end->mem.len, seed);
}

void rig_create(struct rig *rig, const struct rig_attr *attr)
{
	memset(rig, 0, sizeof(*rig));
	rig->attr = *attr;
	rig->ctx = open_device();
	end_create(&rig->a, need_ptr(ibv_alloc_pd(rig->ctx)), attr, 1);
	end_create(&rig->b, attr->same_pd ? rig->a.pd : need_ptr(ibv_alloc_pd(rig->ctx)), attr, 2);
}

void ends_connect(struct end *a, struct end *b, const struct rig_attr *attr)
{
	struct remote_qp to_a = { .qpn = a->qp->qp_num, .psn = a->psn };
	struct remote_qp to_b = { .qpn = b->qp->qp_num, .psn = b->psn };

	find_gid(a->qp->context, &to_a.gid);
	to_b.gid = to_a.gid;
	qp_to_init(a->qp, attr);
	qp_to_init(b->qp, attr);
	qp_to_rtr(a->qp, attr, &to_b);
	qp_to_rtr(b->qp, attr, &to_a);
	qp_to_rts(a->qp, attr, a->psn);
	qp_to_rts(b->qp, attr, b->psn);
}

void rig_connect(struct rig *rig)
{
	ends_connect(&rig->a, &rig->b, &rig->attr);
}

void rig_connect_new(struct rig *rig, const struct rig_attr *attr)
{
	rig_create(rig, attr);
	rig_connect(rig);
}

void end_destroy(struct end *end)
{
	if (end->qp)
		qp_destroy(&end->qp);
	if (end->cq)
		need_ok(ibv_destroy_cq(end->cq));
	if (end->channel)
		need_ok(ibv_destroy_comp_channel(end->channel));
	if (end->mem.addr)
		region_destroy(&end->mem);
}

void rig_destroy(struct rig *rig)
{
	end_destroy(&rig->a);
	end_destroy(&rig->b);
	need_ok(ibv_dealloc_pd(rig->a.pd));
	if (!rig->attr.same_pd)
		need_ok(ibv_dealloc_pd(rig->b.pd));
	need_ok(ibv_close_device(rig->ctx));
}

/* --------------------------------------------------------------- posting and waiting */

struct ibv_send_wr send_wr(uint64_t id, enum ibv_wr_opcode op, struct ibv_sge *sge, int num_sge)
{
	return (struct ibv_send_wr) {
		.wr_id = id,
		.opcode = op,
		.sg_list = sge,
		.num_sge = num_sge,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

void wr_to(struct ibv_send_wr *wr, const struct region *region, size_t offset)
{
	uint64_t addr = (uintptr_t)region->addr + offset;

	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = region->mr->rkey;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = region->mr->rkey;
	}
}

void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	need_ok(ibv_post_send(qp, wr, &bad));
}

void post_recv(struct ibv_qp *qp, uint64_t id, struct ibv_sge *sge, int num_sge)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = sge, .num_sge = num_sge };

	need_ok(ibv_post_recv(qp, &wr, &bad));
}

static bool poll_until(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t us)
{
	uint64_t end = now_us() + us;
	int count;

	do {
		count = ibv_poll_cq(cq, 1, wc);
		need_that(count >= 0, "ibv_poll_cq: %d", count);
	} while (!count && now_us() < end);
	return count;
}

struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	need_that(poll_until(cq, &wc, WAIT_WC_US), "no completion came");
	return wc;
}

struct ibv_wc need_wc_at(const char *file, int line, struct ibv_cq *cq, uint64_t id,
			 enum ibv_wc_status want)
{
	struct ibv_wc wc;

	if (!poll_until(cq, &wc, WAIT_WC_US))
		tap_fail(file, line, "no completion of %llu (%s) came", (unsigned long long)id,
			 ibv_wc_status_str(want));
	if (wc.wr_id != id || wc.status != want)
		tap_fail(file, line, "completion of %llu: %s (vendor %#x), not of %llu: %s",
			 (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err,
			 (unsigned long long)id, ibv_wc_status_str(want));
	return wc;
}

void need_quiet(struct ibv_cq *cq, unsigned int ms)
{
	struct ibv_wc wc;

	need_that(!poll_until(cq, &wc, ms * 1000ull), "unexpected completion of %llu: %s",
		  (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}

static const void *event_object(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp;
	default:
		return NULL;
	}
}

void need_event(struct ibv_context *ctx, enum ibv_event_type type, const void *object)
{
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	uint64_t now, end = now_us() + WAIT_EVENT_US;
	struct ibv_async_event event;
	bool found = false;

	while (!found) {
		now = now_us();
		need_that(now < end && poll(&fd, 1, (end - now) / 1000 + 1) == 1,
			  "no event '%s' came", ibv_event_type_str(type));
		need_ok(ibv_get_async_event(ctx, &event));
		found = event.event_type == type && event_object(&event) == object;
		if (!found)
			tap_note("event on the way: %s", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
}

void rig_message(struct rig *rig)
{
	struct ibv_sge from = region_sge(&rig->a.mem, 0, 4096);
	struct ibv_sge to = region_sge(&rig->b.mem, 0, 4096);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &from, 1);

	post_recv(rig->b.qp, 2, &to, 1);
	post_send(rig->a.qp, &wr);
	need_wc(rig->a.cq, 1, IBV_WC_SUCCESS);
	need_wc(rig->b.cq, 2, IBV_WC_SUCCESS);
	need(!memcmp(rig->a.mem.addr, rig->b.mem.addr, 4096));
}

void need_device(void)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;

	rig_connect_new(&rig, &attr);
	rig_message(&rig);
	rig_destroy(&rig);
}
