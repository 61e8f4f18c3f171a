/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Assist: the driver is asked before and after peers access an MR that wants it. Whoever
 * asks goes on when the answer has come; nothing blocks meanwhile.
 */
#ifndef FERRY_ASSIST_H
#define FERRY_ASSIST_H

#include "eq.h"
#include "region.h"
#include "timer.h"

#define HELD_FRAMES	256
#define HELD_LEN	4352	/* bytes: the longest RoCE frame there is */

enum ask_state {
	ASK_IDLE,
	ASK_QUEUED,		/* no slot is free, or another atomic is under way */
	ASK_ASKED,
	ASK_ANSWERED,
};

/* Somebody who asks, one question at a time. */
struct ask {
	struct list link;	/* QUEUED: assist->queue or assist->atomics */
	struct timer timer;	/* runs from the question until the answer is taken */
	void (*answered)(struct ferry_engine *e, struct ask *ask);
	uint8_t state;		/* enum ask_state */
	bool refused;
	bool atomic;		/* needs the lock */
	uint16_t slot;		/* ASKED */
	struct ferry_assist_slot what;
};

enum ask_result { ASK_GRANTED, ASK_REFUSED, ASK_WAIT };

/* A slot is busy from the question to the acknowledgement, whatever becomes of the asker. */
struct assist_slot {
	struct event_source source;
	struct ask *ask;	/* NULL: nobody waits for the answer any more */
	bool busy;
	bool unlocks;		/* its acknowledgement ends an atomic */
	uint16_t next_free;
};

/* A frame that has to wait until what came before it has been carried out. */
struct held_frame {
	struct list link;
	uint32_t len;
	uint8_t data[HELD_LEN];
};

/*
 * The lock: atomics on such MRs read, ask, and have the driver write; so there is one at
 * a time on the device.
 */
struct assist {
	struct region memory;	/* struct ferry_assist_slot[slots] */
	struct eq *eq;
	uint32_t slots;		/* 0: not set up */
	uint32_t line;		/* bytes of a cache line */
	uint32_t users;		/* MRs that want it, questions not answered, held frames */
	struct assist_slot *slot;
	uint32_t free;		/* first free slot; slots: none */
	bool locked;
	struct ask *holder;	/* NULL though locked: a slot that unlocks */
	struct list queue;
	struct list atomics;	/* wait for the lock */
	struct held_frame *frames;
	struct list frames_free;
};

void assist_init(struct assist *a);

/* Forgets all: reset. */
void assist_release(struct ferry_engine *e);

void ask_init(struct ask *ask, void (*answered)(struct ferry_engine *e, struct ask *ask));

static inline bool ask_waits(const struct ask *ask)
{
	return ask->state == ASK_QUEUED || ask->state == ASK_ASKED;
}

/*
 * Asks @what of the driver, or takes the answer to it. ASK_WAIT: call again once
 * answered() was called. An answer that is not taken within a time is void.
 */
enum ask_result assist_ask(struct ferry_engine *e, struct ask *ask,
			   const struct ferry_assist_slot *what, bool atomic);

/* The asker has lost interest. */
void assist_forget(struct ferry_engine *e, struct ask *ask);

/* An atomic ends without having changed memory. */
void assist_unlock(struct ferry_engine *e, struct ask *ask);

/* FERRY_DB_ASSIST_ACK. False: the slot waits for none. */
bool assist_ack(struct ferry_engine *e, uint32_t slot);

/* A copy of a frame; NULL: no room. */
struct held_frame *assist_hold(struct ferry_engine *e, const uint8_t *frame, size_t len);
void assist_unhold(struct ferry_engine *e, struct held_frame *held);

#endif
