// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shared receive queues: receives that any of several QPs takes.
 */
#include <string.h>

#include "rig.h"

#define PEERS	3
#define DEPTH	16
#define PIECE	512

/* One process sends by PEERS QPs to PEERS others, which share an SRQ and a CQ. */
struct bench {
	struct ibv_context *ctx;
	struct rig_attr attr;
	struct ibv_pd *pd;		/* of all but the SRQ */
	struct ibv_pd *srq_pd;
	struct ibv_srq *srq;
	struct region mem;		/* of srq_pd: PIECE bytes for each receive */
	struct end from[PEERS];
	struct end to[PEERS];
};

static struct ibv_qp *qp_of_srq(struct bench *bench, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = bench->srq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return need_ptr(ibv_create_qp(bench->pd, &init));
}

static void bench_create(struct bench *bench, bool own_pd)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = DEPTH, .max_sge = 2 } };
	int i;

	memset(bench, 0, sizeof(*bench));
	bench->attr = rig_defaults();
	bench->attr.rnr_retry = 1;
	bench->ctx = open_device();
	bench->pd = need_ptr(ibv_alloc_pd(bench->ctx));
	bench->srq_pd = own_pd ? need_ptr(ibv_alloc_pd(bench->ctx)) : bench->pd;
	bench->srq = need_ptr(ibv_create_srq(bench->srq_pd, &srq));
	need(srq.attr.max_wr >= DEPTH && srq.attr.max_sge >= 2);
	region_create(&bench->mem, bench->srq_pd, DEPTH * PIECE, ACCESS_ALL);
	for (i = 0; i < PEERS; i++) {
		end_create(&bench->from[i], bench->pd, &bench->attr, 2 * i + 1);
		end_create(&bench->to[i], bench->pd, &bench->attr, 2 * i + 2);
		qp_destroy(&bench->to[i].qp);
		bench->to[i].qp = qp_of_srq(bench, bench->to[0].cq);
		ends_connect(&bench->from[i], &bench->to[i], &bench->attr);
	}
}

static void bench_destroy(struct bench *bench)
{
	int i;

	for (i = 0; i < PEERS; i++) {
		qp_destroy(&bench->to[i].qp);
		end_destroy(&bench->from[i]);
	}
	for (i = 0; i < PEERS; i++)
		end_destroy(&bench->to[i]);
	need_ok(ibv_destroy_srq(bench->srq));
	region_destroy(&bench->mem);
	if (bench->srq_pd != bench->pd)
		need_ok(ibv_dealloc_pd(bench->srq_pd));
	need_ok(ibv_dealloc_pd(bench->pd));
	need_ok(ibv_close_device(bench->ctx));
}

static int try_receive(struct bench *bench, uint64_t id, struct ibv_sge *sge)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = sge, .num_sge = 1 };

	return ibv_post_srq_recv(bench->srq, &wr, &bad);
}

/* The receive @id has the place of that number. */
static void receive(struct bench *bench, unsigned int id)
{
	struct ibv_sge sge = region_sge(&bench->mem, id % DEPTH * PIECE, PIECE);

	need_ok(try_receive(bench, id, &sge));
}

static void send_from(struct bench *bench, unsigned int peer, uint32_t len)
{
	struct ibv_sge sge = region_sge(&bench->from[peer].mem, 0, len);
	struct ibv_send_wr wr = send_wr(peer, IBV_WR_SEND, &sge, 1);

	post_send(bench->from[peer].qp, &wr);
}

/* Messages of all QPs take the receives in their order, far beyond the depth of the SRQ. */
static void test_shared(const void *arg)
{
	unsigned int sent, peer, id = 0, taken = 0;
	struct bench bench;
	struct ibv_wc wc;

	(void)arg;
	bench_create(&bench, false);
	for (; id < DEPTH; id++)
		receive(&bench, id);
	for (sent = 0; sent < 50 * DEPTH; sent++) {
		peer = sent * 7 / 3 % PEERS;
		send_from(&bench, peer, sent % PIECE + 1);
		need_wc(bench.from[peer].cq, peer, IBV_WC_SUCCESS);
		wc = need_wc(bench.to[0].cq, taken, IBV_WC_SUCCESS);
		need_eq(wc.qp_num, bench.to[peer].qp->qp_num);
		need_eq(wc.byte_len, sent % PIECE + 1);
		need(!memcmp(bench.mem.addr + taken % DEPTH * PIECE, bench.from[peer].mem.addr,
			     wc.byte_len));
		taken++;
		receive(&bench, id++);
	}
	bench_destroy(&bench);
}

/* As deep as it says, and a place is free again once its receive has completed. */
static void test_full(const void *arg)
{
	struct ibv_srq_attr attr;
	struct ibv_sge sge;
	struct bench bench;
	unsigned int i;

	(void)arg;
	bench_create(&bench, false);
	sge = region_sge(&bench.mem, 0, PIECE);
	need_ok(ibv_query_srq(bench.srq, &attr));
	need(attr.max_wr >= DEPTH);
	for (i = 0; i < attr.max_wr; i++)
		need_ok(try_receive(&bench, i, &sge));
	need_errno(try_receive(&bench, i, &sge), ENOMEM);
	send_from(&bench, 0, 8);
	need_wc(bench.to[0].cq, 0, IBV_WC_SUCCESS);
	need_ok(try_receive(&bench, i, &sge));
	need_errno(try_receive(&bench, i + 1, &sge), ENOMEM);
	bench_destroy(&bench);
}

/* One event when fewer are left than the limit says, and none until it is set again. */
static void test_limit(const void *arg)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct bench bench;
	unsigned int i;

	(void)arg;
	bench_create(&bench, false);
	for (i = 0; i < 5; i++)
		receive(&bench, i);
	need_ok(ibv_modify_srq(bench.srq, &attr, IBV_SRQ_LIMIT));
	need_ok(ibv_query_srq(bench.srq, &attr));
	need_eq(attr.srq_limit, 3);
	for (i = 0; i < 3; i++) {
		send_from(&bench, i, 8);
		need_wc(bench.to[0].cq, i, IBV_WC_SUCCESS);
	}
	need_event(bench.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, bench.srq);
	need_ok(ibv_query_srq(bench.srq, &attr));
	need_eq(attr.srq_limit, 0);
	bench_destroy(&bench);
}

/* The keys of its receives are those of the SRQ's PD, whichever the QP is in. */
static void test_own_pd(const void *arg)
{
	struct bench bench;
	struct ibv_sge sge;

	(void)arg;
	bench_create(&bench, true);
	receive(&bench, 0);
	send_from(&bench, 0, PIECE);
	need_wc(bench.from[0].cq, 0, IBV_WC_SUCCESS);
	need_wc(bench.to[0].cq, 0, IBV_WC_SUCCESS);
	need(!memcmp(bench.mem.addr, bench.from[0].mem.addr, PIECE));
	/* One of the QP's PD is no key here. */
	sge = region_sge(&bench.to[1].mem, 0, PIECE);
	need_ok(try_receive(&bench, 1, &sge));
	send_from(&bench, 1, PIECE);
	need_wc(bench.to[0].cq, 1, IBV_WC_LOC_PROT_ERR);
	need_wc(bench.from[1].cq, 1, IBV_WC_REM_OP_ERR);
	bench_destroy(&bench);
}

/* Nobody has posted a receive: the sender waits for one, or gives up. */
static void test_empty(const void *arg)
{
	struct bench bench;

	(void)arg;
	bench_create(&bench, false);
	send_from(&bench, 0, 8);
	need_wc(bench.from[0].cq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
	/* The others still serve. */
	receive(&bench, 5);
	send_from(&bench, 1, 8);
	need_wc(bench.from[1].cq, 1, IBV_WC_SUCCESS);
	need_wc(bench.to[0].cq, 5, IBV_WC_SUCCESS);
	bench_destroy(&bench);
}

/* A QP that fails leaves the SRQ its receives, and says when it takes no more of them. */
static void test_last_wqe(const void *arg)
{
	struct bench bench;

	(void)arg;
	bench_create(&bench, false);
	receive(&bench, 1);
	qp_to_state(bench.to[0].qp, IBV_QPS_ERR);
	need_event(bench.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, bench.to[0].qp);
	need_quiet(bench.to[0].cq, 50);
	send_from(&bench, 1, 8);
	need_wc(bench.to[0].cq, 1, IBV_WC_SUCCESS);
	bench_destroy(&bench);
}

/* What a WRITE with immediate needs of a receive is its place alone. */
static void test_write_imm(const void *arg)
{
	struct bench bench;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	(void)arg;
	bench_create(&bench, false);
	receive(&bench, 9);
	sge = region_sge(&bench.from[2].mem, 0, 100);
	wr = send_wr(2, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 1);
	wr.imm_data = htobe32(0x12345678);
	wr_to(&wr, &bench.to[2].mem, 300);
	post_send(bench.from[2].qp, &wr);
	wc = need_wc(bench.to[0].cq, 9, IBV_WC_SUCCESS);
	need(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htobe32(0x12345678));
	need_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	need_eq(wc.byte_len, 100);
	need(!memcmp(bench.to[2].mem.addr + 300, bench.from[2].mem.addr, 100));
	bench_destroy(&bench);
}

static void test_refused(const void *arg)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .srq_limit = 2 * 65536 };
	struct ibv_recv_wr *bad, wr = { .num_sge = 17 };
	struct ibv_device_attr device;
	struct bench bench;

	(void)arg;
	bench_create(&bench, false);
	need_errno(ibv_destroy_srq(bench.srq), EBUSY);
	need_errno(ibv_modify_srq(bench.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	need_errno(ibv_post_srq_recv(bench.srq, &wr, &bad), EINVAL);
	need(bad == &wr);
	need_errno(ibv_post_recv(bench.to[0].qp, &wr, &bad), EINVAL);
	need_ok(ibv_query_device(bench.ctx, &device));
	init.attr.max_wr = device.max_srq_wr + 1;
	need(!ibv_create_srq(bench.pd, &init));
	need_eq(init.attr.max_sge, 1);
	init.attr = (struct ibv_srq_attr) { .max_wr = 1, .max_sge = device.max_srq_sge + 1 };
	need(!ibv_create_srq(bench.pd, &init));
	need_eq(init.attr.max_sge, device.max_srq_sge + 1);
	bench_destroy(&bench);
}

static const struct tap_test tests[] = {
	TEST("several QPs", test_shared),
	TEST("full", test_full),
	TEST("limit", test_limit),
	TEST("a PD of its own", test_own_pd),
	TEST("empty", test_empty),
	TEST("the last WQE", test_last_wqe),
	TEST("WRITE with immediate", test_write_imm),
	TEST("what is refused", test_refused),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "Shared receive queues: receives that any of several QPs takes.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
