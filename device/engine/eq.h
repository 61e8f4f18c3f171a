/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event queues. An event that finds its queue full waits with its source, at most one
 * of a kind, until the host has made room: so nobody can make a queue overrun.
 */
#ifndef FERRY_EQ_H
#define FERRY_EQ_H

#include "region.h"
#include "timer.h"

struct eq {
	uint32_t number;
	uint32_t depth;
	uint32_t pi;
	uint32_t ci;		/* as read last */
	uint16_t vector;
	uint32_t users;		/* CQs, assist */
	struct region ring;
	struct region index;	/* the host's consumer index */
	struct list waiting;	/* struct event_source */
	struct list link;	/* engine->eqs, in the order of creation */
};

/* Whatever raises events: a CQ, a QP, an SRQ, the port, a slot of assist. */
struct event_source {
	struct list link;	/* eq->waiting */
	uint32_t number;
	uint32_t pending;	/* bit FERRY_EVENT_*: waits for room */
};

static inline void event_source_init(struct event_source *source, uint32_t number)
{
	list_init(&source->link);
	source->number = number;
	source->pending = 0;
}

/* What it has to say is dropped. */
void event_source_release(struct ferry_engine *e, struct event_source *source);

/* @eq NULL: that of the device, which is the oldest one; without any it is lost. */
void eq_raise(struct ferry_engine *e, struct eq *eq, struct event_source *source,
	      enum ferry_event event);

struct eq *eq_find(struct ferry_engine *e, uint32_t number);

/* Posts what waits, where there is room now. */
void eq_retry(struct ferry_engine *e);

#endif
