// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every error reaches the user: as the right status, in the right order, with the QPs in
 * the right state behind it and no byte of memory changed. And what a call refuses, it
 * refuses with the right errno value.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

#define LEN		256u		/* bytes a work request moves here */

static bool has_atomics(struct ibv_context *ctx)
{
	struct ibv_device_attr device;

	need_ok(ibv_query_device(ctx, &device));
	return device.atomic_cap != IBV_ATOMIC_NONE;
}

/* ------------------------------------------------------- keys, ranges, rights: a table */

/* Which of the three ranges of a message is wrong. */
enum where { INITIATOR, TARGET, RECEIVER };

enum key {
	KEY_GOOD,
	KEY_VARIANT,		/* right index, wrong low bits */
	KEY_UNKNOWN,		/* an index that is not in use */
	KEY_0, KEY_1, KEY_2,	/* numbers that are nobody's or reserved */
	KEY_OTHER_PD,
	KEY_STALE,		/* deregistered */
};

/* One way to be wrong. All other ranges and rights of the message are right. */
struct fault {
	enum ibv_wr_opcode op;
	enum where where;
	enum key key;
	int shift;		/* bytes before (below 0) or after the region */
	bool plain;		/* the wrong region grants only what plain_access says */
	int plain_access;
	unsigned int qp_denies;	/* IBV_ACCESS_* that the target's QP does not grant */
	enum ibv_wc_status status; /* at the initiator; 0: as `where` has it */
};

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_answered(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_READ || is_atomic(op);
}

static uint32_t wrong_key(const struct fault *fault, struct ibv_mr *mr, uint32_t good)
{
	switch (fault->key) {
	case KEY_VARIANT: return good ^ 0x55;
	case KEY_UNKNOWN: return 0xfffffe00 | (good & 0xff);
	case KEY_0: return 0;
	case KEY_1: return 1;
	case KEY_2: return 2;
	case KEY_STALE: need_ok(ibv_dereg_mr(mr)); return good;
	default: return good;
	}
}

static enum ibv_wc_status initiator_status(const struct fault *fault)
{
	static const enum ibv_wc_status by_place[] = {
		[INITIATOR] = IBV_WC_LOC_PROT_ERR,
		[TARGET] = IBV_WC_REM_ACCESS_ERR,
		[RECEIVER] = IBV_WC_REM_OP_ERR,
	};

	return fault->status ? fault->status : by_place[fault->where];
}

/* The region to be wrong about: of another PD, or with fewer rights, where that is it. */
static void wrong_region(struct region *region, const struct fault *fault, const struct rig *rig)
{
	const struct end *end = fault->where == INITIATOR ? &rig->a : &rig->b;
	struct ibv_pd *pd = end->pd;

	if (fault->key == KEY_OTHER_PD)
		pd = need_ptr(ibv_alloc_pd(rig->ctx));
	region_create(region, pd, LEN, fault->plain ? fault->plain_access : rig->attr.access);
	fill(region->addr, LEN, 3);
}

static void check_untouched(const struct region *region, uint64_t seed)
{
	uint8_t *want = need_ptr(malloc(region->len));

	fill(want, region->len, seed);
	need(!memcmp(region->addr, want, region->len));
	free(want);
}

/* A good request, the wrong one, and two behind it that must be flushed. */
static void run_fault(const void *arg)
{
	const struct fault *fault = arg;
	uint32_t len = is_atomic(fault->op) ? 8 : LEN;
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr wr[4];
	struct ibv_sge local, sink, last;
	struct region wrong;
	struct rig rig;
	uint64_t addr;
	int i;

	if (is_atomic(fault->op))
		attr.access |= IBV_ACCESS_REMOTE_ATOMIC;
	attr.qp_access = attr.access & ~fault->qp_denies;
	rig_connect_new(&rig, &attr);
	wrong_region(&wrong, fault, &rig);
	addr = (uintptr_t)wrong.addr + fault->shift;
	if (fault->shift > 0)
		addr += LEN - len;

	local = region_sge(&rig.a.mem, 0, len);
	sink = region_sge(&rig.b.mem, 0, LEN);
	last = region_sge(&rig.a.mem, 0, LEN);
	for (i = 0; i < 4; i++) {
		wr[i] = send_wr(i + 1, i == 1 ? fault->op : IBV_WR_SEND, &last, 1);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[1].sg_list = &local;
	if (fault->op != IBV_WR_SEND)
		wr_to(&wr[1], &rig.b.mem, 1024);

	switch (fault->where) {
	case INITIATOR:
		local.addr = addr;
		local.lkey = wrong_key(fault, wrong.mr, wrong.mr->lkey);
		break;
	case TARGET:
		wr_to(&wr[1], &wrong, fault->shift + (fault->shift > 0 ? LEN - len : 0));
		if (is_atomic(fault->op))
			wr[1].wr.atomic.rkey = wrong_key(fault, wrong.mr, wrong.mr->rkey);
		else
			wr[1].wr.rdma.rkey = wrong_key(fault, wrong.mr, wrong.mr->rkey);
		break;
	case RECEIVER:
		break;
	}
	post_recv(rig.b.qp, 10, &sink, 1);
	if (fault->where == RECEIVER) {
		sink.addr = addr;
		sink.lkey = wrong_key(fault, wrong.mr, wrong.mr->lkey);
	}
	post_recv(rig.b.qp, 11, &sink, 1);
	post_recv(rig.b.qp, 12, &sink, 1);
	wr[0].next = NULL;
	post_send(rig.a.qp, &wr[0]);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	post_send(rig.a.qp, &wr[1]);
	need_wc(rig.a.cq, 2, initiator_status(fault));
	need_wc(rig.a.cq, 3, IBV_WC_WR_FLUSH_ERR);
	need_wc(rig.a.cq, 4, IBV_WC_WR_FLUSH_ERR);
	need_state(rig.a.qp, IBV_QPS_ERR);
	need_wc(rig.b.cq, 10, IBV_WC_SUCCESS);

	if (fault->where == INITIATOR) {
		/* What stands behind a request whose answer has no place may have arrived. */
		need_state(rig.b.qp, IBV_QPS_RTS);
		if (!is_answered(fault->op))
			need_quiet(rig.b.cq, 20);
	} else {
		need_wc(rig.b.cq, 11, fault->where == RECEIVER ? IBV_WC_LOC_PROT_ERR :
			IBV_WC_WR_FLUSH_ERR);
		need_wc(rig.b.cq, 12, IBV_WC_WR_FLUSH_ERR);
		need_state(rig.b.qp, IBV_QPS_ERR);
	}
	if (fault->where == TARGET)
		need_event(rig.ctx, fault->qp_denies ? IBV_EVENT_QP_REQ_ERR :
			   IBV_EVENT_QP_ACCESS_ERR, rig.b.qp);
	check_untouched(&wrong, 3);
	if (fault->key != KEY_STALE)
		need_ok(ibv_dereg_mr(wrong.mr));
	rig_destroy(&rig);
}

#define FAULT(text, op_, where_, key_, ...)				\
	{								\
		.name = text,						\
		.run = run_fault,					\
		.arg = &(const struct fault) {				\
			.op = op_, .where = where_, .key = key_, ##__VA_ARGS__ \
		},							\
	}

static const struct tap_test faults[] = {
	FAULT("lkey: wrong variant, send", IBV_WR_SEND, INITIATOR, KEY_VARIANT),
	FAULT("lkey: wrong variant, write", IBV_WR_RDMA_WRITE, INITIATOR, KEY_VARIANT),
	FAULT("lkey: wrong variant, read", IBV_WR_RDMA_READ, INITIATOR, KEY_VARIANT),
	FAULT("lkey: wrong variant, receive", IBV_WR_SEND, RECEIVER, KEY_VARIANT),
	FAULT("lkey: unknown, send", IBV_WR_SEND, INITIATOR, KEY_UNKNOWN),
	FAULT("lkey: unknown, read", IBV_WR_RDMA_READ, INITIATOR, KEY_UNKNOWN),
	FAULT("lkey: unknown, receive", IBV_WR_SEND, RECEIVER, KEY_UNKNOWN),
	FAULT("lkey: 0, send", IBV_WR_SEND, INITIATOR, KEY_0),
	FAULT("lkey: 1, write", IBV_WR_RDMA_WRITE, INITIATOR, KEY_1),
	FAULT("lkey: 2, write", IBV_WR_RDMA_WRITE, INITIATOR, KEY_2),
	FAULT("lkey: 2, read", IBV_WR_RDMA_READ, INITIATOR, KEY_2),
	FAULT("lkey: 1, receive", IBV_WR_SEND, RECEIVER, KEY_1),
	FAULT("lkey: 2, receive", IBV_WR_SEND, RECEIVER, KEY_2),
	FAULT("lkey: other PD, send", IBV_WR_SEND, INITIATOR, KEY_OTHER_PD),
	FAULT("lkey: other PD, write", IBV_WR_RDMA_WRITE, INITIATOR, KEY_OTHER_PD),
	FAULT("lkey: other PD, read", IBV_WR_RDMA_READ, INITIATOR, KEY_OTHER_PD),
	FAULT("lkey: other PD, receive", IBV_WR_SEND, RECEIVER, KEY_OTHER_PD),
	FAULT("lkey: deregistered, send", IBV_WR_SEND, INITIATOR, KEY_STALE),
	FAULT("lkey: deregistered, read", IBV_WR_RDMA_READ, INITIATOR, KEY_STALE),
	FAULT("lkey: deregistered, receive", IBV_WR_SEND, RECEIVER, KEY_STALE),
	FAULT("local range: a byte before, send", IBV_WR_SEND, INITIATOR, KEY_GOOD, .shift = -1),
	FAULT("local range: a byte after, send", IBV_WR_SEND, INITIATOR, KEY_GOOD, .shift = 1),
	FAULT("local range: a byte before, write", IBV_WR_RDMA_WRITE, INITIATOR, KEY_GOOD, .shift = -1),
	FAULT("local range: a byte after, write", IBV_WR_RDMA_WRITE, INITIATOR, KEY_GOOD, .shift = 1),
	FAULT("local range: a byte before, read", IBV_WR_RDMA_READ, INITIATOR, KEY_GOOD, .shift = -1),
	FAULT("local range: a byte after, read", IBV_WR_RDMA_READ, INITIATOR, KEY_GOOD, .shift = 1),
	FAULT("local range: a byte before, receive", IBV_WR_SEND, RECEIVER, KEY_GOOD, .shift = -1),
	FAULT("local range: a byte after, receive", IBV_WR_SEND, RECEIVER, KEY_GOOD, .shift = 1),
	FAULT("local right: none, read", IBV_WR_RDMA_READ, INITIATOR, KEY_GOOD, .plain = true),
	FAULT("local right: none, receive", IBV_WR_SEND, RECEIVER, KEY_GOOD, .plain = true),
	FAULT("local right: remote read only, read", IBV_WR_RDMA_READ, INITIATOR, KEY_GOOD,
	      .plain = true, .plain_access = IBV_ACCESS_REMOTE_READ),

	FAULT("rkey: wrong variant, write", IBV_WR_RDMA_WRITE, TARGET, KEY_VARIANT),
	FAULT("rkey: wrong variant, read", IBV_WR_RDMA_READ, TARGET, KEY_VARIANT),
	FAULT("rkey: unknown, write", IBV_WR_RDMA_WRITE, TARGET, KEY_UNKNOWN),
	FAULT("rkey: unknown, read", IBV_WR_RDMA_READ, TARGET, KEY_UNKNOWN),
	FAULT("rkey: 0, write", IBV_WR_RDMA_WRITE, TARGET, KEY_0),
	FAULT("rkey: 1, write", IBV_WR_RDMA_WRITE, TARGET, KEY_1),
	FAULT("rkey: 1, read", IBV_WR_RDMA_READ, TARGET, KEY_1),
	FAULT("rkey: 2, write", IBV_WR_RDMA_WRITE, TARGET, KEY_2),
	FAULT("rkey: 2, read", IBV_WR_RDMA_READ, TARGET, KEY_2),
	FAULT("rkey: other PD, write", IBV_WR_RDMA_WRITE, TARGET, KEY_OTHER_PD),
	FAULT("rkey: other PD, read", IBV_WR_RDMA_READ, TARGET, KEY_OTHER_PD),
	FAULT("rkey: deregistered, write", IBV_WR_RDMA_WRITE, TARGET, KEY_STALE),
	FAULT("rkey: deregistered, read", IBV_WR_RDMA_READ, TARGET, KEY_STALE),
	FAULT("remote range: a byte before, write", IBV_WR_RDMA_WRITE, TARGET, KEY_GOOD, .shift = -1),
	FAULT("remote range: a byte after, write", IBV_WR_RDMA_WRITE, TARGET, KEY_GOOD, .shift = 1),
	FAULT("remote range: a byte before, read", IBV_WR_RDMA_READ, TARGET, KEY_GOOD, .shift = -1),
	FAULT("remote range: a byte after, read", IBV_WR_RDMA_READ, TARGET, KEY_GOOD, .shift = 1),
	FAULT("remote right: none, write", IBV_WR_RDMA_WRITE, TARGET, KEY_GOOD, .plain = true),
	FAULT("remote right: none, read", IBV_WR_RDMA_READ, TARGET, KEY_GOOD, .plain = true),
	FAULT("remote right: read only, write", IBV_WR_RDMA_WRITE, TARGET, KEY_GOOD,
	      .plain = true, .plain_access = IBV_ACCESS_REMOTE_READ),
	FAULT("remote right: write only, read", IBV_WR_RDMA_READ, TARGET, KEY_GOOD, .plain = true,
	      .plain_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
	FAULT("remote right: local write only, write", IBV_WR_RDMA_WRITE, TARGET, KEY_GOOD,
	      .plain = true, .plain_access = IBV_ACCESS_LOCAL_WRITE),
	FAULT("QP right: no write", IBV_WR_RDMA_WRITE, TARGET, KEY_GOOD,
	      .qp_denies = IBV_ACCESS_REMOTE_WRITE, .status = IBV_WC_REM_INV_REQ_ERR),
	FAULT("QP right: no read", IBV_WR_RDMA_READ, TARGET, KEY_GOOD,
	      .qp_denies = IBV_ACCESS_REMOTE_READ, .status = IBV_WC_REM_INV_REQ_ERR),
};

static const struct tap_test atomic_faults[] = {
	FAULT("lkey: wrong variant, atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, INITIATOR, KEY_VARIANT),
	FAULT("local right: none, atomic", IBV_WR_ATOMIC_CMP_AND_SWP, INITIATOR, KEY_GOOD, .plain = true),
	FAULT("rkey: wrong variant, atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, TARGET, KEY_VARIANT),
	FAULT("rkey: other PD, atomic", IBV_WR_ATOMIC_CMP_AND_SWP, TARGET, KEY_OTHER_PD),
	FAULT("remote range: 8 bytes before, atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, TARGET,
	      KEY_GOOD, .shift = -8),
	FAULT("remote range: 8 bytes after, atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, TARGET,
	      KEY_GOOD, .shift = 8),
	FAULT("remote right: no atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, TARGET, KEY_GOOD, .plain = true,
	      .plain_access = ACCESS_ALL),
	FAULT("QP right: no atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, TARGET, KEY_GOOD,
	      .qp_denies = IBV_ACCESS_REMOTE_ATOMIC, .status = IBV_WC_REM_INV_REQ_ERR),
};

/* ------------------------------------------------------------------ transport's errors */

static void send_one(struct rig *rig, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = region_sge(&rig->a.mem, 0, len);
	struct ibv_send_wr wr = send_wr(id, IBV_WR_SEND, &sge, 1);

	post_send(rig->a.qp, &wr);
}

static void receive_one(struct rig *rig, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = region_sge(&rig->b.mem, 0, len);

	post_recv(rig->b.qp, id, &sge, 1);
}

static void test_receive_too_short(const void *arg)
{
	static const uint32_t lengths[] = { 1, 256, 1023, 1024, 1025, 4095 };
	struct rig_attr attr = rig_defaults();
	struct rig rig;
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		rig_connect_new(&rig, &attr);
		receive_one(&rig, 1, lengths[i]);
		send_one(&rig, 2, lengths[i] + 1);
		need_wc(rig.b.cq, 1, IBV_WC_LOC_LEN_ERR);
		need_wc(rig.a.cq, 2, IBV_WC_REM_INV_REQ_ERR);
		need_state(rig.a.qp, IBV_QPS_ERR);
		need_state(rig.b.qp, IBV_QPS_ERR);
		rig_destroy(&rig);
	}
}

static void test_rnr_exceeded(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;

	(void)arg;
	attr.rnr_retry = 2;
	rig_connect_new(&rig, &attr);
	send_one(&rig, 1, LEN);
	send_one(&rig, 2, LEN);
	need_wc(rig.a.cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	need_wc(rig.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	need_state(rig.a.qp, IBV_QPS_ERR);
	need_state(rig.b.qp, IBV_QPS_RTS);
	rig_destroy(&rig);
}

/* rnr_retry 7 has no end, and the message arrives once there is a receive for it. */
static void test_rnr_waits(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;

	(void)arg;
	rig_connect_new(&rig, &attr);
	send_one(&rig, 1, LEN);
	need_quiet(rig.a.cq, 300);
	receive_one(&rig, 2, LEN);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_eq(need_wc(rig.b.cq, 2, IBV_WC_SUCCESS).byte_len, LEN);
	need(!memcmp(rig.a.mem.addr, rig.b.mem.addr, LEN));
	rig_destroy(&rig);
}

enum lost { PEER_DESTROYED, PEER_OTHER_QPN, PEER_RESET, PEER_ERROR, PEER_GONE };

static void lose_peer(struct rig *rig, enum lost how)
{
	struct remote_qp nobody = { .qpn = rig->b.qp->qp_num ^ 0xf0f0, .psn = rig->b.psn };

	if (how != PEER_OTHER_QPN) {
		rig_connect(rig);
	} else {
		find_gid(rig->ctx, &nobody.gid);
		qp_to_init(rig->a.qp, &rig->attr);
		qp_to_rtr(rig->a.qp, &rig->attr, &nobody);
		qp_to_rts(rig->a.qp, &rig->attr, rig->a.psn);
	}
	switch (how) {
	case PEER_DESTROYED: qp_destroy(&rig->b.qp); break;
	case PEER_RESET: qp_to_state(rig->b.qp, IBV_QPS_RESET); break;
	case PEER_ERROR: qp_to_state(rig->b.qp, IBV_QPS_ERR); break;
	default: break;
	}
}

static void test_retry_exceeded(const void *arg)
{
	enum lost how = (intptr_t)arg;
	struct rig_attr attr = rig_defaults();
	struct rig rig;
	uint64_t start;

	attr.timeout = 12;	/* 16.8 ms, up to four times that by the specification */
	attr.retry_cnt = 3;
	rig_create(&rig, &attr);
	lose_peer(&rig, how);
	start = now_us();
	send_one(&rig, 1, LEN);
	send_one(&rig, 2, LEN);
	need_wc(rig.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	need_wc(rig.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	need_state(rig.a.qp, IBV_QPS_ERR);
	/* The first try and three more, and each has waited. */
	need_that(now_us() - start >= 4 * 16800 - 1000, "gave up after %llu us",
		  (unsigned long long)(now_us() - start));
	rig_destroy(&rig);
}

static void test_misaligned_atomic(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct rig rig;

	(void)arg;
	attr.access |= IBV_ACCESS_REMOTE_ATOMIC;
	attr.qp_access = attr.access;
	rig_connect_new(&rig, &attr);
	sge = region_sge(&rig.a.mem, 0, 8);
	wr = send_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
	wr_to(&wr, &rig.b.mem, 4);
	/* A provider may refuse it at once. */
	if (ibv_post_send(rig.a.qp, &wr, &bad)) {
		need(bad == &wr);
	} else {
		need_wc(rig.a.cq, 1, IBV_WC_REM_INV_REQ_ERR);
		need_event(rig.ctx, IBV_EVENT_QP_REQ_ERR, rig.b.qp);
		need_state(rig.b.qp, IBV_QPS_ERR);
	}
	check_untouched(&rig.b.mem, 2);
	rig_destroy(&rig);
}

/* A device without atomics takes none: neither of its own user nor of a peer. */
static void test_no_atomics(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct rig rig;

	(void)arg;
	rig_connect_new(&rig, &attr);
	sge = region_sge(&rig.a.mem, 0, 8);
	wr = send_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
	wr_to(&wr, &rig.b.mem, 0);
	need(ibv_post_send(rig.a.qp, &wr, &bad));
	need(bad == &wr);
	check_untouched(&rig.b.mem, 2);
	rig_destroy(&rig);
}

/* Nothing is accessed, so no key is looked at (InfiniBand 9.7.4.1.4). */
static void zero_length(struct rig *rig, enum ibv_wr_opcode op, int num_sge)
{
	struct ibv_sge sge = region_sge(&rig->a.mem, 0, 0);
	struct ibv_send_wr wr = send_wr(1, op, &sge, num_sge);
	bool received = op != IBV_WR_RDMA_WRITE && op != IBV_WR_RDMA_READ;

	sge.lkey ^= 0x55;
	if (op != IBV_WR_SEND && op != IBV_WR_SEND_WITH_IMM) {
		wr_to(&wr, &rig->b.mem, 0);
		wr.wr.rdma.rkey ^= 0x55;
	}
	if (received)
		post_recv(rig->b.qp, 2, NULL, 0);
	post_send(rig->a.qp, &wr);
	need_wc(rig->a.cq, 1, IBV_WC_SUCCESS);
	if (received)
		need_eq(need_wc(rig->b.cq, 2, IBV_WC_SUCCESS).byte_len, 0);
}

static void test_zero_length(const void *arg)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct rig_attr attr = rig_defaults();
	struct rig rig;
	size_t i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		zero_length(&rig, ops[i], 0);
		zero_length(&rig, ops[i], 1);
	}
	need_state(rig.b.qp, IBV_QPS_RTS);
	rig_destroy(&rig);
}

/* --------------------------------------------------------------------- flush and states */

#define FLUSHED	40u

static void post_many(struct rig *rig, struct ibv_qp *qp, unsigned int count)
{
	struct ibv_sge sge = region_sge(&rig->b.mem, 0, LEN);
	struct ibv_send_wr wr;
	unsigned int i;

	for (i = 0; i < count; i++) {
		wr = send_wr(i, IBV_WR_SEND, &sge, 1);
		if (i % 3)
			wr.send_flags = 0;	/* a flush reports these as well */
		post_send(qp, &wr);
		post_recv(qp, 1000 + i, &sge, 1);
	}
}

/* Both queues of one QP: all of each, in order. */
static void need_flushed(struct ibv_cq *cq, unsigned int count)
{
	unsigned int sends = 0, recvs = 0;
	struct ibv_wc wc;

	while (sends + recvs < 2 * count) {
		wc = wait_wc(cq);
		need_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		if (wc.wr_id < 1000)
			need_eq(wc.wr_id, sends++);
		else
			need_eq(wc.wr_id, 1000 + recvs++);
	}
	need_quiet(cq, 20);
}

static void test_flush(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;

	(void)arg;
	rig_connect_new(&rig, &attr);
	qp_destroy(&rig.a.qp);		/* so that sends of b stay outstanding */
	post_many(&rig, rig.b.qp, FLUSHED);
	qp_to_state(rig.b.qp, IBV_QPS_ERR);
	need_flushed(rig.b.cq, FLUSHED);

	/* Posted in the error state: flushed as well. */
	post_many(&rig, rig.b.qp, FLUSHED);
	need_flushed(rig.b.cq, FLUSHED);
	rig_destroy(&rig);
}

/* Nothing of a former life comes out of a QP that was reset. */
static void test_reset_forgets(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;
	unsigned int lap;

	(void)arg;
	rig_connect_new(&rig, &attr);
	for (lap = 0; lap < 10; lap++) {
		receive_one(&rig, 1, LEN);
		receive_one(&rig, 2, LEN);
		send_one(&rig, 3, LEN);
		need_wc(rig.a.cq, 3, IBV_WC_SUCCESS);
		need_wc(rig.b.cq, 1, IBV_WC_SUCCESS);
		qp_to_state(rig.a.qp, IBV_QPS_RESET);
		qp_to_state(rig.b.qp, IBV_QPS_RESET);
		need_quiet(rig.a.cq, 5);
		need_quiet(rig.b.cq, 5);
		rig.a.psn = (rig.a.psn + 0x123456) & 0xffffff;
		rig_connect(&rig);
	}
	rig_destroy(&rig);
}

static int try_send(struct rig *rig)
{
	struct ibv_sge sge = region_sge(&rig->a.mem, 0, LEN);
	struct ibv_send_wr *bad, wr = send_wr(1, IBV_WR_SEND, &sge, 1);

	return ibv_post_send(rig->a.qp, &wr, &bad);
}

static int try_receive(struct rig *rig)
{
	struct ibv_sge sge = region_sge(&rig->a.mem, 0, LEN);
	struct ibv_recv_wr *bad, wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(rig->a.qp, &wr, &bad);
}

static void test_wrong_state(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct remote_qp b;
	struct rig rig;

	(void)arg;
	rig_create(&rig, &attr);
	b = (struct remote_qp) { .qpn = rig.b.qp->qp_num, .psn = rig.b.psn };
	find_gid(rig.ctx, &b.gid);

	need_errno(try_send(&rig), EINVAL);
	need_errno(try_receive(&rig), EINVAL);
	qp_to_init(rig.a.qp, &attr);
	need_errno(try_send(&rig), EINVAL);
	need_ok(try_receive(&rig));
	qp_to_rtr(rig.a.qp, &attr, &b);
	need_errno(try_send(&rig), EINVAL);
	need_ok(try_receive(&rig));
	need_quiet(rig.a.cq, 20);
	qp_to_rts(rig.a.qp, &attr, rig.a.psn);
	need_state(rig.a.qp, IBV_QPS_RTS);
	qp_to_state(rig.a.qp, IBV_QPS_ERR);
	need_wc(rig.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	need_wc(rig.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	rig_destroy(&rig);
}

/* An error of one's own does not take along what was posted before it. */
static void test_earlier_complete(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr wr[9];
	struct ibv_sge good, bad;
	struct rig rig;
	int i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	good = region_sge(&rig.a.mem, 0, 4096);
	bad = good;
	bad.lkey ^= 0x55;
	for (i = 0; i < 9; i++) {
		wr[i] = send_wr(i, IBV_WR_RDMA_WRITE, i < 8 ? &good : &bad, 1);
		wr_to(&wr[i], &rig.b.mem, 4096 * i);
		wr[i].next = i < 8 ? &wr[i + 1] : NULL;
	}
	post_send(rig.a.qp, wr);
	for (i = 0; i < 8; i++)
		need_wc(rig.a.cq, i, IBV_WC_SUCCESS);
	need_wc(rig.a.cq, 8, IBV_WC_LOC_PROT_ERR);
	rig_destroy(&rig);
}

static void test_drain(const void *arg)
{
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct rig_attr attr = rig_defaults();
	struct rig rig;

	(void)arg;
	rig_connect_new(&rig, &attr);
	receive_one(&rig, 10, LEN);
	receive_one(&rig, 11, LEN);
	send_one(&rig, 1, LEN);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_ok(ibv_modify_qp(rig.a.qp, &to, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	need_event(rig.ctx, IBV_EVENT_SQ_DRAINED, rig.a.qp);
	need_eq(qp_query(rig.a.qp, NULL).sq_draining, 0);
	need_state(rig.a.qp, IBV_QPS_SQD);

	/* Taken, and kept until the queue runs again. */
	send_one(&rig, 2, LEN);
	need_quiet(rig.a.cq, 100);
	qp_to_state(rig.a.qp, IBV_QPS_RTS);
	need_wc(rig.a.cq, 2, IBV_WC_SUCCESS);
	rig_destroy(&rig);
}

/* ------------------------------------------------------------------------- full and long */

static void test_sq_full(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_qp_init_attr init;
	struct rig rig;
	uint32_t i, depth;

	(void)arg;
	attr.send_wr = 16;
	attr.cqe = 512;
	rig_connect_new(&rig, &attr);
	qp_query(rig.a.qp, &init);
	depth = init.cap.max_send_wr;
	need(depth >= 16);
	/* Nobody receives, so nothing completes. */
	for (i = 0; i < depth; i++)
		send_one(&rig, i, LEN);
	need_errno(try_send(&rig), ENOMEM);
	need_errno(try_send(&rig), ENOMEM);

	/* One lap later: as many fit again as have completed. */
	for (i = 0; i < depth; i++)
		receive_one(&rig, i, LEN);
	for (i = 0; i < depth; i++)
		need_wc(rig.a.cq, i, IBV_WC_SUCCESS);
	for (i = 0; i < depth; i++)
		send_one(&rig, i, LEN);
	need_errno(try_send(&rig), ENOMEM);
	rig_destroy(&rig);
}

static void test_rq_full(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_qp_init_attr init;
	struct rig rig;
	uint32_t i;

	(void)arg;
	attr.recv_wr = 16;
	rig_connect_new(&rig, &attr);
	qp_query(rig.a.qp, &init);
	need(init.cap.max_recv_wr >= 16);
	for (i = 0; i < init.cap.max_recv_wr; i++)
		need_ok(try_receive(&rig));
	need_errno(try_receive(&rig), ENOMEM);
	rig_destroy(&rig);
}

/* What stands before the bad request in the list is posted, the rest is not. */
static void test_bad_in_list(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr *bad = NULL, wr[4];
	struct ibv_recv_wr *bad_recv = NULL, recv[3];
	struct ibv_qp_init_attr init;
	struct ibv_sge sge, *many;
	struct rig rig;
	uint32_t i, sges;

	(void)arg;
	rig_connect_new(&rig, &attr);
	qp_query(rig.a.qp, &init);
	sges = init.cap.max_send_sge > init.cap.max_recv_sge ? init.cap.max_send_sge :
	       init.cap.max_recv_sge;
	many = need_ptr(calloc(sges + 1, sizeof(*many)));
	for (i = 0; i <= sges; i++)
		many[i] = region_sge(&rig.a.mem, i * 8, 8);
	sge = region_sge(&rig.b.mem, 0, LEN);
	memset(recv, 0, sizeof(recv));
	for (i = 0; i < 3; i++) {
		recv[i].wr_id = 10 + i;
		recv[i].sg_list = i == 2 ? many : &sge;
		recv[i].num_sge = i == 2 ? (int)sges + 1 : 1;
		recv[i].next = i < 2 ? &recv[i + 1] : NULL;
	}
	need_errno(ibv_post_recv(rig.b.qp, recv, &bad_recv), EINVAL);
	need(bad_recv == &recv[2]);

	for (i = 0; i < 4; i++) {
		wr[i] = send_wr(i, IBV_WR_SEND, many, i == 2 ? (int)sges + 1 : 1);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	need_errno(ibv_post_send(rig.a.qp, wr, &bad), EINVAL);
	need(bad == &wr[2]);
	need_wc(rig.a.cq, 0, IBV_WC_SUCCESS);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_wc(rig.b.cq, 10, IBV_WC_SUCCESS);
	need_wc(rig.b.cq, 11, IBV_WC_SUCCESS);
	need_quiet(rig.a.cq, 50);

	wr[2].opcode = (enum ibv_wr_opcode)77;
	wr[2].num_sge = 1;
	need_errno(ibv_post_send(rig.a.qp, &wr[2], &bad), EINVAL);
	wr[2].opcode = IBV_WR_SEND;
	wr[2].num_sge = -1;
	need_errno(ibv_post_send(rig.a.qp, &wr[2], &bad), EINVAL);
	need(bad == &wr[2]);
	free(many);
	rig_destroy(&rig);
}

static void test_inline_too_long(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_qp_init_attr init;
	struct ibv_send_wr *bad = NULL, wr;
	struct ibv_sge sge[2];
	struct rig rig;
	uint32_t max;

	(void)arg;
	attr.inline_bytes = 64;
	rig_connect_new(&rig, &attr);
	qp_query(rig.a.qp, &init);
	max = init.cap.max_inline_data;
	need(max >= 64);
	receive_one(&rig, 10, max + 1);

	sge[0] = region_sge(&rig.a.mem, 0, max);
	sge[1] = region_sge(&rig.a.mem, max, 1);
	wr = send_wr(1, IBV_WR_SEND, sge, 2);
	wr.send_flags |= IBV_SEND_INLINE;
	need_errno(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);
	need(bad == &wr);
	/* Two lengths whose sum wraps. */
	sge[0].length = 0xfffffff0;
	sge[1].length = 0x20;
	need_errno(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);

	/* Inline data needs no key. */
	sge[0].length = max;
	sge[0].lkey = 0;
	wr.num_sge = 1;
	post_send(rig.a.qp, &wr);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_eq(need_wc(rig.b.cq, 10, IBV_WC_SUCCESS).byte_len, max);
	need(!memcmp(rig.a.mem.addr, rig.b.mem.addr, max));

	/* The answer of a READ has no place in a work request. */
	wr = send_wr(2, IBV_WR_RDMA_READ, sge, 1);
	sge[0].length = 8;
	wr.send_flags |= IBV_SEND_INLINE;
	wr_to(&wr, &rig.b.mem, 0);
	need_errno(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);
	rig_destroy(&rig);
}

/* One byte more than a message may have; the key would allow none of it. */
static void test_message_too_long(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_port_attr port;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge[2];
	struct ibv_wc wc;
	struct rig rig;

	(void)arg;
	rig_connect_new(&rig, &attr);
	need_ok(ibv_query_port(rig.ctx, 1, &port));
	sge[0] = region_sge(&rig.a.mem, 0, port.max_msg_sz);
	sge[1] = region_sge(&rig.a.mem, 0, 1);
	wr = send_wr(1, IBV_WR_RDMA_WRITE, sge, 2);
	wr_to(&wr, &rig.b.mem, 0);
	if (ibv_post_send(rig.a.qp, &wr, &bad)) {
		need(bad == &wr);
	} else {
		wc = wait_wc(rig.a.cq);
		need_that(wc.status == IBV_WC_LOC_LEN_ERR || wc.status == IBV_WC_LOC_PROT_ERR,
			  "status is %s", ibv_wc_status_str(wc.status));
	}
	check_untouched(&rig.b.mem, 2);
	rig_destroy(&rig);
}

/* A CQ that is too small says so, and what had arrived in it stays good. */
static void test_cq_overflow(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_wc wc;
	struct rig rig;
	int i, cqe, seen = 0;

	(void)arg;
	attr.cqe = 16;
	attr.send_wr = 256;
	rig_connect_new(&rig, &attr);
	cqe = rig.a.cq->cqe;
	need(cqe >= 16);
	need_that(cqe < 200, "a CQ of %d entries for 16", cqe);
	for (i = 0; i < cqe + 2; i++) {
		struct ibv_sge sge = region_sge(&rig.a.mem, 0, 8);
		struct ibv_send_wr wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, 1);

		wr_to(&wr, &rig.b.mem, 0);
		post_send(rig.a.qp, &wr);
	}
	need_event(rig.ctx, IBV_EVENT_CQ_ERR, rig.a.cq);
	need_state(rig.a.qp, IBV_QPS_ERR);
	/* poll_cq may report the overflow once the good ones are gone; it invents none. */
	while (ibv_poll_cq(rig.a.cq, 1, &wc) == 1) {
		need_eq(wc.wr_id, seen);
		need_eq(wc.status, IBV_WC_SUCCESS);
		seen++;
	}
	need_that(seen >= cqe - 1 && seen <= cqe, "%d completions in a CQ of %d", seen, cqe);
	rig_destroy(&rig);
}

static void test_comm_est(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct remote_qp a, b;
	struct rig rig;

	(void)arg;
	rig_create(&rig, &attr);
	a = (struct remote_qp) { .qpn = rig.a.qp->qp_num, .psn = rig.a.psn };
	b = (struct remote_qp) { .qpn = rig.b.qp->qp_num, .psn = rig.b.psn };
	find_gid(rig.ctx, &a.gid);
	b.gid = a.gid;
	qp_to_init(rig.a.qp, &attr);
	qp_to_init(rig.b.qp, &attr);
	qp_to_rtr(rig.a.qp, &attr, &b);
	qp_to_rtr(rig.b.qp, &attr, &a);
	qp_to_rts(rig.a.qp, &attr, rig.a.psn);
	receive_one(&rig, 1, LEN);
	send_one(&rig, 2, LEN);
	need_wc(rig.a.cq, 2, IBV_WC_SUCCESS);
	need_wc(rig.b.cq, 1, IBV_WC_SUCCESS);
	need_event(rig.ctx, IBV_EVENT_COMM_EST, rig.b.qp);
	need_state(rig.b.qp, IBV_QPS_RTR);
	rig_destroy(&rig);
}

/* ------------------------------------------------------------------ calls that must fail */

static void refuse_qp(struct rig *rig, void (*spoil)(struct ibv_qp_init_attr *, const
		      struct ibv_device_attr *), const char *what)
{
	struct ibv_device_attr device;
	struct ibv_qp_init_attr init = {
		.send_cq = rig->a.cq, .recv_cq = rig->a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	need_ok(ibv_query_device(rig->ctx, &device));
	spoil(&init, &device);
	errno = 0;
	qp = ibv_create_qp(rig->a.pd, &init);
	need_that(!qp, "QP created although %s", what);
	need_that(errno == EINVAL || errno == ENOMEM || errno == EOPNOTSUPP, "%s: %s", what,
		  tap_error(errno));
}

static void many_sends(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	init->cap.max_send_wr = device->max_qp_wr + 1;
}

static void all_sends(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	(void)device;
	init->cap.max_send_wr = ~0u;
}

static void many_receives(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	init->cap.max_recv_wr = device->max_qp_wr + 1;
}

static void all_receives(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	(void)device;
	init->cap.max_recv_wr = 0x80000001;
}

static void many_send_sges(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	init->cap.max_send_sge = device->max_sge + 1;
}

static void many_recv_sges(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	init->cap.max_recv_sge = device->max_sge + 1;
}

static void much_inline(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	(void)device;
	init->cap.max_inline_data = 1 << 20;
}

static void type_uc(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	(void)device;
	init->qp_type = IBV_QPT_UC;
}

static void type_xrc(struct ibv_qp_init_attr *init, const struct ibv_device_attr *device)
{
	(void)device;
	init->qp_type = IBV_QPT_XRC_SEND;
}

static void test_bad_qp(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;

	(void)arg;
	rig_create(&rig, &attr);
	refuse_qp(&rig, many_sends, "one send too many");
	refuse_qp(&rig, all_sends, "2^32 - 1 sends");
	refuse_qp(&rig, many_receives, "one receive too many");
	refuse_qp(&rig, all_receives, "2^31 + 1 receives");
	refuse_qp(&rig, many_send_sges, "one send SGE too many");
	refuse_qp(&rig, many_recv_sges, "one receive SGE too many");
	refuse_qp(&rig, much_inline, "1 MiB inline");
	refuse_qp(&rig, type_uc, "UC is not supported");
	refuse_qp(&rig, type_xrc, "XRC is not supported");
	rig_destroy(&rig);
}

static void test_bad_cq(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr device;

	(void)arg;
	need_ok(ibv_query_device(ctx, &device));
	need(!ibv_create_cq(ctx, device.max_cqe + 1, NULL, NULL, 0));
	need(errno == EINVAL || errno == ENOMEM);
	need(!ibv_create_cq(ctx, 0, NULL, NULL, 0));
	need_eq(errno, EINVAL);
	need(!ibv_create_cq(ctx, -1, NULL, NULL, 0));
	need(!ibv_create_cq(ctx, 16, NULL, NULL, ctx->num_comp_vectors));
	need_eq(errno, EINVAL);
	need(!ibv_create_cq(ctx, 16, NULL, NULL, -1));
	need_eq(errno, EINVAL);
	need_ok(ibv_close_device(ctx));
}

static void refuse_mr(struct ibv_pd *pd, void *addr, size_t len, int access, int want)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(pd, addr, len, access);
	need_that(!mr, "%zu bytes at %p registered with access %#x", len, addr, access);
	need_that(errno == want, "%zu bytes at %p, access %#x: %s, not %s", len, addr, access,
		  tap_error(errno), tap_error(want));
}

static void test_bad_mr(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = need_ptr(ibv_alloc_pd(ctx));
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *mem = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	(void)arg;
	need(mem != MAP_FAILED);
	refuse_mr(pd, mem, page, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refuse_mr(pd, mem, page, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	refuse_mr(pd, mem, 0, ACCESS_ALL, EINVAL);
	/* A hole, in the middle and at the end. */
	need_ok(munmap(mem + 2 * page, page));
	refuse_mr(pd, mem, 4 * page, ACCESS_ALL, EFAULT);
	refuse_mr(pd, mem + page, page + 1, ACCESS_ALL, EFAULT);
	/* Not writable. */
	need_ok(mprotect(mem, page, PROT_READ));
	refuse_mr(pd, mem, page, ACCESS_ALL, EFAULT);
	need_ok(ibv_dereg_mr(need_ptr(ibv_reg_mr(pd, mem, page, IBV_ACCESS_REMOTE_READ))));
	need_ok(ibv_dealloc_pd(pd));
	need_ok(ibv_close_device(ctx));
}

static void test_wraps(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = need_ptr(ibv_alloc_pd(ctx));

	(void)arg;
	need(!ibv_reg_mr(pd, (void *)-4096ul, 8192, ACCESS_ALL));
	need(!ibv_reg_mr(pd, (void *)4096ul, -4096ul, ACCESS_ALL));
	need(!ibv_reg_mr(pd, (void *)1ul, -1ul, ACCESS_ALL));
	need(!ibv_reg_mr(pd, NULL, 1ul << 47, ACCESS_ALL));
	need_ok(ibv_dealloc_pd(pd));
	need_ok(ibv_close_device(ctx));
}

/* Attributes out of range, one at a time; all else is as it should be. */
struct spoilt {
	const char *what;
	void (*spoil)(struct ibv_qp_attr *attr, int *mask);
};

static void no_path_mtu(struct ibv_qp_attr *a, int *mask) { (void)a; *mask &= ~IBV_QP_PATH_MTU; }
static void no_av(struct ibv_qp_attr *a, int *mask) { (void)a; *mask &= ~IBV_QP_AV; }
static void no_rq_psn(struct ibv_qp_attr *a, int *mask) { (void)a; *mask &= ~IBV_QP_RQ_PSN; }
static void has_sq_psn(struct ibv_qp_attr *a, int *mask) { (void)a; *mask |= IBV_QP_SQ_PSN; }
static void mtu_0(struct ibv_qp_attr *a, int *mask) { (void)mask; a->path_mtu = 0; }
static void mtu_6(struct ibv_qp_attr *a, int *mask) { (void)mask; a->path_mtu = 6; }
static void bad_sgid(struct ibv_qp_attr *a, int *mask)
{
	(void)mask;
	a->ah_attr.grh.sgid_index = 255;
}
static void bad_port(struct ibv_qp_attr *a, int *mask) { (void)mask; a->ah_attr.port_num = 2; }
static void no_grh(struct ibv_qp_attr *a, int *mask) { (void)mask; a->ah_attr.is_global = 0; }
static void many_reads(struct ibv_qp_attr *a, int *mask)
{
	(void)mask;
	a->max_dest_rd_atomic = 255;
}
static void to_rts(struct ibv_qp_attr *a, int *mask) { (void)mask; a->qp_state = IBV_QPS_RTS; }
static void to_sqd(struct ibv_qp_attr *a, int *mask) { (void)mask; a->qp_state = IBV_QPS_SQD; }
static void wrong_current(struct ibv_qp_attr *a, int *mask)
{
	a->cur_qp_state = IBV_QPS_RTS;
	*mask |= IBV_QP_CUR_STATE;
}

static const struct spoilt spoilt_rtr[] = {
	{ "path MTU missing", no_path_mtu }, { "AV missing", no_av },
	{ "RQ PSN missing", no_rq_psn }, { "SQ PSN out of place", has_sq_psn },
	{ "path MTU 0", mtu_0 }, { "path MTU 6", mtu_6 }, { "GID index 255", bad_sgid },
	{ "port 2", bad_port }, { "no GRH", no_grh }, { "255 reads", many_reads },
	{ "INIT to RTS", to_rts }, { "INIT to SQD", to_sqd },
	{ "INIT said to be RTS", wrong_current },
};

static void test_bad_modify(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_qp_attr good, to;
	union ibv_gid gid;
	struct rig rig;
	int mask, sgid;
	size_t i;

	(void)arg;
	rig_create(&rig, &attr);
	sgid = find_gid(rig.ctx, &gid);
	to = (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT, .port_num = 2 };
	mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	need_errno(ibv_modify_qp(rig.a.qp, &to, mask), EINVAL);
	to.port_num = 1;
	to.pkey_index = 999;
	need_errno(ibv_modify_qp(rig.a.qp, &to, mask), EINVAL);
	to.pkey_index = 0;
	need_errno(ibv_modify_qp(rig.a.qp, &to, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	need_state(rig.a.qp, IBV_QPS_RESET);

	qp_to_init(rig.a.qp, &attr);
	good = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = rig.b.qp->qp_num,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = gid, .sgid_index = sgid, .hop_limit = 1 } },
	};
	for (i = 0; i < sizeof(spoilt_rtr) / sizeof(spoilt_rtr[0]); i++) {
		int err;

		to = good;
		mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		spoilt_rtr[i].spoil(&to, &mask);
		err = ibv_modify_qp(rig.a.qp, &to, mask);
		need_that(err == EINVAL, "%s: %s", spoilt_rtr[i].what, tap_error(err));
		need_state(rig.a.qp, IBV_QPS_INIT);
	}
	rig_destroy(&rig);
}

static void test_bad_modify_rts(const void *arg)
{
	static const int mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RTS };
	struct rig_attr attr = rig_defaults();
	struct remote_qp b = { .psn = 1 };
	struct rig rig;

	(void)arg;
	rig_create(&rig, &attr);
	b.qpn = rig.b.qp->qp_num;
	find_gid(rig.ctx, &b.gid);
	qp_to_init(rig.a.qp, &attr);
	qp_to_rtr(rig.a.qp, &attr, &b);
	to.max_rd_atomic = 255;
	need_errno(ibv_modify_qp(rig.a.qp, &to, mask), EINVAL);
	to.max_rd_atomic = 1;
	need_errno(ibv_modify_qp(rig.a.qp, &to, mask & ~IBV_QP_TIMEOUT), EINVAL);
	need_errno(ibv_modify_qp(rig.a.qp, &to, mask | IBV_QP_PATH_MTU), EINVAL);
	need_state(rig.a.qp, IBV_QPS_RTR);
	need_ok(ibv_modify_qp(rig.a.qp, &to, mask));
	need_state(rig.a.qp, IBV_QPS_RTS);
	rig_destroy(&rig);
}

/* What was set is what query says. */
static void test_query(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;
	union ibv_gid gid;
	struct rig rig;

	(void)arg;
	attr.mtu = IBV_MTU_512;
	attr.timeout = 17;
	attr.retry_cnt = 5;
	attr.rnr_retry = 3;
	attr.min_rnr_timer = 21;
	attr.rd_atomic = 3;
	attr.qp_access = IBV_ACCESS_REMOTE_READ;
	attr.inline_bytes = 32;
	rig_connect_new(&rig, &attr);
	got = qp_query(rig.a.qp, &init);
	find_gid(rig.ctx, &gid);
	need_eq(got.qp_state, IBV_QPS_RTS);
	need_eq(got.cur_qp_state, IBV_QPS_RTS);
	need_eq(got.path_mtu, IBV_MTU_512);
	need_eq(got.timeout, 17);
	need_eq(got.retry_cnt, 5);
	need_eq(got.rnr_retry, 3);
	need_eq(got.min_rnr_timer, 21);
	need_eq(got.max_rd_atomic, 3);
	need_eq(got.max_dest_rd_atomic, 3);
	need_eq(got.qp_access_flags & ACCESS_ALL, IBV_ACCESS_REMOTE_READ);
	need_eq(got.dest_qp_num, rig.b.qp->qp_num);
	need_eq(got.rq_psn, rig.b.psn);
	need_eq(got.sq_psn, rig.a.psn);
	need_eq(got.port_num, 1);
	need_eq(got.ah_attr.is_global, 1);
	need_eq(got.ah_attr.port_num, 1);
	need_eq(got.ah_attr.grh.hop_limit, 64);
	need_eq(got.ah_attr.grh.sgid_index, find_gid(rig.ctx, &gid));
	need(!memcmp(&got.ah_attr.grh.dgid, &gid, sizeof(gid)));
	need(got.cap.max_send_wr >= attr.send_wr && got.cap.max_recv_wr >= attr.recv_wr);
	need(got.cap.max_send_sge >= attr.send_sge && got.cap.max_recv_sge >= attr.recv_sge);
	need(got.cap.max_inline_data >= 32);
	need_eq(init.qp_type, IBV_QPT_RC);
	need(init.send_cq == rig.a.cq && init.recv_cq == rig.a.cq);
	need_eq(init.sq_sig_all, 0);
	rig_destroy(&rig);
}

static void test_busy(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;

	(void)arg;
	rig_create(&rig, &attr);
	need_errno(ibv_destroy_cq(rig.a.cq), EBUSY);
	need_errno(ibv_dealloc_pd(rig.a.pd), EBUSY);
	/* And both go on working. */
	rig_connect(&rig);
	receive_one(&rig, 1, LEN);
	send_one(&rig, 2, LEN);
	need_wc(rig.b.cq, 1, IBV_WC_SUCCESS);
	need_wc(rig.a.cq, 2, IBV_WC_SUCCESS);
	rig_destroy(&rig);
}

#define LOST(text, how)	TEST(text, test_retry_exceeded, .arg = (void *)(how))

static const struct tap_test others[] = {
	TEST("receive too short", test_receive_too_short),
	TEST("zero length", test_zero_length),
	TEST("RNR retries exceeded", test_rnr_exceeded),
	TEST("RNR without end", test_rnr_waits),
	LOST("retries exceeded: peer destroyed", PEER_DESTROYED),
	LOST("retries exceeded: wrong QPN", PEER_OTHER_QPN),
	LOST("retries exceeded: peer reset", PEER_RESET),
	LOST("retries exceeded: peer in error", PEER_ERROR),
	TEST("flush of both queues", test_flush),
	TEST("reset forgets", test_reset_forgets),
	TEST("post in the wrong state", test_wrong_state),
	TEST("earlier requests complete", test_earlier_complete),
	TEST("drain the send queue", test_drain),
	TEST("send queue full", test_sq_full),
	TEST("receive queue full", test_rq_full),
	TEST("bad request in a list", test_bad_in_list),
	TEST("inline too long", test_inline_too_long),
	TEST("message too long", test_message_too_long),
	TEST("CQ overflow", test_cq_overflow),
	TEST("communication established", test_comm_est),
	TEST("bad QP", test_bad_qp),
	TEST("bad CQ", test_bad_cq),
	TEST("bad MR", test_bad_mr),
	TEST("MR range wraps", test_wraps),
	TEST("bad attributes to RTR", test_bad_modify),
	TEST("bad attributes to RTS", test_bad_modify_rts),
	TEST("query QP", test_query),
	TEST("destroy what is in use", test_busy),
};

static const struct tap_test with_atomics = TEST("misaligned atomic", test_misaligned_atomic);
static const struct tap_test without_atomics = TEST("no atomics", test_no_atomics);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct tap_test tests[COUNT(faults) + COUNT(atomic_faults) + COUNT(others) + 1];

static size_t add(size_t at, const struct tap_test *more, size_t count)
{
	memcpy(&tests[at], more, count * sizeof(*more));
	return at + count;
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;
	size_t count;
	bool atomics;

	options_parse(argc, argv, "Every error reaches the user as the right status.");
	ctx = open_device();
	atomics = has_atomics(ctx);
	need_ok(ibv_close_device(ctx));

	count = add(0, faults, COUNT(faults));
	if (atomics)
		count = add(count, atomic_faults, COUNT(atomic_faults));
	count = add(count, others, COUNT(others));
	count = add(count, atomics ? &with_atomics : &without_atomics, 1);
	if (options.list) {
		tap_list(tests, count);
		return 0;
	}
	return tap_run(tests, count, options.only, 0);
}
