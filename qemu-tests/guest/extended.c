// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The extended interfaces: CQs that are polled by start_poll, next_poll and end_poll, QPs
 * that are posted to by ibv_wr_*(), objects of one thread alone.
 */
#include <poll.h>
#include <string.h>

#include "rig.h"

#define MESSAGES	10

struct bench {
	struct rig rig;
	struct ibv_td *td;
	struct ibv_pd *single;		/* the parent domain of td; NULL: none */
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cq;		/* of both ends of the QPs */
	struct ibv_qp_ex *qp;		/* that of rig.a */
};

static struct ibv_qp *make_qp(struct bench *bench)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ibv_cq_ex_to_cq(bench->cq),
		.recv_cq = ibv_cq_ex_to_cq(bench->cq),
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = bench->single ? bench->single : bench->rig.a.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE,
	};

	return need_ptr(ibv_create_qp_ex(bench->rig.ctx, &init));
}

static void bench_create(struct bench *bench, bool single)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = single ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0,
	};
	struct rig_attr attr = rig_defaults();
	struct rig *rig = &bench->rig;

	memset(bench, 0, sizeof(*bench));
	rig_create(rig, &attr);
	if (single) {
		struct ibv_td_init_attr td = {};
		struct ibv_parent_domain_init_attr parent = { .pd = rig->a.pd };

		bench->td = need_ptr(ibv_alloc_td(rig->ctx, &td));
		parent.td = bench->td;
		bench->single = need_ptr(ibv_alloc_parent_domain(rig->ctx, &parent));
	}
	bench->channel = need_ptr(ibv_create_comp_channel(rig->ctx));
	cq.channel = bench->channel;
	bench->cq = need_ptr(ibv_create_cq_ex(rig->ctx, &cq));
	qp_destroy(&rig->a.qp);
	qp_destroy(&rig->b.qp);
	rig->a.qp = make_qp(bench);
	rig->b.qp = make_qp(bench);
	bench->qp = need_ptr(ibv_qp_to_qp_ex(rig->a.qp));
	rig_connect(rig);
}

static void bench_destroy(struct bench *bench)
{
	qp_destroy(&bench->rig.a.qp);
	qp_destroy(&bench->rig.b.qp);
	need_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(bench->cq)));
	need_ok(ibv_destroy_comp_channel(bench->channel));
	if (bench->single) {
		need_ok(ibv_dealloc_pd(bench->single));
		need_ok(ibv_dealloc_td(bench->td));
	}
	rig_destroy(&bench->rig);
}

/* Message @i, with @i as wr_id and immediate, @i + 1 bytes from offset 64 * @i to there. */
static void send_one(struct bench *bench, unsigned int i)
{
	struct ibv_sge to = region_sge(&bench->rig.b.mem, 64 * i, 64);
	struct region *from = &bench->rig.a.mem;

	post_recv(bench->rig.b.qp, 100 + i, &to, 1);
	ibv_wr_start(bench->qp);
	bench->qp->wr_id = i;
	bench->qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(bench->qp, htobe32(i));
	ibv_wr_set_sge(bench->qp, from->mr->lkey, (uintptr_t)from->addr + 64 * i, i + 1);
	need_ok(ibv_wr_complete(bench->qp));
}

static void need_event_of_cq(struct bench *bench)
{
	struct pollfd fd = { .fd = bench->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	need_that(poll(&fd, 1, 10000) == 1, "no completion event came");
	need_ok(ibv_get_cq_event(bench->channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
}

/* Waits until the CQ is not empty, and begins to poll. */
static void start_poll(struct bench *bench)
{
	struct ibv_poll_cq_attr attr = {};
	uint64_t end = now_us() + 10000000ull * tap_patience();
	int err;

	while ((err = ibv_start_poll(bench->cq, &attr)) == ENOENT)
		need_that(now_us() < end, "no completion came");
	need_ok(err);
}

static void need_read(struct bench *bench, unsigned int *sent, unsigned int *received)
{
	struct ibv_cq_ex *cq = bench->cq;

	need_eq(cq->status, IBV_WC_SUCCESS);
	if (ibv_wc_read_opcode(cq) == IBV_WC_SEND) {
		need_eq(cq->wr_id, *sent);
		need_eq(ibv_wc_read_qp_num(cq), bench->rig.a.qp->qp_num);
		++*sent;
		return;
	}
	need_eq(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	need_eq(cq->wr_id, 100 + *received);
	need_eq(ibv_wc_read_qp_num(cq), bench->rig.b.qp->qp_num);
	need_eq(ibv_wc_read_byte_len(cq), *received + 1);
	need_eq(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	need_eq(be32toh(ibv_wc_read_imm_data(cq)), *received);
	need_eq(ibv_wc_read_vendor_err(cq), 0);
	++*received;
}

/* All that messages leave, in order, each with a time that is not before the last one's. */
static void test_poll(const void *arg)
{
	unsigned int sent = 0, received = 0, i;
	uint64_t last = 0, time;
	struct bench bench;

	bench_create(&bench, arg);
	for (i = 0; i < MESSAGES; i++)
		send_one(&bench, i);
	while (sent < MESSAGES || received < MESSAGES) {
		start_poll(&bench);
		do {
			need_read(&bench, &sent, &received);
			time = ibv_wc_read_completion_ts(bench.cq);
			need(time >= last);
			last = time;
		} while (!ibv_next_poll(bench.cq));
		ibv_end_poll(bench.cq);
	}
	for (i = 0; i < MESSAGES; i++)
		need(!memcmp(bench.rig.a.mem.addr + 64 * i, bench.rig.b.mem.addr + 64 * i, i + 1));
	need(ibv_start_poll(bench.cq, &(struct ibv_poll_cq_attr) { 0 }) == ENOENT);
	bench_destroy(&bench);
}

/* Other devices allow it, and programs do it: the lock that start_poll takes is not in the way. */
static void test_arm_while_polling(const void *arg)
{
	unsigned int sent = 0, received = 0;
	struct bench bench;

	bench_create(&bench, arg);
	need_ok(ibv_req_notify_cq(ibv_cq_ex_to_cq(bench.cq), 0));
	send_one(&bench, 0);
	while (sent < 1 || received < 1) {
		start_poll(&bench);
		if (!sent && !received) {
			need_event_of_cq(&bench);
			need_ok(ibv_req_notify_cq(ibv_cq_ex_to_cq(bench.cq), 0));
		}
		need_read(&bench, &sent, &received);
		ibv_end_poll(bench.cq);
	}
	bench_destroy(&bench);
}

/* What was begun and aborted leaves no trace. */
static void test_abort(const void *arg)
{
	unsigned int sent = 0, received = 0, i;
	struct bench bench;

	(void)arg;
	bench_create(&bench, false);
	for (i = 0; i < 100; i++) {
		ibv_wr_start(bench.qp);
		bench.qp->wr_id = 1000;
		bench.qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(bench.qp);
		ibv_wr_set_sge(bench.qp, bench.rig.a.mem.mr->lkey,
			       (uintptr_t)bench.rig.a.mem.addr, 64);
		ibv_wr_abort(bench.qp);
	}
	for (i = 0; i < MESSAGES; i++)
		send_one(&bench, i);
	while (sent < MESSAGES || received < MESSAGES) {
		start_poll(&bench);
		need_read(&bench, &sent, &received);
		ibv_end_poll(bench.cq);
	}
	bench_destroy(&bench);
}

static void test_refused(const void *arg)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 1, .wc_flags = IBV_WC_EX_WITH_CVLAN };
	struct ibv_qp_init_attr_ex qp = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 20, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct bench bench;

	(void)arg;
	bench_create(&bench, false);
	need(!ibv_create_cq_ex(bench.rig.ctx, &cq));
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(bench.cq);
	qp.pd = bench.rig.a.pd;
	/* A program that asks for too much finds what it asked for as it was. */
	need(!ibv_create_qp_ex(bench.rig.ctx, &qp));
	need_eq(qp.cap.max_send_wr, 1);
	need_eq(qp.cap.max_send_sge, 20);
	need_eq(qp.cap.max_recv_sge, 1);
	qp.cap.max_send_sge = 1;
	qp.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	qp.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp.pd = NULL;
	need(!ibv_create_qp_ex(bench.rig.ctx, &qp));
	qp.comp_mask |= IBV_QP_INIT_ATTR_PD;
	qp.pd = bench.rig.a.pd;
	qp.send_ops_flags = IBV_QP_EX_WITH_TSO;
	need(!ibv_create_qp_ex(bench.rig.ctx, &qp));
	bench_destroy(&bench);
}

static const struct tap_test tests[] = {
	TEST("poll", test_poll),
	TEST("poll, one thread", test_poll, .arg = "single"),
	TEST("arm while polling", test_arm_while_polling),
	TEST("arm while polling, one thread", test_arm_while_polling, .arg = "single"),
	TEST("abort", test_abort),
	TEST("what is refused", test_refused),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "The extended interfaces of CQs and QPs.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
