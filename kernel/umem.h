/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of a memory region: pages of a process, or memory of the driver that a
 * process has mapped.
 */
#ifndef FERRY_UMEM_H
#define FERRY_UMEM_H

#include <linux/types.h>

#include "dma.h"

struct ferry_dev;
struct ferry_mmap;
struct ferry_page_list;
struct ferry_pages;
struct ferry_pinned;
struct ib_umem;
struct ib_ucontext;

/* One of umem, pinned and chunk is set. */
struct ferry_umem {
	u64 iova;			/* the address that names its first byte */
	u64 length;			/* bytes */
	u64 offset;			/* of its first byte in the first block */
	u32 blocks;
	unsigned int block_shift;
	struct ferry_dma_run run;	/* where the device sees it, with umem and pinned */
	struct ib_umem *umem;		/* pinned by the core: coherent hosts */
	struct ferry_pinned *pinned;	/* pinned by us: other hosts */
	struct ferry_mmap **chunk;	/* memory of the driver, a chunk a block */
};

int ferry_umem_pin(struct ferry_dev *dev, struct ferry_umem *mem, u64 start, u64 length,
		   u64 iova, int access);
int ferry_umem_borrow(struct ferry_dev *dev, struct ferry_umem *mem, struct ib_ucontext *ibuctx,
		      u64 map_offset, u64 skip, u64 length, u64 iova);
void ferry_umem_release(struct ferry_dev *dev, struct ferry_umem *mem);
int ferry_umem_list(struct ferry_dev *dev, const struct ferry_umem *mem,
		    struct ferry_pages *pages, struct ferry_page_list *hw);

/* Whether its lines are in caches that the device does not snoop. */
static inline bool ferry_umem_is_cached(const struct ferry_umem *mem)
{
	return mem->pinned;
}

bool ferry_umem_has(const struct ferry_umem *mem, u64 addr, u64 length);
void ferry_umem_clean(struct ferry_dev *dev, const struct ferry_umem *mem, u64 addr, u64 length);
void ferry_umem_flush(struct ferry_dev *dev, const struct ferry_umem *mem, u64 addr, u64 length);
void ferry_umem_store(const struct ferry_umem *mem, u64 addr, const void *from, size_t length);

#endif
