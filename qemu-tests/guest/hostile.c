// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program may do what it likes with all that it can map, write and call: it harms
 * itself at most.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <ferry-abi.h>

#include "rig.h"

#define PAGE	4096ul

static uint64_t next_random(uint64_t *rng)
{
	*rng += 0x9e3779b97f4a7c15ull;
	return mix64(*rng);
}

/* ------------------------------------------------------------- what this process has mapped */

#define MAX_MAPS	256

struct map {
	unsigned long start;
	unsigned long len;
	unsigned long offset;		/* in the device's file */
	bool readable;
	bool writable;
};

static int find_maps(struct map *maps)
{
	FILE *file = need_ptr(fopen("/proc/self/maps", "r"));
	char line[512], perm[8];
	unsigned long end;
	int count = 0;

	while (fgets(line, sizeof(line), file) && count < MAX_MAPS) {
		struct map *map = &maps[count];

		if (!strstr(line, "/dev/infiniband/uverbs") ||
		    sscanf(line, "%lx-%lx %7s %lx", &map->start, &end, perm, &map->offset) != 4)
			continue;
		map->len = end - map->start;
		map->readable = perm[0] == 'r';
		map->writable = perm[1] == 'w';
		count++;
	}
	fclose(file);
	return count;
}

static void need_no_map(int fd, size_t len, int prot, int flags, unsigned long offset,
			const char *what)
{
	void *mem = mmap(NULL, len, prot, flags, fd, offset);

	need_that(mem == MAP_FAILED, "mapped %#zx bytes at %#lx although %s", len, offset, what);
}

static int protection(const struct map *map)
{
	return (map->readable ? PROT_READ : 0) | (map->writable ? PROT_WRITE : 0);
}

static void test_map_rules(const void *arg)
{
	static struct map maps[MAX_MAPS];
	struct rig_attr attr = rig_defaults();
	struct rig rig;
	uint64_t rng = options.seed;
	int i, count, fd, own = 0;

	(void)arg;
	rig_create(&rig, &attr);
	fd = rig.ctx->cmd_fd;
	count = find_maps(maps);
	need(count >= 3);
	for (i = 0; i < count; i++) {
		struct map *map = &maps[i];
		void *again;

		/* Neighbours with consecutive offsets look like one. */
		again = mmap(NULL, map->len, protection(map), MAP_SHARED, fd, map->offset);
		if (again == MAP_FAILED)
			continue;
		own++;
		need_ok(munmap(again, map->len));
		need_no_map(fd, map->len + PAGE, protection(map), MAP_SHARED, map->offset,
			    "that is one page too many");
		need_no_map(fd, map->len, protection(map), MAP_PRIVATE, map->offset,
			    "it would be a private copy");
		if (map->len > PAGE)
			need_no_map(fd, PAGE, protection(map), MAP_SHARED, map->offset,
				    "that is a part of it");
		need_no_map(fd, map->len, protection(map) | PROT_EXEC, MAP_SHARED, map->offset,
			    "nothing in it is to be run");
		need(mprotect((void *)map->start, map->len, protection(map) | PROT_EXEC));
		if (!map->writable) {
			need_no_map(fd, map->len, PROT_READ | PROT_WRITE, MAP_SHARED, map->offset,
				    "it may only be read");
			need(mprotect((void *)map->start, map->len, PROT_READ | PROT_WRITE));
		}
	}
	need(own >= 3);
	for (i = 0; i < 1000; i++) {
		unsigned long offset = next_random(&rng) >> (1 + i % 50) & -PAGE;
		int j;

		for (j = 0; j < count; j++)
			if (offset >= maps[j].offset && offset < maps[j].offset + maps[j].len)
				break;
		if (j == count)
			need_no_map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, offset,
				    "nothing of ours is there");
	}
	rig_destroy(&rig);
}

/* A second mapping keeps the pages of a ring, though the queue is gone, and nothing else. */
static void test_ring_after_destroy(const void *arg)
{
	static struct map maps[MAX_MAPS];
	static uint64_t *again[MAX_MAPS];
	struct rig_attr attr = rig_defaults();
	struct rig rig, other;
	int i, fd, count;
	uint8_t *mem;
	size_t j;

	(void)arg;
	rig_connect_new(&rig, &attr);
	fd = dup(rig.ctx->cmd_fd);
	need(fd >= 0);
	rig_message(&rig);
	count = find_maps(maps);
	for (i = 0; i < count; i++) {
		again[i] = mmap(NULL, maps[i].len, protection(&maps[i]), MAP_SHARED, fd,
				maps[i].offset);
		if (again[i] == MAP_FAILED || !maps[i].writable || !maps[i].readable)
			again[i] = NULL;
	}
	rig_destroy(&rig);

	/* New owners for what was freed, if it was freed too early. */
	rig_connect_new(&other, &attr);
	mem = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(mem != MAP_FAILED);
	memset(mem, 0x5a, 64 << 20);
	for (i = 0; i < count; i++)
		for (j = 0; again[i] && j < maps[i].len / 8; j++)
			again[i][j] = 0x1122334455667788ull;
	for (j = 0; j < 64 << 20; j++)
		need_that(mem[j] == 0x5a, "a page was given to two owners");
	rig_message(&other);
	rig_destroy(&other);
	for (i = 0; i < count; i++) {
		/* The record and doorbell pages live as long as the context, rings do not. */
		if (again[i])
			need_ok(munmap(again[i], maps[i].len));
	}
	close(fd);
	need_device();
}

/* Places are given out from the lowest on, so a program knows where its next ring will be. */
struct grabber {
	int fd;
	unsigned long offset;
	bool stop;
};

static void *grab(void *arg)
{
	struct grabber *grabber = arg;

	/* Of a size that nothing has: what is there is looked at, and never mapped. */
	while (!__atomic_load_n(&grabber->stop, __ATOMIC_RELAXED))
		need_no_map(grabber->fd, 2 * PAGE, PROT_READ, MAP_SHARED, grabber->offset,
			    "nothing is of that size");
	return NULL;
}

/* Asks for what a call of its own is just about to share: the call may fail, and no more. */
static void test_map_races(const void *arg)
{
	const int cqe = 8192;
	static struct map maps[MAX_MAPS];
	struct grabber grabber = { .offset = ULONG_MAX };
	struct ibv_context *ctx = open_device();
	unsigned int i, failed = 0;
	struct ibv_cq *cq;
	pthread_t thread;
	int j, count;

	(void)arg;
	cq = need_ptr(ibv_create_cq(ctx, cqe, NULL, NULL, 0));
	count = find_maps(maps);
	for (j = 0; j < count; j++)
		if (maps[j].len > 2 * PAGE && maps[j].offset < grabber.offset)
			grabber.offset = maps[j].offset;
	need(grabber.offset != ULONG_MAX);
	need_ok(ibv_destroy_cq(cq));

	grabber.fd = ctx->cmd_fd;
	need_ok(pthread_create(&thread, NULL, grab, &grabber));
	for (i = 0; i < options.iterations; i++) {
		cq = ibv_create_cq(ctx, cqe, NULL, NULL, 0);
		if (cq)
			need_ok(ibv_destroy_cq(cq));
		else
			failed++;
	}
	__atomic_store_n(&grabber.stop, true, __ATOMIC_RELAXED);
	need_ok(pthread_join(thread, NULL));
	need_ok(ibv_close_device(ctx));
	need_device();
	tap_note("%u of %u calls failed", failed, i);
}

/* ------------------------------------------------------------------------------ vandalism */

static void scribble(const struct map *map, uint64_t *rng)
{
	uint64_t value = next_random(rng), how = next_random(rng);
	volatile uint64_t *at = (uint64_t *)(map->start + how % (map->len / 8) * 8);

	switch (how >> 60 & 3) {
	case 0: *at = value; break;
	case 1: *at = value & 0xff; break;
	case 2: *at ^= 1ull << (value & 63); break;
	/* What looks like a doorbell: some type, a small number, an index that may fit. */
	case 3: *at = value << 60 >> 4 | (value >> 8 & 0x3ff) << 32 | (value >> 32 & 0xff); break;
	}
}

/* Uses its QPs well and breaks something between, until it is killed. */
static void __attribute__((noreturn)) vandal(uint64_t seed)
{
	static struct map maps[MAX_MAPS];
	struct rig_attr attr = rig_defaults();
	uint64_t round, rng = mix64(seed);
	struct ibv_send_wr *bad, wr;
	struct ibv_wc wc[4];
	struct ibv_sge sge;
	struct rig rig;
	int i, count;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig_connect_new(&rig, &attr);
	count = find_maps(maps);
	for (round = 0; round < 200; round++) {
		sge = region_sge(&rig.a.mem, 0, 64);
		for (i = 0; i < 4; i++) {
			wr = send_wr(i, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 1);
			wr_to(&wr, &rig.b.mem, 0);
			ibv_post_send(rig.a.qp, &wr, &bad);
		}
		for (i = 0; i < 20; i++) {
			struct map *map = &maps[next_random(&rng) % count];

			if (map->writable)
				scribble(map, &rng);
		}
		ibv_poll_cq(rig.a.cq, 4, wc);
		ibv_poll_cq(rig.b.cq, 4, wc);
	}
	_exit(0);
}

static void test_vandals(const void *arg)
{
	uint64_t end = now_us() + (options.seconds ? options.seconds : 5) * 1000000ull;
	struct rig_attr attr = rig_defaults();
	unsigned int messages = 0, vandals = 0;
	pid_t pid = 0;
	struct rig rig;

	(void)arg;
	rig_connect_new(&rig, &attr);
	while (now_us() < end) {
		if (!pid) {
			vandals++;
			pid = fork();
			need(pid >= 0);
			if (!pid)
				vandal(options.seed + vandals);
		}
		fill(rig.a.mem.addr, 4096, messages++);
		rig_message(&rig);
		if (waitpid(pid, NULL, WNOHANG) == pid)
			pid = 0;
	}
	if (pid) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	rig_destroy(&rig);
	need_device();
	tap_note("%u vandals, %u good messages meanwhile", vandals, messages);
}

/* ------------------------------------------------------------------- calls into the driver */

/*
 * A command of the write interface: the core's request and response, and behind each
 * what provider and driver say to each other.
 */
struct command {
	const char *name;
	unsigned int number;
	size_t request;
	size_t response;
	void (*prepare)(void *request, const struct rig *rig);
	size_t udata;			/* bytes of a request of the driver's, where it knows one */
};

static void prepare_nothing(void *request, const struct rig *rig)
{
	(void)request;
	(void)rig;
}

static void prepare_cq(void *request, const struct rig *rig)
{
	struct ib_uverbs_create_cq *cmd = request;

	(void)rig;
	cmd->cqe = 16;
	cmd->comp_channel = -1;
}

static void prepare_qp(void *request, const struct rig *rig)
{
	struct ib_uverbs_create_qp *cmd = request;

	cmd->pd_handle = rig->a.pd->handle;
	cmd->send_cq_handle = rig->a.cq->handle;
	cmd->recv_cq_handle = rig->a.cq->handle;
	cmd->max_send_wr = cmd->max_recv_wr = 4;
	cmd->max_send_sge = cmd->max_recv_sge = 1;
	cmd->qp_type = IBV_QPT_RC;
}

static void prepare_mr(void *request, const struct rig *rig)
{
	struct ib_uverbs_reg_mr *cmd = request;

	cmd->start = cmd->hca_va = (uintptr_t)rig->a.mem.addr;
	cmd->length = PAGE;
	cmd->pd_handle = rig->a.pd->handle;
	cmd->access_flags = ACCESS_ALL;
}

static const struct command commands[] = {
	{ "alloc PD", IB_USER_VERBS_CMD_ALLOC_PD, sizeof(struct ib_uverbs_alloc_pd),
	  sizeof(struct ib_uverbs_alloc_pd_resp), prepare_nothing, 0 },
	{ "create CQ", IB_USER_VERBS_CMD_CREATE_CQ, sizeof(struct ib_uverbs_create_cq),
	  sizeof(struct ib_uverbs_create_cq_resp), prepare_cq, 0 },
	{ "create QP", IB_USER_VERBS_CMD_CREATE_QP, sizeof(struct ib_uverbs_create_qp),
	  sizeof(struct ib_uverbs_create_qp_resp), prepare_qp, 0 },
	{ "register MR", IB_USER_VERBS_CMD_REG_MR, sizeof(struct ib_uverbs_reg_mr),
	  sizeof(struct ib_uverbs_reg_mr_resp), prepare_mr, sizeof(struct ferry_reg_mr_req) },
};

#define MAX_EXTRA	512
#define GUARD		0xa5

/* 0 or an errno value. @in and @out are bytes of the driver's share. */
static int say(const struct rig *rig, const struct command *command, size_t in, uint8_t byte,
	       size_t out)
{
	uint8_t request[1024] = {}, response[1024];
	struct ib_uverbs_cmd_hdr *hdr = (void *)request;
	size_t i, total = sizeof(*hdr) + command->request + in;
	uint64_t where = (uintptr_t)response;
	int err = 0;

	memset(response, GUARD, sizeof(response));
	command->prepare(request + sizeof(*hdr), rig);
	/* The address of the response is first in all of them. */
	memcpy(request + sizeof(*hdr), &where, sizeof(where));
	memset(request + sizeof(*hdr) + command->request, byte, in);
	hdr->command = command->number;
	hdr->in_words = total / 4;
	hdr->out_words = (command->response + out) / 4;
	if (write(rig->ctx->cmd_fd, request, total) != (ssize_t)total)
		err = errno;
	for (i = command->response + out; i < sizeof(response); i++)
		need_that(response[i] == GUARD, "%s: response is longer than its %zu bytes",
			  command->name, command->response + out);
	return err;
}

static void test_udata(const void *arg)
{
	static const size_t sizes[] = { 0, 4, 8, 12, 16, 32, 64, 128, 256, MAX_EXTRA };
	struct rig_attr attr = rig_defaults();
	struct rig rig;
	size_t i, j;
	int err;

	(void)arg;
	rig_create(&rig, &attr);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *command = &commands[i];

		for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			/* A newer provider may send more, if it says nothing by it; none sends less. */
			err = say(&rig, command, sizes[j], 0, MAX_EXTRA);
			need_that(sizes[j] && sizes[j] < command->udata ? err == EINVAL : !err,
				  "%s with %zu zero bytes: %s", command->name, sizes[j],
				  tap_error(err));
			err = say(&rig, command, sizes[j], 0xff, MAX_EXTRA);
			need_that(!sizes[j] || err == EINVAL || err == EOPNOTSUPP,
				  "%s with %zu bytes unknown to the driver: %s", command->name,
				  sizes[j], tap_error(err));
			/* An older one takes less, or is told so. */
			err = say(&rig, command, 0, 0, sizes[j]);
			need_that(!err || err == EINVAL || err == ENOSPC,
				  "%s with room for %zu bytes: %s", command->name, sizes[j],
				  tap_error(err));
		}
	}
	/* What those commands made is known to nobody, and goes with the process. */
	need_device();
}

static void fuzz_write(int fd, uint64_t *rng)
{
	static uint8_t sink[65536];
	uint64_t words[128], where = (uintptr_t)sink;
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;
	size_t i, count = 2 + next_random(rng) % 126;

	for (i = 0; i < count; i++)
		words[i] = next_random(rng) >> (next_random(rng) & 63);
	hdr->command = next_random(rng) % 64;
	if (next_random(rng) & 1)
		hdr->command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
	hdr->in_words = next_random(rng) % 8 ? count * 2 : next_random(rng);
	hdr->out_words = next_random(rng) % 256;
	memcpy(&words[1], &where, sizeof(where));
	if (write(fd, words, count * 8) < 0)
		return;
}

static void fuzz_ioctl(int fd, uint64_t *rng)
{
	static uint8_t sink[4096];
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[16];
	} cmd;
	unsigned int i, count = next_random(rng) % 16;

	memset(&cmd, 0, sizeof(cmd));
	cmd.hdr.length = sizeof(cmd.hdr) + count * sizeof(cmd.attrs[0]);
	cmd.hdr.object_id = next_random(rng) % 24;
	cmd.hdr.method_id = next_random(rng) % 10;
	cmd.hdr.num_attrs = count;
	cmd.hdr.driver_id = next_random(rng) % 4 ? 0 : next_random(rng);
	for (i = 0; i < count; i++) {
		cmd.attrs[i].attr_id = next_random(rng) % 2 ? i : 0x1000 + next_random(rng) % 4;
		cmd.attrs[i].len = next_random(rng) % 3 ? 8 * (next_random(rng) % 8) :
				   next_random(rng) % 512;
		cmd.attrs[i].flags = next_random(rng) & UVERBS_ATTR_F_MANDATORY;
		cmd.attrs[i].data = next_random(rng) % 2 ? (uintptr_t)sink :
				    next_random(rng) % 16;
	}
	ioctl(fd, RDMA_VERBS_IOCTL, &cmd);
}

/* What comes of it is the kernel's log, and that the device goes on. */
static void test_fuzz(const void *arg)
{
	unsigned int i, round, rounds = options.iterations / 10 + 1;

	(void)arg;
	for (round = 0; round < rounds; round++) {
		pid_t pid = fork();

		need(pid >= 0);
		if (!pid) {
			uint64_t rng = mix64(options.seed + round);
			struct rig_attr attr = rig_defaults();
			struct rig rig;

			/* Lost commands must not keep the test from its end. */
			alarm(20);
			rig_connect_new(&rig, &attr);
			for (i = 0; i < 500; i++) {
				fuzz_write(rig.ctx->cmd_fd, &rng);
				fuzz_ioctl(rig.ctx->cmd_fd, &rng);
			}
			_exit(0);
		}
		need(waitpid(pid, NULL, 0) == pid);
		need_device();
	}
	tap_note("%u calls of each kind", rounds * 500);
}

static const struct tap_test tests[] = {
	TEST("rules of mapping", test_map_rules),
	TEST("ring after destroy", test_ring_after_destroy),
	TEST("mapping what is just being shared", test_map_races),
	TEST("vandals", test_vandals, .seconds = 600),
	TEST("udata", test_udata),
	TEST("random calls", test_fuzz, .seconds = 600),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "A hostile program harms itself at most.\n"
		      "--seconds are those of vandalism (5), --iterations tens of fuzzed processes.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
