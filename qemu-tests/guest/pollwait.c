// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The NIC dies under traffic: a program that polls and one that waits both learn of it
 * within 5 s, by failed completions, and everything they hold can be destroyed.
 *
 * Makes the file given by --ready once all traffic runs; kill the NIC then.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

#define PATIENCE_MS	5000
#define TRAFFIC_US	(100 * 1000 * 1000ull)	/* somebody must have killed it by then */

struct runner {
	const char *name;
	bool waits;			/* sleeps for completions */
	bool starved;			/* only receives that nobody sends to */
	struct rig rig;
	pthread_t thread;
	unsigned int done;
	uint64_t alive;			/* when the last good completion came */
	uint64_t told;			/* when the first failed one came */
	enum ibv_wc_status status;
	unsigned int outstanding;
};

static const char *ready_file;
static uint64_t death;			/* when IBV_EVENT_DEVICE_FATAL came */

static void post_one(struct runner *runner)
{
	struct ibv_sge sge = region_sge(&runner->rig.a.mem, 0, 4096);
	struct ibv_send_wr wr = send_wr(runner->done, runner->done & 1 ? IBV_WR_RDMA_READ :
					IBV_WR_RDMA_WRITE, &sge, 1);

	wr_to(&wr, &runner->rig.b.mem, 0);
	post_send(runner->rig.a.qp, &wr);
	runner->outstanding++;
}

static void sleep_for_one(struct runner *runner)
{
	struct ibv_comp_channel *channel = runner->rig.a.channel;
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, 1000) != 1)
		return;
	need_ok(ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
}

static int poll_or_wait(struct runner *runner, struct ibv_wc *wc)
{
	int count = ibv_poll_cq(runner->rig.a.cq, 1, wc);

	if (count || !runner->waits)
		return count;
	need_ok(ibv_req_notify_cq(runner->rig.a.cq, 0));
	count = ibv_poll_cq(runner->rig.a.cq, 1, wc);
	if (!count)
		sleep_for_one(runner);
	return count;
}

/* Until a completion fails; whoever never sees one is told apart by `told`. */
static void *run_traffic(void *arg)
{
	struct runner *runner = arg;
	uint64_t end = now_us() + TRAFFIC_US;
	struct ibv_wc wc;
	int i, count;

	for (i = 0; i < 8; i++) {
		if (runner->starved) {
			post_recv(runner->rig.a.qp, i, NULL, 0);
			runner->outstanding++;
		} else {
			post_one(runner);
		}
	}
	while (now_us() < end) {
		count = poll_or_wait(runner, &wc);
		need_that(count >= 0, "%s: ibv_poll_cq: %d", runner->name, count);
		if (!count)
			continue;
		if (wc.status != IBV_WC_SUCCESS) {
			runner->status = wc.status;
			runner->outstanding--;
			__atomic_store_n(&runner->told, now_us(), __ATOMIC_RELAXED);
			break;
		}
		runner->outstanding--;
		runner->done++;
		__atomic_store_n(&runner->alive, now_us(), __ATOMIC_RELAXED);
		post_one(runner);
	}
	return NULL;
}

static struct runner runners[] = {
	{ .name = "poller" },
	{ .name = "waiter", .waits = true },
	{ .name = "starved poller", .starved = true },
	{ .name = "starved waiter", .starved = true, .waits = true },
};
#define RUNNERS	(sizeof(runners) / sizeof(runners[0]))

static void start(struct runner *runner)
{
	struct rig_attr attr = rig_defaults();

	attr.events = true;
	rig_connect_new(&runner->rig, &attr);
	need_ok(pthread_create(&runner->thread, NULL, run_traffic, runner));
}

static void say_ready(void)
{
	size_t i;
	int fd;

	for (i = 0; i < RUNNERS; i++)
		while (!runners[i].starved &&
		       !__atomic_load_n(&runners[i].alive, __ATOMIC_RELAXED))
			usleep(1000);
	fd = open(ready_file, O_CREAT | O_WRONLY, 0644);
	need(fd >= 0);
	close(fd);
}

static void wait_for_death(struct ibv_context *ctx)
{
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (!death) {
		need_that(poll(&fd, 1, TRAFFIC_US / 1000) == 1, "no event 'device fatal' came");
		need_ok(ibv_get_async_event(ctx, &event));
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			death = now_us();
		ibv_ack_async_event(&event);
	}
}

static uint64_t last_sign_of_life(void)
{
	uint64_t last = 0;
	size_t i;

	for (i = 0; i < RUNNERS; i++)
		if (runners[i].alive > last)
			last = runners[i].alive;
	return last;
}

static void check_runner(const struct runner *runner, uint64_t last)
{
	uint64_t ms = (runner->told - last) / 1000;

	need_that(runner->told, "%s was told nothing", runner->name);
	need_that(runner->status == IBV_WC_WR_FLUSH_ERR, "%s: %s", runner->name,
		  ibv_wc_status_str(runner->status));
	need_that(ms <= PATIENCE_MS, "%s was told after %llu ms", runner->name,
		  (unsigned long long)ms);
	tap_note("%s: %u done, told after %llu ms, %u more outstanding", runner->name,
		 runner->done, (unsigned long long)ms, runner->outstanding);
}

/* Everything outstanding comes back, once, and posting says or flushes. */
static void check_rest(struct runner *runner)
{
	struct ibv_sge sge = region_sge(&runner->rig.a.mem, 0, 64);
	struct ibv_send_wr *bad, wr = send_wr(9999, IBV_WR_SEND, &sge, 1);

	for (; runner->outstanding; runner->outstanding--)
		need_eq(wait_wc(runner->rig.a.cq).status, IBV_WC_WR_FLUSH_ERR);
	need_quiet(runner->rig.a.cq, 20);
	if (!ibv_post_send(runner->rig.a.qp, &wr, &bad))
		need_wc(runner->rig.a.cq, 9999, IBV_WC_WR_FLUSH_ERR);
}

static void test_death(const void *arg)
{
	uint64_t last;
	size_t i;

	(void)arg;
	for (i = 0; i < RUNNERS; i++)
		start(&runners[i]);
	say_ready();
	wait_for_death(runners[0].rig.ctx);
	for (i = 0; i < RUNNERS; i++)
		need_ok(pthread_join(runners[i].thread, NULL));
	last = last_sign_of_life();
	tap_note("device fatal after %llu ms", (unsigned long long)(death - last) / 1000);
	for (i = 0; i < RUNNERS; i++)
		check_runner(&runners[i], last);
	for (i = 0; i < RUNNERS; i++)
		check_rest(&runners[i]);
	/* The device is gone for new objects, and lets go of the old ones. */
	need(!ibv_create_cq(runners[0].rig.ctx, 16, NULL, NULL, 0));
	for (i = 0; i < RUNNERS; i++)
		rig_destroy(&runners[i].rig);
}

static const struct tap_test tests[] = {
	TEST("death under traffic", test_death, .seconds = 150),
};

int main(int argc, char **argv)
{
	/* Ahead of the options that all programs have. */
	if (argc < 3 || strcmp(argv[1], "--ready")) {
		fprintf(stderr, "usage: %s --ready FILE [OPTION]...\n", argv[0]);
		return 2;
	}
	ready_file = argv[2];
	argv[2] = argv[0];
	options_parse(argc - 2, argv + 2, "The NIC dies under traffic, and programs learn of it.");
	return tap_run(tests, 1, NULL, 0);
}
