// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rings. A large one need not be contiguous, but large chunks make short page lists and
 * few mappings: so 1 MiB is tried first, then less.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "ferry.h"
#include "pagelist.h"
#include "ring.h"
#include "verbs.h"

#define FERRY_CHUNK_SHIFT_MAX	20

/* The device must have been told before. @ring may be NULL. */
void ferry_ring_free(struct ferry_ring *ring)
{
	unsigned int i;

	if (!ring)
		return;
	for (i = 0; i < ring->chunks; i++)
		ferry_mmap_put(ring->chunk[i]);
	kvfree(ring);
}

static struct ferry_ring *ferry_ring_try(struct ferry_dev *dev, struct ferry_context *ctx,
					 size_t bytes, unsigned int shift)
{
	unsigned int i, chunks = bytes >> shift;
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	struct ferry_ring *ring;

	/* Not worth compacting memory for: there is a smaller size to try. */
	if (shift > PAGE_SHIFT)
		gfp |= __GFP_NORETRY;
	ring = kvzalloc(struct_size(ring, chunk, chunks), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return NULL;
	ring->dev = dev;
	ring->ctx = ctx;
	ring->bytes = bytes;
	ring->chunk_shift = shift;
	ring->chunks = chunks;
	for (i = 0; i < chunks; i++) {
		ring->chunk[i] = ferry_mmap_alloc_memory(dev, ctx, 1ul << shift, gfp);
		if (!ring->chunk[i]) {
			ferry_ring_free(ring);
			return NULL;
		}
	}
	return ring;
}

/**
 * ferry_ring_alloc - zeroed memory for a ring
 * @dev: the device that works on it
 * @ctx: whose limit it counts against, or NULL
 * @bytes: a power of two, or a multiple of 1 MiB; a page is the least that is given
 *
 * Return: the ring, or NULL.
 */
struct ferry_ring *ferry_ring_alloc(struct ferry_dev *dev, struct ferry_context *ctx,
				    size_t bytes)
{
	struct ferry_ring *ring = NULL;
	unsigned int shift;

	bytes = max(bytes, PAGE_SIZE);
	shift = min_t(unsigned int, ilog2(bytes), FERRY_CHUNK_SHIFT_MAX);
	for (; !ring && shift >= PAGE_SHIFT; shift--)
		ring = ferry_ring_try(dev, ctx, bytes, shift);
	return ring;
}

/* Lets the process of the ring's context map it. */
int ferry_ring_share(struct ferry_ring *ring, struct ferry_ring_map *map)
{
	size_t chunk_bytes = 1ul << ring->chunk_shift;

	map->bytes = ring->bytes;
	map->chunk_bytes = chunk_bytes;
	return ferry_mmap_share(ring->ctx->user, ring->chunk, ring->chunks, chunk_bytes,
				&map->offset);
}

/* @hw is what the device gets; @pages must live until it has answered. */
int ferry_ring_list(struct ferry_ring *ring, struct ferry_pages *pages,
		    struct ferry_page_list *hw)
{
	unsigned int i;
	int err;

	err = ferry_pages_alloc(ring->dev, pages, hw, ring->chunks, ring->chunk_shift);
	if (err)
		return err;
	for (i = 0; i < ring->chunks; i++)
		ferry_pages_set(pages, hw, i, ring->chunk[i]->buf.dma);
	return 0;
}
