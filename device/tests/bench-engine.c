// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine alone, natively: WRITEs between two QPs of one NIC. One line a case:
 *
 *	bench-engine CASE VALUE UNIT
 *
 * The producer does what a provider does: a WQE into the ring, the record, the group word
 * if it is clear, a look at the status page; then it polls the CQ. Once with the engine on
 * a core of its own, once on the same thread.
 */
#include <endian.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rig.h"
#include "tap.h"

#define SECONDS		0.5
#define ROUNDS		3
#define SQ_SHIFT	8
#define WINDOW		128	/* WQEs under way */
#define BATCH		16	/* WQEs a doorbell */
#define BUDGET		65536
#define BLOCK		65536u
#define HOPS		100000

static struct rig rig;
static atomic_bool stop;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* Where there is one core only, threads share it. */
	sched_setaffinity(0, sizeof(set), &set);
}

static void report(const char *name, double value, const char *unit)
{
	printf("bench-engine %s %.1f %s\n", name, value, unit);
	fflush(stdout);
}

/* ---- the line that two cores share */

static struct {
	_Alignas(64) atomic_uint ball;
} court;

static void *return_ball(void *arg)
{
	unsigned int i;

	(void)arg;
	pin(1);
	for (i = 0; i < HOPS; i++) {
		while (atomic_load_explicit(&court.ball, memory_order_acquire) != 2 * i + 1)
			;
		atomic_store_explicit(&court.ball, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

/* ns from one core to the other, one way. */
static double core_to_core(void)
{
	pthread_t other;
	unsigned int i;
	double start;

	atomic_store(&court.ball, 0);
	need(!pthread_create(&other, NULL, return_ball, NULL));
	start = now();
	for (i = 0; i < HOPS; i++) {
		atomic_store_explicit(&court.ball, 2 * i + 1, memory_order_release);
		while (atomic_load_explicit(&court.ball, memory_order_acquire) != 2 * i + 2)
			;
	}
	start = now() - start;
	pthread_join(other, NULL);
	return start / HOPS / 2 * 1e9;
}

/* ---- engine */

static void *run_engine(void *arg)
{
	struct ferry_engine *engine = rig.host[0]->engine;

	(void)arg;
	pin(1);
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		ferry_engine_run(engine, (uint64_t)(now() * 1e9), BUDGET);
	return NULL;
}

/* ---- producer */

struct producer {
	struct ferry_wqe_rdma wqe;
	struct ferry_sge sge;
	bool alone;		/* runs the engine itself */
	uint64_t posted, done;
};

static void post_batch(struct producer *p)
{
	struct host_ring *sq = &rig.qp[0]->sq;
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		uint64_t at = (uint64_t)(sq->pi++ & ((1u << sq->shift) - 1)) << sq->stride_shift;
		struct ferry_wqe_rdma *wqe = host_blocks_at(&sq->blocks, at);

		*wqe = p->wqe;
		wqe->sge[0] = p->sge;
	}
	host_ring_send(rig.qp[0]);
	p->posted += BATCH;
}

static void poll_all(struct producer *p)
{
	struct host_wc wc;

	while (host_poll(rig.cq[0], &wc)) {
		need_eq(wc.status, FERRY_WC_SUCCESS);
		p->done++;
	}
}

static void produce(struct producer *p)
{
	while (p->posted + BATCH - p->done <= WINDOW)
		post_batch(p);
	if (p->alone)
		ferry_engine_run(rig.host[0]->engine, (uint64_t)(now() * 1e9), BUDGET);
	poll_all(p);
}

/* WRITEs a second. */
static double measure(struct producer *p)
{
	double start = now(), end;
	uint64_t before = p->done;

	do {
		unsigned int i;

		for (i = 0; i < 100; i++)
			produce(p);
		end = now();
	} while (end - start < SECONDS);
	return (double)(p->done - before) / (end - start);
}

static struct host_mr *make_mr(struct host_pd *pd)
{
	struct host_mr_spec spec = {
		.pd = pd, .length = BLOCK, .access = RIG_ACCESS,
	};
	struct host_mr *mr;

	mr = host_mr_create(&spec);
	need(mr);
	return mr;
}

static double median(double *v)
{
	double low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];

	return v[2] < low ? low : v[2] > high ? high : v[2];
}

/* Median of the rounds, in WRITEs a second. */
static double run_case(uint32_t len, bool alone)
{
	struct rig_options o = { .local = true, .cq_shift = SQ_SHIFT, .sq_shift = SQ_SHIFT };
	struct producer p = { .alone = alone };
	struct host_mr *from, *to;
	double rate[ROUNDS];
	pthread_t engine;
	unsigned int i;

	rig_init(&rig, &o);
	from = make_mr(rig.pd[0]);
	to = make_mr(rig.pd[1]);
	p.wqe.head.opcode = FERRY_WR_WRITE;
	p.wqe.head.flags = FERRY_WQE_SIGNALED;
	p.wqe.head.num_sge = 1;
	p.wqe.raddr = htole64(to->spec.iova);
	p.wqe.rkey = htole32(to->key);
	p.sge.addr = htole64(from->spec.iova);
	p.sge.length = htole32(len);
	p.sge.lkey = htole32(from->key);
	need(host_settle(rig.host[0]));
	atomic_store(&stop, false);
	if (!alone)
		need(!pthread_create(&engine, NULL, run_engine, NULL));
	for (i = 0; i < ROUNDS; i++)
		rate[i] = measure(&p);
	while (p.done < p.posted) {
		if (alone)
			host_run(rig.host[0]);
		poll_all(&p);
	}
	atomic_store(&stop, true);
	if (!alone)
		pthread_join(engine, NULL);
	host_mr_destroy(from);
	host_mr_destroy(to);
	rig_free(&rig);
	return median(rate);
}

/* MiB/s of plain copies of the same size, as warm. */
static double memcpy_rate(void)
{
	static uint8_t from[BLOCK], to[BLOCK];
	double start = now(), end;
	uint64_t copies = 0;

	do {
		unsigned int i;

		for (i = 0; i < 100; i++) {
			memcpy(to, from, BLOCK);
			/* The compiler must not think that nobody looks. */
			__asm__ volatile("" : : "r"(to), "r"(from) : "memory");
		}
		copies += 100;
		end = now();
	} while (end - start < SECONDS);
	return (double)copies / (end - start) * BLOCK / (1 << 20);
}

int main(void)
{
	double copy, value;

	pin(0);
	report("core_to_core", core_to_core(), "ns");
	report("write_rate_8", run_case(8, false) / 1e3, "k/s");
	report("core_to_core", core_to_core(), "ns");
	report("write_rate_8_one_thread", run_case(8, true) / 1e3, "k/s");
	copy = memcpy_rate();
	report("memcpy_64k", copy, "MiB/s");
	value = run_case(BLOCK, false) / 16;
	report("write_bw_64k", value, "MiB/s");
	report("write_bw_64k_of_memcpy", value / copy * 100, "percent");
	value = run_case(BLOCK, true) / 16;
	report("write_bw_64k_one_thread", value, "MiB/s");
	report("write_bw_64k_one_thread_of_memcpy", value / copy * 100, "percent");
	report("core_to_core", core_to_core(), "ns");
	return 0;
}
