/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process can map, and how long it lives: until the driver has no use for it and
 * the last mapping is gone.
 */
#ifndef FERRY_MMAP_H
#define FERRY_MMAP_H

#include <linux/sizes.h>
#include <rdma/ib_verbs.h>

#include "dma.h"
#include "locked.h"

struct ferry_context;
struct ferry_ucontext;

#define FERRY_CHUNKS_MAX	SZ_1M	/* of what was mapped side by side */

enum ferry_mmap_kind {
	FERRY_MMAP_PLACEHOLDER,		/* keeps a range of offsets, never mapped */
	FERRY_MMAP_DOORBELL,		/* a page of BAR2, write-only by nature */
	FERRY_MMAP_STATUS,		/* the status page, read-only */
	FERRY_MMAP_MEMORY,		/* buf, freed with the entry */
	FERRY_MMAP_PROGRAM,		/* the same, which the process may register */
};

struct ferry_mmap {
	struct rdma_user_mmap_entry entry;
	struct ferry_dev *dev;
	struct ferry_context *ctx;	/* whose limit it counts against, or NULL */
	enum ferry_mmap_kind kind;
	bool inserted;			/* the core counts its users */
	unsigned long pfn;
	struct ferry_buf buf;		/* FERRY_MMAP_MEMORY, FERRY_MMAP_PROGRAM */
	struct ferry_locked locked;	/* what of buf the process wished for */
};

struct ferry_mmap *ferry_mmap_alloc(struct ferry_dev *dev, enum ferry_mmap_kind kind);
struct ferry_mmap *ferry_mmap_alloc_memory(struct ferry_dev *dev, struct ferry_context *ctx,
					   size_t size, gfp_t gfp);
int ferry_mmap_share(struct ferry_ucontext *uctx, struct ferry_mmap **maps, unsigned int count,
		     size_t size, u64 *offset);
void ferry_mmap_put(struct ferry_mmap *map);
size_t ferry_mmap_chunk_bytes(struct ib_ucontext *ibuctx, u64 offset);
int ferry_mmap_get_chunks(struct ib_ucontext *ibuctx, u64 offset, size_t chunk_bytes,
			  struct ferry_mmap **chunk, u32 count);
void ferry_mmap_put_chunks(struct ferry_mmap **chunk, u32 count);

int ferry_mmap(struct ib_ucontext *ibuctx, struct vm_area_struct *vma);
void ferry_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
