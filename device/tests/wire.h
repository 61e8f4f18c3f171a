/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A simulated link between hosts, and the time that all of them live in. Frames go by
 * destination MAC. Every frame must be a right one; a judge says what becomes of it.
 */
#ifndef WIRE_H
#define WIRE_H

#include "frame.h"
#include "host.h"
#include "rng.h"

#define WIRE_LOSS	(1u << 0)
#define WIRE_DUPLICATE	(1u << 1)
#define WIRE_REORDER	(1u << 2)	/* later than those behind it */
#define WIRE_CORRUPT	(1u << 3)	/* bits flipped, or cut */
#define WIRE_BUSY	(1u << 4)	/* the link does not take it */
#define WIRE_FAULTS	5

#define WIRE_HOSTS	4
#define WIRE_LATENCY	2000		/* ns */
#define WIRE_REORDER_NS	60000		/* at most */

/* What shall happen to a frame: WIRE_* bits, 0: nothing. */
typedef unsigned int (*wire_judge_fn)(void *arg, struct host *from, struct host *to,
				      const uint8_t *data, const struct frame *frame);

struct wire_event {
	uint64_t at, sequence;
	struct host *to;
	size_t len;
	uint8_t *data;
};

struct wire {
	struct rng rng;
	uint64_t now;		/* ns */
	unsigned int num_hosts;
	struct host *hosts[WIRE_HOSTS];
	uint64_t last_at[WIRE_HOSTS]; /* of frames to a host: those behind are later */
	wire_judge_fn judge;
	void *judge_arg;
	unsigned int sleep_percent; /* how often an idle engine is put to sleep */
	bool verbose;
	uint64_t frames;
	uint64_t sequence;
	unsigned int count, capacity;
	struct wire_event *events; /* a heap */
};

void wire_init(struct wire *wire, uint64_t seed);
void wire_destroy(struct wire *wire);
void wire_add(struct wire *wire, struct host *host);

/*
 * Runs every engine that is due, once, and delivers what is due. Returns when something
 * will be next: wire->now if at once, UINT64_MAX if never.
 */
uint64_t wire_turn(struct wire *wire);

/* Moves time, for the hosts as well. */
void wire_advance(struct wire *wire, uint64_t to);

/* Turns for @ns, or until nothing is left to happen. */
void wire_run(struct wire *wire, uint64_t ns);

#endif
