// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Assist, against a host that plays driver and caches: what its CPU has stored since the
 * last clean is not in memory, what the device has written since the last flush is not
 * seen by the CPU.
 */
#include <endian.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

#define LINE	64
#define SLOTS	4

static struct rig rig;
static struct hostmem_chunk *slots;
static uint8_t cpu[RIG_MR_LEN];		/* what the CPU of side 1 sees of its MR */
static bool dirty[RIG_MR_LEN / LINE + 2];
static unsigned int asked[4];		/* by operation */
static bool silent, hostile;

/* Lines are counted from the page on. */
static uint64_t line_of(uint64_t pos)
{
	return (pos + rig.mr[1]->spec.offset % LINE) / LINE;
}

static unsigned int set_assist(uint32_t eq, uint32_t count, uint64_t addr, uint32_t line)
{
	union ferry_admin_sqe cmd = {
		.set_assist.head.opcode = htole16(FERRY_ADMIN_SET_ASSIST),
		.set_assist.eq = htole32(eq),
		.set_assist.slots = htole32(count),
		.set_assist.addr = htole64(addr),
		.set_assist.line_size = htole32(line),
	};

	return host_admin(rig.host[1], &cmd, NULL);
}

static void start(const struct rig_options *options)
{
	struct host_mr_spec spec;

	rig_init(&rig, options);
	spec = rig.mr[1]->spec;
	host_mr_destroy(rig.mr[1]);
	slots = hostmem_alloc(&rig.host[1]->mem, FERRY_PAGE_SIZE, FERRY_PAGE_SIZE);
	hostmem_allow(&rig.host[1]->mem, slots->dma, SLOTS * sizeof(struct ferry_assist_slot),
		      HOSTMEM_READ | HOSTMEM_WRITE);
	need_eq(set_assist(rig.host[1]->eq.number, SLOTS, slots->dma, LINE), FERRY_ADMIN_OK);
	spec.assist = true;
	rig.mr[1] = host_mr_create(&spec);
	need(rig.mr[1]);
	host_mr_write(rig.mr[1], 0, rig.image[1], RIG_MR_LEN);
	memcpy(cpu, rig.image[1], RIG_MR_LEN);
	memset(dirty, 0, sizeof(dirty));
	memset(asked, 0, sizeof(asked));
	silent = false;
	hostile = false;
}

static void finish(void)
{
	host_mr_destroy(rig.mr[1]);
	rig.mr[1] = NULL;
	need_eq(set_assist(0, 0, 0, 0), FERRY_ADMIN_OK);
	hostmem_free(&rig.host[1]->mem, slots);
	rig_free(&rig);
}

static void cpu_store(uint64_t pos, const void *from, uint64_t len)
{
	const uint8_t *at = from;
	uint64_t i;

	for (i = 0; i < len; i++) {
		cpu[pos + i] = at[i];
		dirty[line_of(pos + i)] = true;
	}
}

/* Each byte of the range, where its line lies in it as a whole, or anywhere. */
static void sync_range(uint64_t pos, uint64_t len, bool flush)
{
	uint64_t skew = rig.mr[1]->spec.offset % LINE, i;
	uint64_t first = (pos + skew + LINE - 1) / LINE * LINE, last = (pos + len + skew) / LINE * LINE;
	uint64_t begin = flush ? first : (pos + skew) / LINE * LINE;
	uint64_t end = flush ? last : (pos + len + skew + LINE - 1) / LINE * LINE;

	for (i = begin; i < end; i++) {
		if (i < skew || i - skew >= RIG_MR_LEN)
			continue;
		if (dirty[i / LINE])
			host_mr_write(rig.mr[1], i - skew, &cpu[i - skew], 1);
		else if (flush)
			host_mr_read(rig.mr[1], i - skew, &cpu[i - skew], 1);
	}
	for (i = begin; i < end; i += LINE)
		dirty[i / LINE] = false;
}

static uint8_t answer(const struct ferry_assist_slot *slot)
{
	uint64_t pos = le64toh(slot->iova) - rig.mr[1]->spec.iova, len = le64toh(slot->length);

	need_eq(le32toh(slot->key), rig.mr[1]->key);
	need(pos < RIG_MR_LEN && len && len <= RIG_MR_LEN - pos);
	need(slot->op >= FERRY_ASSIST_BEFORE_READ && slot->op <= FERRY_ASSIST_AFTER_WRITE);
	asked[slot->op]++;
	if (slot->op == FERRY_ASSIST_BEFORE_READ)
		sync_range(pos, len, false);
	if (slot->op == FERRY_ASSIST_BEFORE_WRITE)
		sync_range(pos, len, true);
	if (slot->op == FERRY_ASSIST_AFTER_WRITE) {
		need((uint64_t)slot->head_len + slot->tail_len <= len);
		sync_range(pos + slot->head_len, len - slot->head_len - slot->tail_len, true);
		cpu_store(pos, slot->head, slot->head_len);
		cpu_store(pos + len - slot->tail_len, slot->tail, slot->tail_len);
	}
	return 0;
}

/* Lets things happen, and plays the driver, until nobody asks any more. */
static void run(void)
{
	struct host_event event;
	bool more = true;

	while (more) {
		more = false;
		wire_run(&rig.wire, 100000);
		while (!silent && rig_event(&rig, 1, FERRY_EVENT_ASSIST, &event)) {
			struct ferry_assist_slot *slot = (struct ferry_assist_slot *)slots->va;

			need(event.number < SLOTS);
			slot += event.number;
			slot->status = hostile ? 7 : answer(slot);
			if (hostile)
				memset(&slot->key, 0xff, 24);
			host_doorbell(rig.host[1], 0,
				      FERRY_DB(FERRY_DB_ASSIST_ACK, 0, event.number));
			more = true;
		}
	}
	rig_run(&rig);
}

static void post(enum ferry_wr opcode, uint64_t at, uint64_t to, uint32_t len)
{
	struct host_wr wr = rig_wr(&rig, 0, opcode, at, to, len);

	rig_post(&rig, 0, &wr);
}

static bool cpu_sees(uint64_t to, uint64_t from, uint32_t len)
{
	return !memcmp(cpu + to, rig.image[0] + from, len);
}

/* Neighbours that the CPU has stored beside the range, and not cleaned, survive. */
static void writes(void)
{
	static const struct {
		uint32_t to, len;
	} cases[] = {
		{ 24, 64 }, { 24, 128 }, { 24, 1 }, { 25, 7 }, { 100, 63 }, { 24, 4096 },
		{ 30, 20000 }, { 1, 65535 }, { 24 + 63, 2 }, { 24, 65 },
	};
	uint8_t before, after;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t to = cases[i].to, len = cases[i].len;

		cpu_store(to - 1, "\x5a", 1);
		if (to + len < RIG_MR_LEN)
			cpu_store(to + len, "\xa5", 1);
		post(FERRY_WR_WRITE, 0, to, len);
		run();
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
		need_that(cpu_sees(to, 0, len), "case %u: the CPU does not see what was written", i);
		before = cpu[to - 1];
		after = to + len < RIG_MR_LEN ? cpu[to + len] : 0xa5;
		need_that(before == 0x5a && after == 0xa5, "case %u: a neighbour is lost", i);
	}
	need(asked[FERRY_ASSIST_BEFORE_WRITE] == i && asked[FERRY_ASSIST_AFTER_WRITE] >= i);
}

static void writes_wire(void)
{
	start(&(struct rig_options) { 0 });
	writes();
	finish();
}

static void writes_local(void)
{
	start(&(struct rig_options) { .local = true });
	writes();
	finish();
}

static void writes_message(void)
{
	start(&(struct rig_options) { .message = true });
	writes();
	finish();
}

/* A READ finds what the CPU has stored. */
static void reads(void)
{
	uint8_t data[9000];

	start(&(struct rig_options) { 0 });
	memset(data, 0x3c, sizeof(data));
	cpu_store(777, data, sizeof(data));
	post(FERRY_WR_READ, 100, 777, sizeof(data));
	run();
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	host_mr_read(rig.mr[0], 100, data, sizeof(data));
	need(data[0] == 0x3c && data[8999] == 0x3c);
	need_eq(asked[FERRY_ASSIST_BEFORE_READ], 1);
	finish();
}

static void post_add(unsigned int times)
{
	struct host_wr wr = rig_wr(&rig, 0, FERRY_WR_ATOMIC_FA, 0, 1024, 8);

	wr.swap_or_add = 3;
	while (times--)
		rig_post(&rig, 0, &wr);
}

/* Atomics see the CPU's stores, and the CPU theirs. */
static void atomics(void)
{
	uint64_t value = htole64(40), old;
	unsigned int i;

	start(&(struct rig_options) { .path.rd_atomic = 4 });
	cpu_store(1024, &value, 8);
	post_add(10);
	run();
	for (i = 0; i < 10; i++)
		rig_expect(&rig, 0, FERRY_WC_SUCCESS, (uint16_t)i);
	memcpy(&value, cpu + 1024, 8);
	need_eq(le64toh(value), 70);
	host_mr_read(rig.mr[0], 0, &old, 8);
	need_eq(le64toh(old), 67);
	need_eq(asked[FERRY_ASSIST_AFTER_WRITE], 10);
	/* Nothing changes: nobody need store. */
	post(FERRY_WR_ATOMIC_CS, 0, 1024, 8);
	run();
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 10);
	need_eq(asked[FERRY_ASSIST_AFTER_WRITE], 10);
	finish();
}

/* A driver that says no, and scribbles over the question. */
static void refused(void)
{
	static const enum ferry_wr wrs[] = {
		FERRY_WR_WRITE, FERRY_WR_READ, FERRY_WR_ATOMIC_FA,
	};
	unsigned int i;

	start(&(struct rig_options) { 0 });
	hostile = true;
	for (i = 0; i < 3; i++) {
		post(wrs[i], 0, 1024, 8);
		run();
		rig_expect(&rig, 0, FERRY_WC_REM_ACCESS_ERR, 0);
		rig_reconnect(&rig);
	}
	hostile = false;
	post(FERRY_WR_WRITE, 0, 1024, 8);
	run();
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	finish();
}

/* A driver that says nothing: the access fails after a while, the QP can go meanwhile. */
static void unanswered(void)
{
	struct host_event event;
	unsigned int i;

	start(&(struct rig_options) { .local = true });
	silent = true;
	post(FERRY_WR_WRITE, 0, 1024, 8);
	for (i = 0; i < 4; i++)
		run();
	rig_expect(&rig, 0, FERRY_WC_REM_ACCESS_ERR, 0);
	/* RESET with questions under way; more of them than slots. */
	for (i = 0; i < 3 * SLOTS; i++) {
		rig_reconnect(&rig);
		post(i & 1 ? FERRY_WR_ATOMIC_FA : FERRY_WR_READ, 0, 1024, 8);
		wire_run(&rig.wire, 1000000);
	}
	/* Answers that nobody waits for, and such to no question. */
	rig_reconnect(&rig);
	for (i = 0; i < 2 * SLOTS; i++)
		host_doorbell(rig.host[1], 0, FERRY_DB(FERRY_DB_ASSIST_ACK, 0, i));
	while (rig_event(&rig, 1, FERRY_EVENT_ASSIST, &event))
		;
	silent = false;
	post(FERRY_WR_WRITE, 0, 1024, 8);
	run();
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	finish();
}

/* Only from the kernel's page. */
static void foreign_ack(void)
{
	start(&(struct rig_options) { 0 });
	silent = true;
	post(FERRY_WR_WRITE, 0, 1024, 8);
	wire_run(&rig.wire, 1000000);
	host_doorbell(rig.host[1], rig.context[1]->number, FERRY_DB(FERRY_DB_ASSIST_ACK, 0, 0));
	wire_run(&rig.wire, 1000000);
	need_eq(asked[FERRY_ASSIST_AFTER_WRITE], 0);
	rig_expect_none(&rig, 0);
	silent = false;
	run();
	rig_expect(&rig, 0, FERRY_WC_SUCCESS, 0);
	finish();
}

/* The MR goes while the driver is asked. */
static void mr_gone(void)
{
	struct host_mr_spec spec;

	start(&(struct rig_options) { 0 });
	spec = rig.mr[1]->spec;
	silent = true;
	post(FERRY_WR_WRITE, 0, 1024, 8);
	wire_run(&rig.wire, 1000000);
	need_eq(set_assist(0, 0, 0, 0), FERRY_ADMIN_BUSY);
	host_mr_destroy(rig.mr[1]);
	host_doorbell(rig.host[1], 0, FERRY_DB(FERRY_DB_ASSIST_ACK, 0, 0));
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_REM_ACCESS_ERR, 0);
	rig.mr[1] = host_mr_create(&spec);
	need(rig.mr[1]);
	finish();
}

static void set_up(void)
{
	uint32_t eq;

	start(&(struct rig_options) { 0 });
	eq = rig.host[1]->eq.number;
	host_mr_destroy(rig.mr[1]);
	need_eq(set_assist(eq, SLOTS, slots->dma, LINE), FERRY_ADMIN_BUSY);
	need_eq(host_admin_object(rig.host[1], FERRY_ADMIN_DESTROY_EQ, eq, NULL),
		FERRY_ADMIN_BUSY);
	need_eq(set_assist(0, 0, 0, 0), FERRY_ADMIN_OK);
	need_eq(set_assist(99, SLOTS, slots->dma, LINE), FERRY_ADMIN_NOT_FOUND);
	need_eq(set_assist(eq, 257, slots->dma, LINE), FERRY_ADMIN_BAD_PARAM);
	need_eq(set_assist(eq, SLOTS, slots->dma + 8, LINE), FERRY_ADMIN_BAD_PARAM);
	need_eq(set_assist(eq, SLOTS, 0, LINE), FERRY_ADMIN_BAD_PARAM);
	need_eq(set_assist(eq, SLOTS, slots->dma, 8), FERRY_ADMIN_BAD_PARAM);
	need_eq(set_assist(eq, SLOTS, slots->dma, 48), FERRY_ADMIN_BAD_PARAM);
	need_eq(set_assist(eq, SLOTS, slots->dma, 128), FERRY_ADMIN_BAD_PARAM);
	need(!host_mr_create(&(struct host_mr_spec) {
		.pd = rig.pd[1], .length = 4096, .assist = true }));
	need_eq(set_assist(eq, SLOTS, slots->dma, LINE), FERRY_ADMIN_OK);
	rig.mr[1] = host_mr_create(&(struct host_mr_spec) {
		.pd = rig.pd[1], .length = 4096, .assist = true });
	need(rig.mr[1]);
	finish();
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TAP_TEST(writes_wire, "WRITEs by the wire, at all alignments"),
		TAP_TEST(writes_local, "the same within a port"),
		TAP_TEST(writes_message, "the same, memory by messages"),
		TAP_TEST(reads, "READs find what the CPU has stored"),
		TAP_TEST(atomics, "atomics"),
		TAP_TEST(refused, "a driver that refuses, and scribbles"),
		TAP_TEST(unanswered, "a driver that does not answer; resets meanwhile"),
		TAP_TEST(foreign_ack, "nobody else may answer"),
		TAP_TEST(mr_gone, "the MR goes while the driver is asked"),
		TAP_TEST(set_up, "SET_ASSIST and what it refuses"),
	};

	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
