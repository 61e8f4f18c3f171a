// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "sim_model.h"
#include "tap.h"

#define ACCESS_TARGET	(FERRY_ACCESS_LOCAL_WRITE | FERRY_ACCESS_REMOTE_WRITE | \
			 FERRY_ACCESS_REMOTE_READ)
#define ACCESS_CELLS	(FERRY_ACCESS_LOCAL_WRITE | FERRY_ACCESS_REMOTE_ATOMIC)

static const uint8_t access_of[SIM_USES] = {
	[SIM_SOURCE] = 0,
	[SIM_SINK] = FERRY_ACCESS_LOCAL_WRITE,
	[SIM_RECV] = FERRY_ACCESS_LOCAL_WRITE,
	[SIM_TARGET] = ACCESS_TARGET,
	[SIM_LIBRARY] = FERRY_ACCESS_REMOTE_READ,
	[SIM_CELLS] = ACCESS_CELLS,
};

void sim_mr_create(struct sim *sim, struct sim_mr *mr, struct host_pd *pd, uint64_t length,
		   enum sim_use use)
{
	struct host_mr_spec spec = {
		.pd = pd,
		.length = length,
		.iova = sim->iova[use],
		.access = access_of[use],
		.block_shift = rng_chance(&sim->rng, 70) ? 12 :
			       (unsigned int)rng_range(&sim->rng, 13, 16),
		.two_level = rng_chance(&sim->rng, 30),
	};

	spec.offset = rng_below(&sim->rng, 1u << spec.block_shift);
	if (use == SIM_CELLS)
		spec.offset &= ~7ull;
	mr->mr = host_mr_create(&spec);
	need(mr->mr);
	mr->shadow = malloc(length);
	need(mr->shadow);
	rng_fill(&sim->rng, mr->shadow, length);
	host_mr_write(mr->mr, 0, mr->shadow, length);
}

void sim_mr_destroy(struct sim_mr *mr)
{
	host_mr_destroy(mr->mr);
	free(mr->shadow);
}

void sim_foresee(struct sim_area *area, uint64_t pos, const void *data, uint64_t len)
{
	need(pos + len <= area->len);
	memcpy(area->mr->shadow + area->base + pos, data, len);
}

void sim_put(struct sim_area *area, uint64_t pos, const void *data, uint64_t len)
{
	sim_foresee(area, pos, data, len);
	host_mr_write(area->mr->mr, area->base + pos, data, len);
}

void sim_recall(const struct sim_area *area, uint64_t pos, void *data, uint64_t len)
{
	memcpy(data, area->mr->shadow + area->base + pos, len);
}

bool sim_holds(const struct sim_area *area, uint64_t pos, uint64_t len)
{
	const uint8_t *want = area->mr->shadow + area->base + pos;
	uint8_t piece[512];
	uint64_t n;

	for (; len; len -= n, pos += n, want += n) {
		n = len < sizeof(piece) ? len : sizeof(piece);
		host_mr_read(area->mr->mr, area->base + pos, piece, n);
		if (memcmp(piece, want, n))
			return false;
	}
	return true;
}

void sim_mr_check(const struct sim_mr *mr, const char *name)
{
	struct sim_area all = { .mr = (struct sim_mr *)mr, .len = mr->mr->spec.length };
	uint64_t pos;

	need_that(host_mr_guards_intact(mr->mr), "bytes around the %s MR have changed", name);
	if (sim_holds(&all, 0, all.len))
		return;
	for (pos = 0; sim_holds(&all, pos, 1); pos++)
		;
	need_that(false, "byte %llu of the %s MR is wrong", (unsigned long long)pos, name);
}

uint64_t sim_addr(const struct sim_area *area, uint64_t pos)
{
	return area->mr->mr->spec.iova + area->base + pos;
}

/* ---- rings */

/* @len in up to @max lengths, some of them zero. */
static unsigned int split(struct rng *rng, uint32_t len, unsigned int max, uint32_t *lens)
{
	unsigned int count = (unsigned int)rng_range(rng, 1, max), i;

	if (rng_chance(rng, 50))
		count = 1;
	if (!len && rng_chance(rng, 50))
		return 0;
	for (i = 0; i + 1 < count; i++) {
		lens[i] = rng_chance(rng, 10) ? 0 : (uint32_t)rng_below(rng, len + 1);
		if (lens[i] > 64 && rng_chance(rng, 70))
			lens[i] /= 2;
		len -= lens[i];
	}
	lens[count - 1] = len;
	return count;
}

/* Position of @len bytes in one piece, or -1. */
static int64_t ring_take(struct sim_area *area, uint64_t len)
{
	uint64_t pos = area->head % area->len, skip = 0;

	if (pos + len > area->len)
		skip = area->len - pos;
	if (area->head + skip + len - area->tail > area->len)
		return -1;
	area->head += skip + len;
	return (int64_t)((pos + skip) % area->len);
}

static void shuffle(struct rng *rng, unsigned int *order, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		unsigned int j = (unsigned int)rng_below(rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}

bool sim_take(struct sim *sim, struct sim_area *area, uint32_t len, unsigned int max,
	      struct sim_sges *sges, uint64_t *end)
{
	unsigned int order[HOST_SGES], i;
	uint32_t lens[HOST_SGES], gap = (uint32_t)rng_below(&sim->rng, 8);
	int64_t at;

	sges->len = len;
	sges->count = split(&sim->rng, len, max, lens);
	at = ring_take(area, len + (uint64_t)gap * sges->count + 1);
	if (at < 0)
		return false;
	*end = area->head;
	shuffle(&sim->rng, order, sges->count);
	for (i = 0; i < sges->count; i++) {
		unsigned int k = order[i];

		at += gap;
		sges->pos[k] = (uint64_t)at;
		sges->sge[k].addr = sim_addr(area, (uint64_t)at);
		sges->sge[k].length = lens[k];
		sges->sge[k].key = area->mr->mr->key;
		at += lens[k];
	}
	return true;
}

void sim_release(struct sim_area *area, uint64_t end)
{
	if (end > area->tail)
		area->tail = end;
}

/* ---- queues */

void sim_queue_init(struct sim_queue *queue, size_t size)
{
	memset(queue, 0, sizeof(*queue));
	queue->size = size;
	queue->capacity = 256;
	queue->entries = calloc(queue->capacity, size);
	need(queue->entries);
}

void sim_queue_free(struct sim_queue *queue)
{
	free(queue->entries);
}

uint32_t sim_queue_count(const struct sim_queue *queue)
{
	return queue->head - queue->tail;
}

void *sim_queue_at(const struct sim_queue *queue, uint32_t i)
{
	return queue->entries + (queue->tail + i) % queue->capacity * queue->size;
}

void *sim_queue_add(struct sim_queue *queue)
{
	void *entry;

	need(sim_queue_count(queue) < queue->capacity);
	entry = sim_queue_at(queue, sim_queue_count(queue));
	queue->head++;
	memset(entry, 0, queue->size);
	return entry;
}

void sim_queue_drop(struct sim_queue *queue)
{
	need(sim_queue_count(queue));
	queue->tail++;
}
