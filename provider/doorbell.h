/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the device learns of work: records, group words, the status page, and the
 * doorbell page. doc/hardware.md has the protocol.
 */
#ifndef FERRY_DOORBELL_H
#define FERRY_DOORBELL_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <util/compiler.h>
#include <util/mmio.h>
#include <ferry_hw.h>

#include "barrier.h"

/*
 * A word shared with the device is read and written as one. (Volatile, not atomic: the
 * compilers make better code of it.)
 */
static inline uint32_t ferry_load32(const __le32 *word)
{
	return le32toh((__force uint32_t)*(const volatile __le32 *)word);
}

static inline void ferry_store32(__le32 *word, uint32_t value)
{
	*(volatile __le32 *)word = (__force __le32)htole32(value);
}

static inline uint64_t ferry_load64(const __le64 *word)
{
	return le64toh((__force uint64_t)*(const volatile __le64 *)word);
}

static inline void ferry_store64(__le64 *word, uint64_t value)
{
	*(volatile __le64 *)word = (__force __le64)htole64(value);
}

/* What it takes to announce something for one queue. */
struct ferry_bell {
	uint64_t base;			/* FERRY_DB() of this queue with index 0 */
	struct ferry_slot *slot;
	__le32 *word;			/* of the slot's page; NULL: the device does not poll */
	const struct ferry_status_page *status;
	void *page;			/* MMIO */
};

/*
 * A record has been stored: false where the device will not find it by itself, and must be
 * rung. The fence orders the record before what a caller stores next as well: see
 * ferry_unlock_fenced().
 */
static inline bool ferry_device_looks(const struct ferry_bell *bell, __le32 *word)
{
	ferry_fence_record_look();
	if (unlikely(!ferry_load32(word)))
		ferry_store32(word, 1);
	return ferry_load32(&bell->status->awake);
}

/*
 * Announces @value, which is a doorbell of this queue. All that the device will read on
 * account of it is behind ferry_fence_work_record(), which orders it before the doorbell
 * page as well.
 */
static inline void ferry_ring(const struct ferry_bell *bell, uint64_t value)
{
	__le32 *const word = bell->word;

	if (likely(word)) {
		ferry_store64(&bell->slot->db, value);
		if (likely(ferry_device_looks(bell, word)))
			return;
	}
	mmio_write64(bell->page, value);
}

/*
 * The index of a record. The upper half of the word, type and number, is there since the
 * queue was made or reset, and the device reads both in one.
 */
static inline void ferry_store_index(__le64 *record, uint64_t index)
{
	ferry_store32((__le32 *)record, index);
}

/* The same as ferry_ring() of an SQ, whose producer index is @index now. */
static inline void ferry_ring_index(const struct ferry_bell *bell, uint64_t index)
{
	__le32 *const word = bell->word;

	if (likely(word)) {
		ferry_store_index(&bell->slot->db, index);
		if (likely(ferry_device_looks(bell, word)))
			return;
	}
	mmio_write64(bell->page, bell->base | (uint32_t)index);
}

#endif
