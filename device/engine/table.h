/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers to objects. A number is an index and a generation that changes whenever the
 * index is used again, so that a stale number names nothing. Freed indices are taken
 * again in the order they were freed. Grows by chunks.
 */
#ifndef FERRY_TABLE_H
#define FERRY_TABLE_H

#include "base.h"

struct ferry_engine;

#define TABLE_CHUNK_SHIFT	9
#define TABLE_CHUNK_ENTRIES	(1u << TABLE_CHUNK_SHIFT)
#define TABLE_CHUNKS		513	/* of the largest: 262,144 keys and a reserved one */

struct table_entry {
	void *object;		/* NULL: free */
	uint32_t number;	/* the current one, or the one used last */
	uint32_t next_free;	/* index; 0 ends the list */
};

/* How index and generation make a number. */
struct table_layout {
	uint8_t index_shift, index_bits;
	uint8_t gen_shift, gen_bits;
	uint32_t first;		/* lowest index given out, 1 at least */
	uint32_t limit;		/* objects at once */
};

struct table {
	const struct table_layout *layout;
	struct table_entry *chunk[TABLE_CHUNKS];
	uint32_t fresh;		/* lowest index never used */
	uint32_t used;		/* objects */
	uint32_t free_head, free_tail;
	uint32_t salt;		/* first generation of fresh indices */
};

void table_init(struct table *table, const struct table_layout *layout, uint32_t salt);
void table_release(struct ferry_engine *e, struct table *table);

/* A number for @object; 0 if the table is full or memory is. */
uint32_t table_add(struct ferry_engine *e, struct table *table, void *object);
void table_remove(struct table *table, uint32_t number);

/* Any object at or after *@index, which moves on; NULL at the end. */
void *table_next(const struct table *table, uint32_t *index);

static inline uint32_t table_index(const struct table *table, uint32_t number)
{
	const struct table_layout *l = table->layout;

	return (number >> l->index_shift) & ((1u << l->index_bits) - 1);
}

static inline void *table_find(const struct table *table, uint32_t number)
{
	uint32_t index = table_index(table, number);
	const struct table_entry *entry;

	if (index >= table->fresh)
		return NULL;
	entry = &table->chunk[index >> TABLE_CHUNK_SHIFT][index & (TABLE_CHUNK_ENTRIES - 1)];
	return entry->number == number ? entry->object : NULL;
}

#endif
