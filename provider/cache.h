/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hosts whose device does not snoop the CPUs' caches: what the provider needs there and
 * nowhere else. ctx->cache is NULL on coherent hosts.
 */
#ifndef FERRY_CACHE_H
#define FERRY_CACHE_H

#include "ferry.h"

/* MRs by the index of their key, 24 bits: the upper half names a leaf, the lower an entry. */
#define FERRY_REGION_LEAF_SIZE	(1u << 12)
#define FERRY_REGION_LEAVES	(1u << 12)

/* An MR as the data path sees it. */
struct ferry_region {
	uint32_t key;			/* 0: no MR */
	uint32_t handle;		/* of uverbs */
	uint32_t pd;			/* its handle */
	bool cached;			/* the CPUs may hold lines of it */
	bool local_write;
	uint64_t iova;
	uint64_t length;
	uintptr_t va;
};

/* Free blocks of context memory by size, 2^n bytes. */
#define FERRY_BOUNCE_SHIFT_MIN	7
#define FERRY_BOUNCE_SHIFT_MAX	20

/* The MRs that a queue has lately worked with, by the low bits of their index. */
#define FERRY_SEEN_REGIONS	4

struct ferry_seen {
	struct ferry_seen_region {
		uint64_t ends;		/* struct ferry_cache.ends when it was looked up; 0: none */
		struct ferry_region region;
	} regions[FERRY_SEEN_REGIONS];
};

struct ferry_cache {
	size_t line;			/* bytes, a power of two */
	bool user;			/* user mode may clean and flush */
	uint64_t ends;			/* 1 + MRs that have ended */
	struct ferry_region *regions[FERRY_REGION_LEAVES];
	struct list_head blocks[FERRY_BOUNCE_SHIFT_MAX + 1];	/* struct ferry_block */
	struct list_head memory;	/* struct ferry_context_memory */
};

/* cache.c; 0 or an errno */
int ferry_cache_init(struct ferry_context *ctx, uint32_t line);
void ferry_cache_free(struct ferry_context *ctx);
int ferry_mr_sync(struct ibv_context *ibctx, uint32_t handle, enum ferry_sync op,
		  const struct ferry_range *range);
int ferry_cache_clean(struct ferry_context *ctx, const struct ferry_region *region,
		      uint64_t addr, uint64_t length);
int ferry_cache_flush(struct ferry_context *ctx, const struct ferry_region *region,
		      uint64_t addr, uint64_t length);

/* region.c */
int ferry_region_add(struct ferry_context *ctx, const struct ferry_region *region);
void ferry_region_remove(struct ferry_context *ctx, uint32_t key);
bool ferry_region_get(const struct ferry_cache *cache, uint32_t key, struct ferry_region *found);
const struct ferry_region *ferry_region_find(const struct ferry_cache *cache,
					     struct ferry_seen *seen, uint32_t key, uint64_t addr,
					     uint64_t length);

#endif
