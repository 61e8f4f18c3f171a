// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "tap.h"

/* ---- blocks and page lists */

bool host_blocks_alloc(struct host *host, struct host_blocks *blocks, uint64_t bytes,
		       unsigned int shift)
{
	uint64_t block = 1ull << shift;
	uint32_t i;

	blocks->shift = shift;
	blocks->count = (uint32_t)((bytes + block - 1) >> shift);
	blocks->chunk = calloc(blocks->count ? blocks->count : 1, sizeof(blocks->chunk[0]));
	if (!blocks->chunk)
		return false;
	for (i = 0; i < blocks->count; i++)
		blocks->chunk[i] = hostmem_alloc(&host->mem, block, block);
	return true;
}

/* As when a page is unmapped from the device before it is given back. */
static void chunk_release(struct host *host, struct hostmem_chunk *chunk)
{
	ferry_engine_unmapped(host->engine, chunk->dma, chunk->len);
	hostmem_free(&host->mem, chunk);
}

void host_blocks_free(struct host *host, struct host_blocks *blocks)
{
	uint32_t i;

	for (i = 0; i < blocks->count; i++)
		chunk_release(host, blocks->chunk[i]);
	free(blocks->chunk);
	memset(blocks, 0, sizeof(*blocks));
}

void *host_blocks_at(const struct host_blocks *blocks, uint64_t pos)
{
	return blocks->chunk[pos >> blocks->shift]->va + (pos & ((1ull << blocks->shift) - 1));
}

/* The bytes from @pos to the end of its block, @len at most. */
static uint64_t in_block(const struct host_blocks *blocks, uint64_t pos, uint64_t len)
{
	uint64_t left = (1ull << blocks->shift) - (pos & ((1ull << blocks->shift) - 1));

	return left < len ? left : len;
}

static uint64_t block_addr(const struct host_blocks *blocks, uint64_t pos)
{
	return blocks->chunk[pos >> blocks->shift]->dma + (pos & ((1ull << blocks->shift) - 1));
}

/*
 * Bytes to be touched, and the blocks they lie in to be mapped: the device is given whole
 * blocks.
 */
static void blocks_each(struct host *host, const struct host_blocks *blocks, uint64_t pos,
			uint64_t len, unsigned int rights,
			void (*each)(struct hostmem *, uint64_t, uint64_t, unsigned int))
{
	uint64_t block = 1ull << blocks->shift;

	while (len) {
		uint64_t n = in_block(blocks, pos, len), addr = block_addr(blocks, pos);

		each(&host->mem, addr, n, rights);
		each(&host->mem, addr & ~(block - 1), block, HOSTMEM_MAP(rights));
		pos += n;
		len -= n;
	}
}

void host_blocks_allow(struct host *host, const struct host_blocks *blocks, uint64_t pos,
		       uint64_t len, unsigned int rights)
{
	blocks_each(host, blocks, pos, len, rights, hostmem_allow);
}

void host_blocks_deny(struct host *host, const struct host_blocks *blocks, uint64_t pos,
		      uint64_t len, unsigned int rights)
{
	blocks_each(host, blocks, pos, len, rights, hostmem_deny);
}

static void list_two_levels(struct host *host, const struct host_blocks *blocks,
			    struct ferry_page_list *out, struct host_list *list)
{
	uint32_t leaves = (blocks->count + FERRY_LEAF_ENTRIES - 1) / FERRY_LEAF_ENTRIES, i;
	uint64_t root_len = (uint64_t)leaves * sizeof(__le64);
	__le64 *root;

	list->root = hostmem_alloc(&host->mem,
				   (root_len + HOSTMEM_PAGE - 1) & ~(uint64_t)(HOSTMEM_PAGE - 1),
				   HOSTMEM_PAGE);
	hostmem_allow(&host->mem, list->root->dma, root_len, HOSTMEM_READ);
	need(host_blocks_alloc(host, &list->leaves, (uint64_t)leaves * HOSTMEM_PAGE,
			       FERRY_PAGE_SHIFT));
	host_blocks_allow(host, &list->leaves, 0, blocks->count * sizeof(__le64), HOSTMEM_READ);
	for (i = 0; i < blocks->count; i++)
		*(__le64 *)host_blocks_at(&list->leaves, i * sizeof(__le64)) =
			htole64(blocks->chunk[i]->dma);
	root = (__le64 *)list->root->va;
	for (i = 0; i < leaves; i++)
		root[i] = htole64(list->leaves.chunk[i]->dma);
	out->levels = 2;
	out->root = htole64(list->root->dma);
}

void host_list_build(struct host *host, const struct host_blocks *blocks, bool two_level,
		     struct ferry_page_list *out, struct host_list *list)
{
	uint32_t i;

	memset(list, 0, sizeof(*list));
	memset(out, 0, sizeof(*out));
	out->block_shift = (uint8_t)blocks->shift;
	out->count = htole32(blocks->count);
	if (blocks->count > FERRY_INLINE_BLOCKS || two_level) {
		list_two_levels(host, blocks, out, list);
		return;
	}
	for (i = 0; i < blocks->count; i++)
		out->inline_[i] = htole64(blocks->chunk[i]->dma);
}

void host_list_free(struct host *host, struct host_list *list)
{
	if (!list->root)
		return;
	chunk_release(host, list->root);
	host_blocks_free(host, &list->leaves);
	memset(list, 0, sizeof(*list));
}

/* Without the device every object can be destroyed. */
static void object_destroy(struct host *host, unsigned int opcode, uint32_t number)
{
	if (!host->lost)
		need_eq(host_admin_object(host, opcode, number, NULL), FERRY_ADMIN_OK);
}

/* ---- contexts and record slots */

static uint64_t page_word(const struct hostmem_chunk *page)
{
	return page->dma + offsetof(struct ferry_record_page, word);
}

static unsigned int set_record_page(struct host_context *context, unsigned int opcode,
				    const struct hostmem_chunk *page)
{
	union ferry_admin_sqe cmd = {
		.set_page.head.opcode = htole16((uint16_t)opcode),
		.set_page.context = htole32(context->number),
		.set_page.addr = htole64(page->dma),
	};

	return host_admin(context->host, &cmd, NULL);
}

static bool add_record_page(struct host_context *context)
{
	struct host *host = context->host;
	struct hostmem_chunk *page = hostmem_alloc(&host->mem, HOSTMEM_PAGE, HOSTMEM_PAGE);

	hostmem_allow(&host->mem, page->dma, HOSTMEM_PAGE, HOSTMEM_READ);
	hostmem_allow(&host->mem, page_word(page), sizeof(__le32), HOSTMEM_WRITE);
	if (set_record_page(context, FERRY_ADMIN_ADD_RECORD_PAGE, page)) {
		hostmem_free(&host->mem, page);
		return false;
	}
	context->page[context->num_pages++] = page;
	return true;
}

struct host_context *host_context_create(struct host *host, unsigned int record_pages)
{
	struct host_context *context = calloc(1, sizeof(*context));
	struct ferry_admin_cqe answer;

	need(context && record_pages <= 8);
	context->host = host;
	if (host_admin_object(host, FERRY_ADMIN_CREATE_CONTEXT, 0, &answer)) {
		free(context);
		return NULL;
	}
	context->number = le32toh(answer.number);
	while (context->num_pages < record_pages) {
		if (!add_record_page(context)) {
			host_context_destroy(context);
			return NULL;
		}
	}
	return context;
}

void host_context_destroy(struct host_context *context)
{
	struct host *host = context->host;

	while (context->num_pages) {
		struct hostmem_chunk *page = context->page[--context->num_pages];

		if (!host->lost)
			need_eq(set_record_page(context, FERRY_ADMIN_REMOVE_RECORD_PAGE, page),
				FERRY_ADMIN_OK);
		chunk_release(host, page);
	}
	object_destroy(host, FERRY_ADMIN_DESTROY_CONTEXT, context->number);
	free(context);
}

struct host_slot host_slot_get(struct host_context *context)
{
	struct host_slot slot = { .context = context };
	unsigned int page;

	do {
		page = (unsigned int)rng_below(&context->host->rng, context->num_pages);
		slot.index = (unsigned int)rng_below(&context->host->rng, FERRY_SLOTS_PER_PAGE);
	} while (context->used[page] >> slot.index & 1);
	context->used[page] |= 1ull << slot.index;
	slot.page = context->page[page];
	memset(host_slot_at(&slot), 0, sizeof(struct ferry_slot));
	return slot;
}

void host_slot_put(struct host_slot *slot)
{
	struct host_context *context = slot->context;
	unsigned int i;

	for (i = 0; i < context->num_pages; i++) {
		if (context->page[i] == slot->page)
			context->used[i] &= ~(1ull << slot->index);
	}
}

uint64_t host_slot_addr(const struct host_slot *slot)
{
	return slot->page->dma + slot->index * sizeof(struct ferry_slot);
}

struct ferry_slot *host_slot_at(const struct host_slot *slot)
{
	return (struct ferry_slot *)slot->page->va + slot->index;
}

/* ---- PDs */

struct host_pd *host_pd_create(struct host_context *context)
{
	union ferry_admin_sqe cmd = {
		.create_pd.head.opcode = htole16(FERRY_ADMIN_CREATE_PD),
		.create_pd.context = htole32(context->number),
	};
	struct ferry_admin_cqe answer;
	struct host_pd *pd;

	if (host_admin(context->host, &cmd, &answer))
		return NULL;
	pd = calloc(1, sizeof(*pd));
	need(pd);
	pd->context = context;
	pd->number = le32toh(answer.number);
	return pd;
}

void host_pd_destroy(struct host_pd *pd)
{
	object_destroy(pd->context->host, FERRY_ADMIN_DESTROY_PD, pd->number);
	free(pd);
}

/* ---- CQs */

static unsigned int ring_block_shift(struct host *host)
{
	return (unsigned int)rng_range(&host->rng, FERRY_PAGE_SHIFT, FERRY_PAGE_SHIFT + 1);
}

static void cq_free(struct host_cq *cq)
{
	struct host *host = cq->context->host;

	host_blocks_free(host, &cq->ring);
	host_slot_put(&cq->slot);
	free(cq);
}

struct host_cq *host_cq_create(struct host_context *context, unsigned int shift)
{
	union ferry_admin_sqe cmd = {
		.create_cq.head.opcode = htole16(FERRY_ADMIN_CREATE_CQ),
		.create_cq.context = htole32(context->number),
		.create_cq.eq = htole32(context->host->eq.number),
		.create_cq.depth_shift = (uint8_t)shift,
	};
	uint64_t bytes = sizeof(struct ferry_cqe) << shift;
	struct host_cq *cq = calloc(1, sizeof(*cq));
	struct host *host = context->host;
	struct ferry_admin_cqe answer;
	struct host_list list;
	unsigned int status;

	need(cq);
	cq->context = context;
	cq->shift = shift;
	cq->slot = host_slot_get(context);
	need(host_blocks_alloc(host, &cq->ring, bytes, ring_block_shift(host)));
	host_blocks_allow(host, &cq->ring, 0, bytes, HOSTMEM_WRITE);
	cmd.create_cq.slot_addr = htole64(host_slot_addr(&cq->slot));
	host_list_build(host, &cq->ring, rng_chance(&host->rng, 30), &cmd.create_cq.ring, &list);
	status = host_admin(host, &cmd, &answer);
	host_list_free(host, &list);
	if (status) {
		cq_free(cq);
		return NULL;
	}
	cq->number = le32toh(answer.number);
	return cq;
}

void host_cq_destroy(struct host_cq *cq)
{
	object_destroy(cq->context->host, FERRY_ADMIN_DESTROY_CQ, cq->number);
	cq_free(cq);
}

/* ---- QPs */

static void ring_alloc(struct host_context *context, struct host_ring *ring, unsigned int shift,
		       unsigned int stride_shift)
{
	uint64_t bytes = 1ull << (shift + stride_shift);
	struct host *host = context->host;

	ring->shift = shift;
	ring->stride_shift = stride_shift;
	ring->slot = host_slot_get(context);
	need(host_blocks_alloc(host, &ring->blocks, bytes, ring_block_shift(host)));
	host_blocks_allow(host, &ring->blocks, 0, bytes, HOSTMEM_READ);
}

static void qp_free(struct host_qp *qp)
{
	struct host *host = qp->pd->context->host;

	host_blocks_free(host, &qp->sq.blocks);
	host_blocks_free(host, &qp->rq.blocks);
	host_slot_put(&qp->sq.slot);
	host_slot_put(&qp->rq.slot);
	free(qp);
}

static void qp_command(const struct host_qp *qp, const struct host_qp_spec *spec,
		       struct ferry_admin_create_qp *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->head.opcode = htole16(FERRY_ADMIN_CREATE_QP);
	cmd->context = htole32(spec->pd->context->number);
	cmd->pd = htole32(spec->pd->number);
	cmd->send_cq = htole32(spec->send_cq->number);
	cmd->recv_cq = htole32(spec->recv_cq->number);
	cmd->type = spec->type;
	cmd->flags = spec->signal_all ? FERRY_QP_SIGNAL_ALL : 0;
	cmd->sq_shift = (uint8_t)qp->sq.shift;
	cmd->sq_wqe_shift = (uint8_t)qp->sq.stride_shift;
	cmd->rq_shift = (uint8_t)qp->rq.shift;
	cmd->rq_wqe_shift = (uint8_t)qp->rq.stride_shift;
	cmd->sq_slot_addr = htole64(host_slot_addr(&qp->sq.slot));
	cmd->rq_slot_addr = htole64(host_slot_addr(&qp->rq.slot));
}

struct host_qp *host_qp_create(const struct host_qp_spec *spec)
{
	struct host_context *context = spec->pd->context;
	struct host *host = context->host;
	struct host_qp *qp = calloc(1, sizeof(*qp));
	struct ferry_admin_cqe answer;
	struct host_list sq, rq;
	union ferry_admin_sqe cmd;
	unsigned int status;

	need(qp);
	memset(&cmd, 0, sizeof(cmd));
	qp->pd = spec->pd;
	qp->send_cq = spec->send_cq;
	qp->recv_cq = spec->recv_cq;
	ring_alloc(context, &qp->sq, spec->sq_shift,
		   spec->sq_stride_shift ? spec->sq_stride_shift : 7);
	ring_alloc(context, &qp->rq, spec->rq_shift,
		   spec->rq_stride_shift ? spec->rq_stride_shift : 6);
	qp_command(qp, spec, &cmd.create_qp);
	host_list_build(host, &qp->sq.blocks, rng_chance(&host->rng, 30), &cmd.create_qp.sq, &sq);
	host_list_build(host, &qp->rq.blocks, rng_chance(&host->rng, 30), &cmd.create_qp.rq, &rq);
	status = host_admin(host, &cmd, &answer);
	host_list_free(host, &sq);
	host_list_free(host, &rq);
	if (status) {
		qp_free(qp);
		return NULL;
	}
	qp->number = le32toh(answer.number);
	return qp;
}

void host_qp_destroy(struct host_qp *qp)
{
	object_destroy(qp->pd->context->host, FERRY_ADMIN_DESTROY_QP, qp->number);
	qp_free(qp);
}

unsigned int host_qp_modify(struct host_qp *qp, const struct ferry_qp_attr *attr)
{
	union ferry_admin_sqe cmd = {
		.modify_qp.head.opcode = htole16(FERRY_ADMIN_MODIFY_QP),
		.modify_qp.qp = htole32(qp->number),
		.modify_qp.attr = *attr,
	};

	return host_admin(qp->pd->context->host, &cmd, NULL);
}

/* RESET begins the rings anew, on both sides. */
unsigned int host_qp_state(struct host_qp *qp, enum ferry_qp_state state)
{
	struct ferry_qp_attr attr = {
		.mask = htole32(FERRY_QP_ATTR_STATE),
		.state = (uint8_t)state,
	};
	unsigned int status = host_qp_modify(qp, &attr);

	if (!status && state == FERRY_QPS_RESET) {
		qp->sq.pi = 0;
		qp->rq.pi = 0;
		memset(host_slot_at(&qp->sq.slot), 0, sizeof(struct ferry_slot));
		memset(host_slot_at(&qp->rq.slot), 0, sizeof(struct ferry_slot));
	}
	return status;
}

unsigned int host_qp_query(struct host_qp *qp, struct ferry_qp_attr *attr)
{
	struct ferry_admin_cqe answer;
	unsigned int status = host_admin_object(qp->pd->context->host, FERRY_ADMIN_QUERY_QP,
						qp->number, &answer);

	*attr = answer.qp;
	return status;
}

static uint8_t or_default(uint8_t value, uint8_t fallback)
{
	return value ? value : fallback;
}

static void attr_init(const struct host_path *path, struct ferry_qp_attr *attr)
{
	attr->mask = htole32(FERRY_QP_ATTR_STATE | FERRY_QP_ATTR_PKEY_INDEX |
			     FERRY_QP_ATTR_ACCESS);
	attr->access = path->access;
}

static void attr_rtr(const struct host_qp *qp, const struct host_qp *peer,
		     const struct host_path *path, unsigned int side, struct ferry_qp_attr *attr)
{
	const struct host *to = peer->pd->context->host;

	(void)qp;
	attr->mask = htole32(FERRY_QP_ATTR_STATE | FERRY_QP_ATTR_AV | FERRY_QP_ATTR_PATH_MTU |
			     FERRY_QP_ATTR_DEST_QPN | FERRY_QP_ATTR_RQ_PSN |
			     FERRY_QP_ATTR_MAX_DEST_RD_ATOMIC | FERRY_QP_ATTR_MIN_RNR_TIMER);
	host_gid(to, path->ipv6, attr->av.dgid);
	memcpy(attr->av.dmac, to->mac, sizeof(attr->av.dmac));
	attr->av.vlan = htole16(0xffff);
	attr->av.sgid_index = htole16(path->ipv6 ? HOST_GID_IPV6 : HOST_GID_IPV4);
	attr->av.hop_limit = 64;
	attr->av.sl = path->sl;
	attr->path_mtu = or_default(path->mtu, 3);
	attr->dest_qpn = htole32(peer->number);
	attr->rq_psn = htole32(path->psn[!side]);
	attr->max_dest_rd_atomic = or_default(path->rd_atomic, 4);
	attr->min_rnr_timer = or_default(path->min_rnr_timer, 1);
}

static void attr_rts(const struct host_path *path, unsigned int side, struct ferry_qp_attr *attr)
{
	attr->mask = htole32(FERRY_QP_ATTR_STATE | FERRY_QP_ATTR_TIMEOUT |
			     FERRY_QP_ATTR_RETRY_CNT | FERRY_QP_ATTR_RNR_RETRY |
			     FERRY_QP_ATTR_SQ_PSN | FERRY_QP_ATTR_MAX_RD_ATOMIC);
	attr->timeout = or_default(path->timeout, 8);
	attr->retry_cnt = or_default(path->retry_cnt, 7);
	attr->rnr_retry = or_default(path->rnr_retry, 7);
	attr->sq_psn = htole32(path->psn[side]);
	attr->max_rd_atomic = or_default(path->rd_atomic, 4);
}

void host_qp_attr(const struct host_qp *qp, const struct host_qp *peer,
		  const struct host_path *path, unsigned int side, enum ferry_qp_state state,
		  struct ferry_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	if (state == FERRY_QPS_INIT)
		attr_init(path, attr);
	else if (state == FERRY_QPS_RTR)
		attr_rtr(qp, peer, path, side, attr);
	else if (state == FERRY_QPS_RTS)
		attr_rts(path, side, attr);
	attr->mask |= htole32(FERRY_QP_ATTR_STATE);
	attr->state = (uint8_t)state;
}

void host_connect(struct host_qp *a, struct host_qp *b, const struct host_path *path)
{
	struct ferry_qp_attr attr;
	unsigned int state;

	for (state = FERRY_QPS_INIT; state <= FERRY_QPS_RTS; state++) {
		host_qp_attr(a, b, path, 0, state, &attr);
		need_eq(host_qp_modify(a, &attr), FERRY_ADMIN_OK);
		if (a == b)
			continue;
		host_qp_attr(b, a, path, 1, state, &attr);
		need_eq(host_qp_modify(b, &attr), FERRY_ADMIN_OK);
	}
}

/* ---- MRs */

static unsigned int mr_rights(const struct host_mr *mr)
{
	return HOSTMEM_READ | (mr->spec.access & (FERRY_ACCESS_LOCAL_WRITE |
						  FERRY_ACCESS_REMOTE_WRITE |
						  FERRY_ACCESS_REMOTE_ATOMIC) ? HOSTMEM_WRITE : 0);
}

/* What a byte around an MR holds. */
static uint8_t guard_byte(uint64_t pos)
{
	return (uint8_t)(0xa5 ^ pos * 7);
}

static void guards_write(struct host_mr *mr)
{
	uint64_t total = (uint64_t)mr->blocks.count << mr->blocks.shift, pos;

	for (pos = 0; pos < total; pos++) {
		if (pos == mr->spec.offset)
			pos += mr->spec.length;
		if (pos < total)
			*(uint8_t *)host_blocks_at(&mr->blocks, pos) = guard_byte(pos);
	}
}

bool host_mr_guards_intact(const struct host_mr *mr)
{
	uint64_t total = (uint64_t)mr->blocks.count << mr->blocks.shift, pos;

	for (pos = 0; pos < total; pos++) {
		if (pos == mr->spec.offset)
			pos += mr->spec.length;
		if (pos < total && *(uint8_t *)host_blocks_at(&mr->blocks, pos) != guard_byte(pos))
			return false;
	}
	return true;
}

static void mr_free(struct host_mr *mr)
{
	struct host *host = mr->pd->context->host;

	host_blocks_deny(host, &mr->blocks, mr->spec.offset, mr->spec.length, mr_rights(mr));
	if (!mr->spec.over)
		host_blocks_free(host, &mr->blocks);
	free(mr);
}

struct host_mr *host_mr_create(const struct host_mr_spec *spec)
{
	union ferry_admin_sqe cmd = {
		.create_mr.head.opcode = htole16(FERRY_ADMIN_CREATE_MR),
		.create_mr.pd = htole32(spec->pd->number),
		.create_mr.access = spec->access,
		.create_mr.flags = spec->assist ? FERRY_MR_ASSIST : 0,
		.create_mr.iova = htole64(spec->iova),
		.create_mr.length = htole64(spec->length),
		.create_mr.offset = htole64(spec->offset),
	};
	struct host *host = spec->pd->context->host;
	struct host_mr *mr = calloc(1, sizeof(*mr));
	struct ferry_admin_cqe answer;
	struct host_list list;
	unsigned int status;

	need(mr);
	mr->pd = spec->pd;
	mr->spec = *spec;
	if (spec->over) {
		mr->blocks = spec->over->blocks;
	} else {
		need(host_blocks_alloc(host, &mr->blocks, spec->offset + spec->length,
				       spec->block_shift ? spec->block_shift : FERRY_PAGE_SHIFT));
		guards_write(mr);
	}
	host_blocks_allow(host, &mr->blocks, spec->offset, spec->length, mr_rights(mr));
	host_list_build(host, &mr->blocks, spec->two_level, &cmd.create_mr.pages, &list);
	status = host_admin(host, &cmd, &answer);
	host_list_free(host, &list);
	if (status) {
		mr_free(mr);
		return NULL;
	}
	mr->key = le32toh(answer.number);
	return mr;
}

void host_mr_destroy(struct host_mr *mr)
{
	object_destroy(mr->pd->context->host, FERRY_ADMIN_DESTROY_MR, mr->key);
	mr_free(mr);
}

void host_mr_write(struct host_mr *mr, uint64_t pos, const void *from, uint64_t len)
{
	const uint8_t *at = from;

	pos += mr->spec.offset;
	while (len) {
		uint64_t n = in_block(&mr->blocks, pos, len);

		memcpy(host_blocks_at(&mr->blocks, pos), at, n);
		at += n;
		pos += n;
		len -= n;
	}
}

void host_mr_read(const struct host_mr *mr, uint64_t pos, void *to, uint64_t len)
{
	uint8_t *at = to;

	pos += mr->spec.offset;
	while (len) {
		uint64_t n = in_block(&mr->blocks, pos, len);

		memcpy(at, host_blocks_at(&mr->blocks, pos), n);
		at += n;
		pos += n;
		len -= n;
	}
}

void host_mr_fill(struct host_mr *mr, uint8_t value)
{
	uint64_t pos;

	for (pos = mr->spec.offset; pos < mr->spec.offset + mr->spec.length;) {
		uint64_t n = in_block(&mr->blocks, pos,
				      mr->spec.offset + mr->spec.length - pos);

		memset(host_blocks_at(&mr->blocks, pos), value, n);
		pos += n;
	}
}
