/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Register writes and doorbells on their way from the client's thread to the shard: one
 * producer, one consumer, no lock.
 */
#ifndef VNIC_QUEUE_H
#define VNIC_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define QUEUE_SIZE	16384u		/* power of two */

enum queue_kind { QUEUE_REGISTER, QUEUE_DOORBELL };

struct queue_entry {
	enum queue_kind kind;
	uint32_t where;		/* register offset, or doorbell page */
	uint64_t value;
};

struct queue {
	_Alignas(64) atomic_uint tail;	/* producer: next to fill; free running */
	_Alignas(64) atomic_uint head;	/* consumer: next to take */
	struct queue_entry entry[QUEUE_SIZE];
};

/* False if it is full. */
static inline bool queue_push(struct queue *queue, const struct queue_entry *entry)
{
	unsigned int tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

	/* Acquire: the consumer has read the entry before it is filled again. */
	if (tail - atomic_load_explicit(&queue->head, memory_order_acquire) == QUEUE_SIZE)
		return false;
	queue->entry[tail % QUEUE_SIZE] = *entry;
	/* Release: the entry before the index that announces it. */
	atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
	return true;
}

static inline bool queue_pop(struct queue *queue, struct queue_entry *entry)
{
	unsigned int head = atomic_load_explicit(&queue->head, memory_order_relaxed);

	/* Acquire: the index before the entry that it announces. */
	if (head == atomic_load_explicit(&queue->tail, memory_order_acquire))
		return false;
	*entry = queue->entry[head % QUEUE_SIZE];
	/* Release: the entry has been read before its place is given back. */
	atomic_store_explicit(&queue->head, head + 1, memory_order_release);
	return true;
}

static inline bool queue_empty(struct queue *queue)
{
	return atomic_load_explicit(&queue->head, memory_order_relaxed) ==
	       atomic_load_explicit(&queue->tail, memory_order_acquire);
}

#endif
