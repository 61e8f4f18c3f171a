// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each status that a completion can have, and what the other side sees. Run over the wire
 * and within one NIC, with mapped memory and without.
 */
#include <endian.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

/* How the tests are run; each scenario is tried in all ways. */
static const struct rig_options ways[] = {
	{ .local = false },
	{ .local = true },
	{ .message = true },
	{ .local = true, .message = true, .no_poll = true },
};

#define for_each_way(rig)							\
	for (unsigned int way_ = 0; way_ < sizeof(ways) / sizeof(ways[0]) &&	\
	     (rig_init(&(rig), &ways[way_]), true); way_++, rig_free(&(rig)))

static struct rig rig;

/* The QPs of both sides after a failure, and that they can be used again. */
static void expect_states(enum ferry_qp_state requester, enum ferry_qp_state responder)
{
	need_eq(rig_state(&rig, 0), requester);
	need_eq(rig_state(&rig, 1), responder);
	rig_reconnect(&rig);
	rig_check_traffic(&rig);
}

static void post_and_run(const struct host_wr *wr)
{
	rig_post(&rig, 0, wr);
	rig_run(&rig);
}

static void success(void)
{
	static const enum ferry_wr wrs[] = {
		FERRY_WR_SEND, FERRY_WR_SEND_IMM, FERRY_WR_WRITE, FERRY_WR_WRITE_IMM,
		FERRY_WR_READ,
	};

	for_each_way(rig) {
		unsigned int i;

		for (i = 0; i < 5; i++) {
			struct host_wr wr = rig_wr(&rig, 0, wrs[i], 5, 20000 + 5000 * i, 4999);
			struct host_wc wc;

			if (i < 2 || i == 3)
				rig_recv(&rig, 1, 20000 + 5000 * i, 5000, (uint16_t)(100 + i));
			post_and_run(&wr);
			wc = rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
			need_eq(wc.qpn, rig.qp[0]->number);
			need_eq(wc.vendor_err, 0);
			if (wrs[i] == FERRY_WR_READ) {
				need(rig_got(&rig, 0, 5, 20000 + 5000 * i, 4999));
				continue;
			}
			need(rig_got(&rig, 1, 20000 + 5000 * i, 5, 4999));
			if (i == 2)
				continue;
			wc = rig_expect(&rig, 1, FERRY_WC_SUCCESS, (uint16_t)(100 + i));
			need_eq(wc.byte_len, 4999);
			need_eq(!!(wc.flags & FERRY_CQE_IMM), i != 0);
			need(!i || !memcmp(wc.imm, wr.imm, 4));
		}
		rig_expect_none(&rig, 0);
		rig_expect_none(&rig, 1);
	}
}

/* ---- found before anything leaves */

static void bad_wqe(void (*spoil)(struct host_wr *wr), enum ferry_wr opcode,
		    enum ferry_wc_status status)
{
	for_each_way(rig) {
		struct host_wr good = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 10), bad;

		rig_recv(&rig, 0, 0, 10, 7);
		bad = rig_wr(&rig, 0, opcode, 0, 0, 100);
		spoil(&bad);
		host_post_send(rig.qp[0], &good);
		host_post_send(rig.qp[0], &bad);
		good.flags = 0;
		host_post_send(rig.qp[0], &good);
		rig_post(&rig, 0, &good);
		rig_run(&rig);
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
		need(rig_expect(&rig, 0, status, 1).vendor_err);
		rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR, 2);
		rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR, 3);
		rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR, 7);
		rig_expect_none(&rig, 0);
		rig_expect_none(&rig, 1);
		expect_states(FERRY_QPS_ERR, FERRY_QPS_RTS);
	}
}

static void spoil_opcode(struct host_wr *wr)
{
	wr->opcode = FERRY_WR_COUNT;
}

static void spoil_unsupported(struct host_wr *wr)
{
	wr->opcode = FERRY_WR_REG_MR;
}

static void spoil_sges(struct host_wr *wr)
{
	wr->num_sge = 16;	/* one more than a stride of 512 bytes would hold in an atomic */
}

static void loc_qp_op_err(void)
{
	bad_wqe(spoil_opcode, FERRY_WR_SEND, FERRY_WC_LOC_QP_OP_ERR);
	bad_wqe(spoil_unsupported, FERRY_WR_SEND, FERRY_WC_LOC_QP_OP_ERR);
}

static void spoil_atomic_len(struct host_wr *wr)
{
	wr->sge[0].length = 7;
}

static void spoil_message_len(struct host_wr *wr)
{
	wr->num_sge = 2;
	wr->sge[0].length = 0x80000000u;
	wr->sge[1] = wr->sge[0];
	wr->sge[1].length = 1;
}

static void loc_len_err(void)
{
	bad_wqe(spoil_message_len, FERRY_WR_WRITE, FERRY_WC_LOC_LEN_ERR);
	bad_wqe(spoil_atomic_len, FERRY_WR_ATOMIC_FA, FERRY_WC_LOC_LEN_ERR);
	bad_wqe(spoil_sges, FERRY_WR_ATOMIC_CS, FERRY_WC_LOC_LEN_ERR);
}

static void spoil_lkey(struct host_wr *wr)
{
	wr->sge[0].key ^= 1;
}

static void spoil_lkey_second(struct host_wr *wr)
{
	wr->num_sge = 2;
	wr->sge[1] = wr->sge[0];
	wr->sge[1].key = FERRY_KEY_INVALID;
}

static void spoil_range(struct host_wr *wr)
{
	wr->sge[0].addr += RIG_MR_LEN - wr->sge[0].length + 1;
}

static void spoil_below(struct host_wr *wr)
{
	wr->sge[0].addr -= 1;
}

static void spoil_wrap(struct host_wr *wr)
{
	wr->sge[0].addr = UINT64_MAX - 10;
}

static void loc_prot_err(void)
{
	bad_wqe(spoil_lkey, FERRY_WR_WRITE, FERRY_WC_LOC_PROT_ERR);
	bad_wqe(spoil_lkey_second, FERRY_WR_WRITE, FERRY_WC_LOC_PROT_ERR);
	bad_wqe(spoil_range, FERRY_WR_WRITE, FERRY_WC_LOC_PROT_ERR);
	bad_wqe(spoil_below, FERRY_WR_READ, FERRY_WC_LOC_PROT_ERR);
	bad_wqe(spoil_wrap, FERRY_WR_SEND, FERRY_WC_LOC_PROT_ERR);
}

/* ---- found by the peer */

static void remote_error(void (*spoil)(struct host_wr *wr), enum ferry_wr opcode,
			 enum ferry_wc_status status, enum ferry_event expected)
{
	for_each_way(rig) {
		struct host_wr good = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 10);
		struct host_wr bad = rig_wr(&rig, 0, opcode, 0, 30000, 8);
		struct host_event event;

		spoil(&bad);
		host_post_send(rig.qp[0], &good);
		host_post_send(rig.qp[0], &bad);
		rig_recv(&rig, 1, 0, 10, 7);
		rig_post(&rig, 0, &good);
		rig_run(&rig);
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
		need(rig_expect(&rig, 0, status, 1).vendor_err);
		rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR, 2);
		rig_expect(&rig, 1, FERRY_WC_WR_FLUSH_ERR, 7);
		rig_expect_none(&rig, 0);
		rig_expect_none(&rig, 1);
		need(rig_event(&rig, 1, expected, &event));
		need_eq(event.number, rig.qp[1]->number);
		need(host_mr_guards_intact(rig.mr[0]) && host_mr_guards_intact(rig.mr[1]));
		expect_states(FERRY_QPS_ERR, FERRY_QPS_ERR);
	}
}

static void spoil_rkey(struct host_wr *wr)
{
	wr->rkey ^= 1;
}

static void spoil_remote_range(struct host_wr *wr)
{
	wr->raddr += RIG_MR_LEN - 30000 - 8 + 1;
}

static void spoil_remote_far(struct host_wr *wr)
{
	wr->raddr = UINT64_MAX - 7;
}

static void rem_access_err(void)
{
	static const enum ferry_wr wrs[] = {
		FERRY_WR_WRITE, FERRY_WR_WRITE_IMM, FERRY_WR_READ, FERRY_WR_ATOMIC_FA,
	};
	unsigned int i;

	for (i = 0; i < 4; i++)
		remote_error(spoil_rkey, wrs[i], FERRY_WC_REM_ACCESS_ERR,
			     FERRY_EVENT_QP_ACCESS_ERR);
	remote_error(spoil_remote_range, FERRY_WR_WRITE, FERRY_WC_REM_ACCESS_ERR,
		     FERRY_EVENT_QP_ACCESS_ERR);
	remote_error(spoil_remote_range, FERRY_WR_READ, FERRY_WC_REM_ACCESS_ERR,
		     FERRY_EVENT_QP_ACCESS_ERR);
	remote_error(spoil_remote_far, FERRY_WR_WRITE, FERRY_WC_REM_ACCESS_ERR,
		     FERRY_EVENT_QP_ACCESS_ERR);
}

static void spoil_alignment(struct host_wr *wr)
{
	wr->raddr += 4;
}

static void rem_inv_req_err(void)
{
	remote_error(spoil_alignment, FERRY_WR_ATOMIC_CS, FERRY_WC_REM_INV_REQ_ERR,
		     FERRY_EVENT_QP_REQ_ERR);
}

/* A SEND longer than the receive: both sides fail, the receiver with a status of its own. */
static void too_long(void)
{
	for_each_way(rig) {
		struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 3001);

		rig_recv(&rig, 1, 40000, 3000, 1);
		rig_recv(&rig, 1, 50000, 3000, 2);
		post_and_run(&wr);
		rig_expect(&rig, 0, FERRY_WC_REM_INV_REQ_ERR, 0);
		rig_expect(&rig, 1, FERRY_WC_LOC_LEN_ERR, 1);
		rig_expect(&rig, 1, FERRY_WC_WR_FLUSH_ERR, 2);
		rig_expect_none(&rig, 0);
		rig_expect_none(&rig, 1);
		expect_states(FERRY_QPS_ERR, FERRY_QPS_ERR);
	}
}

/* A receive with a key that is none. */
static void bad_receive(void)
{
	for_each_way(rig) {
		struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 100);
		struct host_sge sge = { rig.mr[1]->spec.iova, 100, rig.mr[1]->key ^ 3 };

		host_post_recv(rig.qp[1], &sge, 1, 9);
		host_ring_recv(rig.qp[1]);
		post_and_run(&wr);
		rig_expect(&rig, 0, FERRY_WC_REM_OP_ERR, 0);
		rig_expect(&rig, 1, FERRY_WC_LOC_PROT_ERR, 9);
		expect_states(FERRY_QPS_ERR, FERRY_QPS_ERR);
	}
}

/* A receive that says it has more SGEs than its entry holds. */
static void absurd_receive(void)
{
	for_each_way(rig) {
		struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 100);
		struct ferry_rqe *rqe;

		rig_recv(&rig, 1, 0, 100, 9);
		rqe = host_blocks_at(&rig.qp[1]->rq.blocks, 0);
		rqe->num_sge = htole16(0xffff);
		post_and_run(&wr);
		rig_expect(&rig, 0, FERRY_WC_REM_OP_ERR, 0);
		rig_expect(&rig, 1, FERRY_WC_LOC_QP_OP_ERR, 9);
		expect_states(FERRY_QPS_ERR, FERRY_QPS_ERR);
	}
}

/* ---- rights of the QP and of the MR */

static void no_right(void)
{
	static const struct {
		enum ferry_wr wr;
		uint8_t right;
	} cases[] = {
		{ FERRY_WR_WRITE, FERRY_ACCESS_REMOTE_WRITE },
		{ FERRY_WR_READ, FERRY_ACCESS_REMOTE_READ },
		{ FERRY_WR_ATOMIC_CS, FERRY_ACCESS_REMOTE_ATOMIC },
	};
	unsigned int i, of_qp;

	for (i = 0; i < 3; i++) {
		for (of_qp = 0; of_qp < 2; of_qp++) {
			struct rig_options o = { .path.access = RIG_ACCESS };
			struct host_wr wr;

			if (of_qp)
				o.path.access &= ~cases[i].right;
			rig_init(&rig, &o);
			if (!of_qp) {
				struct host_mr_spec spec = rig.mr[1]->spec;

				host_mr_destroy(rig.mr[1]);
				spec.access &= ~cases[i].right;
				rig.mr[1] = host_mr_create(&spec);
			}
			wr = rig_wr(&rig, 0, cases[i].wr, 0, 0, 8);
			post_and_run(&wr);
			rig_expect(&rig, 0, of_qp ? FERRY_WC_REM_INV_REQ_ERR :
				   FERRY_WC_REM_ACCESS_ERR, 0);
			rig_free(&rig);
		}
	}
}

/* The sink of a READ must be writable. */
static void no_local_write(void)
{
	for_each_way(rig) {
		struct host_mr_spec spec = rig.mr[0]->spec;
		struct host_mr *mr;
		struct host_wr wr;

		spec.access = 0;
		mr = host_mr_create(&spec);
		need(mr);
		wr = rig_wr(&rig, 0, FERRY_WR_READ, 0, 0, 8);
		wr.sge[0].key = mr->key;
		post_and_run(&wr);
		rig_expect(&rig, 0, FERRY_WC_LOC_PROT_ERR, 0);
		need(host_mr_guards_intact(mr));
		host_mr_destroy(mr);
		expect_states(FERRY_QPS_ERR, FERRY_QPS_RTS);
	}
}

/* ---- retries */

static unsigned int lose_all(void *arg, struct host *from, struct host *to, const uint8_t *data,
			     const struct frame *frame)
{
	unsigned int *sent = arg;

	(void)from;
	(void)to;
	(void)data;
	(void)frame;
	(*sent)++;
	return WIRE_LOSS;
}

static void retry_exc_err(void)
{
	static const uint8_t retries[] = { 1, 3, 7 };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct rig_options o = { .path.retry_cnt = retries[i], .path.timeout = 6 };
		unsigned int sent = 0;
		struct host_wr wr;
		uint64_t start;

		rig_init(&rig, &o);
		rig.wire.judge = lose_all;
		rig.wire.judge_arg = &sent;
		wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
		start = rig.wire.now;
		rig_post(&rig, 0, &wr);
		rig_run(&rig);
		rig_expect(&rig, 0, FERRY_WC_RETRY_EXC_ERR, 0);
		need_eq(sent, 1 + retries[i]);
		need(rig.wire.now > start + (4096ull << 6) * (1 + retries[i]));
		need_eq(host_counter(rig.host[0], FERRY_COUNTER_local_ack_timeout_err),
			1 + retries[i]);
		rig.wire.judge = NULL;
		expect_states(FERRY_QPS_ERR, FERRY_QPS_RTS);
		rig_free(&rig);
	}
}

/* Without a receive, and without patience. */
static void rnr_retry_exc_err(void)
{
	unsigned int local;

	for (local = 0; local < 2; local++) {
		struct rig_options o = { .local = local, .path.rnr_retry = 3,
					 .path.min_rnr_timer = 12 };
		struct host_wr wr;

		rig_init(&rig, &o);
		wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 8);
		post_and_run(&wr);
		rig_expect(&rig, 0, FERRY_WC_RNR_RETRY_EXC_ERR, 0);
		need_eq(host_counter(rig.host[0], FERRY_COUNTER_rnr_nak_retry_err), 4);
		need_eq(host_counter(rig.host[1], FERRY_COUNTER_rnr_nak_sent), 4);
		expect_states(FERRY_QPS_ERR, FERRY_QPS_RTS);
		rig_free(&rig);
	}
}

/*
 * The timer of the NAK is kept: a receive that comes in time is found at its end. A peer of this
 * port is seen to have one before that, without another NAK.
 */
static void rnr_timer(void)
{
	unsigned int local;

	for (local = 0; local < 2; local++) {
		/* 15.36 ms */
		struct rig_options o = { .local = local, .path.rnr_retry = 1,
					 .path.min_rnr_timer = 21 };
		struct host_wr wr;
		uint64_t start;

		rig_init(&rig, &o);
		wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 8);
		start = rig.wire.now;
		rig_post(&rig, 0, &wr);
		wire_run(&rig.wire, 10000000);
		rig_recv(&rig, 1, 0, 8, 5);
		rig_expect_none(&rig, 0);
		wire_run(&rig.wire, start + 15300000 - rig.wire.now);
		if (!local) {
			rig_expect_none(&rig, 0);
			rig_run(&rig);
		}
		need_eq(host_counter(rig.host[1], FERRY_COUNTER_rnr_nak_sent), 1);
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
		rig_expect(&rig, 1, FERRY_WC_SUCCESS, 5);
		rig_free(&rig);
	}
}

/* A peer that goes to RESET meanwhile: its old record, which its host has not cleared yet, means nothing. */
static void rnr_peer_reset(void)
{
	struct rig_options o = { .local = true, .path.rnr_retry = 1, .path.min_rnr_timer = 21 };
	struct ferry_qp_attr reset = { .mask = htole32(FERRY_QP_ATTR_STATE),
				       .state = FERRY_QPS_RESET };
	struct host_wr wr;

	rig_init(&rig, &o);
	rig_recv(&rig, 1, 0, 8, 5);
	wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 8);
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	rig_expect(&rig, 1, FERRY_WC_SUCCESS, 5);
	rig_post(&rig, 0, &wr);
	wire_run(&rig.wire, 10000);
	need_eq(host_qp_modify(rig.qp[1], &reset), 0);
	wire_run(&rig.wire, 10000000);
	rig_expect(&rig, 0, FERRY_WC_RETRY_EXC_ERR, 1);
	rig.qp[1]->rq.pi = 0;
	memset(host_slot_at(&rig.qp[1]->rq.slot), 0, sizeof(struct ferry_slot));
	need_eq(host_qp_state(rig.qp[0], FERRY_QPS_RESET), 0);
	host_connect(rig.qp[0], rig.qp[1], &o.path);
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_RNR_RETRY_EXC_ERR, 0);
	rig_free(&rig);
}

/* ---- flush */

static void flush_by_command(void)
{
	for_each_way(rig) {
		unsigned int i;

		for (i = 0; i < 5; i++)
			rig_recv(&rig, 0, 0, 10, (uint16_t)(50 + i));
		need_eq(host_qp_state(rig.qp[0], FERRY_QPS_ERR), FERRY_ADMIN_OK);
		rig_run(&rig);
		for (i = 0; i < 5; i++)
			need_eq(rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR,
					   (uint16_t)(50 + i)).op, FERRY_WC_RECV);
		/* What is posted later is flushed as well. */
		for (i = 0; i < 3; i++) {
			struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);

			wr.flags = 0;
			rig_recv(&rig, 0, 0, 10, (uint16_t)(60 + i));
			rig_post(&rig, 0, &wr);
			rig_run(&rig);
			rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR, (uint16_t)i);
			rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR, (uint16_t)(60 + i));
		}
		rig_expect_none(&rig, 0);
		expect_states(FERRY_QPS_ERR, FERRY_QPS_RTS);
	}
}

/* ---- a peer that answers nonsense */

/* Whatever the requester sends is taken away; the test answers in its place. */
static struct frame forged_request;

static unsigned int take_request(void *arg, struct host *from, struct host *to,
				 const uint8_t *data, const struct frame *frame)
{
	(void)arg;
	(void)from;
	(void)to;
	(void)data;
	forged_request = *frame;
	return WIRE_LOSS;
}

static void forge(struct frame *answer, const void *payload, size_t len)
{
	uint8_t data[FRAME_MAX];
	size_t n;

	answer->dest_qpn = rig.qp[0]->number;
	n = frame_build(data, rig.host[1], rig.host[0], answer, payload, len);
	host_frame(rig.host[0], data, n);
	wire_run(&rig.wire, 1000);
}

static void start_read(uint32_t len)
{
	struct rig_options o = { .path.timeout = 14 };
	struct host_wr wr;

	rig_init(&rig, &o);
	rig.wire.judge = take_request;
	wr = rig_wr(&rig, 0, FERRY_WR_READ, 0, 0, len);
	rig_post(&rig, 0, &wr);
	wire_run(&rig.wire, 10000);
	need_eq(forged_request.opcode, FRAME_READ_REQUEST);
}

/* A READ response of the wrong length, of the right one, and of an old PSN. */
static void bad_resp_err(void)
{
	struct frame answer = { .opcode = FRAME_READ_ONLY, .syndrome = FRAME_SYNDROME_ACK };
	uint8_t payload[1024] = { 1, 2, 3 };

	start_read(100);
	answer.psn = forged_request.psn;
	forge(&answer, payload, 99);
	rig_expect(&rig, 0, FERRY_WC_BAD_RESP_ERR, 0);
	need_eq(rig_state(&rig, 0), FERRY_QPS_ERR);
	rig.wire.judge = NULL;
	rig_free(&rig);

	start_read(100);
	answer.psn = forged_request.psn - 1;
	forge(&answer, payload, 100);
	rig_expect_none(&rig, 0);
	answer.psn = forged_request.psn + 1;
	forge(&answer, payload, 100);
	rig_expect_none(&rig, 0);
	answer.psn = forged_request.psn;
	forge(&answer, payload, 100);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	rig.wire.judge = NULL;
	rig_free(&rig);
}

/* An ACK does not stand for a READ response, nor for what was never sent. */
static void ack_is_no_data(void)
{
	struct frame ack = { .opcode = FRAME_ACK, .syndrome = FRAME_SYNDROME_ACK };
	unsigned int i;

	start_read(100);
	for (i = 0; i < 5; i++) {
		ack.psn = (forged_request.psn + i) & 0xffffff;
		forge(&ack, NULL, 0);
		rig_expect_none(&rig, 0);
	}
	need_eq(rig_state(&rig, 0), FERRY_QPS_RTS);
	rig.wire.judge = NULL;
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	rig_free(&rig);
}

static void ack_beyond_sent(void)
{
	struct frame ack = { .opcode = FRAME_ACK, .syndrome = FRAME_SYNDROME_ACK };
	struct rig_options o = { .path.timeout = 14 };
	struct host_wr wr;
	unsigned int i;

	rig_init(&rig, &o);
	rig.wire.judge = take_request;
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 100);
	rig_post(&rig, 0, &wr);
	wire_run(&rig.wire, 10000);
	for (i = 1; i < 5; i++) {
		ack.psn = (forged_request.psn + i) & 0xffffff;
		forge(&ack, NULL, 0);
		rig_expect_none(&rig, 0);
	}
	ack.psn = forged_request.psn;
	forge(&ack, NULL, 0);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	rig.wire.judge = NULL;
	rig_free(&rig);
}

/* Each NAK code of the peer. */
static void naks(void)
{
	static const struct {
		uint8_t code;
		enum ferry_wc_status status;
	} codes[] = {
		{ 1, FERRY_WC_REM_INV_REQ_ERR },
		{ 2, FERRY_WC_REM_ACCESS_ERR },
		{ 3, FERRY_WC_REM_OP_ERR },
	};
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct frame nak = { .opcode = FRAME_ACK,
				     .syndrome = FRAME_SYNDROME_NAK | codes[i].code };
		struct rig_options o = { .path.timeout = 14 };
		struct host_wr wr;

		rig_init(&rig, &o);
		rig.wire.judge = take_request;
		wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 100);
		rig_post(&rig, 0, &wr);
		rig_post(&rig, 0, &wr);
		wire_run(&rig.wire, 10000);
		/* Of the second: the first is acknowledged by it. */
		nak.psn = forged_request.psn;
		forge(&nak, NULL, 0);
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
		rig_expect(&rig, 0, codes[i].status, 1);
		rig.wire.judge = NULL;
		rig_free(&rig);
	}
}

/* A sequence NAK brings what was lost at once, long before the timeout. */
static unsigned int lose_first(void *arg, struct host *from, struct host *to, const uint8_t *data,
			       const struct frame *frame)
{
	unsigned int *left = arg;

	(void)from;
	(void)to;
	(void)data;
	if (!frame->from_requester || !*left)
		return 0;
	(*left)--;
	return WIRE_LOSS;
}

static void sequence_nak(void)
{
	struct rig_options o = { .path.timeout = 20 };
	unsigned int left = 1;
	struct host_wr wr;

	rig_init(&rig, &o);
	rig.wire.judge = lose_first;
	rig.wire.judge_arg = &left;
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 5000);
	rig_post(&rig, 0, &wr);
	wire_run(&rig.wire, 1000000);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	need(rig_got(&rig, 1, 0, 0, 5000));
	need_eq(host_counter(rig.host[0], FERRY_COUNTER_packet_seq_err), 1);
	need(host_counter(rig.host[1], FERRY_COUNTER_out_of_sequence) >= 1);
	rig_free(&rig);
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TAP_TEST(success, "SUCCESS: every operation"),
		TAP_TEST(loc_len_err, "LOC_LEN_ERR of a request"),
		TAP_TEST(loc_qp_op_err, "LOC_QP_OP_ERR of a request"),
		TAP_TEST(loc_prot_err, "LOC_PROT_ERR of a request"),
		TAP_TEST(no_local_write, "LOC_PROT_ERR: READ into memory that is not writable"),
		TAP_TEST(rem_access_err, "REM_ACCESS_ERR"),
		TAP_TEST(no_right, "REM_ACCESS_ERR, REM_INV_REQ_ERR: right missing in MR, QP"),
		TAP_TEST(rem_inv_req_err, "REM_INV_REQ_ERR"),
		TAP_TEST(too_long, "LOC_LEN_ERR of a receive, REM_INV_REQ_ERR of its SEND"),
		TAP_TEST(bad_receive, "LOC_PROT_ERR of a receive, REM_OP_ERR of its SEND"),
		TAP_TEST(absurd_receive, "LOC_QP_OP_ERR of a receive, REM_OP_ERR of its SEND"),
		TAP_TEST(retry_exc_err, "RETRY_EXC_ERR after just so many retries"),
		TAP_TEST(rnr_retry_exc_err, "RNR_RETRY_EXC_ERR after just so many retries"),
		TAP_TEST(rnr_timer, "the RNR timer is kept"),
		TAP_TEST(rnr_peer_reset, "an RNR pause whose peer is reset"),
		TAP_TEST(flush_by_command, "WR_FLUSH_ERR: all that is and will be posted"),
		TAP_TEST(bad_resp_err, "BAD_RESP_ERR"),
		TAP_TEST(ack_is_no_data, "an ACK is no READ response"),
		TAP_TEST(ack_beyond_sent, "an ACK of what was not sent is ignored"),
		TAP_TEST(naks, "each NAK code"),
		TAP_TEST(sequence_nak, "a sequence NAK is answered at once"),
	};

	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
