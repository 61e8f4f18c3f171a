// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs: states and attributes, numbers, rings and PSNs that wrap, keys, context
 * memory, SQD.
 */
#include <endian.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

#define A(name) FERRY_QP_ATTR_##name

static struct rig rig;

static void post_and_run(const struct host_wr *wr)
{
	rig_post(&rig, 0, wr);
	rig_run(&rig);
}

/* ---- states */

/* InfiniBand 10.3.1 for RC: what each transition needs; what is not here is refused. */
static const struct {
	enum ferry_qp_state from, to;
	uint32_t needs, may;
} table[] = {
	{ FERRY_QPS_RESET, FERRY_QPS_RESET, 0, 0 },
	{ FERRY_QPS_RESET, FERRY_QPS_INIT, A(PKEY_INDEX) | A(ACCESS), 0 },
	{ FERRY_QPS_INIT, FERRY_QPS_RESET, 0, 0 },
	{ FERRY_QPS_INIT, FERRY_QPS_INIT, 0, A(PKEY_INDEX) | A(ACCESS) },
	{ FERRY_QPS_INIT, FERRY_QPS_RTR, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) |
	  A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER), A(PKEY_INDEX) | A(ACCESS) },
	{ FERRY_QPS_INIT, FERRY_QPS_ERR, 0, 0 },
	{ FERRY_QPS_RTR, FERRY_QPS_RESET, 0, 0 },
	{ FERRY_QPS_RTR, FERRY_QPS_RTS, A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) |
	  A(MAX_RD_ATOMIC), A(ACCESS) | A(MIN_RNR_TIMER) },
	{ FERRY_QPS_RTR, FERRY_QPS_ERR, 0, 0 },
	{ FERRY_QPS_RTS, FERRY_QPS_RESET, 0, 0 },
	{ FERRY_QPS_RTS, FERRY_QPS_RTS, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
	{ FERRY_QPS_RTS, FERRY_QPS_SQD, 0, A(SQD_NOTIFY) },
	{ FERRY_QPS_RTS, FERRY_QPS_ERR, 0, 0 },
	{ FERRY_QPS_SQD, FERRY_QPS_RESET, 0, 0 },
	{ FERRY_QPS_SQD, FERRY_QPS_RTS, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
	{ FERRY_QPS_SQD, FERRY_QPS_SQD, 0, A(PKEY_INDEX) | A(ACCESS) | A(AV) | A(TIMEOUT) |
	  A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) |
	  A(MIN_RNR_TIMER) | A(SQD_NOTIFY) },
	{ FERRY_QPS_SQD, FERRY_QPS_ERR, 0, 0 },
	{ FERRY_QPS_ERR, FERRY_QPS_RESET, 0, 0 },
	{ FERRY_QPS_ERR, FERRY_QPS_ERR, 0, 0 },
};

#define TABLE_LEN (sizeof(table) / sizeof(table[0]))

/* All attributes, with values that are right. */
static void all_attributes(struct ferry_qp_attr *attr)
{
	struct ferry_qp_attr rts;

	host_qp_attr(rig.qp[0], rig.qp[1], &rig.options.path, 0, FERRY_QPS_RTR, attr);
	host_qp_attr(rig.qp[0], rig.qp[1], &rig.options.path, 0, FERRY_QPS_RTS, &rts);
	attr->timeout = rts.timeout;
	attr->retry_cnt = rts.retry_cnt;
	attr->rnr_retry = rts.rnr_retry;
	attr->max_rd_atomic = rts.max_rd_atomic;
	attr->sq_psn = rts.sq_psn;
	attr->access = RIG_ACCESS;
}

static unsigned int modify(uint32_t mask, enum ferry_qp_state state)
{
	struct ferry_qp_attr attr;

	all_attributes(&attr);
	attr.mask = htole32(mask | A(STATE));
	attr.state = (uint8_t)state;
	return host_qp_modify(rig.qp[0], &attr);
}

static uint32_t needs_of(enum ferry_qp_state from, enum ferry_qp_state to)
{
	unsigned int i;

	for (i = 0; i < TABLE_LEN; i++) {
		if (table[i].from == from && table[i].to == to)
			return table[i].needs;
	}
	return 0;
}

static void step(enum ferry_qp_state from, enum ferry_qp_state to)
{
	need_eq(modify(needs_of(from, to), to), FERRY_ADMIN_OK);
	need_eq(rig_state(&rig, 0), to);
}

/* From wherever it is, by the straight way. */
static void reach(enum ferry_qp_state state)
{
	need_eq(modify(0, FERRY_QPS_RESET), FERRY_ADMIN_OK);
	if (state >= FERRY_QPS_INIT)
		step(FERRY_QPS_RESET, FERRY_QPS_INIT);
	if (state == FERRY_QPS_ERR) {
		step(FERRY_QPS_INIT, FERRY_QPS_ERR);
		return;
	}
	if (state >= FERRY_QPS_RTR)
		step(FERRY_QPS_INIT, FERRY_QPS_RTR);
	if (state >= FERRY_QPS_RTS)
		step(FERRY_QPS_RTR, FERRY_QPS_RTS);
	if (state == FERRY_QPS_SQD)
		step(FERRY_QPS_RTS, FERRY_QPS_SQD);
	need_eq(rig_state(&rig, 0), state);
}

static void try_transition(enum ferry_qp_state from, enum ferry_qp_state to)
{
	uint32_t needs = 0, may = 0, bit;
	bool allowed = false;
	unsigned int i;

	for (i = 0; i < TABLE_LEN; i++) {
		if (table[i].from == from && table[i].to == to) {
			allowed = true;
			needs = table[i].needs;
			may = table[i].may;
		}
	}
	reach(from);
	if (!allowed) {
		need_eq(modify(0, to), FERRY_ADMIN_BAD_STATE);
		need_eq(modify(FERRY_QP_ATTR_ALL & ~A(CUR_STATE), to), FERRY_ADMIN_BAD_STATE);
		need_eq(rig_state(&rig, 0), from);
		return;
	}
	for (bit = 1; bit <= FERRY_QP_ATTR_ALL; bit <<= 1) {
		if (bit == A(STATE) || bit == A(CUR_STATE))
			continue;
		if (needs & bit) {
			need_that(modify(needs & ~bit, to) == FERRY_ADMIN_BAD_PARAM,
				  "state %u to %u without attribute %#x", from, to, bit);
		} else if (!(may & bit)) {
			need_that(modify(needs | bit, to) == FERRY_ADMIN_BAD_PARAM,
				  "state %u to %u with attribute %#x", from, to, bit);
		} else {
			continue;
		}
		need_eq(rig.host[0]->detail,
			offsetof(struct ferry_admin_modify_qp, attr.mask));
		need_eq(rig_state(&rig, 0), from);
	}
	need_eq(modify(needs | may, to), FERRY_ADMIN_OK);
	need_eq(rig_state(&rig, 0), to);
}

static void transitions(void)
{
	static const enum ferry_qp_state froms[] = {
		FERRY_QPS_RESET, FERRY_QPS_INIT, FERRY_QPS_RTR, FERRY_QPS_RTS, FERRY_QPS_SQD,
		FERRY_QPS_ERR,
	};
	unsigned int i, to;

	rig_init(&rig, &(struct rig_options) { .unconnected = true });
	for (i = 0; i < 6; i++) {
		for (to = 0; to < FERRY_QPS_COUNT; to++)
			try_transition(froms[i], (enum ferry_qp_state)to);
	}
	rig_free(&rig);
}

static void bad_values(void)
{
#define AT(member) offsetof(struct ferry_qp_attr, member)
	static const struct {
		enum ferry_qp_state from, to;
		uint32_t mask;
		size_t offset;
		uint8_t value;
	} cases[] = {
		{ FERRY_QPS_RESET, FERRY_QPS_INIT, 0, AT(pkey_index), 1 },
		{ FERRY_QPS_RESET, FERRY_QPS_INIT, 0, AT(access), 0x20 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(path_mtu), 0 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(path_mtu), 6 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(rq_psn) + 3, 1 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(dest_qpn) + 3, 1 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(max_dest_rd_atomic), 200 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(min_rnr_timer), 32 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(av.vlan), 1 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(av.sl), 8 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(av.flow_label) + 2, 0x10 },
		{ FERRY_QPS_INIT, FERRY_QPS_RTR, 0, AT(av.sgid_index) + 1, 0xff },
		{ FERRY_QPS_RTR, FERRY_QPS_RTS, 0, AT(timeout), 32 },
		{ FERRY_QPS_RTR, FERRY_QPS_RTS, 0, AT(retry_cnt), 8 },
		{ FERRY_QPS_RTR, FERRY_QPS_RTS, 0, AT(rnr_retry), 8 },
		{ FERRY_QPS_RTR, FERRY_QPS_RTS, 0, AT(sq_psn) + 3, 1 },
		{ FERRY_QPS_RTR, FERRY_QPS_RTS, 0, AT(max_rd_atomic), 200 },
		{ FERRY_QPS_RTS, FERRY_QPS_SQD, A(SQD_NOTIFY), AT(sqd_notify), 2 },
		{ FERRY_QPS_RESET, FERRY_QPS_INIT, 0, AT(state), FERRY_QPS_COUNT },
	};
	unsigned int i;
	size_t at;

	rig_init(&rig, &(struct rig_options) { .unconnected = true });
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ferry_qp_attr attr;

		reach(cases[i].from);
		all_attributes(&attr);
		attr.mask = htole32(needs_of(cases[i].from, cases[i].to) | cases[i].mask | A(STATE));
		attr.state = (uint8_t)cases[i].to;
		((uint8_t *)&attr)[cases[i].offset] = cases[i].value;
		need_that(host_qp_modify(rig.qp[0], &attr) == FERRY_ADMIN_BAD_PARAM,
			  "value %u at %zu is taken", cases[i].value, cases[i].offset);
		/* The field that was wrong, by its first byte. */
		at = cases[i].offset + offsetof(struct ferry_admin_modify_qp, attr);
		need_that(rig.host[0]->detail <= at && rig.host[0]->detail + 4 > at,
			  "value %u at %zu: detail is %u", cases[i].value, cases[i].offset,
			  rig.host[0]->detail);
		need_eq(rig_state(&rig, 0), cases[i].from);
	}
	rig_free(&rig);
}

static void query(void)
{
	struct rig_options o = {
		.path = { .mtu = 2, .psn = { 0x123456, 0xabcdef }, .timeout = 11, .retry_cnt = 5,
			  .rnr_retry = 6, .min_rnr_timer = 9, .rd_atomic = 3, .access = 5 },
	};
	struct ferry_qp_attr attr;
	struct host_wr wr;

	rig_init(&rig, &o);
	need_eq(host_qp_query(rig.qp[0], &attr), FERRY_ADMIN_OK);
	need_eq(attr.state, FERRY_QPS_RTS);
	need_eq(attr.cur_state, FERRY_QPS_RTS);
	need_eq(attr.path_mtu, 2);
	need_eq(attr.access, 5);
	need_eq(le32toh(attr.sq_psn), 0x123456);
	need_eq(le32toh(attr.rq_psn), 0xabcdef);
	need_eq(le32toh(attr.dest_qpn), rig.qp[1]->number);
	need_eq(attr.timeout, 11);
	need_eq(attr.retry_cnt, 5);
	need_eq(attr.rnr_retry, 6);
	need_eq(attr.min_rnr_timer, 9);
	need_eq(attr.max_rd_atomic, 3);
	need_eq(attr.max_dest_rd_atomic, 3);
	need_eq(attr.sq_draining, 0);
	need(!memcmp(attr.av.dmac, rig.host[1]->mac, 6));
	/* The PSNs move. */
	wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 5 * 512);
	rig_recv(&rig, 1, 0, 5 * 512, 1);
	post_and_run(&wr);
	need_eq(host_qp_query(rig.qp[0], &attr), FERRY_ADMIN_OK);
	need_eq(le32toh(attr.sq_psn), 0x123456 + 5);
	need_eq(host_qp_query(rig.qp[1], &attr), FERRY_ADMIN_OK);
	need_eq(le32toh(attr.rq_psn), 0x123456 + 5);
	rig_free(&rig);
}

/* A doorbell in a state that does not send. */
static void posts_out_of_state(void)
{
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { .unconnected = true });
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
	reach(FERRY_QPS_INIT);
	post_and_run(&wr);
	rig_expect_none(&rig, 0);
	step(FERRY_QPS_INIT, FERRY_QPS_RTR);
	rig_run(&rig);
	rig_expect_none(&rig, 0);
	need_eq(host_qp_state(rig.qp[0], FERRY_QPS_ERR), FERRY_ADMIN_OK);
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_WR_FLUSH_ERR, 0);
	rig_expect_none(&rig, 0);
	rig_free(&rig);
}

/* What was posted before RTS goes once it is reached. */
static void posts_before_rts(void)
{
	unsigned int state;
	struct ferry_qp_attr attr;
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { .unconnected = true });
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
	for (state = FERRY_QPS_INIT; state <= FERRY_QPS_RTS; state++) {
		unsigned int i;

		for (i = 0; i < 2; i++) {
			host_qp_attr(rig.qp[i], rig.qp[!i], &rig.options.path, i,
				     (enum ferry_qp_state)state, &attr);
			need_eq(host_qp_modify(rig.qp[i], &attr), FERRY_ADMIN_OK);
		}
		if (state == FERRY_QPS_RTR)
			post_and_run(&wr);
		rig_expect_none(&rig, 0);
	}
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	rig_free(&rig);
}

/* RTR takes requests and says so; it sends none. */
static void comm_est(void)
{
	struct ferry_qp_attr attr;
	struct host_event event;
	struct host_wr wr;
	unsigned int state;

	rig_init(&rig, &(struct rig_options) { .unconnected = true });
	for (state = FERRY_QPS_INIT; state <= FERRY_QPS_RTS; state++) {
		host_qp_attr(rig.qp[0], rig.qp[1], &rig.options.path, 0,
			     (enum ferry_qp_state)state, &attr);
		need_eq(host_qp_modify(rig.qp[0], &attr), FERRY_ADMIN_OK);
		if (state == FERRY_QPS_RTS)
			break;
		host_qp_attr(rig.qp[1], rig.qp[0], &rig.options.path, 1,
			     (enum ferry_qp_state)state, &attr);
		need_eq(host_qp_modify(rig.qp[1], &attr), FERRY_ADMIN_OK);
	}
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	need(rig_event(&rig, 1, FERRY_EVENT_COMM_EST, &event));
	need_eq(event.number, rig.qp[1]->number);
	need(!rig_event(&rig, 1, FERRY_EVENT_COMM_EST, &event));
	rig_free(&rig);
}

static void set_sqd(uint8_t notify)
{
	struct ferry_qp_attr attr = {
		.mask = htole32(A(STATE) | A(SQD_NOTIFY)),
		.state = FERRY_QPS_SQD,
		.sqd_notify = notify,
	};

	need_eq(host_qp_modify(rig.qp[0], &attr), FERRY_ADMIN_OK);
}

static unsigned int hold_back(void *arg, struct host *from, struct host *to, const uint8_t *data,
			      const struct frame *frame)
{
	(void)arg;
	(void)from;
	(void)to;
	(void)data;
	return frame->from_requester ? 0 : WIRE_LOSS;
}

/* SQD ends what has begun, begins nothing, tells when it is drained, and goes on in RTS. */
static void sqd(void)
{
	struct rig_options o = { .path.timeout = 10 };
	struct ferry_qp_attr attr;
	struct host_event event;
	struct host_wr wr;

	rig_init(&rig, &o);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
	rig.wire.judge = hold_back;
	rig_post(&rig, 0, &wr);
	wire_run(&rig.wire, 10000);
	set_sqd(1);
	rig_post(&rig, 0, &wr);
	wire_run(&rig.wire, 10000);
	rig_expect_none(&rig, 0);
	need_eq(host_qp_query(rig.qp[0], &attr), FERRY_ADMIN_OK);
	need_eq(attr.state, FERRY_QPS_SQD);
	need_eq(attr.sq_draining, 1);
	need(!rig_event(&rig, 0, FERRY_EVENT_SQ_DRAINED, &event));
	rig.wire.judge = NULL;
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	rig_expect_none(&rig, 0);
	need(rig_event(&rig, 0, FERRY_EVENT_SQ_DRAINED, &event));
	need_eq(event.number, rig.qp[0]->number);
	need_eq(host_qp_query(rig.qp[0], &attr), FERRY_ADMIN_OK);
	need_eq(attr.sq_draining, 0);
	/* It still answers. */
	wr = rig_wr(&rig, 1, FERRY_WR_READ, 0, 0, 100);
	rig_post(&rig, 1, &wr);
	rig_run(&rig);
	rig_expect(&rig, 1, FERRY_WC_SUCCESS, 0);
	need_eq(host_qp_state(rig.qp[0], FERRY_QPS_RTS), FERRY_ADMIN_OK);
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 1);
	rig_free(&rig);
}

/* RESET forgets all that was posted and under way; nothing completes. */
static void reset_forgets(void)
{
	struct rig_options o = { .path.timeout = 10 };
	struct host_wr wr;
	unsigned int i;

	rig_init(&rig, &o);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 20000, 3000);
	rig.wire.judge = hold_back;
	for (i = 0; i < 5; i++) {
		rig_post(&rig, 0, &wr);
		rig_recv(&rig, 0, 0, 8, (uint16_t)i);
	}
	wire_run(&rig.wire, 10000);
	need_eq(host_qp_state(rig.qp[0], FERRY_QPS_RESET), FERRY_ADMIN_OK);
	rig.wire.judge = NULL;
	rig_run(&rig);
	rig_expect_none(&rig, 0);
	rig_reconnect(&rig);
	rig_check_traffic(&rig);
	rig_expect_none(&rig, 0);
	rig_free(&rig);
}

/* ---- numbers */

/* A number is not given out again soon, and frames for the old one reach nobody. */
static void generations(void)
{
	uint32_t seen[64];
	unsigned int i, k;
	uint8_t data[FRAME_MAX];
	struct frame frame = { .opcode = FRAME_WRITE_ONLY };
	size_t len;

	rig_init(&rig, &(struct rig_options) { 0 });
	host_qp_destroy(rig.qp[1]);
	for (i = 0; i < 64; i++) {
		struct host_qp_spec spec = {
			.pd = rig.pd[1], .send_cq = rig.cq[1], .recv_cq = rig.cq[1],
			.sq_shift = 2, .rq_shift = 2,
		};

		rig.qp[1] = host_qp_create(&spec);
		need(rig.qp[1]);
		seen[i] = rig.qp[1]->number;
		need(seen[i] > 1 && seen[i] < 1u << 24);
		for (k = 0; k < i; k++)
			need(seen[k] != seen[i]);
		if (i < 63)
			host_qp_destroy(rig.qp[1]);
	}
	rig_reconnect(&rig);
	frame.raddr = rig.mr[1]->spec.iova;
	frame.rkey = rig.mr[1]->key;
	frame.dma_len = 8;
	for (i = 0; i < 63; i++) {
		frame.dest_qpn = seen[i];
		len = frame_build(data, rig.host[0], rig.host[1], &frame, "ABCDEFGH", 8);
		host_frame(rig.host[1], data, len);
		rig_run(&rig);
	}
	host_mr_read(rig.mr[1], 0, data, 8);
	need(!memcmp(data, rig.image[1], 8));
	frame.dest_qpn = seen[63];
	len = frame_build(data, rig.host[0], rig.host[1], &frame, "ABCDEFGH", 8);
	host_frame(rig.host[1], data, len);
	rig_run(&rig);
	host_mr_read(rig.mr[1], 0, data, 8);
	need(!memcmp(data, "ABCDEFGH", 8));
	rig_free(&rig);
}

/* ---- wraps */

static void psn_wrap(void)
{
	unsigned int local;

	for (local = 0; local < 2; local++) {
		struct rig_options o = {
			.local = local, .sq_shift = 5,
			.path = { .mtu = 1, .psn = { 0xfffff0, 0xfffffe } },
		};
		unsigned int i, side;

		rig_init(&rig, &o);
		for (i = 0; i < 40; i++) {
			for (side = 0; side < 2; side++) {
				enum ferry_wr op = i & 1 ? FERRY_WR_READ : FERRY_WR_WRITE;
				uint64_t at = 10 + i, to = 30000 + 900 * (i & 15);
				struct host_wr wr;

				if (op == FERRY_WR_READ)
					wr = rig_wr(&rig, side, op, to, at, 800);
				else
					wr = rig_wr(&rig, side, op, at, to, 800);
				rig_post(&rig, side, &wr);
				rig_run(&rig);
				rig_expect(&rig, side, FERRY_WC_SUCCESS, (uint16_t)i);
				need(rig_got(&rig, op == FERRY_WR_READ ? side : !side, to, at, 800));
			}
		}
		rig_free(&rig);
	}
}

/* Rings of every depth, many laps, batches that cross the end. */
static void ring_laps(void)
{
	unsigned int message, shift;

	for (message = 0; message < 2; message++) {
		for (shift = 1; shift < 6; shift++) {
			struct rig_options o = {
				.local = true, .message = message, .sq_shift = shift,
				.rq_shift = shift,
			};
			unsigned int depth = 1u << shift, total = 0, batch, i;

			rig_init(&rig, &o);
			for (batch = 0; total < 12 * depth; batch++) {
				unsigned int n = 1 + batch % depth;

				for (i = 0; i < n; i++) {
					struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_SEND, total + i,
								   0, 8);

					host_post_send(rig.qp[0], &wr);
					rig_recv(&rig, 1, 40000 + 8 * i, 8, (uint16_t)(total + i));
				}
				host_ring_send(rig.qp[0]);
				rig_run(&rig);
				for (i = 0; i < n; i++) {
					rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)(total + i));
					rig_expect(&rig, 1, FERRY_WC_SUCCESS, (uint16_t)(total + i));
					need(rig_got(&rig, 1, 40000 + 8 * i, total + i, 8));
				}
				total += n;
			}
			rig_free(&rig);
		}
	}
}

/* ---- keys and memory */

/* Everything a key must match: PD, range to the byte, its variant. */
static void keys(void)
{
	struct host_mr_spec spec;
	struct host_pd *pd;
	struct host_mr *mr, *alias;
	struct host_wr wr;
	uint32_t old;
	unsigned int i;

	rig_init(&rig, &(struct rig_options) { 0 });
	/* The first and the last byte are in. */
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, RIG_MR_LEN - 1, 1);
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, RIG_MR_LEN - 1, 0, 1);
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 1);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, RIG_MR_LEN);
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 2);

	/* A key of another PD of the same context is none; the same pages twice are fine. */
	pd = host_pd_create(rig.context[1]);
	need(pd);
	spec = rig.mr[1]->spec;
	spec.over = rig.mr[1];
	alias = host_mr_create(&spec);
	need(alias && alias->key != rig.mr[1]->key);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 50, 50, 8);
	wr.rkey = alias->key;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 3);
	need(rig_got(&rig, 1, 50, 50, 8));
	host_mr_destroy(alias);
	spec.pd = pd;
	mr = host_mr_create(&spec);
	need(mr);
	wr.rkey = mr->key;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_REM_ACCESS_ERR, 4);
	host_mr_destroy(mr);
	host_pd_destroy(pd);

	/* A key that was given back is none, and the next MR has another. */
	spec = rig.mr[1]->spec;
	for (i = 0; i < 20; i++) {
		old = rig.mr[1]->key;
		host_mr_destroy(rig.mr[1]);
		rig.mr[1] = host_mr_create(&spec);
		need(rig.mr[1] && rig.mr[1]->key != old && rig.mr[1]->key >> 8);
		rig_reconnect(&rig);
		wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
		wr.rkey = old;
		post_and_run(&wr);
		rig_expect(&rig, 0, FERRY_WC_REM_ACCESS_ERR, 0);
	}
	rig_free(&rig);
}

/* No key: nothing is touched, so nothing is checked. */
static void zero_length(void)
{
	static const enum ferry_wr wrs[] = { FERRY_WR_WRITE, FERRY_WR_READ, FERRY_WR_WRITE_IMM };
	unsigned int i;

	rig_init(&rig, &(struct rig_options) { 0 });
	for (i = 0; i < 3; i++) {
		struct host_wr wr = rig_wr(&rig, 0, wrs[i], 0, 0, 0);

		wr.rkey = 0;
		wr.raddr = 0;
		wr.num_sge = i & 1;
		rig_recv(&rig, 1, 0, 0, 5);
		post_and_run(&wr);
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
	}
	need_eq(rig_expect(&rig, 1, FERRY_WC_SUCCESS, 5).byte_len, 0);
	rig_free(&rig);
}

static unsigned int set_context_memory(struct host_blocks *blocks, uint64_t len)
{
	union ferry_admin_sqe cmd = {
		.set_context_memory.head.opcode = htole16(FERRY_ADMIN_SET_CONTEXT_MEMORY),
		.set_context_memory.context = htole32(rig.context[0]->number),
		.set_context_memory.length = htole64(len),
	};
	struct host_list list = { 0 };
	unsigned int status;

	if (len)
		host_list_build(rig.host[0], blocks, true, &cmd.set_context_memory.pages, &list);
	status = host_admin(rig.host[0], &cmd, NULL);
	host_list_free(rig.host[0], &list);
	return status;
}

/* The reserved key: local, by offset, to the byte. */
static void context_memory(void)
{
	struct host_blocks blocks;
	struct host_wr wr;
	uint8_t data[100];

	rig_init(&rig, &(struct rig_options) { 0 });
	need(host_blocks_alloc(rig.host[0], &blocks, 10000, FERRY_PAGE_SHIFT));
	host_blocks_allow(rig.host[0], &blocks, 0, 10000, HOSTMEM_READ | HOSTMEM_WRITE);
	need_eq(set_context_memory(&blocks, 10000), FERRY_ADMIN_OK);
	memset(host_blocks_at(&blocks, 9900 & ~4095u), 0x11, 9900 & 4095);
	memset(host_blocks_at(&blocks, 9900), 0x77, 100);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 300, 100);
	wr.sge[0].addr = 9900;
	wr.sge[0].key = FERRY_KEY_CONTEXT;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	host_mr_read(rig.mr[1], 300, data, 100);
	need(data[0] == 0x77 && data[99] == 0x77);
	wr.opcode = FERRY_WR_READ;
	wr.raddr += 1000;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 1);
	need(!memcmp(host_blocks_at(&blocks, 9900), rig.image[1] + 1300, 100));
	/* What is refused changes nothing. */
	need_eq(set_context_memory(&blocks, 1000000), FERRY_ADMIN_BAD_PARAM);
	wr.raddr -= 1000;
	wr.opcode = FERRY_WR_WRITE;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 2);
	/* One byte too far. */
	wr.sge[0].addr = 9901;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_LOC_PROT_ERR, 3);
	/* Never for a peer. */
	rig_reconnect(&rig);
	wr = rig_wr(&rig, 1, FERRY_WR_WRITE, 0, 0, 8);
	wr.rkey = FERRY_KEY_CONTEXT;
	wr.raddr = 0;
	rig_post(&rig, 1, &wr);
	rig_run(&rig);
	rig_expect(&rig, 1, FERRY_WC_REM_ACCESS_ERR, 0);
	/* Taken away. */
	rig_reconnect(&rig);
	need_eq(set_context_memory(NULL, 0), FERRY_ADMIN_OK);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 300, 100);
	wr.sge[0].addr = 0;
	wr.sge[0].key = FERRY_KEY_CONTEXT;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_LOC_PROT_ERR, 0);
	host_blocks_free(rig.host[0], &blocks);
	rig_free(&rig);
}

/* DMA addresses are for the kernel alone. */
static void local_dma_key(void)
{
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { 0 });
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
	wr.sge[0].key = FERRY_KEY_LOCAL_DMA;
	wr.sge[0].addr = rig.mr[0]->blocks.chunk[1]->dma;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_LOC_PROT_ERR, 0);
	rig_free(&rig);
}

/* A QP connected with itself. */
static void itself(void)
{
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { .unconnected = true });
	host_connect(rig.qp[0], rig.qp[0], &rig.options.path);
	wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 5000);
	rig_recv(&rig, 0, 30000, 5000, 9);
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 9);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	wr = rig_wr(&rig, 0, FERRY_WR_READ, 0, 0, 5000);
	wr.rkey = rig.mr[0]->key;
	wr.raddr = rig.mr[0]->spec.iova + 10000;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 1);
	rig_free(&rig);
}

/* All WQEs are signalled if the QP says so. */
static void signal_all(void)
{
	struct host_qp_spec spec = { .sq_shift = 3, .rq_shift = 3, .signal_all = true };
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { 0 });
	host_qp_destroy(rig.qp[0]);
	spec.pd = rig.pd[0];
	spec.send_cq = rig.cq[0];
	spec.recv_cq = rig.cq[0];
	rig.qp[0] = host_qp_create(&spec);
	need(rig.qp[0]);
	rig_reconnect(&rig);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
	wr.flags = 0;
	post_and_run(&wr);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	rig_free(&rig);
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TAP_TEST(transitions, "every transition, with every attribute missing or too many"),
		TAP_TEST(bad_values, "attributes out of range are refused by name"),
		TAP_TEST(query, "query tells what was set, and the PSNs"),
		TAP_TEST(posts_out_of_state, "nothing is sent before RTS"),
		TAP_TEST(posts_before_rts, "what was posted before RTS goes then"),
		TAP_TEST(comm_est, "RTR takes requests and raises COMM_EST once"),
		TAP_TEST(sqd, "SQD drains, tells, and goes on"),
		TAP_TEST(reset_forgets, "RESET forgets what was under way"),
		TAP_TEST(generations, "numbers are not reused, old ones reach nobody"),
		TAP_TEST(psn_wrap, "PSNs wrap"),
		TAP_TEST(ring_laps, "laps of rings of all depths"),
		TAP_TEST(keys, "keys: PD, range, variant, two MRs over the same pages"),
		TAP_TEST(zero_length, "a message without bytes needs no key"),
		TAP_TEST(context_memory, "the context's own memory"),
		TAP_TEST(local_dma_key, "the key for DMA addresses is the kernel's"),
		TAP_TEST(itself, "a QP connected with itself"),
		TAP_TEST(signal_all, "SIGNAL_ALL"),
	};

	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
