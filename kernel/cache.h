/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cache maintenance of user memory on hosts whose CPU caches the device does not snoop.
 * Memory of ferry_dma_alloc() needs none.
 */
#ifndef FERRY_CACHE_H
#define FERRY_CACHE_H

#include <linux/types.h>

struct ferry_dev;
struct page;

/* A stretch of memory, contiguous for CPU and device. */
struct ferry_stretch {
	struct page *page;
	size_t offset;		/* in it, or behind it */
	dma_addr_t dma;		/* of its first byte, by the DMA API */
	size_t length;		/* bytes */
};

int ferry_cache_init(struct ferry_dev *dev);
void ferry_cache_clean(struct ferry_dev *dev, const struct ferry_stretch *s);
void ferry_cache_flush(struct ferry_dev *dev, const struct ferry_stretch *s);

#endif
