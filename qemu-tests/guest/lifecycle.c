// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Objects come and go: by thousands, at their largest, from many threads, in processes
 * that fork or are killed in the middle of traffic; and what the device says it can do,
 * it can.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define ORDINARY_UID	1000
#define MEMLOCK		(8u << 20)

/* --------------------------------------------------------------------------- limits */

static void test_limits(const void *arg)
{
	const char *coherent = getenv("COHERENT");
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr device;
	struct ibv_port_attr port;

	(void)arg;
	need_ok(ibv_query_device(ctx, &device));
	need(device.max_qp >= 16384);
	need(device.max_qp_wr >= 16384);
	/* On a host that is not coherent n may become 2n + 1 of the device's. */
	need(device.max_sge >= (coherent && !strcmp(coherent, "no") ? 7 : 16));
	need(device.max_cq >= 16384);
	need(device.max_cqe >= 16384);
	need(device.max_mr >= 262144);
	need(device.max_mr_size >= 64ull << 30);
	need(device.max_qp_rd_atom >= 1 && device.max_qp_init_rd_atom >= 1);
	need(device.max_pkeys == 1);
	need(device.phys_port_cnt == 1);
	need(device.node_guid);
	need(device.fw_ver[0]);
	need_ok(ibv_query_port(ctx, 1, &port));
	need_eq(port.state, IBV_PORT_ACTIVE);
	need_eq(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	need(port.max_msg_sz >= 1u << 31);
	need(port.gid_tbl_len >= 1);
	need(port.active_mtu <= port.max_mtu);
	need(ibv_query_port(ctx, 0, &port));
	need(ibv_query_port(ctx, 2, &port));
	need_ok(ibv_close_device(ctx));
}

/* A QP at every limit at once, filled to the brim, twice. */
static void test_largest_qp(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_device_attr device;
	struct ibv_sge sge[64];
	struct ibv_send_wr wr;
	uint32_t i, lap, got, depth;
	struct ibv_wc wc[16];
	struct rig rig;
	int j, count;

	(void)arg;
	rig_create(&rig, &attr);
	need_ok(ibv_query_device(rig.ctx, &device));
	rig_destroy(&rig);
	need(device.max_sge <= 64);

	attr.send_wr = attr.recv_wr = depth = device.max_qp_wr;
	attr.send_sge = attr.recv_sge = device.max_sge;
	attr.inline_bytes = 128;
	attr.cqe = 2 * device.max_qp_wr < device.max_cqe ? 2 * device.max_qp_wr : device.max_cqe;
	rig_connect_new(&rig, &attr);
	for (lap = 0; lap < 2; lap++) {
		for (j = 0; j < device.max_sge; j++)
			sge[j] = region_sge(&rig.b.mem, 128 * j, 8);
		for (i = 0; i < depth; i++)
			post_recv(rig.b.qp, i, sge, device.max_sge);
		for (j = 0; j < device.max_sge; j++)
			sge[j] = region_sge(&rig.a.mem, 128 * j, 8);
		for (i = 0; i < depth; i++) {
			wr = send_wr(i, IBV_WR_SEND, sge, device.max_sge);
			if (i % 2)
				wr.send_flags |= IBV_SEND_INLINE;
			post_send(rig.a.qp, &wr);
		}
		for (got = 0; got < depth; got++)
			need_wc(rig.a.cq, got, IBV_WC_SUCCESS);
		for (got = 0; got < depth; got += count) {
			count = ibv_poll_cq(rig.b.cq, 16, wc);
			for (j = 0; j < count; j++) {
				need_eq(wc[j].wr_id, got + j);
				need_eq(wc[j].status, IBV_WC_SUCCESS);
				need_eq(wc[j].byte_len, 8 * device.max_sge);
			}
		}
	}
	for (j = 0; j < device.max_sge; j++)
		need(!memcmp(rig.a.mem.addr + 128 * j, rig.b.mem.addr + 128 * j, 8));
	rig_destroy(&rig);
}

static void test_largest_cq(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr device;
	struct ibv_cq *cq;

	(void)arg;
	need_ok(ibv_query_device(ctx, &device));
	cq = need_ptr(ibv_create_cq(ctx, device.max_cqe, NULL, NULL, 0));
	need(cq->cqe >= device.max_cqe);
	need_ok(ibv_destroy_cq(cq));
	need_ok(ibv_close_device(ctx));
}

/* The last byte of a large region is as good as the first. */
static void test_large_mr(const void *arg)
{
	static const size_t sizes[] = { 1 << 20, (2 << 20) + 4096, 64 << 20, (256 << 20) + 12288 };
	struct rig_attr attr = rig_defaults();
	struct region large;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	size_t i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		region_create(&large, rig.b.pd, sizes[i], ACCESS_ALL);
		sge = region_sge(&rig.a.mem, 0, 64);
		wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, 1);
		wr_to(&wr, &large, sizes[i] - 64);
		post_send(rig.a.qp, &wr);
		need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
		need(!memcmp(rig.a.mem.addr, large.addr + sizes[i] - 64, 64));
		wr_to(&wr, &large, 0);
		post_send(rig.a.qp, &wr);
		need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
		need(!memcmp(rig.a.mem.addr, large.addr, 64));
		region_destroy(&large);
	}
	rig_destroy(&rig);
}

/* ------------------------------------------------------------------------- thousands */

struct crowd {
	struct ibv_pd *pd;
	struct ibv_cq **cq;
	struct ibv_qp **qp;
	struct ibv_mr **mr;
	unsigned int count;
	uint8_t *mem;
};

static void crowd_create(struct crowd *crowd, struct ibv_context *ctx)
{
	struct rig_attr attr = rig_defaults();
	unsigned int i, n = crowd->count;

	attr.send_wr = attr.recv_wr = 4;
	attr.send_sge = attr.recv_sge = 1;
	crowd->pd = need_ptr(ibv_alloc_pd(ctx));
	crowd->cq = need_ptr(calloc(n, sizeof(*crowd->cq)));
	crowd->qp = need_ptr(calloc(n, sizeof(*crowd->qp)));
	crowd->mr = need_ptr(calloc(n, sizeof(*crowd->mr)));
	crowd->mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	need(crowd->mem != MAP_FAILED);
	for (i = 0; i < n; i++) {
		crowd->cq[i] = need_ptr(ibv_create_cq(ctx, 4, NULL, NULL, 0));
		crowd->qp[i] = qp_create(crowd->pd, crowd->cq[i], &attr);
		crowd->mr[i] = need_ptr(ibv_reg_mr(crowd->pd, crowd->mem + i * 64 % (1 << 20), 64,
						   ACCESS_ALL));
	}
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void need_distinct(uint32_t *numbers, unsigned int count)
{
	unsigned int i;

	qsort(numbers, count, sizeof(*numbers), compare_u32);
	for (i = 1; i < count; i++)
		need(numbers[i] != numbers[i - 1]);
}

static void crowd_check(const struct crowd *crowd)
{
	uint32_t *numbers = need_ptr(calloc(crowd->count, sizeof(*numbers)));
	unsigned int i;

	for (i = 0; i < crowd->count; i++)
		numbers[i] = crowd->qp[i]->qp_num;
	need_distinct(numbers, crowd->count);
	for (i = 0; i < crowd->count; i++)
		numbers[i] = crowd->mr[i]->lkey;
	need_distinct(numbers, crowd->count);
	free(numbers);
}

/* In an order that is not that of creation: multiples of a number without common divisor. */
static void crowd_destroy(struct crowd *crowd)
{
	unsigned int i, at, n = crowd->count;

	for (i = 0, at = 0; i < n; i++, at = (at + 7919) % n) {
		need_ok(ibv_destroy_qp(crowd->qp[at]));
		need_ok(ibv_destroy_cq(crowd->cq[at]));
		need_ok(ibv_dereg_mr(crowd->mr[at]));
	}
	need_ok(ibv_dealloc_pd(crowd->pd));
	free(crowd->cq);
	free(crowd->qp);
	free(crowd->mr);
	munmap(crowd->mem, 1 << 20);
}

static void test_thousands(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct crowd crowd = { .count = options.iterations * 10 };

	(void)arg;
	crowd_create(&crowd, ctx);
	crowd_check(&crowd);
	crowd_destroy(&crowd);
	need_ok(ibv_close_device(ctx));
	tap_note("%u QPs, CQs and MRs at once", crowd.count);
}

#define PROMISED_CONTEXTS	8	/* as one may have only so much memory, and so many records */

/*
 * As many QPs and CQs as the device says it has; the netdev may have taken a few. A slow kernel,
 * which other tests are for, makes only a part of them.
 */
static void test_promised(const void *arg)
{
	struct ibv_context *ctx[PROMISED_CONTEXTS];
	struct crowd crowd[PROMISED_CONTEXTS] = {};
	struct ibv_device_attr device;
	unsigned int i, total = 0;

	(void)arg;
	for (i = 0; i < PROMISED_CONTEXTS; i++) {
		ctx[i] = open_device();
		need_ok(ibv_query_device(ctx[i], &device));
		need(device.max_qp >= 16384 && device.max_cq >= 16384);
		crowd[i].count = (device.max_qp / PROMISED_CONTEXTS - 1) / tap_patience();
		total += crowd[i].count;
		crowd_create(&crowd[i], ctx[i]);
	}
	for (i = 0; i < PROMISED_CONTEXTS; i++) {
		crowd_check(&crowd[i]);
		crowd_destroy(&crowd[i]);
		need_ok(ibv_close_device(ctx[i]));
	}
	tap_note("%u QPs, CQs and MRs at once", total);
}

/* A number is not given out again at once: something may still refer to the old one. */
static void test_numbers(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	uint32_t qpn[64], lkey[64];
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct rig rig;
	unsigned int i;

	(void)arg;
	rig_create(&rig, &attr);
	for (i = 0; i < 64; i++) {
		qp = qp_create(rig.a.pd, rig.a.cq, &attr);
		qpn[i] = qp->qp_num;
		qp_destroy(&qp);
		mr = need_ptr(ibv_reg_mr(rig.a.pd, rig.a.mem.addr, 64, ACCESS_ALL));
		lkey[i] = mr->lkey;
		need_ok(ibv_dereg_mr(mr));
		need(qpn[i] > 1 && qpn[i] <= 0xffffff);
	}
	need_distinct(qpn, 64);
	need_distinct(lkey, 64);
	rig_destroy(&rig);
}

/* ----------------------------------------------------------------------------- threads */

#define THREADS	8

struct churn {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	unsigned int rounds;
	unsigned int number;
};

static void *churn(void *arg)
{
	struct churn *self = arg;
	struct rig_attr attr = rig_defaults();
	struct end a, b;
	unsigned int i;

	attr.bytes = 8192;
	for (i = 0; i < self->rounds; i++) {
		struct rig rig = { .ctx = self->ctx };

		memset(&a, 0, sizeof(a));
		memset(&b, 0, sizeof(b));
		end_create(&a, self->pd, &attr, self->number);
		end_create(&b, self->pd, &attr, self->number + 1000);
		ends_connect(&a, &b, &attr);
		rig.a = a;
		rig.b = b;
		rig_message(&rig);
		end_destroy(&a);
		end_destroy(&b);
	}
	return NULL;
}

static void test_threads(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = need_ptr(ibv_alloc_pd(ctx));
	struct churn self[THREADS];
	pthread_t thread[THREADS];
	int i;

	(void)arg;
	for (i = 0; i < THREADS; i++) {
		self[i] = (struct churn) {
			.ctx = ctx, .pd = pd, .number = i, .rounds = options.iterations / 5 + 1,
		};
		need_ok(pthread_create(&thread[i], NULL, churn, &self[i]));
	}
	for (i = 0; i < THREADS; i++)
		need_ok(pthread_join(thread[i], NULL));
	need_ok(ibv_dealloc_pd(pd));
	need_ok(ibv_close_device(ctx));
}

static void *open_and_close(void *arg)
{
	unsigned int i, rounds = *(unsigned int *)arg;
	struct ibv_context *ctx;

	for (i = 0; i < rounds; i++) {
		ctx = open_device();
		need_ok(ibv_dealloc_pd(need_ptr(ibv_alloc_pd(ctx))));
		need_ok(ibv_close_device(ctx));
	}
	return NULL;
}

static void test_open(const void *arg)
{
	unsigned int rounds = options.iterations / 4 + 1;
	pthread_t thread[THREADS];
	int i;

	(void)arg;
	for (i = 0; i < THREADS; i++)
		need_ok(pthread_create(&thread[i], NULL, open_and_close, &rounds));
	for (i = 0; i < THREADS; i++)
		need_ok(pthread_join(thread[i], NULL));
}

/* --------------------------------------------------------------------------- processes */

static void need_child(pid_t pid, int signal)
{
	int status;

	need(waitpid(pid, &status, 0) == pid);
	if (signal)
		need_that(WIFSIGNALED(status) && WTERMSIG(status) == signal,
			  "the child was not ended by signal %d but by status %#x", signal, status);
	else
		need_that(!status, "the child ended with status %#x", status);
}

/* Fork gives the child a copy of the memory, and leaves the parent's with the device. */
static void test_fork(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rig rig;
	pid_t pid;
	int i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	rig_message(&rig);
	for (i = 0; i < 10; i++) {
		pid = fork();
		need(pid >= 0);
		if (!pid) {
			memset(rig.a.mem.addr, 0x11, rig.a.mem.len);
			memset(rig.b.mem.addr, 0x22, rig.b.mem.len);
			_exit(0);
		}
		/* Both before and after the child has ended, and its writes are not seen. */
		fill(rig.a.mem.addr, 4096, i + 100);
		rig_message(&rig);
		need_child(pid, 0);
		rig_message(&rig);
	}
	rig_destroy(&rig);
}

/* Everything is left open, and the kernel cleans up. */
static void test_exit_with_all(const void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 10; i++) {
		pid_t pid = fork();

		need(pid >= 0);
		if (!pid) {
			struct rig_attr attr = rig_defaults();
			struct rig rig;

			attr.events = true;
			rig_connect_new(&rig, &attr);
			rig_message(&rig);
			_exit(0);
		}
		need_child(pid, 0);
	}
	need_device();
}

/* Traffic until killed: WRITEs and READs of 64 KiB, as deep as the queue is. */
static void __attribute__((noreturn)) traffic(void)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr *bad, wr;
	struct ibv_wc wc[16];
	struct ibv_sge sge;
	struct rig rig;
	uint64_t i;

	rig_connect_new(&rig, &attr);
	sge = region_sge(&rig.a.mem, 0, attr.bytes);
	for (i = 0;; i++) {
		wr = send_wr(i, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 1);
		wr_to(&wr, &rig.b.mem, 0);
		while (ibv_post_send(rig.a.qp, &wr, &bad))
			need(ibv_poll_cq(rig.a.cq, 16, wc) >= 0);
	}
}

static void test_killed(const void *arg)
{
	unsigned int i, kills = options.iterations / 2;

	(void)arg;
	for (i = 0; i < kills; i++) {
		pid_t pid = fork();

		need(pid >= 0);
		if (!pid)
			traffic();
		usleep(mix64(options.seed + i) % 100000);
		need_ok(kill(pid, SIGKILL));
		need_child(pid, SIGKILL);
	}
	need_device();
	tap_note("killed %u times", kills);
}

/* -------------------------------------------------------------------- lockable memory */

static void become_ordinary(void)
{
	struct rlimit limit = { .rlim_cur = MEMLOCK, .rlim_max = MEMLOCK };

	need_ok(setrlimit(RLIMIT_MEMLOCK, &limit));
	need_ok(setgid(ORDINARY_UID));
	need_ok(setuid(ORDINARY_UID));
}

/* An ordinary user may lock so much, and gets it back. */
static void test_memlock(const void *arg)
{
	struct ibv_mr *mr, *half;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint8_t *mem;
	int i;

	(void)arg;
	become_ordinary();
	ctx = open_device();
	pd = need_ptr(ibv_alloc_pd(ctx));
	mem = mmap(NULL, 2 * MEMLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(mem != MAP_FAILED);
	need(!ibv_reg_mr(pd, mem, MEMLOCK + 4096, ACCESS_ALL));
	need_eq(errno, ENOMEM);
	for (i = 0; i < 20; i++) {
		half = need_ptr(ibv_reg_mr(pd, mem, MEMLOCK / 2, ACCESS_ALL));
		need(!ibv_reg_mr(pd, mem, MEMLOCK / 2 + 4096, ACCESS_ALL));
		need_eq(errno, ENOMEM);
		mr = need_ptr(ibv_reg_mr(pd, mem + MEMLOCK, MEMLOCK / 2, ACCESS_ALL));
		need_ok(ibv_dereg_mr(mr));
		need_ok(ibv_dereg_mr(half));
	}
	need_ok(ibv_dealloc_pd(pd));
	need_ok(ibv_close_device(ctx));
	need_device();
}

/* QPs until there is no more: an error, and everything goes on. */
static void test_greedy(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16384, .max_recv_wr = 16384 },
	};
	static struct ibv_qp *qp[1000];
	struct ibv_device_attr device;
	unsigned int i, count = 0;
	struct rig rig;

	(void)arg;
	become_ordinary();
	rig_create(&rig, &attr);
	need_ok(ibv_query_device(rig.ctx, &device));
	init.cap.max_send_sge = init.cap.max_recv_sge = device.max_sge;
	init.send_cq = init.recv_cq = rig.a.cq;
	while (count < 1000 && (qp[count] = ibv_create_qp(rig.a.pd, &init)))
		count++;
	need_that(count < 1000, "%u QPs of the largest kind", count);
	need_eq(errno, ENOMEM);
	for (i = 0; i < count; i++)
		qp_destroy(&qp[i]);
	rig_connect(&rig);
	rig_message(&rig);
	rig_destroy(&rig);
	tap_note("%u QPs of the largest kind", count);
}

/* ------------------------------------------------------------------------ resized CQs */

/* So that a CQ of some hundred entries may hold completions of several rings. */
#define RESIZE_WRITES	64

static void post_writes(struct ibv_qp *qp, struct rig *rig, uint64_t id, unsigned int count)
{
	struct ibv_sge sge = region_sge(&rig->a.mem, 0, 8);
	struct ibv_send_wr wr;

	while (count--) {
		wr = send_wr(id++, IBV_WR_RDMA_WRITE, &sge, 1);
		wr_to(&wr, &rig->b.mem, 0);
		post_send(qp, &wr);
	}
}

/* Completions come once each and in order, however often the CQ moves meanwhile. */
static void test_resize_cq(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_device_attr device;
	uint64_t posted = 0, done = 0;
	unsigned int resized = 0, i;
	struct ibv_wc wc[16];
	struct rig rig;
	int count, j;

	(void)arg;
	attr.send_wr = RESIZE_WRITES;
	rig_connect_new(&rig, &attr);
	need_ok(ibv_query_device(rig.ctx, &device));
	need_errno(ibv_resize_cq(rig.a.cq, 0), EINVAL);
	need_errno(ibv_resize_cq(rig.a.cq, -1), EINVAL);
	need_errno(ibv_resize_cq(rig.a.cq, device.max_cqe + 1), EINVAL);
	for (i = 0; i < 20 * options.iterations; i++) {
		const uint64_t random = mix64(options.seed + i);

		count = random % (RESIZE_WRITES - (posted - done) + 1);
		post_writes(rig.a.qp, &rig, posted, count);
		posted += count;
		if (random >> 32 & 1) {
			const int want = 1 + (random >> 40) % 2000;

			need_ok(ibv_resize_cq(rig.a.cq, want));
			need(rig.a.cq->cqe >= want);
			resized++;
		}
		count = ibv_poll_cq(rig.a.cq, 1 + (random >> 16) % 16, wc);
		for (j = 0; j < count; j++, done++) {
			need_eq(wc[j].status, IBV_WC_SUCCESS);
			need_eq(wc[j].wr_id, done);
		}
	}
	for (; done < posted; done++)
		need_wc(rig.a.cq, done, IBV_WC_SUCCESS);
	need_quiet(rig.a.cq, 10);
	rig_destroy(&rig);
	tap_note("%u times, %llu completions", resized, (unsigned long long)posted);
}

/* What a QP has left in the rings goes with it, and what is another's stays. */
static void test_resize_reset(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct end c, d;
	struct ibv_wc wc;
	struct rig rig;
	unsigned int round, i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	c = rig.a;
	d = rig.b;
	c.qp = qp_create(c.pd, c.cq, &attr);
	d.qp = qp_create(d.pd, d.cq, &attr);
	ends_connect(&c, &d, &attr);
	for (round = 0; round < options.iterations; round++) {
		for (i = 0; i < 3; i++) {
			post_writes(rig.a.qp, &rig, 5 * i, 5);
			post_writes(c.qp, &rig, 1000, 3);
			usleep(1000);
			need_ok(ibv_resize_cq(rig.a.cq, 200 << i % 2));
		}
		post_writes(rig.a.qp, &rig, 15, 5);
		/* The other QP's may be earlier. */
		while ((wc = wait_wc(rig.a.cq)).wr_id)
			need(wc.wr_id >= 1000 && wc.status == IBV_WC_SUCCESS);
		need_eq(wc.status, IBV_WC_SUCCESS);
		qp_to_state(c.qp, IBV_QPS_RESET);
		for (i = 1; i < 20; i++)
			need_wc(rig.a.cq, i, IBV_WC_SUCCESS);
		need_quiet(rig.a.cq, 5);
		qp_to_state(d.qp, IBV_QPS_RESET);
		ends_connect(&c, &d, &attr);
	}
	qp_destroy(&c.qp);
	qp_destroy(&d.qp);
	rig_destroy(&rig);
}

struct poller {
	struct rig rig;
	uint64_t count;
	uint64_t seen;			/* written by the thread that polls */
};

static void *poll_all(void *arg)
{
	struct poller *poller = arg;
	uint64_t done;

	for (done = 0; done < poller->count; done++) {
		need_wc(poller->rig.a.cq, done, IBV_WC_SUCCESS);
		__atomic_store_n(&poller->seen, done + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* One thread polls while another resizes. */
static void test_resize_threads(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct poller poller = { .count = 100 * options.iterations };
	uint64_t posted = 0;
	pthread_t thread;

	(void)arg;
	attr.send_wr = RESIZE_WRITES;
	rig_connect_new(&poller.rig, &attr);
	need_ok(pthread_create(&thread, NULL, poll_all, &poller));
	while (posted < poller.count) {
		if (posted - __atomic_load_n(&poller.seen, __ATOMIC_ACQUIRE) < RESIZE_WRITES)
			post_writes(poller.rig.a.qp, &poller.rig, posted++, 1);
		if (mix64(posted) % 16 == 0)
			need_ok(ibv_resize_cq(poller.rig.a.cq, 1 + mix64(~posted) % 1000));
	}
	need_ok(pthread_join(thread, NULL));
	rig_destroy(&poller.rig);
}

/* An arm holds, whichever ring the completion it waits for goes to. */
static void test_resize_armed(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_cq *cq;
	struct rig rig;
	unsigned int i;
	void *context;

	(void)arg;
	attr.events = true;
	rig_connect_new(&rig, &attr);
	for (i = 0; i < options.iterations; i++) {
		need_ok(ibv_req_notify_cq(rig.a.cq, 0));
		need_ok(ibv_resize_cq(rig.a.cq, 128 << i % 3));
		post_writes(rig.a.qp, &rig, i, 1);
		need_ok(ibv_get_cq_event(rig.a.channel, &cq, &context));
		need(cq == rig.a.cq);
		ibv_ack_cq_events(cq, 1);
		need_wc(rig.a.cq, i, IBV_WC_SUCCESS);
	}
	rig_destroy(&rig);
}

/* Where the new ring finds no room in the process, the CQ works on in its old one. */
static void test_resize_no_room(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct rlimit limit, none;
	struct rig rig;
	int cqe;

	(void)arg;
	rig_connect_new(&rig, &attr);
	cqe = rig.a.cq->cqe;
	post_writes(rig.a.qp, &rig, 0, 1);
	need_ok(getrlimit(RLIMIT_AS, &limit));
	none = limit;
	none.rlim_cur = 0;
	need_ok(setrlimit(RLIMIT_AS, &none));
	need_errno(ibv_resize_cq(rig.a.cq, 100 * cqe), ENOMEM);
	need_ok(setrlimit(RLIMIT_AS, &limit));
	need_eq(rig.a.cq->cqe, cqe);
	post_writes(rig.a.qp, &rig, 1, 1);
	need_wc(rig.a.cq, 0, IBV_WC_SUCCESS);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	need_ok(ibv_resize_cq(rig.a.cq, 2 * cqe));
	post_writes(rig.a.qp, &rig, 2, 1);
	need_wc(rig.a.cq, 2, IBV_WC_SUCCESS);
	rig_destroy(&rig);
}

static const struct tap_test tests[] = {
	TEST("limits", test_limits),
	TEST("largest QP", test_largest_qp),
	TEST("largest CQ", test_largest_cq),
	TEST("large MRs", test_large_mr),
	TEST("thousands of objects", test_thousands, .seconds = 600),
	TEST("as many as promised", test_promised, .seconds = 600),
	TEST("numbers are not reused at once", test_numbers),
	TEST("threads create and destroy", test_threads, .seconds = 300),
	TEST("threads open and close", test_open),
	TEST("fork", test_fork),
	TEST("exit with everything open", test_exit_with_all),
	TEST("killed in traffic", test_killed, .seconds = 300),
	TEST("locked memory", test_memlock),
	TEST("QPs until it refuses", test_greedy),
	TEST("resize a CQ", test_resize_cq),
	TEST("resize a CQ, reset a QP", test_resize_reset),
	TEST("resize a CQ while it is polled", test_resize_threads),
	TEST("resize a CQ that is armed", test_resize_armed),
	TEST("resize a CQ, but there is no room", test_resize_no_room),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "Objects come and go.\n"
		      "--iterations are tens of objects, and half as many processes killed.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
