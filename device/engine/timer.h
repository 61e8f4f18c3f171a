/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A timer wheel: 6 levels of 64 lists, a tick of 4.096 us. Arming and cancelling cost
 * the same however many timers there are.
 */
#ifndef FERRY_TIMER_H
#define FERRY_TIMER_H

#include "base.h"

struct ferry_engine;

#define WHEEL_LEVELS	6
#define WHEEL_SLOTS	64
#define WHEEL_TICK_SHIFT 12	/* 4.096 us, the unit of InfiniBand's timeouts */

struct timer {
	struct list link;	/* empty: not armed */
	uint64_t deadline;	/* ns; while on the late list: from the next run on */
	void (*expired)(struct ferry_engine *e, struct timer *timer);
	uint8_t level, slot;
	bool late;
};

struct wheel {
	uint64_t tick;		/* all before it has been looked at */
	uint64_t filled[WHEEL_LEVELS]; /* bit: the list is not empty */
	struct list slot[WHEEL_LEVELS][WHEEL_SLOTS];
	struct list late;	/* armed while the time was not known */
};

void wheel_init(struct wheel *wheel);

/* Runs what is due at e->now. */
void wheel_advance(struct ferry_engine *e);

/* Not after the deadline of the first timer, perhaps before; UINT64_MAX without any. */
uint64_t wheel_next(const struct wheel *wheel);

static inline void timer_init(struct timer *timer,
			      void (*expired)(struct ferry_engine *, struct timer *))
{
	list_init(&timer->link);
	timer->expired = expired;
}

static inline bool timer_armed(const struct timer *timer)
{
	return !list_empty(&timer->link);
}

/* @delay ns from now, in place of what was armed. */
void timer_arm(struct ferry_engine *e, struct timer *timer, uint64_t delay);
void timer_cancel(struct ferry_engine *e, struct timer *timer);

#endif
