// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What cache maintenance from user mode costs, by size: over lines that the CPU has just
 * written, and over lines that it has only read. The barrier that must follow is part of
 * it. A sample is taken over a pool of buffers of that size, prepared each time.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"
#include "sample.h"

#define GROUP		"cache, user"
#define POOL		(256ul << 10)
#define LARGEST		(1ul << 20)
#define OPERATIONS	(sizeof(operations) / sizeof(operations[0]))

struct operation {
	const char *name;
	const char *missing;	/* why not; NULL: it can be done */
	size_t line;		/* bytes that one instruction reaches */
	void (*run)(char *from, char *to, size_t line);
};

/* From @from to @to, a line at a time, then the barrier behind which a device may look. */
#define DEFINE_OPERATION(name, instruction, fence)			\
static void name(char *from, char *to, size_t line)			\
{									\
	for (; from < to; from += line)					\
		__asm__ volatile(instruction : : "r"(from) : "memory");	\
	__asm__ volatile(fence : : : "memory");				\
}

#if defined(__riscv)
/* As numbers: assemblers know the names by extension only. */
DEFINE_OPERATION(run_clean, ".insn i 0x0f, 2, x0, %0, 1", "fence rw,ow")
DEFINE_OPERATION(run_flush, ".insn i 0x0f, 2, x0, %0, 2", "fence rw,ow")

static struct operation operations[] = {
	{ .name = "cbo.clean", .run = run_clean },
	{ .name = "cbo.flush", .run = run_flush },
};

/* Of linux/hwprobe.h, which may be older than the kernel. */
#define NR_RISCV_HWPROBE		258
#define HWPROBE_KEY_IMA_EXT_0		4
#define HWPROBE_EXT_ZICBOM		(1ull << 55)
#define HWPROBE_KEY_ZICBOM_BLOCK_SIZE	12

struct hwprobe {
	int64_t key;
	uint64_t value;
};

/* What all CPUs have; 0 where the kernel does not say. */
static uint64_t hwprobe(int64_t key)
{
	struct hwprobe probe = { .key = key };

	if (syscall(NR_RISCV_HWPROBE, &probe, 1, 0, NULL, 0) || probe.key != key)
		return 0;
	return probe.value;
}

static void find_operations(void)
{
	uint64_t extensions = hwprobe(HWPROBE_KEY_IMA_EXT_0);
	size_t line = extensions & HWPROBE_EXT_ZICBOM ? hwprobe(HWPROBE_KEY_ZICBOM_BLOCK_SIZE) : 0;
	size_t i;

	for (i = 0; i < OPERATIONS; i++) {
		operations[i].line = line;
		if (!line)
			operations[i].missing = "the kernel does not offer it to user mode on all CPUs";
	}
}

void print_facts(void)
{
	uint64_t extensions = hwprobe(HWPROBE_KEY_IMA_EXT_0);

	printf("fact\tuser cbo.clean and cbo.flush\t%s\n",
	       extensions & HWPROBE_EXT_ZICBOM ? "yes" : "no");
	printf("fact\tcache block\t%llu\n",
	       (unsigned long long)hwprobe(HWPROBE_KEY_ZICBOM_BLOCK_SIZE));
}
#else
#include <cpuid.h>

#define CPUID_CLFSH	(1u << 19)

DEFINE_OPERATION(run_clflush, "clflush (%0)", "mfence")
DEFINE_OPERATION(run_clflushopt, "clflushopt (%0)", "sfence")
DEFINE_OPERATION(run_clwb, "clwb (%0)", "sfence")

static struct operation operations[] = {
	{ .name = "clflush", .run = run_clflush },
	{ .name = "clflushopt", .run = run_clflushopt },
	{ .name = "clwb", .run = run_clwb },
};

static size_t clflush_line(void)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(d & CPUID_CLFSH))
		return 0;
	return (b >> 8 & 0xff) * 8;
}

static void find_operations(void)
{
	unsigned int a, b = 0, c, d;
	size_t line = clflush_line();
	size_t i;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		b = 0;
	for (i = 0; i < OPERATIONS; i++) {
		operations[i].line = line;
		if (!line)
			operations[i].missing = "the CPU has no clflush";
	}
	if (!(b & bit_CLFLUSHOPT))
		operations[1].missing = "the CPU has no clflushopt";
	if (!(b & bit_CLWB))
		operations[2].missing = "the CPU has no clwb";
}

void print_facts(void)
{
	printf("fact\tcache block\t%zu\n", clflush_line());
}
#endif

enum state { WRITTEN, READ, STATES };
static const char * const state_names[STATES] = { "written lines", "read lines" };

static void prepare(char *pool, size_t size, enum state state, uint64_t round)
{
	volatile char *p;

	if (state == WRITTEN) {
		memset(pool, round, size);
	} else {
		for (p = pool; p < pool + size; p += 16)
			(void)*p;
	}
	/* Nothing of that is to be waited for later. */
	__sync_synchronize();
}

/* A sample: the mean over the pool, as often as the time asks for. */
static double sample(const struct operation *op, char *pool, size_t size, enum state state,
		     uint64_t *operations_done)
{
	size_t pool_size = size > POOL ? size : POOL;
	uint64_t total = 0, began, rounds = 0, started = now_ns();
	char *p;

	do {
		prepare(pool, pool_size, state, rounds);
		began = now_ns();
		for (p = pool; p < pool + pool_size; p += size)
			op->run(p, p + size, op->line);
		total += now_ns() - began;
		rounds++;
		/* Preparing may take longer than the work itself. */
	} while (total < settings.sample_ns && now_ns() - started < 8 * settings.sample_ns);
	*operations_done = rounds * (pool_size / size);
	return (double)total / *operations_done;
}

static void measure_operation(const struct operation *op, char *pool, enum state state)
{
	struct samples samples = { 0 };
	uint64_t done = 0;
	char name[64];
	size_t size;
	unsigned int r;

	snprintf(name, sizeof(name), "%s: %s", op->name, state_names[state]);
	for (size = 64; size <= LARGEST; size *= settings.quick ? 16 : 4) {
		if (size < op->line)
			continue;
		for (r = 0; r < settings.repeats; r++)
			sample_add(&samples, sample(op, pool, size, state, &done));
		print_row(&samples, GROUP, name, size, "ns", done);
	}
}

void measure_cache(void)
{
	char *pool = aligned_alloc(4096, LARGEST);
	enum state state;
	size_t i;

	if (!pool)
		die("no memory");
	memset(pool, 1, LARGEST);
	find_operations();
	for (i = 0; i < OPERATIONS; i++) {
		if (operations[i].missing) {
			print_none(GROUP, operations[i].name, operations[i].missing);
			continue;
		}
		for (state = WRITTEN; state < STATES; state++)
			measure_operation(&operations[i], pool, state);
	}
	free(pool);
}
