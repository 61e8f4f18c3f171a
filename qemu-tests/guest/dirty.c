// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Transfers between buffers that the program has stored to just before, so that a cache
 * operation that is missing is one that counts: for the coherence checker. What arrives is
 * compared as well.
 */
#include <string.h>

#include "rig.h"

#define BYTES	8192
#define ODD	1000	/* neither begins nor ends with a line */

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
	need_wc(rig->a.cq, 1, IBV_WC_SUCCESS);
	if (op == IBV_WR_SEND)
		need_wc(rig->b.cq, 2, IBV_WC_SUCCESS);
	need_same(rig, offset, len);
	need_eq(rig->a.mem.addr[offset + len], 5);
	need_eq(rig->b.mem.addr[offset + len], 5);
}

struct shape {
	enum ibv_wr_opcode op;
	size_t offset;
	uint32_t len;
};

static void transfers(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	const struct shape *shape = arg;
	struct rig rig;

	attr.bytes = BYTES;
	attr.send_sge = 1;
	attr.recv_sge = 1;
	rig_connect_new(&rig, &attr);
	transfer(&rig, shape->op, shape->offset, shape->len);
	transfer(&rig, shape->op, shape->offset, shape->len);
	rig_destroy(&rig);
}

/* A READ without completion of its own, in front of one that has one. */
static void unsignalled_read(const void *unused)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr wr[2];
	struct ibv_sge sge[2];
	struct rig rig;
	unsigned int i;

	(void)unused;
	attr.bytes = BYTES;
	attr.send_sge = 1;
	attr.recv_sge = 1;
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
	struct rig_attr attr = rig_defaults();
	struct region source;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	(void)unused;
	attr.bytes = BYTES;
	attr.send_sge = 1;
	attr.recv_sge = 1;
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
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr wr;
	struct ibv_sge from, to;
	struct rig rig;

	(void)unused;
	attr.bytes = BYTES;
	attr.send_sge = 1;
	attr.recv_sge = 1;
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

#define TRANSFER(text, op, offset, len) \
	TEST(text, transfers, .arg = &(const struct shape){ op, offset, len })

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
