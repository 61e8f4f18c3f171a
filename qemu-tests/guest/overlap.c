// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MRs over the same memory: whatever mapping lies behind them, none takes anything from
 * another when it goes; and large pages, from any place in them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rig.h"

#define PAGE		4096u
#define HUGE		(2u << 20)
#define HUGES		8u
#define PIECE		64u
#define MRS		12
#define MANY		3000
#define SAMPLE		200

/* Has the peer write some bytes by that MR, at both of its ends and in the middle. */
static void reach_at(struct rig *rig, const struct ibv_mr *mr, uint8_t *at)
{
	static uint64_t id;
	struct ibv_sge sge = region_sge(&rig->a.mem, 0, PIECE);
	struct ibv_send_wr wr = send_wr(++id, IBV_WR_RDMA_WRITE, &sge, 1);

	fill(rig->a.mem.addr, PIECE, options.seed ^ id);
	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = mr->rkey;
	post_send(rig->a.qp, &wr);
	need_wc(rig->a.cq, id, IBV_WC_SUCCESS);
	need(!memcmp(at, rig->a.mem.addr, PIECE));
}

static void reach(struct rig *rig, const struct ibv_mr *mr)
{
	uint8_t *at = mr->addr;

	reach_at(rig, mr, at);
	reach_at(rig, mr, at + (mr->length - PIECE) / 2);
	reach_at(rig, mr, at + mr->length - PIECE);
}

static void make_rig(struct rig *rig)
{
	struct rig_attr attr = rig_defaults();

	attr.qp_access = ACCESS_ALL;
	rig_connect_new(rig, &attr);
}

static struct ibv_mr *reg(struct rig *rig, uint8_t *at, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(rig->b.pd, at, len, ACCESS_ALL);

	need(mr);
	return mr;
}

static uint8_t *memory(size_t len)
{
	uint8_t *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(at != MAP_FAILED);
	return at;
}

/* The first registered goes first, or last. */
static void two(struct rig *rig, uint8_t *a, size_t a_len, uint8_t *b, size_t b_len, int last)
{
	struct ibv_mr *mr[2] = { reg(rig, a, a_len), reg(rig, b, b_len) };

	reach(rig, mr[0]);
	reach(rig, mr[1]);
	need_ok(ibv_dereg_mr(mr[last]));
	reach(rig, mr[!last]);
	need_ok(ibv_dereg_mr(mr[!last]));
}

static void test_same_page(const void *arg)
{
	uint8_t *page = memory(PAGE);
	struct rig rig;

	(void)arg;
	make_rig(&rig);
	two(&rig, page, PAGE, page, PAGE, 0);
	two(&rig, page, PAGE, page, PAGE, 1);
	two(&rig, page + 64, 1024, page + 512, 2048, 0);
	two(&rig, page + 64, 1024, page + 512, 2048, 1);
	rig_destroy(&rig);
}

static void test_nested(const void *arg)
{
	uint8_t *pages = memory(64 * PAGE);
	struct rig rig;

	(void)arg;
	make_rig(&rig);
	two(&rig, pages, 64 * PAGE, pages + 17 * PAGE + 100, 3 * PAGE, 0);
	two(&rig, pages, 64 * PAGE, pages + 17 * PAGE + 100, 3 * PAGE, 1);
	rig_destroy(&rig);
}

static void test_any_order(const void *arg)
{
	size_t i, left, pages = 32;
	uint8_t *base = memory(pages * PAGE);
	struct ibv_mr *mr[MRS];
	unsigned int round;
	struct rig rig;

	(void)arg;
	make_rig(&rig);
	for (round = 0; round < 4; round++) {
		uint64_t random = mix64(options.seed + round);

		for (i = 0; i < MRS; i++) {
			size_t from, len;

			random = mix64(random);
			from = random % (pages * PAGE - 2 * PIECE);
			len = 2 * PIECE + (random >> 32) % (pages * PAGE - from - 2 * PIECE + 1);
			mr[i] = reg(&rig, base + from, len);
		}
		for (left = MRS; left; left--) {
			for (i = 0; i < left; i++)
				reach(&rig, mr[i]);
			random = mix64(random);
			i = random % left;
			need_ok(ibv_dereg_mr(mr[i]));
			mr[i] = mr[left - 1];
		}
	}
	rig_destroy(&rig);
}

/* A number behind a name in a file of /proc; 0 if it is not there. */
static unsigned long number_in(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	char line[256];
	unsigned long value = 0;

	need(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtoul(line + strlen(name) + strspn(line + strlen(name), ": "), NULL, 10);
	fclose(file);
	return value;
}

static bool isolated(const struct rig *rig)
{
	char path[128], text[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/dma_regime",
		 ibv_get_device_name(rig->ctx->device));
	file = fopen(path, "r");
	if (!file)
		return false;
	need(fgets(text, sizeof(text), file));
	fclose(file);
	return !strcmp(text, "isolated\n");
}

/* Pages of IOMMU tables. The kernel counts on each CPU, and adds up when it is asked to. */
static unsigned long iommu_pages(void)
{
	FILE *refresh = fopen("/proc/sys/vm/stat_refresh", "w");

	if (refresh) {
		fputs("1\n", refresh);
		fclose(refresh);
	}
	return number_in("/proc/vmstat", "nr_iommu_pages");
}

/*
 * Registers it, large pages or small ones. Where the driver maps them itself, large ones
 * need no table each, and as much memory in small ones does.
 */
static struct ibv_mr *reg_counted(struct rig *rig, uint8_t *base, bool large)
{
	unsigned long huge = number_in("/proc/self/smaps_rollup", "AnonHugePages") * 1024 / HUGE;
	unsigned long before = iommu_pages(), tables;
	struct ibv_mr *mr = reg(rig, base, HUGES * HUGE);

	tables = iommu_pages() - before;
	tap_note("%u MiB, %lu large pages in the process: %lu pages of IOMMU tables",
		 HUGES * HUGE >> 20, huge, tables);
	if (isolated(rig) && !large)
		need(tables >= HUGES / 2);
	if (isolated(rig) && large && huge >= HUGES)
		need(tables < HUGES / 2);
	return mr;
}

static uint8_t *aligned_memory(int advice)
{
	uint8_t *area = memory((HUGES + 1) * HUGE);
	uint8_t *base = area + (HUGE - (uintptr_t)area % HUGE) % HUGE;

	/* A wish; the rest of the test holds without. */
	if (madvise(base, HUGES * HUGE, advice))
		tap_note("no large pages here");
	memset(base, 0, HUGES * HUGE);
	return base;
}

static void test_huge_pages(const void *arg)
{
	struct ibv_mr *whole, *inner;
	struct rig rig;
	uint8_t *base;

	(void)arg;
	make_rig(&rig);
	whole = reg_counted(&rig, aligned_memory(MADV_NOHUGEPAGE), false);
	reach(&rig, whole);
	need_ok(ibv_dereg_mr(whole));
	base = aligned_memory(MADV_HUGEPAGE);
	whole = reg_counted(&rig, base, true);
	inner = reg(&rig, base + HUGE - 3 * PAGE + 64, HUGE + 5 * PAGE);
	reach(&rig, whole);
	reach(&rig, inner);
	need_ok(ibv_dereg_mr(inner));
	reach(&rig, whole);
	inner = reg(&rig, base + PAGE, PAGE);
	need_ok(ibv_dereg_mr(whole));
	reach(&rig, inner);
	need_ok(ibv_dereg_mr(inner));
	rig_destroy(&rig);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median(uint64_t *value)
{
	qsort(value, SAMPLE, sizeof(*value), by_value);
	return value[SAMPLE / 2];
}

/* The first and the last of many, all over the same page. */
static void test_cost(const void *arg)
{
	static struct ibv_mr *mr[MANY];
	uint64_t first[SAMPLE], last[SAMPLE], began;
	uint8_t *page = memory(PAGE);
	struct rig rig;
	int i;

	(void)arg;
	*page = 1;
	make_rig(&rig);
	for (i = 0; i < MANY; i++) {
		began = now_us();
		mr[i] = reg(&rig, page, PAGE);
		if (i < SAMPLE)
			first[i] = now_us() - began;
		else if (i >= MANY - SAMPLE)
			last[i - (MANY - SAMPLE)] = now_us() - began;
	}
	tap_note("an MR takes %llu us when there are few, %llu us when there are %d",
		 (unsigned long long)median(first), (unsigned long long)median(last), MANY);
	need(median(last) < 4 * median(first));
	for (i = 0; i < MANY; i++)
		need_ok(ibv_dereg_mr(mr[i]));
	rig_destroy(&rig);
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TEST("two MRs over one page", test_same_page),
		TEST("an MR inside another", test_nested),
		TEST("dereg in any order", test_any_order),
		TEST("MRs of large pages", test_huge_pages),
		TEST("an MR costs the same among thousands", test_cost, .seconds = 300),
	};
	size_t count = sizeof(tests) / sizeof(tests[0]);

	options_parse(argc, argv, "MRs over the same memory.");
	if (options.list) {
		tap_list(tests, count);
		return 0;
	}
	return tap_run(tests, count, options.only, 0);
}
