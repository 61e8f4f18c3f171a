// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Completion events: one for each arm, for the right kind of completion, on the right
 * channel, and none is ever lost.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

#define EVENT_MS	10000
#define QUIET_MS	100

static bool event_waits(struct ibv_comp_channel *channel, int ms)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

/* One event of @cq arrives; it is acknowledged. */
static void need_comp_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct ibv_cq *got;
	void *context;

	need_that(event_waits(channel, EVENT_MS), "no completion event came");
	need_ok(ibv_get_cq_event(channel, &got, &context));
	need(got == cq && context == cq->cq_context);
	ibv_ack_cq_events(got, 1);
}

static void need_no_event(struct ibv_comp_channel *channel)
{
	need_that(!event_waits(channel, QUIET_MS), "an event that nobody asked for");
}

static void arm(struct ibv_cq *cq, bool solicited_only)
{
	need_ok(ibv_req_notify_cq(cq, solicited_only));
}

/* A message from a to b; what becomes of it the caller looks at. */
static void send_flags(struct rig *rig, uint64_t id, unsigned int flags)
{
	struct ibv_sge sge = region_sge(&rig->a.mem, 0, 64);
	struct ibv_send_wr wr = send_wr(id, IBV_WR_SEND, &sge, 1);

	wr.send_flags = flags;
	post_send(rig->a.qp, &wr);
}

static void receive(struct rig *rig, uint64_t id)
{
	struct ibv_sge sge = region_sge(&rig->b.mem, 0, 64);

	post_recv(rig->b.qp, id, &sge, 1);
}

static void rig_with_events(struct rig *rig)
{
	struct rig_attr attr = rig_defaults();

	attr.events = true;
	rig_connect_new(rig, &attr);
}

static void test_one_for_each_arm(const void *arg)
{
	struct rig rig;
	int i;

	(void)arg;
	rig_with_events(&rig);
	for (i = 0; i < 100; i++) {
		receive(&rig, 2 * i);
		receive(&rig, 2 * i + 1);
		arm(rig.b.cq, false);
		send_flags(&rig, 2 * i, IBV_SEND_SIGNALED);
		need_comp_event(rig.b.channel, rig.b.cq);
		need_wc(rig.b.cq, 2 * i, IBV_WC_SUCCESS);
		need_wc(rig.a.cq, 2 * i, IBV_WC_SUCCESS);
		/* Not armed again. */
		send_flags(&rig, 2 * i + 1, IBV_SEND_SIGNALED);
		need_wc(rig.b.cq, 2 * i + 1, IBV_WC_SUCCESS);
		need_wc(rig.a.cq, 2 * i + 1, IBV_WC_SUCCESS);
		if (i % 20 == 0)
			need_no_event(rig.b.channel);
	}
	need_no_event(rig.b.channel);
	need_no_event(rig.a.channel);
	rig_destroy(&rig);
}

/* The arm carries how far the program has polled, so what it has not seen counts. */
static void test_completed_before_arm(const void *arg)
{
	struct rig rig;
	int i;

	(void)arg;
	rig_with_events(&rig);
	for (i = 0; i < 20; i++) {
		receive(&rig, i);
		send_flags(&rig, i, IBV_SEND_SIGNALED);
		need_wc(rig.a.cq, i, IBV_WC_SUCCESS);	/* so b's is there, unseen */
		arm(rig.b.cq, false);
		need_comp_event(rig.b.channel, rig.b.cq);
		need_wc(rig.b.cq, i, IBV_WC_SUCCESS);
	}
	/* What has been polled does not. */
	arm(rig.b.cq, false);
	need_no_event(rig.b.channel);
	receive(&rig, 1);
	send_flags(&rig, 1, IBV_SEND_SIGNALED);
	need_comp_event(rig.b.channel, rig.b.cq);
	rig_destroy(&rig);
}

static void test_solicited(const void *arg)
{
	struct rig rig;
	int i;

	(void)arg;
	rig_with_events(&rig);
	for (i = 0; i < 4; i++)
		receive(&rig, i);
	arm(rig.b.cq, true);
	send_flags(&rig, 0, IBV_SEND_SIGNALED);
	need_wc(rig.a.cq, 0, IBV_WC_SUCCESS);
	need_no_event(rig.b.channel);
	send_flags(&rig, 1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	need_comp_event(rig.b.channel, rig.b.cq);

	/* "Solicited only" does not take back "any". */
	need_wc(rig.b.cq, 0, IBV_WC_SUCCESS);
	need_wc(rig.b.cq, 1, IBV_WC_SUCCESS);
	arm(rig.b.cq, false);
	arm(rig.b.cq, true);
	send_flags(&rig, 2, IBV_SEND_SIGNALED);
	need_comp_event(rig.b.channel, rig.b.cq);
	need_wc(rig.b.cq, 2, IBV_WC_SUCCESS);

	/* A failure is always of interest. */
	arm(rig.b.cq, true);
	qp_to_state(rig.b.qp, IBV_QPS_ERR);
	need_comp_event(rig.b.channel, rig.b.cq);
	need_wc(rig.b.cq, 3, IBV_WC_WR_FLUSH_ERR);
	rig_destroy(&rig);
}

static void test_unsignalled(const void *arg)
{
	struct rig rig;

	(void)arg;
	rig_with_events(&rig);
	receive(&rig, 0);
	receive(&rig, 1);
	arm(rig.a.cq, false);
	send_flags(&rig, 0, 0);
	need_wc(rig.b.cq, 0, IBV_WC_SUCCESS);
	need_no_event(rig.a.channel);
	send_flags(&rig, 1, IBV_SEND_SIGNALED);
	need_comp_event(rig.a.channel, rig.a.cq);
	need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	rig_destroy(&rig);
}

#define CQS	32

/* Each event names its own CQ, in whatever order they come. */
static void test_shared_channel(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_comp_channel *channel;
	struct end end[CQS] = {}, peer[CQS] = {};
	struct ibv_send_wr wr;
	struct ibv_cq *cq;
	void *context;
	bool seen[CQS] = {};
	struct rig rig;
	uintptr_t i;

	(void)arg;
	attr.bytes = 4096;
	rig_create(&rig, &attr);
	channel = need_ptr(ibv_create_comp_channel(rig.ctx));
	for (i = 0; i < CQS; i++) {
		end_create(&end[i], rig.a.pd, &attr, i);
		end_create(&peer[i], rig.a.pd, &attr, i + 100);
		/* Its CQ is to be one on the channel. */
		qp_destroy(&end[i].qp);
		need_ok(ibv_destroy_cq(end[i].cq));
		end[i].cq = need_ptr(ibv_create_cq(rig.ctx, 16, (void *)i, channel,
						   i % rig.ctx->num_comp_vectors));
		end[i].qp = qp_create(end[i].pd, end[i].cq, &attr);
		ends_connect(&end[i], &peer[i], &attr);
		arm(end[i].cq, false);
	}
	for (i = 0; i < CQS; i++) {
		post_recv(peer[i].qp, i, NULL, 0);
		wr = send_wr(i, IBV_WR_SEND, NULL, 0);
		post_send(end[i].qp, &wr);
	}
	for (i = 0; i < CQS; i++) {
		need(event_waits(channel, EVENT_MS));
		need_ok(ibv_get_cq_event(channel, &cq, &context));
		need((uintptr_t)context < CQS && end[(uintptr_t)context].cq == cq);
		need(!seen[(uintptr_t)context]);
		seen[(uintptr_t)context] = true;
		need_wc(cq, (uintptr_t)context, IBV_WC_SUCCESS);
		ibv_ack_cq_events(cq, 1);
	}
	need_no_event(channel);
	for (i = 0; i < CQS; i++) {
		end_destroy(&end[i]);
		end_destroy(&peer[i]);
	}
	need_ok(ibv_destroy_comp_channel(channel));
	rig_destroy(&rig);
}

static void test_vectors(const void *arg)
{
	struct ibv_context *ctx = open_device();
	struct rig_attr attr = rig_defaults();
	int vector, vectors = ctx->num_comp_vectors;
	struct rig rig;

	(void)arg;
	need_ok(ibv_close_device(ctx));
	need(vectors >= 1);
	attr.events = true;
	for (vector = 0; vector < vectors; vector++) {
		rig_create(&rig, &attr);
		qp_destroy(&rig.b.qp);
		need_ok(ibv_destroy_cq(rig.b.cq));
		rig.b.cq = need_ptr(ibv_create_cq(rig.ctx, 16, NULL, rig.b.channel, vector));
		rig.b.qp = qp_create(rig.b.pd, rig.b.cq, &attr);
		rig_connect(&rig);
		receive(&rig, 1);
		arm(rig.b.cq, false);
		send_flags(&rig, 2, IBV_SEND_SIGNALED);
		need_comp_event(rig.b.channel, rig.b.cq);
		need_wc(rig.b.cq, 1, IBV_WC_SUCCESS);
		rig_destroy(&rig);
	}
	tap_note("%d completion vectors", vectors);
}

/* ------------------------------------------------------ destruction waits for the program */

static void *destroy_cq(void *cq)
{
	return (void *)(intptr_t)ibv_destroy_cq(cq);
}

static void test_unacknowledged(const void *arg)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *context, *result;
	struct rig rig;

	(void)arg;
	rig_with_events(&rig);
	receive(&rig, 1);
	arm(rig.b.cq, false);
	send_flags(&rig, 2, IBV_SEND_SIGNALED);
	need(event_waits(rig.b.channel, EVENT_MS));
	need_ok(ibv_get_cq_event(rig.b.channel, &cq, &context));
	qp_destroy(&rig.b.qp);
	need_ok(pthread_create(&thread, NULL, destroy_cq, rig.b.cq));
	usleep(100000);
	need(pthread_tryjoin_np(thread, &result) == EBUSY);
	ibv_ack_cq_events(cq, 1);
	need_ok(pthread_join(thread, &result));
	need_eq((intptr_t)result, 0);
	rig.b.cq = NULL;
	rig_destroy(&rig);
}

/* An event that nobody fetched goes with its CQ. */
static void test_unfetched(const void *arg)
{
	struct rig rig;

	(void)arg;
	rig_with_events(&rig);
	receive(&rig, 1);
	arm(rig.b.cq, false);
	send_flags(&rig, 2, IBV_SEND_SIGNALED);
	need(event_waits(rig.b.channel, EVENT_MS));
	qp_destroy(&rig.b.qp);
	need_ok(ibv_destroy_cq(rig.b.cq));
	rig.b.cq = NULL;
	need_no_event(rig.b.channel);
	rig_destroy(&rig);
}

/* -------------------------------------------------------------------- no wake-up is lost */

struct player {
	struct end *end;
	uint64_t rng;
	unsigned int rounds;
	bool serves;
};

/* Long and short ones: the windows between poll, arm and sleep are narrow. */
static void linger(struct player *player)
{
	volatile unsigned int i, spins;

	player->rng = mix64(player->rng + 1);
	spins = player->rng % 4 ? player->rng % 64 : player->rng % 20000;
	for (i = 0; i < spins; i++)
		;
}

static bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int count = ibv_poll_cq(cq, 1, wc);

	need_that(count >= 0, "ibv_poll_cq: %d", count);
	if (count)
		need_eq(wc->status, IBV_WC_SUCCESS);
	return count;
}

/* As every program that sleeps does it: poll, arm, poll again, sleep. */
static void wait_one(struct player *player, struct ibv_wc *wc)
{
	struct end *end = player->end;

	while (!poll_one(end->cq, wc)) {
		linger(player);
		arm(end->cq, false);
		linger(player);
		if (poll_one(end->cq, wc))
			return;
		linger(player);
		need_comp_event(end->channel, end->cq);
		linger(player);
	}
}

static void hit(struct player *player, unsigned int round)
{
	struct ibv_sge sge = region_sge(&player->end->mem, 0, 8);
	struct ibv_send_wr wr = send_wr(round, IBV_WR_SEND, &sge, 1);

	/* Now and then signalled, so that the queue empties. */
	wr.send_flags = round % 16 ? 0 : IBV_SEND_SIGNALED;
	post_send(player->end->qp, &wr);
}

static void *play(void *arg)
{
	struct player *player = arg;
	struct ibv_sge sge = region_sge(&player->end->mem, 64, 8);
	unsigned int round = 0;
	struct ibv_wc wc;

	if (player->serves)
		hit(player, 0);
	while (round < player->rounds) {
		wait_one(player, &wc);
		if (wc.opcode != IBV_WC_RECV)
			continue;
		post_recv(player->end->qp, 0, &sge, 1);
		linger(player);
		round++;
		if (!player->serves || round < player->rounds)
			hit(player, round);
	}
	return NULL;
}

static void test_ping_pong(const void *arg)
{
	struct player a, b;
	struct ibv_sge sge;
	pthread_t thread;
	struct rig rig;
	int i;

	(void)arg;
	rig_with_events(&rig);
	for (i = 0; i < 4; i++) {
		sge = region_sge(&rig.a.mem, 64, 8);
		post_recv(rig.a.qp, 0, &sge, 1);
		sge = region_sge(&rig.b.mem, 64, 8);
		post_recv(rig.b.qp, 0, &sge, 1);
	}
	a = (struct player) {
		.end = &rig.a, .rng = options.seed, .rounds = options.iterations * 100,
		.serves = true,
	};
	b = a;
	b.end = &rig.b;
	b.rng = options.seed + 1000;
	b.serves = false;
	need_ok(pthread_create(&thread, NULL, play, &b));
	play(&a);
	need_ok(pthread_join(thread, NULL));
	tap_note("%u rounds", a.rounds);
	rig_destroy(&rig);
}

/* ---------------------------------------------------------------- one CQ, many threads */

#define THREADS		4
#define MESSAGES	2000

struct shared_cq {
	struct ibv_cq *cq;
	unsigned int seen[MESSAGES];
	unsigned int total;
};

static void *poll_shared(void *arg)
{
	struct shared_cq *shared = arg;
	struct ibv_wc wc[8];
	int i, count;

	while (__atomic_load_n(&shared->total, __ATOMIC_RELAXED) < MESSAGES) {
		count = ibv_poll_cq(shared->cq, 1 + (uintptr_t)&wc / 64 % 8, wc);
		need(count >= 0);
		for (i = 0; i < count; i++) {
			need_eq(wc[i].status, IBV_WC_SUCCESS);
			need(wc[i].wr_id < MESSAGES);
			__atomic_add_fetch(&shared->seen[wc[i].wr_id], 1, __ATOMIC_RELAXED);
			__atomic_add_fetch(&shared->total, 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

/* Each completion goes to one thread. */
static void test_threads_poll(const void *arg)
{
	static struct shared_cq shared;
	struct rig_attr attr = rig_defaults();
	pthread_t thread[THREADS];
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct rig rig;
	int i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	shared.cq = rig.a.cq;
	for (i = 0; i < THREADS; i++)
		need_ok(pthread_create(&thread[i], NULL, poll_shared, &shared));
	sge = region_sge(&rig.a.mem, 0, 8);
	for (i = 0; i < MESSAGES;) {
		wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, 1);
		wr_to(&wr, &rig.b.mem, 0);
		if (!ibv_post_send(rig.a.qp, &wr, &bad))
			i++;
	}
	for (i = 0; i < THREADS; i++)
		need_ok(pthread_join(thread[i], NULL));
	for (i = 0; i < MESSAGES; i++)
		need_eq(shared.seen[i], 1);
	rig_destroy(&rig);
}

struct poster {
	struct rig *rig;
	unsigned int first;
};

static void *post_shared(void *arg)
{
	struct poster *poster = arg;
	struct ibv_sge sge = region_sge(&poster->rig->a.mem, 0, 8);
	struct ibv_send_wr *bad, wr;
	unsigned int i;

	for (i = poster->first; i < MESSAGES;) {
		wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, 1);
		wr_to(&wr, &poster->rig->b.mem, 0);
		if (!ibv_post_send(poster->rig->a.qp, &wr, &bad))
			i += THREADS;
	}
	return NULL;
}

/* Many threads post to one QP, and each request is done once. */
static void test_threads_post(const void *arg)
{
	static struct shared_cq shared;
	struct rig_attr attr = rig_defaults();
	struct poster poster[THREADS];
	pthread_t thread[THREADS];
	struct rig rig;
	int i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	shared.cq = rig.a.cq;
	for (i = 0; i < THREADS; i++) {
		poster[i] = (struct poster) { .rig = &rig, .first = i };
		need_ok(pthread_create(&thread[i], NULL, post_shared, &poster[i]));
	}
	poll_shared(&shared);
	for (i = 0; i < THREADS; i++)
		need_ok(pthread_join(thread[i], NULL));
	for (i = 0; i < MESSAGES; i++)
		need_eq(shared.seen[i], 1);
	rig_destroy(&rig);
}

static const struct tap_test tests[] = {
	TEST("one for each arm", test_one_for_each_arm),
	TEST("completed before the arm", test_completed_before_arm),
	TEST("solicited only", test_solicited),
	TEST("unsignalled", test_unsignalled),
	TEST("many CQs on a channel", test_shared_channel),
	TEST("every vector", test_vectors),
	TEST("not acknowledged", test_unacknowledged),
	TEST("not fetched", test_unfetched),
	TEST("no wake-up is lost", test_ping_pong, .seconds = 600),
	TEST("threads poll one CQ", test_threads_poll),
	TEST("threads post to one QP", test_threads_post),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "Completion events come when they should, and are never lost.\n"
		      "--iterations are hundreds of rounds of the ping-pong.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
