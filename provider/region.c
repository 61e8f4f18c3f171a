// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From a key to the MR it names, on hosts that are not coherent: work requests speak of
 * MRs' addresses, cache maintenance needs the process's.
 *
 * Found without a lock. An entry is never freed before its context, only filled again, and
 * its key says whether what was read belongs together: it is taken out before the rest
 * changes and put in after it. An MR's key does not come back before 255 others of its
 * index.
 */
#include <errno.h>
#include <stdlib.h>

#include "cache.h"

static struct ferry_region *ferry_region_at(struct ferry_region *leaf, uint32_t key)
{
	return &leaf[key >> 8 & (FERRY_REGION_LEAF_SIZE - 1)];
}

static unsigned int ferry_region_leaf(uint32_t key)
{
	return key >> 20;
}

/* 0 or an errno. */
int ferry_region_add(struct ferry_context *ctx, const struct ferry_region *region)
{
	struct ferry_region **place = &ctx->cache->regions[ferry_region_leaf(region->key)];
	struct ferry_region *leaf, *entry;

	pthread_mutex_lock(&ctx->lock);
	leaf = *place;
	if (!leaf) {
		leaf = calloc(FERRY_REGION_LEAF_SIZE, sizeof(*leaf));
		if (!leaf) {
			pthread_mutex_unlock(&ctx->lock);
			return ENOMEM;
		}
		__atomic_store_n(place, leaf, __ATOMIC_RELEASE);
	}
	entry = ferry_region_at(leaf, region->key);
	/* Whoever reads what follows finds the key of the last MR here gone. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&entry->handle, region->handle, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->pd, region->pd, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->cached, region->cached, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->local_write, region->local_write, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->iova, region->iova, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->length, region->length, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->va, region->va, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->key, region->key, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

/* Before the driver ends the MR, since it may give the index to another one at once. */
void ferry_region_remove(struct ferry_context *ctx, uint32_t key)
{
	struct ferry_cache *cache = ctx->cache;
	struct ferry_region *leaf;

	pthread_mutex_lock(&ctx->lock);
	leaf = cache->regions[ferry_region_leaf(key)];
	__atomic_store_n(&ferry_region_at(leaf, key)->key, 0, __ATOMIC_RELAXED);
	/* Whoever looks it up with the new count finds that it is gone. */
	__atomic_store_n(&cache->ends, cache->ends + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctx->lock);
}

/* The MR of that key, by value; false if there is none. */
bool ferry_region_get(const struct ferry_cache *cache, uint32_t key, struct ferry_region *found)
{
	struct ferry_region *leaf, *entry;

	leaf = __atomic_load_n(&cache->regions[ferry_region_leaf(key)], __ATOMIC_ACQUIRE);
	if (!leaf || !key)
		return false;
	entry = ferry_region_at(leaf, key);
	found->key = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);
	found->handle = __atomic_load_n(&entry->handle, __ATOMIC_RELAXED);
	found->pd = __atomic_load_n(&entry->pd, __ATOMIC_RELAXED);
	found->cached = __atomic_load_n(&entry->cached, __ATOMIC_RELAXED);
	found->local_write = __atomic_load_n(&entry->local_write, __ATOMIC_RELAXED);
	found->iova = __atomic_load_n(&entry->iova, __ATOMIC_RELAXED);
	found->length = __atomic_load_n(&entry->length, __ATOMIC_RELAXED);
	found->va = __atomic_load_n(&entry->va, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return found->key == key && __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key;
}

/* False if there is no such MR. */
static bool ferry_region_see(const struct ferry_cache *cache, struct ferry_seen_region *seen,
			     uint32_t key)
{
	/* Before the look-up: an MR that ends meanwhile is not taken for one that has not. */
	const uint64_t ends = __atomic_load_n(&cache->ends, __ATOMIC_ACQUIRE);

	seen->ends = ferry_region_get(cache, key, &seen->region) ? ends : 0;
	return seen->ends;
}

/**
 * ferry_region_find - the MR that a work request names
 * @cache: of the context
 * @seen: of the queue, whose lock is held
 * @key: of the MR
 * @addr: its first byte, in the MR's addresses
 * @length: bytes
 *
 * Without a fence where the queue has seen that MR before and none has ended since. Who learns
 * of a key that is in use again learns of the end before it, too.
 *
 * Return: the MR, until the next call with @seen. NULL if there is none, or the range does not lie
 * in it as a whole; then the device refuses it as well.
 */
const struct ferry_region *ferry_region_find(const struct ferry_cache *cache,
					     struct ferry_seen *seen, uint32_t key, uint64_t addr,
					     uint64_t length)
{
	struct ferry_seen_region *entry = &seen->regions[key >> 8 & (FERRY_SEEN_REGIONS - 1)];
	const struct ferry_region *region = &entry->region;

	if ((entry->ends != __atomic_load_n(&cache->ends, __ATOMIC_RELAXED) ||
	     region->key != key) && !ferry_region_see(cache, entry, key))
		return NULL;
	if (addr < region->iova || length > region->length ||
	    addr - region->iova > region->length - length)
		return NULL;
	return region;
}
