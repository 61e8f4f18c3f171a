// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a barrier costs: alone, and behind accesses that it has to wait for. Each sample
 * is the difference of two loops run one after the other, the second with the barrier.
 *
 * What is pending: nothing; stores that hit the first cache; stores and loads that miss
 * all caches; a store to a line that another CPU polls, as a NIC does. Each access goes
 * to a line of its own.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"
#include "sample.h"

#define GROUP		"barrier"
#define LINE		64
#define HOT_LINES	64
/* Beyond the caches. */
#define COLD_BYTES	(256ul << 20)
#define COLD_BYTES_QUICK (32ul << 20)
/* From one cold line to the next, in lines: odd, so that all are visited, and too far
 * for a prefetcher.
 */
#define COLD_STEP	4099

enum pending {
	NOTHING,
	HOT_STORE,
	HOT_STORES,
	COLD_STORE,
	COLD_STORES,
	COLD_LOAD,
	POLLED_STORE,
	PENDINGS,
};

static const char * const pending_names[PENDINGS] = {
	[NOTHING] = "alone",
	[HOT_STORE] = "1 store that hits",
	[HOT_STORES] = "8 stores that hit",
	[COLD_STORE] = "1 store that misses",
	[COLD_STORES] = "8 stores that miss",
	[COLD_LOAD] = "1 load that misses",
	[POLLED_STORE] = "1 store to a polled line",
};

struct memory {
	volatile uint64_t *hot;
	volatile uint64_t *cold;
	volatile uint64_t *polled;
	size_t cold_mask;	/* lines - 1, a power of two less one */
	size_t cold_at;
	atomic_bool stop;
};

static inline volatile uint64_t *next_cold(const struct memory *m, size_t *at)
{
	*at = (*at + COLD_STEP) & m->cold_mask;
	return m->cold + *at * (LINE / 8);
}

static inline void store_hot(const struct memory *m, unsigned int count, uint64_t value)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		m->hot[i * (LINE / 8)] = value;
}

static inline void store_cold(const struct memory *m, size_t *at, unsigned int count,
			      uint64_t value)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		*next_cold(m, at) = value;
}

struct loop {
	struct memory *memory;
	enum pending pending;
};

/* A function for each barrier, so that nothing stands between an access and it. */
#define DEFINE_LOOP(name, instruction)							\
static void name(void *context, uint64_t n)						\
{											\
	struct loop *loop = context;							\
	struct memory *m = loop->memory;						\
	size_t at = m->cold_at;								\
											\
	switch (loop->pending) {							\
	case NOTHING:									\
		while (n--)								\
			__asm__ volatile(instruction : : : "memory");			\
		break;									\
	case HOT_STORE:									\
		while (n--) {								\
			store_hot(m, 1, n);						\
			__asm__ volatile(instruction : : : "memory");			\
		}									\
		break;									\
	case HOT_STORES:								\
		while (n--) {								\
			store_hot(m, 8, n);						\
			__asm__ volatile(instruction : : : "memory");			\
		}									\
		break;									\
	case COLD_STORE:								\
		while (n--) {								\
			store_cold(m, &at, 1, n);					\
			__asm__ volatile(instruction : : : "memory");			\
		}									\
		break;									\
	case COLD_STORES:								\
		while (n--) {								\
			store_cold(m, &at, 8, n);					\
			__asm__ volatile(instruction : : : "memory");			\
		}									\
		break;									\
	case COLD_LOAD:									\
		while (n--) {								\
			(void)*next_cold(m, &at);						\
			__asm__ volatile(instruction : : : "memory");			\
		}									\
		break;									\
	default:									\
		while (n--) {								\
			*m->polled = n;							\
			__asm__ volatile(instruction : : : "memory");			\
		}									\
		break;									\
	}										\
	m->cold_at = at;								\
}

DEFINE_LOOP(run_none, "")
#if defined(__riscv)
DEFINE_LOOP(run_r_r, "fence r,r")
DEFINE_LOOP(run_r_w, "fence r,w")
DEFINE_LOOP(run_w_w, "fence w,w")
DEFINE_LOOP(run_w_r, "fence w,r")
DEFINE_LOOP(run_w_o, "fence w,o")
DEFINE_LOOP(run_ir_ir, "fence ir,ir")
DEFINE_LOOP(run_ow_ow, "fence ow,ow")
DEFINE_LOOP(run_iorw_ow, "fence iorw,ow")
DEFINE_LOOP(run_tso, "fence.tso")
DEFINE_LOOP(run_rw_rw, "fence rw,rw")
DEFINE_LOOP(run_iorw_iorw, "fence iorw,iorw")
#elif defined(__x86_64__)
DEFINE_LOOP(run_lfence, "lfence")
DEFINE_LOOP(run_sfence, "sfence")
DEFINE_LOOP(run_mfence, "mfence")
DEFINE_LOOP(run_lock_add, "lock; addl $0, -4(%%rsp)")
#else
#error only RISC-V and x86-64 so far: add the barriers of this architecture here
#endif

static const struct barrier {
	const char *name;
	void (*run)(void *context, uint64_t n);
} barriers[] = {
#if defined(__riscv)
	{ "fence r,r", run_r_r },
	{ "fence r,w", run_r_w },
	{ "fence w,w", run_w_w },
	{ "fence w,r", run_w_r },
	{ "fence w,o", run_w_o },
	{ "fence ir,ir", run_ir_ir },
	{ "fence ow,ow", run_ow_ow },
	{ "fence iorw,ow", run_iorw_ow },
	{ "fence.tso", run_tso },
	{ "fence rw,rw", run_rw_rw },
	{ "fence iorw,iorw", run_iorw_iorw },
#else
	{ "lfence", run_lfence },
	{ "sfence", run_sfence },
	{ "mfence", run_mfence },
	{ "lock addl", run_lock_add },
#endif
};

static void *poll_line(void *context)
{
	struct memory *m = context;

	pin(other_cpu());
	while (!atomic_load_explicit(&m->stop, memory_order_relaxed))
		(void)*m->polled;
	return NULL;
}

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("no memory: %zu MiB", size >> 20);
	/* A cache miss is to be measured, not that and one of the TLB. */
	madvise(p, size, MADV_HUGEPAGE);
	memset(p, 1, size);
	return p;
}

static void measure_pending(struct memory *m, enum pending pending)
{
	struct loop loop = { .memory = m, .pending = pending };
	struct work without = { run_none, &loop };
	struct samples samples = { 0 };
	uint64_t n, base;
	size_t i, r;

	/* The loop that the barriers are compared with: of interest by itself too. */
	n = iterations_for(&without);
	for (r = 0; r < settings.repeats; r++)
		sample_add(&samples, (double)time_work(&without, n) / n);
	print_row(&samples, GROUP " loop", pending_names[pending], 0, "ns", n);

	for (i = 0; i < sizeof(barriers) / sizeof(barriers[0]); i++) {
		struct work with = { barriers[i].run, &loop };
		char name[64];

		n = iterations_for(&with);
		for (r = 0; r < settings.repeats; r++) {
			base = time_work(&without, n);
			sample_add(&samples, ((double)time_work(&with, n) - base) / n);
		}
		snprintf(name, sizeof(name), "%s: %s", barriers[i].name, pending_names[pending]);
		print_row(&samples, GROUP, name, 0, "ns", n);
	}
}

void measure_barriers(void)
{
	size_t cold = settings.quick ? COLD_BYTES_QUICK : COLD_BYTES;
	struct memory m = {
		.hot = pages(HOT_LINES * LINE),
		.cold = pages(cold),
		.polled = pages(4096),
		.cold_mask = cold / LINE - 1,
	};
	enum pending pending;
	pthread_t poller;

	for (pending = NOTHING; pending < POLLED_STORE; pending++)
		measure_pending(&m, pending);

	if (other_cpu() < 0 || settings.cpu < 0) {
		print_none(GROUP, pending_names[POLLED_STORE],
			   "needs two CPUs, and to be told which to use");
		return;
	}
	if (pthread_create(&poller, NULL, poll_line, &m))
		die("no thread");
	measure_pending(&m, POLLED_STORE);
	atomic_store(&m.stop, true);
	pthread_join(poller, NULL);
}
