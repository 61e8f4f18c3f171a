// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sources and sinks: see sink.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ccan/minmax.h>

#include "sink.h"

/* A stretch of memory cut where its first and its last whole line begin and end. */
struct ferry_cut {
	uint32_t head;			/* bytes */
	uint32_t middle;		/* whole lines; the device writes them itself */
	uint32_t tail;
};

/* Too few lines to be worth an SGE of their own go through the slot as a whole. */
static struct ferry_cut ferry_cut(uintptr_t va, uint32_t length, size_t line)
{
	struct ferry_cut cut = { .head = length };

	if (length < 2 * line)
		return cut;
	cut.head = -va & (line - 1);
	cut.tail = (va + length) & (line - 1);
	cut.middle = length - cut.head - cut.tail;
	return cut;
}

/* The most of a slot that one SGE takes. */
static size_t ferry_cut_most(size_t line)
{
	return 2 * line;
}

/**
 * ferry_sinks_create - room to remember the sinks of a queue
 * @ctx: its context
 * @sinks: is set
 * @depth: of the queue
 * @max_sge: of the application's lists
 * @pd: that the device looks up keys in
 * @bounce: false if no request of this queue has a sink
 *
 * Return: 0 or an errno.
 */
int ferry_sinks_create(struct ferry_context *ctx, struct ferry_sinks **sinks, uint32_t depth,
		       uint32_t max_sge, const struct ibv_pd *pd, bool bounce)
{
	const size_t sges = max(max_sge, 1u);
	struct ferry_sinks *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return ENOMEM;
	new->max_sge = max_sge;
	new->pd = pd->handle;
	new->stride = sizeof(struct ferry_sink) + sges * sizeof(struct ferry_sink_sge);
	new->sinks = calloc(depth, new->stride);
	err = new->sinks ? 0 : ENOMEM;
	if (!err && bounce)
		err = ferry_bounce_get(ctx, &new->bounce, depth,
				       sges * ferry_cut_most(ctx->cache->line));
	if (err) {
		free(new->sinks);
		free(new);
		return err;
	}
	*sinks = new;
	return 0;
}

/* @sinks may be NULL. */
void ferry_sinks_destroy(struct ferry_context *ctx, struct ferry_sinks *sinks)
{
	if (!sinks)
		return;
	if (sinks->bounce.blocks)
		ferry_bounce_put(ctx, &sinks->bounce);
	free(sinks->sinks);
	free(sinks);
}

/* Before ferry_fence_work_record(). The lock of the queue that @sinks are of is held. */
void ferry_source(struct ferry_context *ctx, struct ferry_sinks *sinks, const struct ibv_sge *list,
		  uint32_t num)
{
	const struct ferry_region *region;

	for (; num; num--, list++) {
		region = ferry_region_find(ctx->cache, &sinks->seen, list->lkey, list->addr,
					   list->length);
		if (region && region->cached)
			ferry_cache_clean(ctx, region, list->addr, list->length);
	}
}

static void ferry_piece(struct ferry_pieces *pieces, uint64_t addr, uint32_t length, uint32_t key)
{
	if (length)
		pieces->sge[pieces->num++] = (struct ibv_sge) { addr, length, key };
}

/*
 * The next @length bytes go through the slot, of which @addr is what is left. Neighbours
 * share an SGE: what follows in the message follows in the slot.
 */
static void ferry_piece_bounced(struct ferry_pieces *pieces, uint64_t *addr, uint32_t length)
{
	struct ibv_sge *last = pieces->num ? &pieces->sge[pieces->num - 1] : NULL;

	if (last && last->lkey == FERRY_KEY_CONTEXT && last->addr + last->length == *addr)
		last->length += length;
	else
		ferry_piece(pieces, *addr, length, FERRY_KEY_CONTEXT);
	*addr += length;
}

/*
 * True if the device may write there at all: else it gets the SGE as it is, to refuse it,
 * and nothing must be written by us in its stead.
 */
static bool ferry_sink_allowed(const struct ferry_sinks *sinks, const struct ferry_region *region)
{
	return region->local_write && region->pd == sinks->pd;
}

/**
 * ferry_sink_post - prepares the sink of a work request
 * @ctx: the context
 * @sinks: of the queue, whose lock is held
 * @place: of the request
 * @list: the application's SGEs, at most max_sge of them
 * @num: how many
 * @most: that arrives however long the list is
 * @pieces: the list that the device gets
 *
 * The place is free: it has arrived, or was never used. Before ferry_fence_work_record().
 */
void ferry_sink_post(struct ferry_context *ctx, struct ferry_sinks *sinks, uint64_t place,
		     const struct ibv_sge *list, uint32_t num, uint32_t most,
		     struct ferry_pieces *pieces)
{
	struct ferry_sink *sink = ferry_sink_at(sinks, place);
	const struct ferry_region *region;
	struct ferry_cut cut;
	uint64_t bounce;
	uint64_t bytes = 0;
	uint32_t i;

	pieces->num = 0;
	ferry_bounce_slot(&sinks->bounce, place, &bounce);
	for (i = 0; i < num; i++, list++) {
		sink->sge[i] = (struct ferry_sink_sge) { .sge = *list };
		bytes += list->length;
		region = ferry_region_find(ctx->cache, &sinks->seen, list->lkey, list->addr,
					   list->length);
		if (!region || !region->cached || !ferry_sink_allowed(sinks, region)) {
			pieces->sge[pieces->num++] = *list;
			continue;
		}
		sink->sge[i].va = region->va + (list->addr - region->iova);
		cut = ferry_cut(sink->sge[i].va, list->length, ctx->cache->line);
		ferry_piece_bounced(pieces, &bounce, cut.head);
		ferry_piece(pieces, list->addr + cut.head, cut.middle, list->lkey);
		ferry_piece_bounced(pieces, &bounce, cut.tail);
		if (cut.middle)
			ferry_cache_flush(ctx, region, list->addr + cut.head, cut.middle);
	}
	sink->num = num;
	sink->bytes = min_t(uint64_t, bytes, most);
}

/* The first @bytes of an SGE have come. Returns how much of the slot is its. */
static uint32_t ferry_sink_arrive_sge(struct ferry_context *ctx, struct ferry_seen *seen,
				      const struct ferry_sink_sge *sink, const void *slot,
				      uint32_t bytes, bool good)
{
	const struct ibv_sge *sge = &sink->sge;
	const size_t line = ctx->cache->line;
	const struct ferry_cut cut = ferry_cut(sink->va, sge->length, line);
	const uint32_t behind_head = bytes - min(bytes, cut.head);
	const uint32_t middle = min(behind_head, cut.middle);
	const struct ferry_region *region;

	/* The application may have ended the MR, and of what it was the driver took care. */
	region = ferry_region_find(ctx->cache, seen, sge->lkey, sge->addr, sge->length);
	if (!bytes || !region)
		return cut.head + cut.tail;
	if (middle)
		ferry_cache_flush(ctx, region, sge->addr + cut.head,
				  (middle + line - 1) & ~(line - 1));
	if (good) {
		memcpy((void *)sink->va, slot, min(bytes, cut.head));
		memcpy((void *)(sink->va + cut.head + cut.middle), slot + cut.head,
		       behind_head - middle);
	}
	return cut.head + cut.tail;
}

/**
 * ferry_sink_arrive - makes what has arrived visible to the application
 * @ctx: the context
 * @seen: of the CQ, whose lock is held
 * @sinks: of the queue
 * @place: of the request that is complete
 * @bytes: that have arrived, at most; UINT32_MAX: all
 * @good: false if the request has failed: any part of it may have been written
 *
 * After ferry_fence_valid_flush(), and before the place is given back.
 */
void ferry_sink_arrive(struct ferry_context *ctx, struct ferry_seen *seen,
		       const struct ferry_sinks *sinks, uint64_t place, uint32_t bytes, bool good)
{
	const struct ferry_sink *sink = ferry_sink_at(sinks, place);
	const struct ferry_sink_sge *sge = sink->sge;
	uint32_t left = good ? min(bytes, sink->bytes) : UINT32_MAX;
	uint32_t i, here;
	const void *slot;
	uint64_t addr;

	if (!sink->num)
		return;
	slot = ferry_bounce_slot(&sinks->bounce, place, &addr);
	for (i = 0; i < sink->num && left; i++, sge++) {
		here = min(left, sge->sge.length);
		if (sge->va)
			slot += ferry_sink_arrive_sge(ctx, seen, sge, slot, here, good);
		left -= here;
	}
}
