// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <endian.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_model.h"
#include "tap.h"

#define MAX_LOSSES	3	/* of one packet: fewer than the retries */
#define TIME_LIMIT	20000000000ull	/* ns of simulated time */
#define TURN_LIMIT	4000000

/* ---- making the world */

static void make_host(struct sim *sim, unsigned int i)
{
	struct sim_host *host = &sim->hosts[i];
	struct host_options options = {
		.seed = rng_next(&sim->rng),
		.index = i,
		.message = i ? rng_chance(&sim->rng, 40) : sim->seed & 1,
		.mixed = rng_chance(&sim->rng, 20),
		.poll = rng_chance(&sim->rng, 80),
	};

	host->sim = sim;
	host->host = host_create(&options);
	host->host->verbose = sim->verbose;
	host->host->budget = 1u << rng_range(&sim->rng, 10, 20);
	host->num_cqs = (unsigned int)rng_range(&sim->rng, 1, SIM_CQS);
	wire_add(&sim->wire, host->host);
}

static void pick_path(struct sim *sim, struct host_path *path)
{
	*path = (struct host_path) {
		.mtu = (uint8_t)rng_range(&sim->rng, 1, 5),
		.ipv6 = rng_chance(&sim->rng, 50),
		.timeout = (uint8_t)rng_range(&sim->rng, 7, 9),
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = (uint8_t)rng_range(&sim->rng, 1, 10),
		.rd_atomic = (uint8_t)rng_range(&sim->rng, 1, 8),
		.access = FERRY_ACCESS_REMOTE_WRITE | FERRY_ACCESS_REMOTE_READ |
			  FERRY_ACCESS_REMOTE_ATOMIC,
		.sl = (uint8_t)rng_below(&sim->rng, 8),
	};
}

/* Every fourth connection begins just before its PSNs wrap. */
static void pick_psns(struct sim *sim, struct host_path *path)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		path->psn[i] = rng_chance(&sim->rng, 25) ?
			       0xfffff0u + (uint32_t)rng_below(&sim->rng, 16) :
			       (uint32_t)rng_below(&sim->rng, 1u << 24);
}

static void side_init(struct sim *sim, struct sim_conn *conn, unsigned int number,
		      struct sim_host *host)
{
	struct sim_side *side = &conn->side[number];

	side->sim = sim;
	side->host = host;
	side->peer = &conn->side[!number];
	side->number = number;
	side->path = &conn->path;
	side->set = (unsigned int)rng_below(&sim->rng, 2);
	side->send_cq = &host->cqs[side->set][rng_below(&sim->rng, host->num_cqs)];
	side->recv_cq = &host->cqs[side->set][rng_below(&sim->rng, host->num_cqs)];
	side->sq_depth = 1u << rng_range(&sim->rng, 1, 6);
	side->rq_depth = 1u << rng_range(&sim->rng, 0, 5);
	side->max_message = sim->big_message / (1u << rng_below(&sim->rng, 3));
	side->recv_seed = rng_next(&sim->rng);
	side->recv_late = rng_chance(&sim->rng, 30);
	sim_queue_init(&side->ops, sizeof(struct sim_op));
	sim_queue_init(&side->recvs, sizeof(struct sim_recv));
	sim_queue_init(&side->expects, sizeof(struct sim_expect));
}

static void make_conn(struct sim *sim, unsigned int i)
{
	struct sim_conn *conn = &sim->conns[i];
	unsigned int a = (unsigned int)rng_below(&sim->rng, sim->num_hosts), b = a;

	/* The first is never local, the second often. */
	conn->local = i && rng_chance(&sim->rng, i == 1 ? 60 : 20);
	while (!conn->local && b == a)
		b = (unsigned int)rng_below(&sim->rng, sim->num_hosts);
	pick_path(sim, &conn->path);
	pick_psns(sim, &conn->path);
	side_init(sim, conn, 0, &sim->hosts[a]);
	side_init(sim, conn, 1, &sim->hosts[b]);
}

static struct sim_side *side_at(struct sim *sim, unsigned int i)
{
	return &sim->conns[i / 2].side[i & 1];
}

/* A CQ has room for all that its queues can hold, and no more than that. */
static unsigned int cq_shift(struct sim *sim, const struct sim_cq *cq)
{
	unsigned int need_entries = 1, shift = 0, i;

	for (i = 0; i < 2 * sim->num_conns; i++) {
		const struct sim_side *side = side_at(sim, i);

		need_entries += (side->send_cq == cq ? side->sq_depth : 0) +
				(side->recv_cq == cq ? side->rq_depth : 0);
	}
	while (1u << shift < need_entries)
		shift++;
	return shift;
}

static void moderate(struct sim *sim, struct sim_cq *cq)
{
	union ferry_admin_sqe cmd = {
		.modify_cq.head.opcode = htole16(FERRY_ADMIN_MODIFY_CQ),
		.modify_cq.cq = htole32(cq->cq->number),
		.modify_cq.count = htole16((uint16_t)rng_below(&sim->rng, 10)),
		.modify_cq.period_us = htole16((uint16_t)rng_below(&sim->rng, 50)),
	};

	need_eq(host_admin(cq->cq->context->host, &cmd, NULL), FERRY_ADMIN_OK);
}

static void make_cqs(struct sim *sim, struct sim_host *host, unsigned int set)
{
	unsigned int i;

	for (i = 0; i < host->num_cqs; i++) {
		struct sim_cq *cq = &host->cqs[set][i];

		cq->cq = host_cq_create(host->context[set], cq_shift(sim, cq));
		need(cq->cq);
		cq->by_event = rng_chance(&sim->rng, 40);
		if (rng_chance(&sim->rng, 30))
			moderate(sim, cq);
	}
}

static uint64_t area_len(struct sim *sim, enum sim_use use)
{
	static const unsigned int messages[SIM_USES] = { 4, 4, 6, 3, 3, 0 };

	/* Gaps between the pieces take room as well. */
	return messages[use] ? messages[use] * (sim->big_message + 150ull) : 8 * 8;
}

/* Areas of the sides lie in one MR, with gaps that nobody may touch. */
static void place_area(struct sim *sim, struct sim_side *side, enum sim_use use, uint64_t *at)
{
	struct sim_area *area = &side->area[use];

	*at += use == SIM_CELLS ? 8 : rng_below(&sim->rng, 100);
	area->base = *at;
	area->len = area_len(sim, use);
	*at += area->len;
	area->mr = &side->host->mrs[side->set][use];
}

static void make_mrs(struct sim *sim, struct sim_host *host, unsigned int set)
{
	unsigned int use, i;

	for (use = 0; use < SIM_USES; use++) {
		uint64_t len = 0;

		for (i = 0; i < 2 * sim->num_conns; i++) {
			struct sim_side *side = side_at(sim, i);

			if (side->host == host && side->set == set)
				place_area(sim, side, (enum sim_use)use, &len);
		}
		if (len)
			sim_mr_create(sim, &host->mrs[set][use], host->pd[set],
				      len + rng_below(&sim->rng, 50), (enum sim_use)use);
	}
}

static void make_qp(struct sim *sim, struct sim_side *side)
{
	struct host_qp_spec spec = {
		.pd = side->host->pd[side->set],
		.send_cq = side->send_cq->cq,
		.recv_cq = side->recv_cq->cq,
		.sq_stride_shift = (unsigned int)rng_range(&sim->rng, 6, 9),
		.rq_stride_shift = (unsigned int)rng_range(&sim->rng, 5, 9),
	};

	while (1u << spec.sq_shift < side->sq_depth)
		spec.sq_shift++;
	while (1u << spec.rq_shift < side->rq_depth)
		spec.rq_shift++;
	side->qp = host_qp_create(&spec);
	need(side->qp);
	/* An atomic's WQE has 48 bytes before its SGE. */
	side->max_sge_send = ((1u << spec.sq_stride_shift) - 32) / 16;
	side->max_sge_recv = ((1u << spec.rq_stride_shift) - 16) / 16;
	if (side->max_sge_send > HOST_SGES)
		side->max_sge_send = HOST_SGES;
	if (side->max_sge_recv > HOST_SGES)
		side->max_sge_recv = HOST_SGES;
}

static void connect_sides(struct sim *sim, struct sim_conn *conn)
{
	unsigned int i;

	(void)sim;
	host_connect(conn->side[0].qp, conn->side[1].qp, &conn->path);
	for (i = 0; i < 2; i++)
		conn->side[i].next_psn = conn->path.psn[i];
}

static void make_objects(struct sim *sim)
{
	unsigned int i, set;

	for (i = 0; i < sim->num_hosts; i++) {
		for (set = 0; set < 2; set++) {
			struct sim_host *host = &sim->hosts[i];

			host->context[set] = host_context_create(host->host, 1 + (i & 1));
			need(host->context[set]);
			host->pd[set] = host_pd_create(host->context[set]);
			need(host->pd[set]);
			make_cqs(sim, host, set);
			make_mrs(sim, host, set);
		}
	}
	for (i = 0; i < 2 * sim->num_conns; i++)
		make_qp(sim, side_at(sim, i));
	for (i = 0; i < sim->num_conns; i++)
		connect_sides(sim, &sim->conns[i]);
}

static void pick_faults(struct sim *sim)
{
	static const unsigned int most[WIRE_FAULTS] = { 12, 12, 20, 10, 10 };
	unsigned int i;

	for (i = 0; i < WIRE_FAULTS; i++) {
		sim->percent[i] = 0;
		if (sim->seed % 4 && rng_chance(&sim->rng, 60))
			sim->percent[i] = (unsigned int)rng_range(&sim->rng, 1, most[i]);
	}
}

/* ---- faults */

static struct sim_conn *conn_of(struct sim *sim, const struct host *to, uint32_t qpn,
				struct sim_side **side)
{
	unsigned int i;

	for (i = 0; i < 2 * sim->num_conns; i++) {
		*side = side_at(sim, i);
		if ((*side)->host->host == to && (*side)->qp->number == qpn)
			return &sim->conns[i / 2];
	}
	need_that(false, "a frame to qp %#x of host %u, which does not exist", qpn, to->index);
}

/* Whether this packet may be lost once more. */
static bool may_lose(struct sim *sim, const struct sim_side *requester, const struct frame *frame)
{
	uint64_t key = (uint64_t)(uintptr_t)(requester - &sim->conns[0].side[0]) * 2 +
		       frame->from_requester;
	uint8_t *losses;

	key = (key << 24 | frame->psn) * 0x9e3779b97f4a7c15ull >> 52;
	losses = &sim->losses[key];
	if (*losses >= MAX_LOSSES)
		return false;
	(*losses)++;
	return true;
}

/* Everything not yet complete from @psn on waits. */
static void mark_rnr(struct sim_side *requester, uint32_t psn)
{
	struct sim_op *first = sim_op_by_psn(requester, psn);
	uint32_t i;

	for (i = 0; first && i < sim_queue_count(&requester->ops); i++) {
		struct sim_op *op = sim_queue_at(&requester->ops, i);

		if ((int32_t)(op->index - first->index) >= 0)
			op->faults |= 1u << SIM_RNR;
	}
}

static unsigned int judge(void *arg, struct host *from, struct host *to, const uint8_t *data,
			  const struct frame *frame)
{
	struct sim *sim = arg;
	struct sim_side *side, *requester;
	struct sim_conn *conn = conn_of(sim, to, frame->dest_qpn, &side);
	unsigned int faults = 0, i;
	struct sim_op *op;

	(void)from;
	(void)data;
	need_that(!conn->local, "a frame of a connection within host %u", to->index);
	need_eq(frame->ipv6, conn->path.ipv6);
	need(frame->payload_len <= 128u << conn->path.mtu);
	if (conn->cut)
		return WIRE_LOSS;
	requester = frame->from_requester ? side->peer : side;
	for (i = 0; i < WIRE_FAULTS; i++) {
		if (rng_chance(&sim->fault_rng, sim->percent[i]))
			faults |= 1u << i;
	}
	if (faults & (WIRE_LOSS | WIRE_CORRUPT) && !may_lose(sim, requester, frame))
		faults &= ~(WIRE_LOSS | WIRE_CORRUPT);
	if (frame->opcode == FRAME_ACK && FRAME_IS_RNR(frame->syndrome))
		mark_rnr(requester, frame->psn);
	op = sim_op_by_psn(requester, frame->psn);
	if (op)
		op->faults |= faults << SIM_LOSS;
	return faults;
}

/* ---- what the programs on the hosts do */

static struct sim_cq *cq_by_number(struct sim_host *host, uint32_t number)
{
	unsigned int set, i;

	for (set = 0; set < 2; set++) {
		for (i = 0; i < host->num_cqs; i++) {
			if (host->cqs[set][i].cq->number == number)
				return &host->cqs[set][i];
		}
	}
	need_that(false, "an event of CQ %u, which does not exist", number);
}

static void cq_arm(struct sim_cq *cq)
{
	host_arm(cq->cq, false);
	cq->armed = true;
}

static void take_event(struct sim *sim, struct sim_host *host, const struct host_event *event)
{
	struct sim_cq *cq;

	switch (event->type) {
	case FERRY_EVENT_COMPLETION:
		cq = cq_by_number(host, event->number);
		need_that(cq->armed, "CQ %u has raised an event unasked", event->number);
		cq->armed = false;
		/* What is left is told by the next event: the arm says how far we are. */
		need_that(sim_poll(sim, host, cq, (unsigned int)rng_range(&sim->rng, 1, 4)),
			  "CQ %u has raised an event for nothing", event->number);
		cq_arm(cq);
		break;
	case FERRY_EVENT_COMM_EST:
	case FERRY_EVENT_QP_REQ_ERR:
	case FERRY_EVENT_QP_ACCESS_ERR:
	case FERRY_EVENT_QP_FATAL:
	case FERRY_EVENT_LAST_WQE:
		break;
	default:
		need_that(false, "event %u of %u", event->type, event->number);
	}
}

static bool take_events(struct sim *sim, struct sim_host *host)
{
	struct host_event event;

	if (host->interrupts == host->host->interrupts[1])
		return false;
	host->interrupts = host->host->interrupts[1];
	while (host_eq_next(host->host, &host->host->eq, &event))
		take_event(sim, host, &event);
	return true;
}

static bool poll_cqs(struct sim *sim, unsigned int percent)
{
	unsigned int i, set, c;
	bool found = false;

	for (i = 0; i < sim->num_hosts; i++) {
		struct sim_host *host = &sim->hosts[i];

		found |= take_events(sim, host);
		for (set = 0; set < 2; set++) {
			for (c = 0; c < host->num_cqs; c++) {
				if (!host->cqs[set][c].by_event && rng_chance(&sim->rng, percent))
					found |= sim_poll(sim, host, &host->cqs[set][c], UINT_MAX);
			}
		}
	}
	return found;
}

static bool post_receives(struct sim *sim, struct sim_side *side)
{
	unsigned int most = side->recv_late || side->broken ?
			    (unsigned int)rng_range(&sim->rng, 1, 3) : 64;
	bool posted = false;

	if ((side->recv_late || side->broken) && sim->wire.now < side->recv_at)
		return false;
	/* Such receives are flushed. */
	if (side->broken && (sim_queue_count(&side->recvs) || !sim_queue_count(&side->peer->ops)))
		return false;
	while (most-- && sim_post_receive(side))
		posted = true;
	if (posted)
		host_ring_recv(side->qp);
	side->recv_at = sim->wire.now + 1 + rng_below(&sim->rng, 40000);
	return posted;
}

static void post_some(struct sim *sim)
{
	struct sim_side *side = side_at(sim, (unsigned int)rng_below(&sim->rng,
								     2 * sim->num_conns));
	unsigned int burst = (unsigned int)rng_range(&sim->rng, 1, 6);

	while (burst-- && sim->to_post && sim_post(side))
		sim->to_post--;
	if (rng_chance(&sim->rng, 80))
		sim_ring(side);
}

/* Where all that is left is not signalled, one more operation completes it. */
static void close_side(struct sim_side *side)
{
	uint32_t i, n = sim_queue_count(&side->ops);

	side->closing = true;
	for (i = 0; i < n; i++) {
		const struct sim_op *op = sim_queue_at(&side->ops, i);

		if (i + 1 == n && !op->signaled && !op->expect)
			sim_post(side);
	}
	sim_ring(side);
}

static bool side_done(const struct sim_side *side)
{
	return !sim_queue_count(&side->ops) && !sim_queue_count(&side->expects) &&
	       (!side->broken || !sim_queue_count(&side->recvs));
}

static bool all_done(struct sim *sim)
{
	unsigned int i;

	for (i = 0; i < 2 * sim->num_conns; i++) {
		if (!side_done(side_at(sim, i)))
			return false;
	}
	return !sim->to_post;
}

/* One chunk of a host's memory goes elsewhere: what the device knew of it is void. */
static void move_memory(struct sim *sim)
{
	struct host *host = sim->hosts[rng_below(&sim->rng, sim->num_hosts)].host;
	struct hostmem_chunk *chunk = host->mem.chunks[rng_below(&sim->rng, host->mem.count)];

	ferry_engine_unmapped(host->engine, chunk->dma, chunk->len);
	hostmem_move(chunk);
}

static void programs(struct sim *sim)
{
	unsigned int i;

	poll_cqs(sim, 80);
	for (i = 0; i < 2 * sim->num_conns; i++)
		post_receives(sim, side_at(sim, i));
	if (sim->to_post) {
		post_some(sim);
		return;
	}
	for (i = 0; i < 2 * sim->num_conns; i++)
		close_side(side_at(sim, i));
}

static void stuck(struct sim *sim, const char *why)
{
	unsigned int i;

	for (i = 0; i < 2 * sim->num_conns; i++) {
		struct sim_side *side = side_at(sim, i);
		const struct sim_op *op = sim_queue_at(&side->ops, 0);

		tap_note("qp %#x of host %u%s: %u operations under way%s, %u receives posted, "
			 "%u expected", side->qp->number, side->host->host->index,
			 sim->conns[i / 2].local ? " (local)" : "", sim_queue_count(&side->ops),
			 side->send_cq->by_event ? " (by event)" : "",
			 sim_queue_count(&side->recvs), sim_queue_count(&side->expects));
		if (sim_queue_count(&side->ops))
			tap_note("  first: kind %u index %u len %u psn %#x to %#x", op->kind,
				 op->index, op->len, op->psn, op->psn + op->num_psns - 1);
	}
	need_that(false, "%s", why);
}

/* When a program may act next of itself. */
static uint64_t programs_next(struct sim *sim)
{
	uint64_t next = UINT64_MAX;
	unsigned int i;

	if (sim->to_post)
		return sim->wire.now + 1 + rng_below(&sim->rng, 2000);
	for (i = 0; i < 2 * sim->num_conns; i++) {
		const struct sim_side *side = side_at(sim, i);

		if ((side->recv_late || side->broken) && side->recv_at > sim->wire.now &&
		    side->recv_at < next && sim_queue_count(&side->peer->ops))
			next = side->recv_at;
	}
	return next;
}

/* Lets time pass until all that was posted is complete and nothing is under way. */
static void run(struct sim *sim)
{
	unsigned int turns = 0;
	uint64_t next, mine;

	for (;;) {
		if (++turns == TURN_LIMIT || sim->wire.now > TIME_LIMIT)
			stuck(sim, "no end");
		programs(sim);
		if (sim->moving && rng_chance(&sim->rng, 1))
			move_memory(sim);
		next = wire_turn(&sim->wire);
		if (next <= sim->wire.now)
			continue;
		if (all_done(sim) && !sim->wire.count && !poll_cqs(sim, 100))
			return;
		mine = programs_next(sim);
		if (mine < next)
			next = mine;
		if (next == UINT64_MAX && !poll_cqs(sim, 100))
			stuck(sim, "nothing happens any more");
		if (next < UINT64_MAX)
			wire_advance(&sim->wire, next);
	}
}

/* ---- in the end */

static void check_memory(struct sim *sim)
{
	static const char *const names[SIM_USES] = {
		"source", "sink", "receive", "target", "library", "cells",
	};
	unsigned int i, set, use;

	for (i = 0; i < sim->num_hosts; i++) {
		for (set = 0; set < 2; set++) {
			for (use = 0; use < SIM_USES; use++) {
				if (sim->hosts[i].mrs[set][use].mr)
					sim_mr_check(&sim->hosts[i].mrs[set][use], names[use]);
			}
		}
	}
}

static enum sim_ending pick_ending(struct sim *sim, const struct sim_conn *conn)
{
	if (rng_chance(&sim->rng, 40))
		return SIM_END_INVALIDATE;
	return (enum sim_ending)rng_below(&sim->rng, conn->local ? SIM_END_CUT : SIM_ENDINGS);
}

/* One side posts some good operations, one that fails, and some that are flushed. */
static void break_conn(struct sim *sim, struct sim_conn *conn, bool faulty)
{
	enum sim_ending ending = pick_ending(sim, conn);
	struct sim_side *side = &conn->side[rng_below(&sim->rng, 2)];
	unsigned int good = (unsigned int)rng_below(&sim->rng, 4);
	unsigned int flushed = (unsigned int)rng_below(&sim->rng, 4);

	if (ending == SIM_END_CUT)
		conn->cut = true;
	/* Where frames are lost, those that are good might fail with the one that is not. */
	if (conn->cut || faulty)
		good = 0;
	while (good-- && sim_queue_count(&side->ops) + 1 < side->sq_depth)
		sim_post(side);
	if (!sim_post_ending(side, ending))
		return;
	while (flushed-- && sim_post_doomed(side, FERRY_WC_WR_FLUSH_ERR))
		;
	sim_ring(side);
	side->broken = true;
	side->peer->broken = ending != SIM_END_LKEY && ending != SIM_END_CUT;
	sim->table->ending[ending]++;
}

static void side_restart(struct sim_side *side)
{
	unsigned int use;

	need_eq(host_qp_state(side->qp, FERRY_QPS_RESET), FERRY_ADMIN_OK);
	side->recvs.tail = side->recvs.head;
	side->recvs_posted = 0;
	side->recvs_done = 0;
	side->sends_posted = 0;
	side->broken = false;
	side->closing = false;
	side->unsignaled = 0;
	for (use = 0; use < SIM_USES; use++) {
		side->area[use].head = 0;
		side->area[use].tail = 0;
	}
}

static void restart_conn(struct sim *sim, struct sim_conn *conn)
{
	conn->cut = false;
	side_restart(&conn->side[0]);
	side_restart(&conn->side[1]);
	pick_psns(sim, &conn->path);
	connect_sides(sim, conn);
}

static void break_and_restart(struct sim *sim)
{
	bool faulty = rng_chance(&sim->rng, 60);
	unsigned int i;

	if (!faulty)
		memset(sim->percent, 0, sizeof(sim->percent));
	for (i = 0; i < sim->num_conns; i++) {
		if (rng_chance(&sim->rng, 60))
			break_conn(sim, &sim->conns[i], faulty);
	}
	run(sim);
	check_memory(sim);
	for (i = 0; i < sim->num_conns; i++)
		restart_conn(sim, &sim->conns[i]);
}

static void unmake(struct sim *sim)
{
	unsigned int i, set, k;

	for (i = 0; i < 2 * sim->num_conns; i++) {
		struct sim_side *side = side_at(sim, i);

		host_qp_destroy(side->qp);
		sim_queue_free(&side->ops);
		sim_queue_free(&side->recvs);
		sim_queue_free(&side->expects);
	}
	for (i = 0; i < sim->num_hosts; i++) {
		struct sim_host *host = &sim->hosts[i];

		for (set = 0; set < 2; set++) {
			for (k = 0; k < host->num_cqs; k++)
				host_cq_destroy(host->cqs[set][k].cq);
			for (k = 0; k < SIM_USES; k++) {
				if (host->mrs[set][k].mr)
					sim_mr_destroy(&host->mrs[set][k]);
			}
			host_pd_destroy(host->pd[set]);
			host_context_destroy(host->context[set]);
		}
		host_destroy(host->host);
	}
	wire_destroy(&sim->wire);
}

static void arm_cqs(struct sim *sim)
{
	unsigned int i, set, c;

	for (i = 0; i < sim->num_hosts; i++) {
		for (set = 0; set < 2; set++) {
			for (c = 0; c < sim->hosts[i].num_cqs; c++) {
				if (sim->hosts[i].cqs[set][c].by_event)
					cq_arm(&sim->hosts[i].cqs[set][c]);
			}
		}
	}
}

void sim_run(uint64_t seed, bool verbose, struct sim_table *table)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	char context[64];
	unsigned int i;

	need(sim);
	snprintf(context, sizeof(context), "test-sim --seed %" PRIu64, seed);
	tap_context(context);
	sim->seed = seed;
	sim->verbose = verbose;
	sim->table = table;
	rng_init(&sim->rng, seed);
	rng_init(&sim->fault_rng, ~seed);
	wire_init(&sim->wire, seed ^ 0x5eed);
	sim->wire.verbose = verbose;
	sim->wire.judge = judge;
	sim->wire.judge_arg = sim;
	sim->wire.sleep_percent = (unsigned int)rng_below(&sim->rng, 100);
	sim->big_message = rng_chance(&sim->rng, 20) ? 20000 : 5000;
	sim->moving = rng_chance(&sim->rng, 30);
	sim->num_hosts = rng_chance(&sim->rng, 75) ? 2 : 3;
	sim->num_conns = (unsigned int)rng_range(&sim->rng, 2, SIM_CONNS);
	pick_faults(sim);
	for (i = 0; i < SIM_USES; i++)
		sim->iova[i] = rng_below(&sim->rng, 1ull << (rng_chance(&sim->rng, 50) ? 62 : 40));
	sim->iova[SIM_CELLS] &= ~7ull;
	for (i = 0; i < sim->num_hosts; i++)
		make_host(sim, i);
	for (i = 0; i < sim->num_conns; i++)
		make_conn(sim, i);
	make_objects(sim);
	arm_cqs(sim);

	sim->to_post = (unsigned int)rng_range(&sim->rng, 200, 300);
	run(sim);
	check_memory(sim);
	break_and_restart(sim);
	sim->to_post = 40;
	run(sim);
	check_memory(sim);

	table->frames += sim->wire.frames;
	unmake(sim);
	free(sim);
	tap_context(NULL);
}
