/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues.
 */
#ifndef FERRY_CQ_H
#define FERRY_CQ_H

#include "context.h"
#include "eq.h"

#define CQ_STAGE	32	/* CQEs that go to unmapped memory in one message */

enum cq_armed { CQ_IDLE, CQ_ARMED_SOLICITED, CQ_ARMED };

struct cq {
	struct event_source source; /* its number as well */
	struct context *context;
	struct eq *eq;
	struct region ring;
	uint32_t depth;
	uint32_t pi;		/* next to be written, staged ones included */
	uint32_t ci;		/* the host's, as read last */
	uint32_t solicited_pi;	/* behind the last CQE that was solicited or failed */
	struct record_slot slot;
	uint8_t arm_seq;
	enum cq_armed armed;
	bool failed;		/* takes no more CQEs */
	uint16_t mod_count;	/* moderation: 0 and 1: none */
	uint16_t mod_period_us;
	uint16_t mod_pending;	/* CQEs since armed that wait for an event */
	struct timer mod_timer;
	uint32_t users;		/* QPs, each queue counts */
	struct list send_qps, recv_qps; /* struct qp: send_cq_link, recv_cq_link */
	struct list stage_link;	/* engine->staged */
	unsigned int staged;	/* CQEs in stage[], the last before pi */
	struct ferry_cqe *stage; /* NULL: the ring is mapped */
};

/*
 * Adds a CQE. Its phase is set here. @event: solicited or failed. A CQ that has no room
 * fails, and its QPs with it.
 */
void cq_push(struct ferry_engine *e, struct cq *cq, struct ferry_cqe *cqe, bool event);

/* The host's arm: @index is the next CQE that it has not seen. */
void cq_arm(struct ferry_engine *e, struct cq *cq, bool solicited, uint32_t index, uint32_t seq);

/* Writes out what is staged, in one CQ or all. */
void cq_flush(struct ferry_engine *e, struct cq *cq);
void cq_flush_all(struct ferry_engine *e);

#endif
