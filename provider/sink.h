/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting and polling on a host that is not coherent.
 *
 * A source is what the device reads: cleaned when it is posted, and then forgotten. A sink
 * is what the device writes: a receive, or the data that a READ or an atomic brings. It
 * is flushed when it is posted, so that no line of it is written back later, and again
 * once it has arrived, since the CPUs may have read ahead meanwhile. What of it shares a
 * line with other data of the process goes through a slot of context memory.
 */
#ifndef FERRY_SINK_H
#define FERRY_SINK_H

#include "bounce.h"
#include "cache.h"
#include "wqe.h"

/* Most SGEs of the device that a list becomes: each end and each middle may need one. */
#define FERRY_SINK_PIECES(sges)		(2 * (sges) + 1)
#define FERRY_SINK_SGES(pieces)		((pieces) ? ((pieces) - 1) / 2 : 0)
#define FERRY_PIECES_MAX		((1u << FERRY_RQE_SHIFT_MAX) / sizeof(struct ferry_sge))

struct ferry_sink_sge {
	struct ibv_sge sge;		/* the application's */
	uintptr_t va;			/* 0: the device has it as it is */
};

/* What one work request waits for. In cached memory: the rings are slow to read. */
struct ferry_sink {
	uint32_t num;			/* 0: nothing */
	uint32_t bytes;			/* that arrive if all goes well */
	struct ferry_sink_sge sge[];
};

/* Of one queue, by the place of a request; of an SRQ, by its id. */
struct ferry_sinks {
	uint32_t max_sge;		/* of the application's lists */
	uint32_t pd;			/* handle of the PD that keys must belong to */
	size_t stride;
	void *sinks;			/* struct ferry_sink, each of stride bytes */
	struct ferry_bounce bounce;
	struct ferry_seen seen;		/* of what is posted */
};

/* A list as the device gets it. */
struct ferry_pieces {
	int num;
	struct ibv_sge sge[FERRY_PIECES_MAX];
};

static inline struct ferry_sink *ferry_sink_at(const struct ferry_sinks *sinks, uint64_t place)
{
	return sinks->sinks + place * sinks->stride;
}

/* What is posted at @place brings nothing. */
static inline void ferry_sink_none(const struct ferry_sinks *sinks, uint64_t place)
{
	ferry_sink_at(sinks, place)->num = 0;
}

int ferry_sinks_create(struct ferry_context *ctx, struct ferry_sinks **sinks, uint32_t depth,
		       uint32_t max_sge, const struct ibv_pd *pd, bool bounce);
void ferry_sinks_destroy(struct ferry_context *ctx, struct ferry_sinks *sinks);

void ferry_source(struct ferry_context *ctx, struct ferry_sinks *sinks, const struct ibv_sge *list,
		  uint32_t num);
void ferry_sink_post(struct ferry_context *ctx, struct ferry_sinks *sinks, uint64_t place,
		     const struct ibv_sge *list, uint32_t num, uint32_t most,
		     struct ferry_pieces *pieces);
void ferry_sink_arrive(struct ferry_context *ctx, struct ferry_seen *seen,
		       const struct ferry_sinks *sinks, uint64_t place, uint32_t bytes, bool good);

#endif
