// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the calls of the fast path cost the CPU, by batch: ibv_post_send() of a list, and
 * ibv_poll_cq() of as many completions that are there already; and what registration
 * costs, by size. A QP connected to itself; waiting is not counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "sample.h"

#define DEPTH		1024
#define LARGEST_BATCH	64
#define LARGEST_REGION	(64ul << 20)
/* For completions to arrive before they are polled, in us. */
#define FIRST_WAIT	500
#define LONGEST_WAIT	500000

struct post {
	struct rdma rdma;
	struct ibv_sge sge;
	struct ibv_send_wr wr[LARGEST_BATCH];
	useconds_t wait;
};

static void fill_list(struct post *p, unsigned int batch, uint32_t size, unsigned int flags)
{
	unsigned int i;

	p->sge = (struct ibv_sge){
		.addr = (uintptr_t)p->rdma.buffer,
		.length = size,
		.lkey = p->rdma.mr->lkey,
	};
	for (i = 0; i < batch; i++)
		p->wr[i] = (struct ibv_send_wr){
			.next = i + 1 < batch ? &p->wr[i + 1] : NULL,
			.sg_list = &p->sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED | flags,
			.wr.rdma = { .remote_addr = p->rdma.peer_addr, .rkey = p->rdma.peer_rkey },
		};
}

static uint64_t post_lists(struct post *p, unsigned int lists)
{
	struct ibv_send_wr *bad;
	uint64_t began = now_ns();
	unsigned int i;

	for (i = 0; i < lists; i++)
		if (ibv_post_send(p->rdma.qp, p->wr, &bad))
			die("cannot post");
	return now_ns() - began;
}

/*
 * Polls @lists times @batch completions. False if some had not been there yet; the time
 * counts for nothing then, but all are taken all the same.
 */
static bool poll_lists(struct post *p, unsigned int lists, unsigned int batch, uint64_t *ns)
{
	struct ibv_wc wc[LARGEST_BATCH];
	unsigned int wanted = lists * batch, got = 0, calls = 0;
	uint64_t began = now_ns(), deadline = began + PATIENCE * 1000000000ull;
	int n, i;

	while (got < wanted) {
		n = ibv_poll_cq(p->rdma.send_cq, batch, wc);
		if (n < 0)
			die("cannot poll the CQ");
		for (i = 0; i < n; i++)
			if (wc[i].status)
				die("a work request ended with: %s",
				    ibv_wc_status_str(wc[i].status));
		got += n;
		calls++;
		if (!n && now_ns() > deadline)
			die("no completion within %d s", PATIENCE);
	}
	*ns = now_ns() - began;
	return calls == lists;
}

/* One sample of each, in ns a work request. False: completions do not come in time. */
static bool sample_post(struct post *p, unsigned int batch, double *posted, double *polled,
			uint64_t *operations)
{
	unsigned int lists = p->rdma.depth / batch;
	uint64_t post_ns = 0, poll_ns = 0, ns, polls = 0, posts = 0;

	do {
		post_ns += post_lists(p, lists);
		posts += lists * batch;
		usleep(p->wait);
		if (poll_lists(p, lists, batch, &ns)) {
			poll_ns += ns;
			polls += lists * batch;
		} else {
			p->wait *= 2;
			if (p->wait > LONGEST_WAIT)
				return false;
		}
	} while (!polls || post_ns + poll_ns < settings.sample_ns);
	*posted = (double)post_ns / posts;
	*polled = (double)poll_ns / polls;
	*operations = posts;
	return true;
}

static void measure_list(struct post *p, uint32_t size, unsigned int flags, const char *name)
{
	struct samples posted = { 0 }, polled = { 0 };
	double post_ns, poll_ns;
	uint64_t operations = 0;
	unsigned int batch, r;

	for (batch = 1; batch <= LARGEST_BATCH; batch *= settings.quick ? 4 : 2) {
		if (batch > p->rdma.depth)
			break;
		fill_list(p, batch, size, flags);
		for (r = 0; r < settings.repeats; r++) {
			if (!sample_post(p, batch, &post_ns, &poll_ns, &operations)) {
				print_none("post", name, "completions take too long");
				return;
			}
			sample_add(&posted, post_ns);
			sample_add(&polled, poll_ns);
		}
		print_row(&posted, "post", name, batch, "ns", operations);
		print_row(&polled, "poll", name, batch, "ns", operations);
	}
}

void measure_post(const char *device, int gid_index)
{
	struct post p = { .wait = FIRST_WAIT };
	struct rdma_address address;

	rdma_open(&p.rdma, device, gid_index, DEPTH);
	rdma_address(&p.rdma, &address);
	rdma_connect(&p.rdma, &address);
	if (p.rdma.max_inline >= 8)
		measure_list(&p, 8, IBV_SEND_INLINE, "WRITE of 8 B, inline");
	else
		print_none("post", "WRITE of 8 B, inline", "the device has no inline data");
	measure_list(&p, 8, 0, "WRITE of 8 B");
	rdma_close(&p.rdma);
}

static struct ibv_mr *reg(struct rdma *r, void *region, size_t size)
{
	return ibv_reg_mr(r->pd, region, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ);
}

static bool measure_region(struct rdma *r, char *region, size_t size)
{
	struct samples registered = { 0 }, deregistered = { 0 };
	uint64_t reg_ns, dereg_ns, began, count = 0;
	struct ibv_mr *mr;
	unsigned int i;

	for (i = 0; i < settings.repeats; i++) {
		reg_ns = dereg_ns = 0;
		count = 0;
		do {
			began = now_ns();
			mr = reg(r, region, size);
			reg_ns += now_ns() - began;
			if (!mr)
				return false;
			began = now_ns();
			if (ibv_dereg_mr(mr))
				die("cannot deregister memory: %s", strerror(errno));
			dereg_ns += now_ns() - began;
			count++;
		} while (reg_ns + dereg_ns < settings.sample_ns);
		sample_add(&registered, reg_ns / 1000.0 / count);
		sample_add(&deregistered, dereg_ns / 1000.0 / count);
	}
	print_row(&registered, "registration", "ibv_reg_mr", size, "us", count);
	print_row(&deregistered, "registration", "ibv_dereg_mr", size, "us", count);
	return true;
}

void measure_registration(const char *device, int gid_index)
{
	char *region = aligned_alloc(4096, LARGEST_REGION);
	struct rdma r;
	char reason[128];
	size_t size;

	if (!region)
		die("no memory");
	memset(region, 1, LARGEST_REGION);
	rdma_open(&r, device, gid_index, 16);
	for (size = 4096; size <= LARGEST_REGION; size *= settings.quick ? 16 : 4) {
		if (measure_region(&r, region, size))
			continue;
		snprintf(reason, sizeof(reason), "from %zu KiB on: %s (see ulimit -l)",
			 size >> 10, strerror(errno));
		print_none("registration", "ibv_reg_mr", reason);
		break;
	}
	rdma_close(&r);
	free(region);
}
