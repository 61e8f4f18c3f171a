// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory that moves, goes away, or cannot be reached; reset and the end of the device.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

static struct rig rig;

static uint32_t status(unsigned int i)
{
	return ferry_engine_reg_read(rig.host[i]->engine, FERRY_REG_STATUS);
}

/* Traffic of all kinds, both ways, without demands. */
static void stir(void)
{
	static const enum ferry_wr wrs[] = {
		FERRY_WR_SEND, FERRY_WR_WRITE, FERRY_WR_READ, FERRY_WR_WRITE_IMM,
		FERRY_WR_ATOMIC_FA, FERRY_WR_SEND_IMM,
	};
	unsigned int side, i;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < 6; i++) {
			uint32_t len = wrs[i] == FERRY_WR_ATOMIC_FA ? 8 : 2500;
			struct host_wr wr = rig_wr(&rig, side, wrs[i], 5000 * i, 30000, len);

			rig_recv(&rig, !side, 50000, 3000, (uint16_t)i);
			host_post_send(rig.qp[side], &wr);
		}
		host_arm(rig.cq[side], false);
		host_ring_send(rig.qp[side]);
	}
	rig_run(&rig);
}

static void drain(void)
{
	struct host_wc wc;
	unsigned int side;

	for (side = 0; side < 2; side++) {
		while (host_poll(rig.cq[side], &wc))
			need(wc.status < FERRY_WC_STATUS_COUNT && wc.op < FERRY_WC_COUNT);
	}
}

/* ---- moves */

/* All memory elsewhere, again and again: nothing stale is used (a sanitizer would see). */
static void all_moves(void)
{
	unsigned int round, i, k;

	rig_init(&rig, &(struct rig_options) { .cq_shift = 6 });
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 2; i++) {
			struct hostmem *mem = &rig.host[i]->mem;

			if (round & 1)
				ferry_engine_unmapped(rig.host[i]->engine, 0, UINT64_MAX);
			for (k = 0; k < mem->count; k++) {
				if (!(round & 1))
					ferry_engine_unmapped(rig.host[i]->engine,
							      mem->chunks[k]->dma,
							      mem->chunks[k]->len);
				hostmem_move(mem->chunks[k]);
			}
		}
		stir();
		for (i = 0; i < 2; i++) {
			struct host_wc wc;

			for (k = 0; host_poll(rig.cq[i], &wc); k++)
				need_eq(wc.status, FERRY_WC_SUCCESS);
			need_eq(k, 6 + 3);
		}
		/* A receive of the WRITE that needs none is left over, each way. */
		rig_reconnect(&rig);
	}
	rig_free(&rig);
}

/* ---- what cannot be reached */

enum part { PART_SQ, PART_RQ, PART_CQ, PART_EQ, PART_EQ_INDEX, PART_RECORDS, PART_STATUS,
	    PART_ASQ, PART_ACQ, PART_MR, PARTS };

static void set_gone(struct host_blocks *blocks)
{
	uint32_t i;

	for (i = 0; i < blocks->count; i++)
		blocks->chunk[i]->gone = true;
}

static void part_gone(enum part part)
{
	struct host *host = rig.host[0];

	switch (part) {
	case PART_SQ:
		set_gone(&rig.qp[0]->sq.blocks);
		break;
	case PART_RQ:
		set_gone(&rig.qp[0]->rq.blocks);
		break;
	case PART_CQ:
		set_gone(&rig.cq[0]->ring);
		break;
	case PART_EQ:
		set_gone(&host->eq.ring);
		break;
	case PART_EQ_INDEX:
		host->eq.index->gone = true;
		break;
	case PART_RECORDS:
		rig.context[0]->page[0]->gone = true;
		break;
	case PART_STATUS:
		host->status->gone = true;
		break;
	case PART_ASQ:
		host->asq->gone = true;
		break;
	case PART_ACQ:
		host->acq->gone = true;
		break;
	default:
		set_gone(&rig.mr[0]->blocks);
	}
	ferry_engine_unmapped(host->engine, 0, UINT64_MAX);
}

/* Whatever is out of reach, the device neither crashes nor hangs, and its peer goes on. */
static void parts_gone(void)
{
	unsigned int message, part;

	for (message = 0; message < 2; message++) {
		for (part = 0; part < PARTS; part++) {
			rig_init(&rig, &(struct rig_options) { .message = message });
			stir();
			drain();
			part_gone((enum part)part);
			stir();
			if (part != PART_CQ)
				drain();
			need(!(status(1) & FERRY_STATUS_FATAL));
			if (part == PART_EQ || part == PART_EQ_INDEX) {
				need(status(0) & FERRY_STATUS_FATAL);
				need_eq(FERRY_STATUS_CAUSE(status(0)), FERRY_FATAL_EQ_DMA);
			} else if (part == PART_ASQ || part == PART_ACQ) {
				need_eq(host_admin_object(rig.host[0], FERRY_ADMIN_NOP, 0, NULL),
					FERRY_ADMIN_STATUS_COUNT);
				need(status(0) & FERRY_STATUS_FATAL);
				need_eq(FERRY_STATUS_CAUSE(status(0)), FERRY_FATAL_ADMIN_DMA);
			} else {
				need(!(status(0) & FERRY_STATUS_FATAL));
			}
			rig_abandon(&rig);
		}
	}
}

/* Host 0 loses memory; one of the two hosts posts. */
static const struct lost_memory {
	enum part part;
	unsigned int poster;
	enum ferry_wr opcode;
	enum ferry_wc_status status;	/* of the poster's request; 0: no CQE can tell */
	bool receives;			/* host 0 does, and the receive fails as well */
	enum ferry_event event;		/* at host 0, or 0 */
} lost_memory[] = {
	/* The source of a WRITE, and the sink of a READ. */
	{ PART_MR, 0, FERRY_WR_WRITE, FERRY_WC_LOC_PROT_ERR, false, 0 },
	{ PART_MR, 0, FERRY_WR_READ, FERRY_WC_LOC_PROT_ERR, false, 0 },
	/* The target of the peer's WRITE, and the source of its READ. */
	{ PART_MR, 1, FERRY_WR_WRITE, FERRY_WC_REM_OP_ERR, false, FERRY_EVENT_QP_FATAL },
	{ PART_MR, 1, FERRY_WR_READ, FERRY_WC_REM_OP_ERR, false, 0 },
	/* The memory of a receive. */
	{ PART_MR, 1, FERRY_WR_SEND, FERRY_WC_REM_OP_ERR, true, 0 },
	{ PART_CQ, 0, FERRY_WR_WRITE, 0, false, FERRY_EVENT_CQ_ERR },
};

static void lose(const struct lost_memory *lost, bool message)
{
	struct host_event event;
	struct host_wr wr;

	rig_init(&rig, &(struct rig_options) { .message = message });
	if (lost->receives)
		rig_recv(&rig, 0, 0, 100, 4);
	part_gone(lost->part);
	wr = rig_wr(&rig, lost->poster, lost->opcode, 0, 0, 100);
	rig_post(&rig, lost->poster, &wr);
	rig_run(&rig);
	if (lost->status)
		rig_expect(&rig, lost->poster, lost->status, 0);
	if (lost->receives)
		rig_expect(&rig, 0, FERRY_WC_LOC_PROT_ERR, 4);
	if (lost->event) {
		need(rig_event(&rig, 0, lost->event, &event));
		if (lost->event == FERRY_EVENT_CQ_ERR)
			need_eq(event.number, rig.cq[0]->number);
	}
	rig_abandon(&rig);
}

static void statuses_of_faults(void)
{
	size_t i;

	for (i = 0; i < sizeof(lost_memory) / sizeof(lost_memory[0]); i++) {
		lose(&lost_memory[i], false);
		lose(&lost_memory[i], true);
	}
}

/* The first, the second, ... access fails: every one that there is. */
static void every_access_fails(void)
{
	unsigned int way, n, i;

	for (way = 0; way < 4; way++) {
		struct rig_options o = { .message = way & 1, .local = way & 2 };

		for (n = 1; ; n++) {
			bool reached;

			rig_init(&rig, &o);
			/* Pointers are asked for again. */
			for (i = 0; i < 2; i++)
				ferry_engine_unmapped(rig.host[i]->engine, 0, UINT64_MAX);
			rig.host[n & 1]->mem.countdown = (n + 1) / 2;
			stir();
			drain();
			reached = !rig.host[n & 1]->mem.countdown;
			rig_abandon(&rig);
			if (!reached && (n & 1))
				break;
			if (n > 600)
				n += n / 10 * 2;
		}
	}
}

/* ---- reset */

/* Nothing is touched after a reset, whatever comes; then it can be set up again. */
static void reset_in_traffic(void)
{
	unsigned int way, i;

	for (way = 0; way < 2; way++) {
		struct host *host;
		struct host_wr wr;
		unsigned int left;

		rig_init(&rig, &(struct rig_options) { .message = way });
		host = rig.host[0];
		for (i = 0; i < 10; i++) {
			wr = rig_wr(&rig, 0, i & 1 ? FERRY_WR_READ : FERRY_WR_WRITE, 0, 0, 20000);
			host_post_send(rig.qp[0], &wr);
		}
		host_arm(rig.cq[0], false);
		host_ring_send(rig.qp[0]);
		wire_run(&rig.wire, 15000);
		ferry_engine_reg_write(host->engine, FERRY_REG_CTRL, FERRY_CTRL_RESET);
		need_eq(ferry_engine_reg_read(host->engine, FERRY_REG_CTRL), 0);
		need(!(status(0) & FERRY_STATUS_READY));
		left = host->allocations;
		host->mem.sealed = true;
		host->interrupts[0] = host->interrupts[1] = 0;
		wire_run(&rig.wire, 10000000);
		host_doorbell(host, rig.context[0]->number,
			      FERRY_DB(FERRY_DB_SQ, rig.qp[0]->number, 5));
		host_doorbell(host, 0, FERRY_DB(FERRY_DB_SQ, rig.qp[0]->number, 5));
		ferry_engine_unmapped(host->engine, 0, UINT64_MAX);
		ferry_engine_link(host->engine, false);
		ferry_engine_link(host->engine, true);
		need(host_settle(host));
		host->asleep = ferry_engine_sleep(host->engine);
		wire_run(&rig.wire, 1000000);
		need_eq(host->interrupts[0] + host->interrupts[1], 0);
		/* The device itself is all that is left. */
		need_eq(host->allocations, left);
		need_eq(left, 1);
		host->mem.sealed = false;
		need(host_enable(host));
		need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_QP, rig.qp[0]->number, NULL),
			FERRY_ADMIN_NOT_FOUND);
		need_eq(host_admin_object(host, FERRY_ADMIN_DESTROY_MR, rig.mr[0]->key, NULL),
			FERRY_ADMIN_NOT_FOUND);
		need_eq(host_counter(host, FERRY_COUNTER_tx_packets), 0);
		rig_abandon(&rig);
	}
}

/* A port that is down sends and takes nothing; the retries run out. */
static void link_down(void)
{
	struct rig_options o = { .path.timeout = 8 };
	struct host_event event;
	struct host_wr wr;

	rig_init(&rig, &o);
	ferry_engine_link(rig.host[0]->engine, false);
	rig_run(&rig);
	need(rig_event(&rig, 0, FERRY_EVENT_PORT, &event));
	need_eq(event.data, 0);
	wr = rig_wr(&rig, 0, FERRY_WR_WRITE, 0, 0, 100);
	rig_post(&rig, 0, &wr);
	rig_run(&rig);
	rig_expect(&rig, 0, FERRY_WC_RETRY_EXC_ERR, 0);
	need_eq(rig.wire.frames, 0);
	need(host_counter(rig.host[0], FERRY_COUNTER_tx_errors) > 0);
	ferry_engine_link(rig.host[0]->engine, true);
	rig_run(&rig);
	need(rig_event(&rig, 0, FERRY_EVENT_PORT, &event));
	need_eq(event.data, 1);
	rig_reconnect(&rig);
	rig_check_traffic(&rig);
	rig_free(&rig);
}

/* An MR that goes while its data is under way: an error, unless all had gone before. */
static void mr_goes_in_traffic(void)
{
	unsigned int side, turns, op, i;

	for (op = 0; op < 2; op++) {
		for (side = 0; side < 2; side++) {
			unsigned int failed = 0;

			for (turns = 2; turns < 60; turns += 4) {
				struct host_wr wr;
				struct host_wc wc;

				rig_init(&rig, &(struct rig_options) { .path.mtu = 1 });
				rig.host[0]->budget = rig.host[1]->budget = 256;
				wr = rig_wr(&rig, 0, op ? FERRY_WR_READ : FERRY_WR_WRITE, 0, 0,
					    60000);
				rig_post(&rig, 0, &wr);
				for (i = 0; i < turns; i++)
					wire_advance(&rig.wire, wire_turn(&rig.wire));
				host_mr_destroy(rig.mr[side]);
				rig.mr[side] = NULL;
				rig_run(&rig);
				need(host_poll(rig.cq[0], &wc));
				failed += wc.status != FERRY_WC_SUCCESS;
				need(!wc.status || wc.status == (side ? FERRY_WC_REM_ACCESS_ERR :
								 FERRY_WC_LOC_PROT_ERR));
				rig_free(&rig);
			}
			need(failed);
		}
	}
}

/* Queues destroyed in full traffic; the peer notices by its timeout. */
static void qp_goes_in_traffic(void)
{
	unsigned int turns;

	for (turns = 1; turns < 60; turns += 3) {
		struct rig_options o = { .path.timeout = 7 };
		struct host_wr wr;
		struct host_wc wc;
		unsigned int i;

		rig_init(&rig, &o);
		rig.host[0]->budget = rig.host[1]->budget = 1024;
		for (i = 0; i < 8; i++) {
			wr = rig_wr(&rig, 0, i & 1 ? FERRY_WR_READ : FERRY_WR_WRITE, 0, 0, 60000);
			host_post_send(rig.qp[0], &wr);
		}
		host_ring_send(rig.qp[0]);
		for (i = 0; i < turns; i++)
			wire_advance(&rig.wire, wire_turn(&rig.wire));
		host_qp_destroy(rig.qp[turns & 1]);
		rig.qp[turns & 1] = NULL;
		rig_run(&rig);
		while (host_poll(rig.cq[0], &wc))
			need(wc.status == FERRY_WC_SUCCESS ||
			     wc.status == FERRY_WC_RETRY_EXC_ERR ||
			     wc.status == FERRY_WC_WR_FLUSH_ERR);
		rig_free(&rig);
	}
}

int main(int argc, char **argv)
{
	static const struct tap_test tests[] = {
		TAP_TEST(all_moves, "unmapped(): pointers are dropped and asked for again"),
		TAP_TEST(parts_gone, "any part of host memory out of reach"),
		TAP_TEST(statuses_of_faults, "DMA faults have their statuses"),
		TAP_TEST(every_access_fails, "each single access fails once"),
		TAP_TEST(reset_in_traffic, "reset in traffic: no DMA, no interrupt, no object"),
		TAP_TEST(link_down, "a link that is down"),
		TAP_TEST(mr_goes_in_traffic, "an MR destroyed in traffic"),
		TAP_TEST(qp_goes_in_traffic, "a QP destroyed in traffic"),
	};

	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
