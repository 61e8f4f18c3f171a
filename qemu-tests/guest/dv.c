// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Direct verbs: memory that needs no cache maintenance, MRs without assist, and
 * maintenance by hand. On coherent hosts the same calls do nothing, and are as right.
 */
#include <infiniband/ferrydv.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define BYTES	(3u * 4096 + 1)

/* Whether a program lives on that cleans a line. */
static bool may_clean(void)
{
	static long word;
	int status;
	pid_t pid = fork();

	need(pid >= 0);
	if (!pid) {
#if defined(__riscv)
		/* cbo.clean; the extension need not be known to the assembler. */
		__asm__ volatile(".insn i 0x0f, 2, x0, %0, 1" : : "r"(&word) : "memory");
		_exit(0);
#endif
		_exit(1 + (int)word);
	}
	need(waitpid(pid, &status, 0) == pid);
	need(WIFEXITED(status) || WTERMSIG(status) == SIGILL);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void test_query(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct ferrydv_context_attr attr = {};
	bool coherent;

	(void)arg;
	need(ferrydv_is_supported(ctx->device));
	need_errno(ferrydv_query_context(ctx, &attr, 4), EINVAL);
	need_ok(ferrydv_query_context(ctx, &attr, sizeof(attr)));
	coherent = attr.flags & FERRYDV_CONTEXT_COHERENT;
	need(coherent == !attr.cache_line);
	if (coherent)
		need(!(attr.flags & FERRYDV_CONTEXT_USER_SYNC));
	else
		need_eq(!!(attr.flags & FERRYDV_CONTEXT_USER_SYNC), may_clean());
	tap_note("cache lines of %u bytes%s", attr.cache_line,
		 attr.flags & FERRYDV_CONTEXT_USER_SYNC ? ", user mode maintains them" : "");
	need_ok(ibv_close_device(ctx));
}

/* Work requests and peers reach it, and the other side of a page boundary in it. */
static void test_memory(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ferrydv_memory *memory;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct rig rig;
	size_t i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	memory = need_ptr(ferrydv_alloc_memory(rig.ctx, BYTES));
	need_eq(memory->length, BYTES);
	for (i = 0; i < BYTES; i++)
		need_eq(((uint8_t *)memory->addr)[i], 0);
	need(!ibv_reg_mr(rig.a.pd, memory->addr, BYTES + (1 << 21), ACCESS_ALL));
	mr = need_ptr(ibv_reg_mr(rig.a.pd, memory->addr + 5, BYTES - 5, ACCESS_ALL));

	/* A peer writes into it, and reads from it. */
	sge = region_sge(&rig.b.mem, 0, BYTES - 5);
	wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
	wr.wr.rdma.rkey = mr->rkey;
	post_send(rig.b.qp, &wr);
	need_wc(rig.b.cq, 1, IBV_WC_SUCCESS);
	need(!memcmp(mr->addr, rig.b.mem.addr, BYTES - 5));
	memset(mr->addr + 100, 0x5a, 64);
	need_ok(ferrydv_sync(mr, mr->addr + 100, 64, FERRYDV_SYNC_CLEAN));
	sge = region_sge(&rig.b.mem, 0, 300);
	wr = send_wr(2, IBV_WR_RDMA_READ, &sge, 1);
	wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
	wr.wr.rdma.rkey = mr->rkey;
	post_send(rig.b.qp, &wr);
	need_wc(rig.b.cq, 2, IBV_WC_SUCCESS);
	need(!memcmp(mr->addr, rig.b.mem.addr, 300));

	/* A receive goes there, and a send comes from there. */
	sge = (struct ibv_sge) { .addr = (uintptr_t)mr->addr + 4000, .length = 200, .lkey = mr->lkey };
	post_recv(rig.a.qp, 3, &sge, 1);
	sge = region_sge(&rig.b.mem, 1, 200);
	wr = send_wr(3, IBV_WR_SEND, &sge, 1);
	post_send(rig.b.qp, &wr);
	need_wc(rig.a.cq, 3, IBV_WC_SUCCESS);
	need_wc(rig.b.cq, 3, IBV_WC_SUCCESS);
	need(!memcmp(mr->addr + 4000, rig.b.mem.addr + 1, 200));

	/* An MR keeps its pages. */
	need_ok(ferrydv_free_memory(memory));
	sge = region_sge(&rig.b.mem, 0, 64);
	wr = send_wr(4, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
	wr.wr.rdma.rkey = mr->rkey;
	post_send(rig.b.qp, &wr);
	need_wc(rig.b.cq, 4, IBV_WC_SUCCESS);
	need_ok(ibv_dereg_mr(mr));
	rig_destroy(&rig);
}

/* What peers do to an MR without assist is maintained by the program. */
static void test_sync(const void *arg)
{
	struct ferrydv_context_attr device = {};
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct rig rig;
	int i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	need_ok(ferrydv_query_context(rig.ctx, &device, sizeof(device)));
	need(!ferrydv_reg_mr(rig.a.pd, rig.a.mem.addr, 4096, 0, ACCESS_ALL, 1u << 31));
	mr = need_ptr(ferrydv_reg_mr(rig.a.pd, rig.a.mem.addr, 8192, 4096, ACCESS_ALL,
				     FERRYDV_MR_NO_ASSIST));
	need_errno(ferrydv_sync(mr, rig.a.mem.addr - 1, 1, FERRYDV_SYNC_CLEAN), EINVAL);
	need_errno(ferrydv_sync(mr, rig.a.mem.addr, 8193, FERRYDV_SYNC_CLEAN), EINVAL);
	need_errno(ferrydv_sync(mr, rig.a.mem.addr, 64, 0), EINVAL);
	if (device.cache_line)
		need_errno(ferrydv_sync(mr, rig.a.mem.addr, 1, FERRYDV_SYNC_FLUSH), EINVAL);
	for (i = 0; i < 20; i++) {
		fill(rig.a.mem.addr, 8192, i);
		need_ok(ferrydv_sync(mr, rig.a.mem.addr, 8192, FERRYDV_SYNC_FLUSH));
		sge = region_sge(&rig.b.mem, 0, 4096);
		wr = send_wr(2 * i, IBV_WR_RDMA_READ, &sge, 1);
		wr.wr.rdma.remote_addr = 4096;
		wr.wr.rdma.rkey = mr->rkey;
		post_send(rig.b.qp, &wr);
		need_wc(rig.b.cq, 2 * i, IBV_WC_SUCCESS);
		need(!memcmp(rig.a.mem.addr, rig.b.mem.addr, 4096));
		wr = send_wr(2 * i + 1, IBV_WR_RDMA_WRITE, &sge, 1);
		wr.wr.rdma.remote_addr = 8192;
		wr.wr.rdma.rkey = mr->rkey;
		post_send(rig.b.qp, &wr);
		need_wc(rig.b.cq, 2 * i + 1, IBV_WC_SUCCESS);
		need_ok(ferrydv_sync(mr, rig.a.mem.addr + 4096, 4096, FERRYDV_SYNC_FLUSH));
		need(!memcmp(rig.a.mem.addr + 4096, rig.b.mem.addr, 4096));
	}
	need_ok(ibv_dereg_mr(mr));
	rig_destroy(&rig);
}

/* What shares a line with either end of a receive stays as the program stores it. */
static void test_neighbours(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	uint32_t len;
	uint8_t *to;

	(void)arg;
	rig_connect_new(&rig, &attr);
	to = rig.b.mem.addr;
	for (len = 1; len < 400; len += 7) {
		const uint32_t at = 64 + len % 67;

		memset(to, 1, 1024);
		sge = region_sge(&rig.b.mem, at, len);
		post_recv(rig.b.qp, len, &sge, 1);
		/* Its neighbours are the program's all the while. */
		to[at - 1] = 2;
		to[at + len] = 3;
		sge = region_sge(&rig.a.mem, len, len);
		wr = send_wr(len, IBV_WR_SEND, &sge, 1);
		post_send(rig.a.qp, &wr);
		need_wc(rig.a.cq, len, IBV_WC_SUCCESS);
		to[at - 2] = 4;
		to[at + len + 1] = 5;
		need_wc(rig.b.cq, len, IBV_WC_SUCCESS);
		need(!memcmp(to + at, rig.a.mem.addr + len, len));
		need(to[at - 2] == 4 && to[at - 1] == 2);
		need(to[at + len] == 3 && to[at + len + 1] == 5);
	}
	rig_destroy(&rig);
}

#define MEMLOCK		(8u << 20)

/* An ordinary user may have so much, and gets it back when nothing uses it any more. */
static void test_limit(const void *arg)
{
	struct rlimit limit = { .rlim_cur = MEMLOCK, .rlim_max = MEMLOCK };
	struct ferrydv_memory *memory, *half;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int i;

	(void)arg;
	need_ok(setrlimit(RLIMIT_MEMLOCK, &limit));
	need_ok(setgid(65534));
	need_ok(setuid(65534));
	ctx = open_device();
	pd = need_ptr(ibv_alloc_pd(ctx));
	need(!ferrydv_alloc_memory(ctx, MEMLOCK + 1));
	need_eq(errno, ENOMEM);
	for (i = 0; i < 20; i++) {
		half = need_ptr(ferrydv_alloc_memory(ctx, MEMLOCK / 2));
		memory = need_ptr(ferrydv_alloc_memory(ctx, MEMLOCK / 2));
		need(!ferrydv_alloc_memory(ctx, 1));
		need_eq(errno, ENOMEM);
		/* What is locked already is not locked again; and it stays as long as its MR. */
		mr = need_ptr(ibv_reg_mr(pd, half->addr, MEMLOCK / 2, ACCESS_ALL));
		need_ok(ferrydv_free_memory(memory));
		need_ok(ferrydv_free_memory(half));
		need(!ferrydv_alloc_memory(ctx, MEMLOCK / 2 + 1));
		need_eq(errno, ENOMEM);
		need_ok(ibv_dereg_mr(mr));
	}
	need_ok(ibv_dealloc_pd(pd));
	need_ok(ibv_close_device(ctx));
}

static const struct tap_test tests[] = {
	TEST("query", test_query),
	TEST("memory", test_memory),
	TEST("limit of memory", test_limit),
	TEST("sync", test_sync),
	TEST("neighbours", test_neighbours),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "Direct verbs.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
