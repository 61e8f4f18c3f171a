/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that device and CPUs share without cache maintenance, and that the device calls
 * by FERRY_KEY_CONTEXT: a slot for each place of a queue. The device writes there what
 * it must not write into cache lines that the application may use meanwhile.
 */
#ifndef FERRY_BOUNCE_H
#define FERRY_BOUNCE_H

#include "cache.h"

struct ferry_block;

struct ferry_bounce {
	unsigned int slot_shift;	/* log2 of the bytes of a slot */
	unsigned int block_shift;
	unsigned int count;
	struct ferry_block **blocks;	/* NULL: no slots */
};

int ferry_bounce_get(struct ferry_context *ctx, struct ferry_bounce *bounce, uint32_t slots,
		     size_t slot_bytes);
void ferry_bounce_put(struct ferry_context *ctx, struct ferry_bounce *bounce);
void *ferry_bounce_slot(const struct ferry_bounce *bounce, uint64_t place, uint64_t *addr);
void ferry_bounce_release(struct ferry_cache *cache);

#endif
