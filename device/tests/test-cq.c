// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Completion and event queues: overflow, arms, moderation, interrupts.
 */
#include <endian.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

static struct rig rig;

static void write_once(unsigned int side, uint8_t flags)
{
	struct host_wr wr = rig_wr(&rig, side, FERRY_WR_WRITE, 0, 0, 8);

	wr.flags = flags;
	rig_post(&rig, side, &wr);
	rig_run(&rig);
}

static void send_once(uint8_t flags)
{
	struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_SEND, 0, 0, 8);
	struct host_wc wc;

	rig_recv(&rig, 1, 0, 100, 1);
	wr.flags |= flags;
	rig_post(&rig, 0, &wr);
	rig_run(&rig);
	need(host_poll(rig.cq[0], &wc));
}

/* Events of the side's CQ that came, all of them. */
static unsigned int events(unsigned int side)
{
	struct host_event event;
	unsigned int count = 0;

	while (rig_event(&rig, side, FERRY_EVENT_COMPLETION, &event)) {
		need_eq(event.number, rig.cq[side]->number);
		count++;
	}
	return count;
}

/* ---- the ring */

static void overflow(void)
{
	unsigned int message, shift;

	for (message = 0; message < 2; message++) {
		for (shift = 1; shift < 7; shift++) {
			struct rig_options o = { .message = message, .cq_shift = shift,
						 .sq_shift = 8 };
			unsigned int depth = 1u << shift, i;
			struct host_event event;

			rig_init(&rig, &o);
			for (i = 0; i < depth + 3; i++) {
				struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);

				rig_post(&rig, 0, &wr);
			}
			rig_run(&rig);
			need(rig_event(&rig, 0, FERRY_EVENT_CQ_ERR, &event));
			need_eq(event.number, rig.cq[0]->number);
			need_eq(rig_state(&rig, 0), FERRY_QPS_ERR);
			need_eq(host_counter(rig.host[0], FERRY_COUNTER_cq_overflows), 1);
			/* What was there is not written over; nothing comes any more. */
			for (i = 0; i < depth; i++)
				rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
			rig_run(&rig);
			rig_expect_none(&rig, 0);
			rig_free(&rig);
		}
	}
}

static void laps(void)
{
	unsigned int message;

	for (message = 0; message < 2; message++) {
		struct rig_options o = { .message = message, .cq_shift = 1, .sq_shift = 1,
					 .local = true };
		unsigned int i;

		rig_init(&rig, &o);
		for (i = 0; i < 70000; i++) {
			struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_WRITE, i & 0xff, 0, 8);

			rig_post(&rig, 0, &wr);
			need(host_settle(rig.host[0]));
			rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
			rig_expect_none(&rig, 0);
		}
		need(rig_got(&rig, 1, 0, (i - 1) & 0xff, 8));
		rig_free(&rig);
	}
}

/* The old ring keeps what it has; what comes later goes to the new one, at the same index. */
static void resize(void)
{
	static const unsigned int shifts[] = { 3, 9, 5, 6, 1, 8 };
	struct rig_options o = { .cq_shift = 4 };
	unsigned int i, k, posted = 0;

	rig_init(&rig, &o);
	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		struct host_cq *cq = rig.cq[0];
		uint64_t bytes = sizeof(struct ferry_cqe) << shifts[i];
		union ferry_admin_sqe cmd = {
			.create_cq.head.opcode = htole16(FERRY_ADMIN_RESIZE_CQ),
			.create_cq.cq = htole32(cq->number),
			.create_cq.depth_shift = (uint8_t)shifts[i],
		};
		struct host_blocks ring;
		struct host_list list;

		for (k = 0; k < 2; k++, posted++)
			write_once(0, FERRY_WQE_SIGNALED);
		need(host_blocks_alloc(rig.host[0], &ring, bytes, FERRY_PAGE_SHIFT));
		host_blocks_allow(rig.host[0], &ring, 0, bytes, HOSTMEM_WRITE);
		host_list_build(rig.host[0], &ring, true, &cmd.create_cq.ring, &list);
		need_eq(host_admin(rig.host[0], &cmd, NULL), FERRY_ADMIN_OK);
		host_list_free(rig.host[0], &list);
		for (k = 0; k < 2; k++)
			rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)(posted - 2 + k));
		host_blocks_free(rig.host[0], &cq->ring);
		cq->ring = ring;
		cq->shift = shifts[i];
		rig_expect_none(&rig, 0);
		for (k = 0; k < 40; k++, posted++) {
			write_once(0, FERRY_WQE_SIGNALED);
			rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)posted);
		}
	}
	rig_free(&rig);
}

/* ---- arms */

static void arm_next(void)
{
	rig_init(&rig, &(struct rig_options) { 0 });
	write_once(0, FERRY_WQE_SIGNALED);
	need_eq(events(0), 0);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	host_arm(rig.cq[0], false);
	rig_run(&rig);
	need_eq(events(0), 0);
	write_once(0, FERRY_WQE_SIGNALED);
	need_eq(events(0), 1);
	/* One event an arm. */
	write_once(0, FERRY_WQE_SIGNALED);
	need_eq(events(0), 0);
	rig_free(&rig);
}

/* The index says what the host has seen: what came since makes the event at once. */
static void arm_late(void)
{
	rig_init(&rig, &(struct rig_options) { 0 });
	write_once(0, FERRY_WQE_SIGNALED);
	host_arm(rig.cq[0], false);
	rig_run(&rig);
	need_eq(events(0), 1);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	host_arm(rig.cq[0], false);
	rig_run(&rig);
	need_eq(events(0), 0);
	rig_free(&rig);
}

static void arm_solicited(void)
{
	rig_init(&rig, &(struct rig_options) { 0 });
	host_arm(rig.cq[1], true);
	rig_run(&rig);
	send_once(0);
	need_eq(events(1), 0);
	send_once(FERRY_WQE_SOLICITED);
	need_eq(events(1), 1);
	/* A solicited one that is there already. */
	send_once(FERRY_WQE_SOLICITED);
	host_arm(rig.cq[1], true);
	rig_run(&rig);
	need_eq(events(1), 1);
	/* Of the rest, none is. */
	while (host_poll(rig.cq[1], &(struct host_wc) { 0 }))
		;
	send_once(0);
	host_arm(rig.cq[1], true);
	rig_run(&rig);
	need_eq(events(1), 0);
	/* A failed completion is as good. */
	need_eq(host_qp_state(rig.qp[1], FERRY_QPS_ERR), FERRY_ADMIN_OK);
	rig_recv(&rig, 1, 0, 8, 1);
	rig_run(&rig);
	need_eq(events(1), 1);
	rig_free(&rig);
}

static void raw_arm(unsigned int index, unsigned int seq)
{
	host_announce(&rig.cq[0]->slot, FERRY_DB_ARM(FERRY_DB_CQ_ARM, rig.cq[0]->number, index,
						     seq));
	rig_run(&rig);
}

/* An arm that is not newer than the last is none. */
static void arm_sequence(void)
{
	unsigned int seq, i;

	rig_init(&rig, &(struct rig_options) { 0 });
	write_once(0, FERRY_WQE_SIGNALED);
	for (i = 0; i < 40; i++) {
		seq = (i * 8) & 15;
		/* 8 ahead: taken. 0 and 9 to 15 ahead: not. */
		raw_arm(0, (seq + 8) & 15);
		need_eq(events(0), 1);
		raw_arm(0, (seq + 8) & 15);
		raw_arm(0, (seq + 8 + 9) & 15);
		raw_arm(0, (seq + 8 + 15) & 15);
		need_eq(events(0), 0);
	}
	rig_free(&rig);
}

static void moderate(uint16_t count, uint16_t period_us)
{
	union ferry_admin_sqe cmd = {
		.modify_cq.head.opcode = htole16(FERRY_ADMIN_MODIFY_CQ),
		.modify_cq.cq = htole32(rig.cq[0]->number),
		.modify_cq.count = htole16(count),
		.modify_cq.period_us = htole16(period_us),
	};

	need_eq(host_admin(rig.host[0], &cmd, NULL), FERRY_ADMIN_OK);
}

static void quick_write(void)
{
	struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);

	rig_post(&rig, 0, &wr);
	wire_run(&rig.wire, 20000);
}

static void moderation(void)
{
	unsigned int i;

	rig_init(&rig, &(struct rig_options) { .local = true });
	moderate(4, 1000);
	host_arm(rig.cq[0], false);
	for (i = 0; i < 3; i++) {
		quick_write();
		need_eq(events(0), 0);
	}
	quick_write();
	need_eq(events(0), 1);
	for (i = 0; i < 4; i++)
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
	/* Fewer, but the time is up. */
	host_arm(rig.cq[0], false);
	quick_write();
	wire_run(&rig.wire, 900000);
	need_eq(events(0), 0);
	wire_run(&rig.wire, 200000);
	need_eq(events(0), 1);
	/* Off again: what waits comes. */
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 4);
	host_arm(rig.cq[0], false);
	quick_write();
	need_eq(events(0), 0);
	moderate(0, 0);
	need_eq(events(0), 1);
	rig_free(&rig);
}

/* ---- event queues */

/* An interrupt comes for an event that finds all before it taken, and for no other. */
static void interrupts(void)
{
	struct host *host;
	uint64_t before;
	unsigned int i;

	rig_init(&rig, &(struct rig_options) { 0 });
	host = rig.host[0];
	need_eq(events(0), 0);
	for (i = 0; i < 600; i++) {
		before = host->interrupts[1];
		host_arm(rig.cq[0], false);
		quick_write();
		need_eq(host->interrupts[1], before + 1);
		/* Not taken yet: the next one is silent. */
		while (host_poll(rig.cq[0], &(struct host_wc) { 0 }))
			;
		host_arm(rig.cq[0], false);
		quick_write();
		need_eq(host->interrupts[1], before + 1);
		need_eq(events(0), 2);
		while (host_poll(rig.cq[0], &(struct host_wc) { 0 }))
			;
	}
	rig_free(&rig);
}

/* Events that find the queue full wait: nobody can make it overrun. */
static void eq_full(void)
{
	unsigned int i, shift;
	struct host_event event;

	rig_init(&rig, &(struct rig_options) { 0 });
	shift = rig.host[0]->eq.shift;
	while (host_eq_next(rig.host[0], &rig.host[0]->eq, &event))
		;
	for (i = 0; i < (2u << shift); i++) {
		host_arm(rig.cq[0], false);
		quick_write();
		while (host_poll(rig.cq[0], &(struct host_wc) { 0 }))
			;
	}
	need(!(ferry_engine_reg_read(rig.host[0]->engine, FERRY_REG_STATUS) & FERRY_STATUS_FATAL));
	need_eq(events(0), 1u << shift);
	/* The one that waited. */
	wire_run(&rig.wire, 1000000);
	need_eq(events(0), 1);
	host_arm(rig.cq[0], false);
	quick_write();
	need_eq(events(0), 1);
	rig_free(&rig);
}

/* A host that claims to have taken what was never there is not believed. */
static void eq_index_lies(void)
{
	unsigned int i;

	rig_init(&rig, &(struct rig_options) { 0 });
	for (i = 0; i < 20; i++) {
		*(uint32_t *)rig.host[0]->eq.index->va = htole32(0x12345678u * (i + 1));
		host_arm(rig.cq[0], false);
		quick_write();
		while (host_poll(rig.cq[0], &(struct host_wc) { 0 }))
			;
	}
	need(!(ferry_engine_reg_read(rig.host[0]->engine, FERRY_REG_STATUS) & FERRY_STATUS_FATAL));
	rig_free(&rig);
}

/* The same of a CQ's consumer index. */
static void cq_index_lies(void)
{
	struct rig_options o = { .cq_shift = 2, .sq_shift = 6 };
	struct host_event event;
	unsigned int i;

	rig_init(&rig, &o);
	for (i = 0; i < 5; i++) {
		uint64_t lie = FERRY_DB(FERRY_DB_CQ_CI, rig.cq[0]->number, 0x80000000u + i);

		host_slot_at(&rig.cq[0]->slot)->ci = htole64(lie);
		quick_write();
	}
	need(rig_event(&rig, 0, FERRY_EVENT_CQ_ERR, &event));
	rig_free(&rig);
}

/* Only the CQ of the number in the word. */
static void cq_index_of_other(void)
{
	struct rig_options o = { .cq_shift = 2, .sq_shift = 6 };
	struct host_event event;
	unsigned int i;

	rig_init(&rig, &o);
	for (i = 0; i < 5; i++) {
		uint64_t lie = FERRY_DB(FERRY_DB_CQ_CI, rig.cq[0]->number + 1, i);

		host_slot_at(&rig.cq[0]->slot)->ci = htole64(lie);
		quick_write();
	}
	need(rig_event(&rig, 0, FERRY_EVENT_CQ_ERR, &event));
	rig_free(&rig);
}

/* The two queues of a QP may complete into one CQ or two, of one EQ or two. */
static void two_eqs(void)
{
	struct host_event event;
	struct host_eq other;
	struct host *host;
	uint64_t before;

	rig_init(&rig, &(struct rig_options) { 0 });
	host = rig.host[0];
	need(host_eq_create(host, &other, 4, 3));
	need(other.number != host->eq.number);
	before = host->interrupts[1];
	host_arm(rig.cq[0], false);
	quick_write();
	need_eq(host->interrupts[3], 0);
	need_eq(host->interrupts[1], before + 1);
	need(!host_eq_next(host, &other, &event));
	need_eq(events(0), 1);
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_EQ, host->eq.number, NULL),
		FERRY_ADMIN_BUSY);
	need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_EQ, other.number, NULL),
		FERRY_ADMIN_OK);
	host_blocks_free(host, &other.ring);
	rig_free(&rig);
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TAP_TEST(overflow, "a full CQ fails with an event and is not written over"),
		TAP_TEST(laps, "70,000 completions through two entries"),
		TAP_TEST(resize, "resize keeps what has come and loses nothing"),
		TAP_TEST(arm_next, "arm: one event for the next completion"),
		TAP_TEST(arm_late, "arm: at once for what came behind the index"),
		TAP_TEST(arm_solicited, "arm for solicited and failed completions"),
		TAP_TEST(arm_sequence, "an arm that is not newer is ignored"),
		TAP_TEST(moderation, "moderation by count and time"),
		TAP_TEST(interrupts, "an interrupt only for what a sleeping host would miss"),
		TAP_TEST(eq_full, "events wait for room in the EQ"),
		TAP_TEST(eq_index_lies, "an impossible EQ index is not believed"),
		TAP_TEST(cq_index_lies, "an impossible CQ index is not believed"),
		TAP_TEST(cq_index_of_other, "a CQ index with another number is not believed"),
		TAP_TEST(two_eqs, "two EQs, and BUSY while one is used"),
	};

	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
