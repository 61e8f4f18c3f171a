// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Doorbells, records, group words, and the protocol of being awake.
 */
#include <endian.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

static struct rig rig;

static struct host_wr small_write(void)
{
	return rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 8);
}

static uint32_t awake(void)
{
	return le32toh(((struct ferry_status_page *)rig.host[0]->status->va)->awake);
}

static struct ferry_record_page *record_page(void)
{
	return (struct ferry_record_page *)rig.context[0]->page[0]->va;
}

static uint64_t sq_word(uint32_t number, uint32_t index)
{
	return FERRY_DB(FERRY_DB_SQ, number, index);
}

/* Stores a record and its word, and nothing more. */
static void store_record(uint64_t word)
{
	host_slot_at(&rig.qp[0]->sq.slot)->db = htole64(word);
	record_page()->word = htole32(1);
}

/* ---- which doorbells count */

static void expect_done(uint32_t *done, uint32_t upto)
{
	rig_run(&rig);
	for (; *done < upto; (*done)++)
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)*done);
	rig_expect_none(&rig, 0);
}

static void indices(void)
{
	unsigned int no_poll;

	for (no_poll = 0; no_poll < 2; no_poll++) {
		struct rig_options o = { .no_poll = no_poll, .sq_shift = 4 };
		struct host_wr wr;
		uint32_t done = 0, page, qpn;
		unsigned int i;

		rig_init(&rig, &o);
		wr = small_write();
		page = rig.context[0]->number;
		qpn = rig.qp[0]->number;
		for (i = 0; i < 16; i++)
			host_post_send(rig.qp[0], &wr);
		/* More than a ring ahead, and behind. */
		host_doorbell(rig.host[0], page, sq_word(qpn, 17));
		host_doorbell(rig.host[0], page, sq_word(qpn, 0));
		host_doorbell(rig.host[0], page, sq_word(qpn, UINT32_MAX));
		host_doorbell(rig.host[0], page, sq_word(qpn, 0x80000000u));
		expect_done(&done, 0);
		host_doorbell(rig.host[0], page, sq_word(qpn, 5));
		expect_done(&done, 5);
		host_doorbell(rig.host[0], page, sq_word(qpn, 3));
		host_doorbell(rig.host[0], page, sq_word(qpn, 5));
		host_doorbell(rig.host[0], page, sq_word(qpn, 22));
		expect_done(&done, 5);
		host_doorbell(rig.host[0], page, sq_word(qpn, 16));
		expect_done(&done, 16);
		rig_free(&rig);
	}
}

/* Only through the page of its own context, and only for a QP that exists. */
static void owners(void)
{
	struct host_context *other;
	struct host_wr wr;
	uint32_t qpn, done = 0, page;
	struct host_slot slot;

	rig_init(&rig, &(struct rig_options) { 0 });
	other = host_context_create(rig.host[0], 1);
	need(other);
	wr = small_write();
	host_post_send(rig.qp[0], &wr);
	qpn = rig.qp[0]->number;
	for (page = 0; page < 3000; page++) {
		if (page != rig.context[0]->number)
			host_doorbell(rig.host[0], page, sq_word(qpn, 1));
	}
	host_doorbell(rig.host[0], UINT32_MAX, sq_word(qpn, 1));
	expect_done(&done, 0);
	/* By a record of another context. */
	slot = host_slot_get(other);
	host_announce(&slot, sq_word(qpn, 1));
	expect_done(&done, 0);
	/* Numbers that are near. */
	page = rig.context[0]->number;
	host_doorbell(rig.host[0], page, sq_word(qpn + 1, 1));
	host_doorbell(rig.host[0], page, sq_word(qpn ^ 0x800000, 1));
	host_doorbell(rig.host[0], page, sq_word(0, 1));
	host_doorbell(rig.host[0], page, sq_word(1, 1));
	expect_done(&done, 0);
	host_doorbell(rig.host[0], page, sq_word(qpn, 1));
	expect_done(&done, 1);
	/* An arm from elsewhere. */
	host_doorbell(rig.host[0], other->number,
		      FERRY_DB_ARM(FERRY_DB_CQ_ARM, rig.cq[0]->number, 0, 1));
	rig_run(&rig);
	need(!rig_event(&rig, 0, FERRY_EVENT_COMPLETION, &(struct host_event) { 0 }));
	host_slot_put(&slot);
	host_context_destroy(other);
	rig_free(&rig);
}

/* Nonsense does no harm: every type, near and far numbers, by page and record. */
static void nonsense(void)
{
	struct rng rng;
	unsigned int i;

	rig_init(&rig, &(struct rig_options) { 0 });
	rng_init(&rng, 3);
	for (i = 0; i < 20000; i++) {
		uint64_t word = rng_next(&rng);
		uint32_t number = rng_chance(&rng, 30) ? rig.qp[0]->number : rig.cq[0]->number;

		/* No work is announced that is none, and no completion armed for. */
		if (rng_chance(&rng, 50))
			word = FERRY_DB_ARM(rng_below(&rng, 16), number, rng_next(&rng) | 0x80000000u,
					    0);
		if (rng_chance(&rng, 50))
			host_doorbell(rig.host[0], rng_below(&rng, 4), word);
		else
			host_announce(&rig.qp[0]->sq.slot, word);
		if (!(i & 15))
			need(host_settle(rig.host[0]));
	}
	rig_expect_none(&rig, 0);
	need_eq(rig_state(&rig, 0), FERRY_QPS_RTS);
	rig_check_traffic(&rig);
	rig_free(&rig);
}

/* ---- awake */

/* While it is awake, a record and the word are enough; the word is cleared. */
static void records_while_awake(void)
{
	struct host_wr wr;
	uint32_t done = 0;

	rig_init(&rig, &(struct rig_options) { 0 });
	need_eq(awake(), 1);
	wr = small_write();
	host_post_send(rig.qp[0], &wr);
	store_record(sq_word(rig.qp[0]->number, 1));
	host_run(rig.host[0]);
	need_eq(record_page()->word, 0);
	expect_done(&done, 1);
	/* Without the word the records are not read: they cost the poller nothing. */
	host_post_send(rig.qp[0], &wr);
	host_slot_at(&rig.qp[0]->sq.slot)->db = htole64(sq_word(rig.qp[0]->number, 2));
	need(host_settle(rig.host[0]));
	rig_expect_none(&rig, 0);
	record_page()->word = htole32(1);
	host_run(rig.host[0]);
	expect_done(&done, 2);
	rig_free(&rig);
}

/* What was stored before the last look keeps it awake; without the word as well. */
static void last_look(void)
{
	struct host_wr wr;
	uint32_t done = 0;
	unsigned int word;

	for (word = 0; word < 2; word++) {
		rig_init(&rig, &(struct rig_options) { 0 });
		done = 0;
		need(host_settle(rig.host[0]));
		wr = small_write();
		host_post_send(rig.qp[0], &wr);
		host_slot_at(&rig.qp[0]->sq.slot)->db = htole64(sq_word(rig.qp[0]->number, 1));
		record_page()->word = htole32(word);
		need(!ferry_engine_sleep(rig.host[0]->engine));
		need_eq(awake(), 1);
		rig.host[0]->next = 0;
		expect_done(&done, 1);
		rig_free(&rig);
	}
}

/* Asleep it says so and reads nothing; the doorbell wakes it. */
static void sleeping(void)
{
	struct host_wr wr;
	uint32_t done = 0;
	uint64_t maps;

	rig_init(&rig, &(struct rig_options) { .message = true });
	need(host_sleep(rig.host[0]));
	need_eq(awake(), 0);
	wr = small_write();
	host_post_send(rig.qp[0], &wr);
	maps = rig.host[0]->mem.reads;
	store_record(sq_word(rig.qp[0]->number, 1));
	need_eq(rig.host[0]->mem.reads, maps);
	rig_expect_none(&rig, 0);
	host_doorbell(rig.host[0], rig.context[0]->number, sq_word(rig.qp[0]->number, 1));
	need_eq(awake(), 1);
	expect_done(&done, 1);
	rig_free(&rig);
}

/* A record that it finds when it wakes for another reason is taken as well. */
static void wakes_for_frame(void)
{
	struct host_wr wr;
	uint32_t done = 0;

	rig_init(&rig, &(struct rig_options) { 0 });
	need(host_sleep(rig.host[0]));
	wr = small_write();
	host_post_send(rig.qp[0], &wr);
	store_record(sq_word(rig.qp[0]->number, 1));
	host_frame(rig.host[0], "nothing", 7);
	need_eq(awake(), 1);
	expect_done(&done, 1);
	rig_free(&rig);
}

/* It does not sleep while there is work left. */
static void no_sleep_with_work(void)
{
	struct host_wr wr;
	unsigned int i;

	rig_init(&rig, &(struct rig_options) { .local = true });
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, RIG_MR_LEN);
	for (i = 0; i < 10; i++)
		host_post_send(rig.qp[0], &wr);
	host_ring_send(rig.qp[0]);
	rig.host[0]->budget = 1000;
	host_run(rig.host[0]);
	need(!ferry_engine_sleep(rig.host[0]->engine));
	rig_run(&rig);
	for (i = 0; i < 10; i++)
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
	rig_free(&rig);
}

/* A device that does not poll reads no record of an SQ and has no status page. */
static void not_polling(void)
{
	struct host_wr wr;
	uint32_t done = 0;

	rig_init(&rig, &(struct rig_options) { .no_poll = true });
	need(!(ferry_engine_reg_read(rig.host[0]->engine, FERRY_REG_CAPS) & FERRY_CAP_POLL));
	wr = small_write();
	host_post_send(rig.qp[0], &wr);
	store_record(sq_word(rig.qp[0]->number, 1));
	need(host_settle(rig.host[0]));
	rig_expect_none(&rig, 0);
	need_eq(record_page()->word, htole32(1));
	host_doorbell(rig.host[0], rig.context[0]->number, sq_word(rig.qp[0]->number, 1));
	expect_done(&done, 1);
	rig_free(&rig);
}

/* The status page goes when the host says so, and is right when it comes again. */
static void status_page(void)
{
	union ferry_admin_sqe cmd = {
		.set_page.head.opcode = htole16(FERRY_ADMIN_SET_STATUS_PAGE),
	};
	struct host *host;

	rig_init(&rig, &(struct rig_options) { 0 });
	host = rig.host[0];
	need_eq(host_admin(host, &cmd, NULL), FERRY_ADMIN_OK);
	memset(host->status->va, 0x55, 64);
	need(host_sleep(host));
	host_run(host);
	need_eq(awake(), 0x55555555);
	memset(&cmd, 0, sizeof(cmd));
	cmd.set_page.head.opcode = htole16(FERRY_ADMIN_SET_STATUS_PAGE);
	cmd.set_page.addr = htole64(host->status->dma);
	need_eq(host_admin(host, &cmd, NULL), FERRY_ADMIN_OK);
	need_eq(awake(), 1);
	need(host_sleep(host));
	need_eq(awake(), 0);
	memset(&cmd, 0, sizeof(cmd));
	cmd.set_page.head.opcode = htole16(FERRY_ADMIN_SET_STATUS_PAGE);
	cmd.set_page.addr = htole64(host->status->dma + 64);
	need_eq(host_admin(host, &cmd, NULL), FERRY_ADMIN_BAD_PARAM);
	rig_free(&rig);
}

/* A call that did something is followed by another; one that did nothing is not. */
static void tells_what_it_did(void)
{
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { .local = true });
	need(host_settle(rig.host[0]));
	host_run(rig.host[0]);
	need(rig.host[0]->next > rig.host[0]->now);
	wr = small_write();
	rig_post(&rig, 0, &wr);
	host_run(rig.host[0]);
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	need_eq(rig.host[0]->next, 0);
	need(host_settle(rig.host[0]));
	host_frame(rig.host[0], rig.image[0], 60);
	host_run(rig.host[0]);
	rig_free(&rig);
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TAP_TEST(indices, "an index that is old or too far ahead is ignored"),
		TAP_TEST(owners, "a doorbell through another context's page is ignored"),
		TAP_TEST(nonsense, "nonsense in doorbells and records does no harm"),
		TAP_TEST(records_while_awake, "awake: record and word, and the word is cleared"),
		TAP_TEST(last_look, "the last look before sleep finds records, with or without word"),
		TAP_TEST(sleeping, "asleep: the doorbell wakes it"),
		TAP_TEST(wakes_for_frame, "a frame wakes it, and records are found then"),
		TAP_TEST(no_sleep_with_work, "no sleep while there is work"),
		TAP_TEST(not_polling, "without FERRY_CAP_POLL records are not read"),
		TAP_TEST(status_page, "the status page comes and goes"),
		TAP_TEST(tells_what_it_did, "a run that did something returns 0"),
	};

	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
