// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What posting and polling costs in instructions, fences, cache-block operations and
 * doorbells, counted by the plugin count.so. Prints a line "count OPERATION BATCH CALL
 * INSTRUCTIONS FENCES CBOS DOORBELLS" for each.
 *
 * The NIC is awake when work is posted, but for the operations "asleep", and all
 * completions are there when they are polled. An interrupt adds nothing, since it is not
 * user mode; what can add something is a NIC that was too slow, or fell asleep too soon.
 * So the least of some rounds counts, and it is the same in every run; a round in which the
 * NIC was rung though awake, or not though asleep, is tried again, some times.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

#define MAX_BATCH	64
#define ROUNDS		12
#define DONE_US		4000	/* until all completions are there, at first */
#define DONE_US_MAX	10000000
#define RETRIES		100	/* of rounds that found the NIC otherwise than they want */
#define ASLEEP_US	50000	/* until the NIC sleeps */

/* As the plugin has it. */
struct counts {
	uint64_t insns;
	uint64_t fences;
	uint64_t cbos;
	uint64_t io_stores;
};

/* Marks for the plugin: hints, without effect on a CPU. */
#if defined(__riscv)
#define begin_counting()	__asm__ volatile("slti zero, zero, 0x7f1" : : : "memory")
#define end_counting(counts)	\
	__asm__ volatile("slti zero, %0, 0x7f2" : : "r"(counts) : "memory")
#else
#define begin_counting()	__asm__ volatile("" : : : "memory")
#define end_counting(counts)	__asm__ volatile("" : : "r"(counts) : "memory")
#endif

struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	unsigned int flags;
	bool asleep;
};

static const struct operation operations[] = {
	{ "send", IBV_WR_SEND, 256, 0, false },
	{ "send-inline", IBV_WR_SEND, 8, IBV_SEND_INLINE, false },
	{ "write", IBV_WR_RDMA_WRITE, 256, 0, false },
	{ "write-inline", IBV_WR_RDMA_WRITE, 8, IBV_SEND_INLINE, false },
	{ "read", IBV_WR_RDMA_READ, 256, 0, false },
	{ "write-inline-asleep", IBV_WR_RDMA_WRITE, 8, IBV_SEND_INLINE, true },
};

static const unsigned int batches[] = { 1, 4, 16, MAX_BATCH };

struct bench {
	struct rig rig;
	const struct operation *op;
	unsigned int batch;
	unsigned int done_us;
	struct ibv_send_wr wr[MAX_BATCH];
	struct ibv_sge sge[MAX_BATCH];
	struct ibv_wc wc[MAX_BATCH];
};

static void prepare(struct bench *b)
{
	unsigned int i;

	for (i = 0; i < b->batch; i++) {
		b->sge[i] = region_sge(&b->rig.a.mem, i * b->op->bytes, b->op->bytes);
		b->wr[i] = send_wr(i, b->op->opcode, &b->sge[i], 1);
		b->wr[i].send_flags |= b->op->flags;
		b->wr[i].next = i + 1 < b->batch ? &b->wr[i + 1] : NULL;
		if (b->op->opcode != IBV_WR_SEND)
			wr_to(&b->wr[i], &b->rig.b.mem, i * b->op->bytes);
	}
}

/* Posts an 8-byte WRITE and waits for it: the NIC is awake then, and has seen all records. */
static void wake(struct bench *b)
{
	struct ibv_sge sge = region_sge(&b->rig.a.mem, 0, 8);
	struct ibv_send_wr wr = send_wr(MAX_BATCH, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.send_flags |= IBV_SEND_INLINE;
	wr_to(&wr, &b->rig.b.mem, 0);
	post_send(b->rig.a.qp, &wr);
	need_wc(b->rig.a.cq, MAX_BATCH, IBV_WC_SUCCESS);
}

static void receive(struct bench *b)
{
	struct ibv_sge sge = region_sge(&b->rig.b.mem, 0, b->op->bytes);
	unsigned int i;

	if (b->op->opcode != IBV_WR_SEND)
		return;
	for (i = 0; i < b->batch; i++)
		post_recv(b->rig.b.qp, i, &sge, 1);
}

static void drain(struct bench *b)
{
	unsigned int i;

	if (b->op->opcode != IBV_WR_SEND)
		return;
	for (i = 0; i < b->batch; i++)
		need_wc(b->rig.b.cq, i, IBV_WC_SUCCESS);
}

static void __attribute__((noinline)) count_post(struct bench *b, struct counts *counts)
{
	struct ibv_qp *qp = b->rig.a.qp;
	struct ibv_send_wr *wr = b->wr, *bad;
	int err;

	begin_counting();
	err = ibv_post_send(qp, wr, &bad);
	end_counting(counts);
	need_eq(err, 0);
}

static int __attribute__((noinline)) count_poll(struct bench *b, struct counts *counts)
{
	struct ibv_cq *cq = b->rig.a.cq;
	struct ibv_wc *wc = b->wc;
	int n, batch = b->batch;

	begin_counting();
	n = ibv_poll_cq(cq, batch, wc);
	end_counting(counts);
	return n;
}

/* False where not all completions were there. */
static bool round_once(struct bench *b, struct counts *post, struct counts *poll)
{
	unsigned int i;
	bool good;
	int n;

	receive(b);
	if (b->op->asleep)
		usleep(ASLEEP_US);
	else
		wake(b);
	count_post(b, post);
	usleep(b->done_us);
	n = count_poll(b, poll);
	need_that(n >= 0, "ibv_poll_cq: %d", n);
	good = n == (int)b->batch;
	for (i = 0; i < b->batch; i++) {
		if (i >= (unsigned int)n)
			b->wc[i] = wait_wc(b->rig.a.cq);
		need_eq(b->wc[i].status, IBV_WC_SUCCESS);
		need_eq(b->wc[i].wr_id, i);
	}
	drain(b);
	return good;
}

static void keep_least(struct counts *least, const struct counts *counts, bool first)
{
	if (first || counts->insns < least->insns)
		*least = *counts;
}

static void print(const struct bench *b, const char *call, const struct counts *c)
{
	printf("count %s %u %s %llu %llu %llu %llu\n", b->op->name, b->batch, call,
	       (unsigned long long)c->insns, (unsigned long long)c->fences,
	       (unsigned long long)c->cbos, (unsigned long long)c->io_stores);
}

static void measure(struct bench *b)
{
	struct counts post, poll, least_post = { 0 }, least_poll = { 0 };
	unsigned int good = 0, retries = 0;

	prepare(b);
	b->done_us = DONE_US;
	while (good < ROUNDS) {
		memset(&post, 0, sizeof(post));
		memset(&poll, 0, sizeof(poll));
		if (!round_once(b, &post, &poll)) {
			/* Where peers access cached memory the driver is asked for each request. */
			b->done_us *= 2;
			need_that(b->done_us <= DONE_US_MAX, "completions do not come in %d us",
				  DONE_US_MAX);
			continue;
		}
		need_that(post.insns && poll.insns, "nothing is counted: is the plugin there?");
		if (!!post.io_stores != b->op->asleep && retries++ < RETRIES)
			continue;
		keep_least(&least_post, &post, !good);
		keep_least(&least_poll, &poll, !good);
		good++;
	}
	print(b, "post", &least_post);
	print(b, "poll", &least_poll);
}

static void all(const void *unused)
{
	struct rig_attr attr = rig_defaults();
	struct bench b;
	unsigned int o, i;
	cpu_set_t cpus;

	(void)unused;
	/* The other one is for the rest of the system. */
	CPU_ZERO(&cpus);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpus);
	need_ok(sched_setaffinity(0, sizeof(cpus), &cpus));

	/* So deep that few rounds find the SQ at the index at which it may be full, and look. */
	attr.send_wr = 4 * MAX_BATCH;
	attr.recv_wr = 4 * MAX_BATCH;
	attr.send_sge = 1;
	attr.inline_bytes = 64;
	attr.cqe = 4 * MAX_BATCH;
	rig_connect_new(&b.rig, &attr);
	for (o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
		b.op = &operations[o];
		for (i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
			b.batch = batches[i];
			if (!b.op->asleep || b.batch == 1)
				measure(&b);
		}
	}
	rig_destroy(&b.rig);
}

static const struct tap_test tests[] = {
	TEST("instructions are counted", all),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "Counts what posting and polling costs, under the plugin count.so.");
	return tap_run(tests, 1, options.only, 0);
}
