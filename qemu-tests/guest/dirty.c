// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Transfers between buffers that the program has stored to just before, so that a cache
 * operation that is missing is one that counts: for the coherence checker. What arrives is
 * compared as well.
 */
#include <infiniband/ferrydv.h>
#include <string.h>

#include "rig.h"

#define BYTES	8192
#define ODD	1010	/* from 24 on it neither begins nor ends with a line */

static struct rig_attr small_rig(void)
{
	struct rig_attr attr = rig_defaults();

	attr.bytes = BYTES;
	attr.send_sge = 1;
	attr.recv_sge = 1;
	return attr;
}

static void refill(struct rig *rig)
{
	fill(rig->a.mem.addr, BYTES, 3);
	fill(rig->b.mem.addr, BYTES, 4);
}

static void need_same(struct rig *rig, size_t offset, size_t len)
{
	need(!memcmp(rig->a.mem.addr + offset, rig->b.mem.addr + offset, len));
}

static void transfer(struct rig *rig, enum ibv_wr_opcode op, size_t offset, uint32_t len)
{
	struct ibv_sge from = region_sge(&rig->a.mem, offset, len);
	struct ibv_sge to = region_sge(&rig->b.mem, offset, len);
	struct ibv_send_wr wr = send_wr(1, op, &from, 1);

	refill(rig);
	if (op == IBV_WR_SEND)
		post_recv(rig->b.qp, 2, &to, 1);
	else
		wr_to(&wr, &rig->b.mem, offset);
	post_send(rig->a.qp, &wr);
	/* Others use what is beside it. */
	rig->a.mem.addr[offset + len] = 5;
	rig->b.mem.addr[offset + len] = 5;
	if (offset)
		rig->b.mem.addr[offset - 1] = 5;
	need_wc(rig->a.cq, 1, IBV_WC_SUCCESS);
	if (op == IBV_WR_SEND)
		need_wc(rig->b.cq, 2, IBV_WC_SUCCESS);
	need_same(rig, offset, len);
	need_eq(rig->a.mem.addr[offset + len], 5);
	need_eq(rig->b.mem.addr[offset + len], 5);
	if (offset)
		need_eq(rig->b.mem.addr[offset - 1], 5);
}

struct shape {
	enum ibv_wr_opcode op;
	size_t offset;
	uint32_t len;
};

static void transfers(const void *arg)
{
	struct rig_attr attr = small_rig();
	const struct shape *shape = arg;
	struct rig rig;

	rig_connect_new(&rig, &attr);
	transfer(&rig, shape->op, shape->offset, shape->len);
	transfer(&rig, shape->op, shape->offset, shape->len);
	rig_destroy(&rig);
}

/* A READ without completion of its own, in front of one that has one. */
static void unsignalled_read(const void *unused)
{
	struct rig_attr attr = small_rig();
	struct ibv_send_wr wr[2];
	struct ibv_sge sge[2];
	struct rig rig;
	unsigned int i;

	(void)unused;
	rig_connect_new(&rig, &attr);
	refill(&rig);
	for (i = 0; i < 2; i++) {
		sge[i] = region_sge(&rig.a.mem, i * 1024, 1024);
		wr[i] = send_wr(i, IBV_WR_RDMA_READ, &sge[i], 1);
		wr_to(&wr[i], &rig.b.mem, i * 1024);
	}
	wr[0].send_flags = 0;
	wr[0].next = &wr[1];
	post_send(rig.a.qp, wr);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_same(&rig, 0, 2048);
	rig_destroy(&rig);
}

/* From an MR that gives no right to write, not even to its owner. */
static void read_only_source(const void *unused)
{
	struct rig_attr attr = small_rig();
	struct region source;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	(void)unused;
	rig_connect_new(&rig, &attr);
	region_create(&source, rig.a.pd, 4096, 0);
	fill(source.addr, 4096, 6);
	sge = region_sge(&source, 0, 4096);
	wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, 1);
	wr_to(&wr, &rig.b.mem, 0);
	post_send(rig.a.qp, &wr);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need(!memcmp(source.addr, rig.b.mem.addr, 4096));
	region_destroy(&source);
	rig_destroy(&rig);
}

/* What has arrived is there once the MR is gone, although nobody took the completion. */
static void ended_mr(const void *unused)
{
	struct rig_attr attr = small_rig();
	struct ibv_send_wr wr;
	struct ibv_sge from, to;
	struct rig rig;

	(void)unused;
	attr.access = IBV_ACCESS_LOCAL_WRITE;
	rig_connect_new(&rig, &attr);
	refill(&rig);
	from = region_sge(&rig.a.mem, 0, 4096);
	to = region_sge(&rig.b.mem, 0, 4096);
	wr = send_wr(1, IBV_WR_SEND, &from, 1);
	post_recv(rig.b.qp, 2, &to, 1);
	post_send(rig.a.qp, &wr);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_ok(ibv_dereg_mr(rig.b.mem.mr));
	rig.b.mem.mr = NULL;
	need_same(&rig, 0, 4096);
	rig_destroy(&rig);
}

/* Into a receive of an SRQ. */
static void srq_receive(const void *unused)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rig_attr attr = small_rig();
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_recv_wr *bad, recv = { .wr_id = 2, .num_sge = 1 };
	struct ibv_send_wr wr;
	struct ibv_sge from, to;
	struct rig rig;

	(void)unused;
	rig_create(&rig, &attr);
	qp_destroy(&rig.b.qp);
	init.srq = need_ptr(ibv_create_srq(rig.b.pd, &srq_attr));
	init.send_cq = init.recv_cq = rig.b.cq;
	rig.b.qp = need_ptr(ibv_create_qp(rig.b.pd, &init));
	rig_connect(&rig);
	refill(&rig);
	from = region_sge(&rig.a.mem, 0, 4096);
	to = region_sge(&rig.b.mem, 0, 4096);
	wr = send_wr(1, IBV_WR_SEND, &from, 1);
	recv.sg_list = &to;
	need_ok(ibv_post_srq_recv(init.srq, &recv, &bad));
	post_send(rig.a.qp, &wr);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_wc(rig.b.cq, 2, IBV_WC_SUCCESS);
	need_same(&rig, 0, 4096);
	qp_destroy(&rig.b.qp);
	need_ok(ibv_destroy_srq(init.srq));
	rig_destroy(&rig);
}

static struct ibv_qp *extended_qp(const struct end *end)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
	};

	return need_ptr(ibv_create_qp_ex(end->pd->context, &init));
}

/* A WRITE and a READ by ibv_wr_*(). */
static void wr_api(const void *unused)
{
	struct rig_attr attr = small_rig();
	struct ibv_qp_ex *qp;
	struct rig rig;
	int op;

	(void)unused;
	rig_create(&rig, &attr);
	qp_destroy(&rig.a.qp);
	rig.a.qp = extended_qp(&rig.a);
	qp = need_ptr(ibv_qp_to_qp_ex(rig.a.qp));
	rig_connect(&rig);
	for (op = 0; op < 2; op++) {
		refill(&rig);
		ibv_wr_start(qp);
		qp->wr_id = op;
		qp->wr_flags = IBV_SEND_SIGNALED;
		if (op)
			ibv_wr_rdma_read(qp, rig.b.mem.mr->rkey, (uintptr_t)rig.b.mem.addr);
		else
			ibv_wr_rdma_write(qp, rig.b.mem.mr->rkey, (uintptr_t)rig.b.mem.addr);
		ibv_wr_set_sge(qp, rig.a.mem.mr->lkey, (uintptr_t)rig.a.mem.addr, 4096);
		need_ok(ibv_wr_complete(qp));
		need_wc(rig.a.cq, op, IBV_WC_SUCCESS);
		need_same(&rig, 0, 4096);
	}
	rig_destroy(&rig);
}

/* -------------------------------------------------- peers, which this host does not hear of */

/*
 * A program that looks at the last byte of what a peer writes, and at nothing else, finds
 * the rest behind it. All the while it stores to what is beside.
 */
static void polled_write(const void *arg)
{
	const struct shape *shape = arg;
	const size_t last = shape->offset + shape->len - 1;
	struct rig_attr attr = small_rig();
	uint64_t end = now_us() + 20 * 1000 * 1000;
	struct ibv_send_wr wr;
	struct ibv_sge from;
	struct rig rig;
	uint8_t round;

	rig_connect_new(&rig, &attr);
	from = region_sge(&rig.a.mem, shape->offset, shape->len);
	wr = send_wr(1, IBV_WR_RDMA_WRITE, &from, 1);
	wr_to(&wr, &rig.b.mem, shape->offset);
	for (round = 1; round < 6; round++) {
		refill(&rig);
		rig.a.mem.addr[last] = round;
		rig.b.mem.addr[last] = 0;
		post_send(rig.a.qp, &wr);
		while (__atomic_load_n(&rig.b.mem.addr[last], __ATOMIC_ACQUIRE) != round) {
			need_that(now_us() < end, "the last byte does not come");
			rig.b.mem.addr[last + 1] = round;
			if (shape->offset)
				rig.b.mem.addr[shape->offset - 1] = round;
		}
		need_same(&rig, shape->offset, shape->len);
		need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	}
	rig_destroy(&rig);
}

/* Among peers' atomics a CPU stores, and reads what they made of it. */
static void atomics(const void *unused)
{
	struct rig_attr attr = small_rig();
	uint64_t *target, *result, value;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	(void)unused;
	attr.access |= IBV_ACCESS_REMOTE_ATOMIC;
	attr.qp_access |= IBV_ACCESS_REMOTE_ATOMIC;
	rig_connect_new(&rig, &attr);
	target = (uint64_t *)rig.b.mem.addr + 3;
	result = (uint64_t *)rig.a.mem.addr + 5;
	sge = region_sge(&rig.a.mem, 5 * 8, 8);
	wr = send_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
	wr_to(&wr, &rig.b.mem, 3 * 8);
	wr.wr.atomic.compare_add = 7;
	for (value = 100; value < 500; value += 100) {
		refill(&rig);
		*target = value;
		target[1] = value + 1;
		post_send(rig.a.qp, &wr);
		need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
		need_eq(*result, value);
		need_eq(*target, value + 7);
		need_eq(target[1], value + 1);
	}
	rig_destroy(&rig);
}

static void peer_reads(struct rig *rig, struct ibv_mr *mr, const void *from)
{
	struct ibv_sge to = region_sge(&rig->b.mem, 0, 4096);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_READ, &to, 1);

	wr.wr.rdma.remote_addr = (uintptr_t)from;
	wr.wr.rdma.rkey = mr->rkey;
	post_send(rig->b.qp, &wr);
	need_wc(rig->b.cq, 1, IBV_WC_SUCCESS);
	need(!memcmp(from, rig->b.mem.addr, 4096));
}

static void peer_writes(struct rig *rig, struct ibv_mr *mr, void *to)
{
	struct ibv_sge from = region_sge(&rig->b.mem, 4096, 4096);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &from, 1);

	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = mr->rkey;
	post_send(rig->b.qp, &wr);
	need_wc(rig->b.cq, 1, IBV_WC_SUCCESS);
	need_ok(ferrydv_sync(mr, to, 4096, FERRYDV_SYNC_FLUSH));
	need(!memcmp(to, rig->b.mem.addr + 4096, 4096));
}

/* An MR without assist: peers find what was there when it was registered. */
static void registered_as_it_is(const void *unused)
{
	struct rig_attr attr = small_rig();
	struct ibv_mr *mr;
	struct rig rig;

	(void)unused;
	rig_connect_new(&rig, &attr);
	refill(&rig);
	mr = need_ptr(ferrydv_reg_mr(rig.a.pd, rig.a.mem.addr, BYTES, (uintptr_t)rig.a.mem.addr,
				     ACCESS_ALL, FERRYDV_MR_NO_ASSIST));
	peer_reads(&rig, mr, rig.a.mem.addr);
	need_ok(ibv_dereg_mr(mr));
	rig_destroy(&rig);
}

/* The same, and what was stored since, or will be read, the program sees to. */
static void synced_by_hand(const void *unused)
{
	struct rig_attr attr = small_rig();
	struct ibv_mr *mr;
	struct rig rig;

	(void)unused;
	rig_connect_new(&rig, &attr);
	mr = need_ptr(ferrydv_reg_mr(rig.a.pd, rig.a.mem.addr, BYTES, (uintptr_t)rig.a.mem.addr,
				     ACCESS_ALL, FERRYDV_MR_NO_ASSIST));
	refill(&rig);
	need_ok(ferrydv_sync(mr, rig.a.mem.addr, 4096, FERRYDV_SYNC_CLEAN));
	peer_reads(&rig, mr, rig.a.mem.addr);
	need_ok(ferrydv_sync(mr, rig.a.mem.addr + 4096, 4096, FERRYDV_SYNC_FLUSH));
	peer_writes(&rig, mr, rig.a.mem.addr + 4096);
	need_ok(ibv_dereg_mr(mr));
	rig_destroy(&rig);
}

#define TRANSFER(text, op, offset, len) \
	TEST(text, transfers, .arg = &(const struct shape){ op, offset, len })
#define POLLED(text, offset, len) \
	TEST(text, polled_write, .arg = &(const struct shape){ IBV_WR_RDMA_WRITE, offset, len })

static const struct tap_test tests[] = {
	TRANSFER("send", IBV_WR_SEND, 0, 4096),
	TRANSFER("send to an odd place", IBV_WR_SEND, 24, ODD),
	TRANSFER("send of some bytes", IBV_WR_SEND, 8, 40),
	TRANSFER("write", IBV_WR_RDMA_WRITE, 0, 4096),
	TRANSFER("write to an odd place", IBV_WR_RDMA_WRITE, 24, ODD),
	TRANSFER("read", IBV_WR_RDMA_READ, 0, 4096),
	TRANSFER("read to an odd place", IBV_WR_RDMA_READ, 24, ODD),
	TEST("unsignalled read", unsignalled_read),
	TEST("read-only source", read_only_source),
	TEST("MR that ends", ended_mr),
	TEST("receive of an SRQ", srq_receive),
	TEST("ibv_wr_*()", wr_api),
	POLLED("polled write", 0, 4096),
	POLLED("polled write to an odd place", 24, ODD),
	TEST("atomics", atomics),
	TEST("registered as it is", registered_as_it_is),
	TEST("synced by hand", synced_by_hand),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "Transfers between buffers that were just stored to.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
