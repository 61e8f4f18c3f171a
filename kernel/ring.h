/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings: memory of the kernel, in equal chunks, that the device works on and a process
 * may map.
 */
#ifndef FERRY_RING_H
#define FERRY_RING_H

#include <linux/types.h>

#include "mmap.h"

struct ferry_context;
struct ferry_dev;
struct ferry_page_list;
struct ferry_pages;
struct ferry_ring_map;

struct ferry_ring {
	struct ferry_dev *dev;
	struct ferry_context *ctx;	/* whose limit it counts against; NULL: nobody's */
	size_t bytes;
	unsigned int chunk_shift;
	unsigned int chunks;
	struct ferry_mmap *chunk[] __counted_by(chunks);
};

struct ferry_ring *ferry_ring_alloc(struct ferry_dev *dev, struct ferry_context *ctx,
				    size_t bytes);
void ferry_ring_free(struct ferry_ring *ring);
int ferry_ring_share(struct ferry_ring *ring, struct ferry_ring_map *map);
int ferry_ring_list(struct ferry_ring *ring, struct ferry_pages *pages,
		    struct ferry_page_list *hw);

/* Where the byte at @offset lies; the rest of its chunk follows. */
static inline void *ferry_ring_at(const struct ferry_ring *ring, size_t offset)
{
	const struct ferry_mmap *chunk = ring->chunk[offset >> ring->chunk_shift];

	return chunk->buf.cpu + (offset & ((1ul << ring->chunk_shift) - 1));
}

/* The same place as the device calls it. */
static inline u64 ferry_ring_dma(const struct ferry_ring *ring, size_t offset)
{
	const struct ferry_mmap *chunk = ring->chunk[offset >> ring->chunk_shift];

	return chunk->buf.dma + (offset & ((1ul << ring->chunk_shift) - 1));
}

#endif
