// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Context memory only grows. What the driver adds is cut in halves as small as they are
 * wanted, and what a queue gives back waits for the next one that wants its size.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ccan/ilog.h>
#include <ccan/minmax.h>
#include <infiniband/cmd_ioctl.h>

#include "bounce.h"

/* There may be 4096 additions: so that many small queues do not use them up. */
#define FERRY_ADD_SHIFT_MIN	18

/* What the driver added at once. */
struct ferry_context_memory {
	struct list_node entry;
	void *mem;
	size_t bytes;
};

struct ferry_block {
	struct list_node entry;		/* while free */
	unsigned int shift;		/* log2 of its bytes */
	void *mem;
	uint64_t addr;			/* the device's */
};

static int ferry_ask_for_memory(struct ferry_context *ctx, uint64_t bytes, uint64_t *offset,
				uint64_t *addr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE, FERRY_METHOD_CONTEXT_MEMORY_ADD, 3);

	fill_attr_in_uint64(cmd, FERRY_ATTR_CONTEXT_MEMORY_ADD_LENGTH, bytes);
	fill_attr_out(cmd, FERRY_ATTR_CONTEXT_MEMORY_ADD_OFFSET, offset, sizeof(*offset));
	fill_attr_out(cmd, FERRY_ATTR_CONTEXT_MEMORY_ADD_BASE, addr, sizeof(*addr));
	return execute_ioctl(&ctx->ibv_ctx.context, cmd);
}

static struct ferry_block *ferry_add_memory(struct ferry_context *ctx, unsigned int shift)
{
	const struct ferry_ring_map map = { .bytes = 1u << shift, .chunk_bytes = 1u << shift };
	struct ferry_context_memory *added;
	struct ferry_ring_map at = map;
	struct ferry_ring ring = {};
	struct ferry_block *block;
	uint64_t offset, addr;

	added = calloc(1, sizeof(*added));
	block = calloc(1, sizeof(*block));
	if (!added || !block || ferry_ask_for_memory(ctx, map.bytes, &offset, &addr))
		goto err_free;
	at.offset = offset;
	if (ferry_map_ring(ctx, &ring, &at))
		goto err_free;
	added->mem = ring.mem;
	added->bytes = ring.bytes;
	list_add(&ctx->cache->memory, &added->entry);
	block->shift = shift;
	block->mem = ring.mem;
	block->addr = addr;
	return block;

err_free:
	free(block);
	free(added);
	return NULL;
}

/* The upper half of @block becomes a block of its own. */
static struct ferry_block *ferry_split_block(struct ferry_block *block)
{
	struct ferry_block *upper = calloc(1, sizeof(*upper));

	if (!upper)
		return NULL;
	block->shift--;
	upper->shift = block->shift;
	upper->mem = block->mem + (1ul << block->shift);
	upper->addr = block->addr + (1ul << block->shift);
	return upper;
}

/* A block of 2^@shift bytes; the lock is held. */
static struct ferry_block *ferry_get_block(struct ferry_context *ctx, unsigned int shift)
{
	struct ferry_cache *cache = ctx->cache;
	struct ferry_block *block = NULL, *upper;
	unsigned int i;

	for (i = shift; !block && i <= FERRY_BOUNCE_SHIFT_MAX; i++)
		block = list_pop(&cache->blocks[i], struct ferry_block, entry);
	if (!block)
		block = ferry_add_memory(ctx, max_t(unsigned int, shift, FERRY_ADD_SHIFT_MIN));
	while (block && block->shift > shift) {
		upper = ferry_split_block(block);
		if (!upper) {
			list_add(&cache->blocks[block->shift], &block->entry);
			return NULL;
		}
		list_add(&cache->blocks[upper->shift], &upper->entry);
	}
	return block;
}

void ferry_bounce_put(struct ferry_context *ctx, struct ferry_bounce *bounce)
{
	unsigned int i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < bounce->count; i++)
		list_add(&ctx->cache->blocks[bounce->block_shift], &bounce->blocks[i]->entry);
	pthread_mutex_unlock(&ctx->lock);
	free(bounce->blocks);
	bounce->blocks = NULL;
	bounce->count = 0;
}

/**
 * ferry_bounce_get - slots for a queue
 * @ctx: its context
 * @bounce: is filled in
 * @slots: how many; a power of two
 * @slot_bytes: what each must hold, at least one byte
 *
 * Return: 0 or an errno.
 */
int ferry_bounce_get(struct ferry_context *ctx, struct ferry_bounce *bounce, uint32_t slots,
		     size_t slot_bytes)
{
	unsigned int shift, count;

	bounce->slot_shift = ilog64_nz(slot_bytes - 1);
	shift = max_t(unsigned int, bounce->slot_shift + __builtin_ctz(slots),
		      FERRY_BOUNCE_SHIFT_MIN);
	bounce->block_shift = min_t(unsigned int, shift, FERRY_BOUNCE_SHIFT_MAX);
	count = 1u << (shift - bounce->block_shift);
	bounce->blocks = calloc(count, sizeof(struct ferry_block *));
	if (!bounce->blocks)
		return ENOMEM;
	pthread_mutex_lock(&ctx->lock);
	for (; bounce->count < count; bounce->count++) {
		bounce->blocks[bounce->count] = ferry_get_block(ctx, bounce->block_shift);
		if (!bounce->blocks[bounce->count])
			break;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (bounce->count < count) {
		ferry_bounce_put(ctx, bounce);
		return ENOMEM;
	}
	return 0;
}

/* The slot of a queue's place, and what the device calls it. */
void *ferry_bounce_slot(const struct ferry_bounce *bounce, uint64_t place, uint64_t *addr)
{
	const uint64_t offset = place << bounce->slot_shift;
	const struct ferry_block *block = bounce->blocks[offset >> bounce->block_shift];
	const uint64_t in_block = offset & ((1ull << bounce->block_shift) - 1);

	*addr = block->addr + in_block;
	return block->mem + in_block;
}

/* All of it, with the context. */
void ferry_bounce_release(struct ferry_cache *cache)
{
	struct ferry_context_memory *added, *next;
	struct ferry_block *block;
	unsigned int i;

	for (i = 0; i <= FERRY_BOUNCE_SHIFT_MAX; i++)
		while ((block = list_pop(&cache->blocks[i], struct ferry_block, entry)))
			free(block);
	list_for_each_safe(&cache->memory, added, next, entry) {
		munmap(added->mem, added->bytes);
		free(added);
	}
}
