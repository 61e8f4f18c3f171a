/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine's state, all of it.
 */
#ifndef FERRY_STATE_H
#define FERRY_STATE_H

#include "assist.h"
#include "engine.h"
#include "pages.h"
#include "qp.h"
#include "table.h"

#define MAX_EQS		64
#define MAX_CQS		16384
#define MAX_QPS		16384
#define MAX_SRQS	4096
#define MAX_PDS		16384
#define MAX_MRS		262144
#define MAX_CQ_SHIFT	22
#define MAX_MR_SIZE	(1ull << 40)
#define MAX_MTU		9000	/* Ethernet payload */
#define MAX_GIDS	128

#define ETH_HEADER	14
#define MAX_FRAME	(ETH_HEADER + 4 + MAX_MTU)
#define SCRATCH_SIZE	65536
#define CRC_TABLES	16

/* The registers that the host writes, and the admin queue they describe. */
struct admin {
	uint32_t asq[2], acq[2]; /* low half, high half */
	uint32_t shift;
	uint32_t pi;		/* as rung last */
	uint32_t ci;
	uint32_t refuse;	/* the command that is refused, counted down; 0: none */
	uint32_t refuse_each;	/* what refuse is to be behind the next reset; 0: unchanged */
	struct region sq, cq;
	union ferry_admin_sqe cmd;
	struct ferry_admin_cqe answer;
	bool under_way;		/* cmd is being worked on */
	struct mr *new_mr;	/* CREATE_MR is under way; else NULL */
	struct page_reader pages; /* of it */
};

struct gid {
	uint8_t raw[16];
	bool valid;
};

struct ferry_engine {
	struct ferry_port port;
	struct ferry_engine_config config;

	/* Read by any thread, see ferry_engine_reg_read(). */
	uint32_t status;
	uint32_t ctrl;

	uint64_t now;
	bool worked;		/* something was done since the last run began */
	bool running;		/* in ferry_engine_run(): now is the time */
	bool awake;		/* reads records by itself */
	uint32_t events_waiting; /* sources that found their EQ full */
	uint64_t spent;		/* bytes that QPs were charged for */

	struct list active;	/* struct qp, in turn */
	struct qp *visited;	/* the one at work, or NULL: for ferry_engine_where() */
	struct list record_pages; /* all of them, for the scan */
	struct list staged;	/* struct cq: stage_link */
	struct wheel wheel;
	uint64_t counters[FERRY_COUNTER_COUNT];

	struct admin admin;
	struct assist assist;
	struct list regions;	/* struct region: all that may hold pointers to host memory */
	struct region status_page;

	struct table pds, cqs, qps, srqs, mrs;
	struct context *contexts[MAX_CONTEXTS];
	struct context kernel;	/* number 0 */
	struct list eqs;
	struct eq *eq_table[MAX_EQS + 1]; /* by number, from 1 */
	struct qp *gsi;		/* QP 1 */
	struct qp *eth;

	bool link;		/* carrier */
	bool up;		/* frames may leave and enter */
	bool promisc;
	uint8_t mac[6];
	uint16_t mtu;
	struct event_source port_events;
	struct gid gids[MAX_GIDS];

	uint32_t crc[CRC_TABLES][256]; /* see icrc.c */
	uint8_t frame[MAX_FRAME + 64] __attribute__((aligned(64)));
	uint8_t scratch[SCRATCH_SIZE] __attribute__((aligned(64)));
};

static inline void *engine_alloc(struct ferry_engine *e, size_t size)
{
	return e->port.alloc(e->port.ctx, size);
}

static inline void engine_free(struct ferry_engine *e, void *mem)
{
	if (mem)
		e->port.free(e->port.ctx, mem);
}

#define engine_log(e, level, ...) (e)->port.log((e)->port.ctx, level, __VA_ARGS__)

#define stat_inc(e, name)	((e)->counters[FERRY_COUNTER_##name]++)
#define stat_add(e, name, n)	((e)->counters[FERRY_COUNTER_##name] += (n))

/* Stops for good: no DMA and no interrupt until reset. */
void engine_fatal(struct ferry_engine *e, enum ferry_fatal cause);
bool engine_dead(const struct ferry_engine *e);

static inline void engine_interrupt(struct ferry_engine *e, unsigned int vector)
{
	stat_inc(e, interrupts);
	e->port.interrupt(e->port.ctx, vector);
}

/* admin.c: answers commands; true while there are more. */
bool admin_run(struct ferry_engine *e);

/* sched.c: visits active QPs for about @budget bytes. */
void sched_run(struct ferry_engine *e, uint64_t budget);

/* Accounts what a QP has moved: each packet costs something, however small. */
static inline void qp_charge(struct ferry_engine *e, struct qp *qp, uint32_t bytes)
{
	qp->credit -= (int64_t)bytes + 256;
	e->spent += (uint64_t)bytes + 256;
}

/* port.c */
void port_reset(struct ferry_engine *e);
bool port_is_up(const struct ferry_engine *e);
bool gid_is_ours(const struct ferry_engine *e, const uint8_t *gid);
uint32_t port_roce_mtu(const struct ferry_engine *e);

/* icrc.c, wire.c; the lengths of a frame's headers, in bytes */
#define IPV4_LEN	20
#define IPV6_LEN	40
#define UDP_LEN		8
#define BTH_LEN		12

void icrc_init(struct ferry_engine *e);
enum sent wire_send(struct ferry_engine *e, struct qp *qp, const struct ferry_av *av,
		    const struct packet *packet);
bool wire_receive(struct ferry_engine *e, const uint8_t *frame, size_t len);
/* Once more a frame that had to wait. */
enum sent wire_replay(struct ferry_engine *e, const uint8_t *frame, size_t len);
uint32_t icrc(const struct ferry_engine *e, const uint8_t *frame, bool v4, uint32_t len);

struct qp *qp_find(struct ferry_engine *e, uint32_t number);

#endif
