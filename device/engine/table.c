// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "state.h"
#include "table.h"

static struct table_entry *table_entry(const struct table *table, uint32_t index)
{
	return &table->chunk[index >> TABLE_CHUNK_SHIFT][index & (TABLE_CHUNK_ENTRIES - 1)];
}

void table_init(struct table *table, const struct table_layout *layout, uint32_t salt)
{
	memset(table, 0, sizeof(*table));
	table->layout = layout;
	table->salt = salt;
}

void table_release(struct ferry_engine *e, struct table *table)
{
	uint32_t i;

	for (i = 0; i < TABLE_CHUNKS && table->chunk[i]; i++)
		engine_free(e, table->chunk[i]);
	table_init(table, table->layout, table->salt);
}

static uint32_t table_number(const struct table_layout *l, uint32_t index, uint32_t gen)
{
	gen &= (1u << l->gen_bits) - 1;
	return index << l->index_shift | gen << l->gen_shift;
}

/* An index never used before; 0 if there is none. */
static uint32_t table_fresh(struct ferry_engine *e, struct table *table)
{
	uint32_t index = table->fresh ? table->fresh : table->layout->first;
	struct table_entry **chunk = &table->chunk[index >> TABLE_CHUNK_SHIFT];

	if (index >= table->layout->first + table->layout->limit)
		return 0;
	if (!*chunk) {
		*chunk = engine_alloc(e, TABLE_CHUNK_ENTRIES * sizeof(**chunk));
		if (!*chunk)
			return 0;
	}
	table->fresh = index + 1;
	table_entry(table, index)->number = table_number(table->layout, index, table->salt);
	return index;
}

static uint32_t table_reuse(struct table *table)
{
	uint32_t index = table->free_head;
	const struct table_layout *l = table->layout;
	struct table_entry *entry;

	if (!index)
		return 0;
	entry = table_entry(table, index);
	table->free_head = entry->next_free;
	entry->number = table_number(l, index, (entry->number >> l->gen_shift) + 1);
	return index;
}

uint32_t table_add(struct ferry_engine *e, struct table *table, void *object)
{
	uint32_t index;

	if (table->used >= table->layout->limit)
		return 0;
	index = table_reuse(table);
	if (!index)
		index = table_fresh(e, table);
	if (!index)
		return 0;
	table->used++;
	table_entry(table, index)->object = object;
	return table_entry(table, index)->number;
}

void table_remove(struct table *table, uint32_t number)
{
	uint32_t index = table_index(table, number);
	struct table_entry *entry = table_entry(table, index);

	entry->object = NULL;
	entry->next_free = 0;
	if (table->free_head)
		table_entry(table, table->free_tail)->next_free = index;
	else
		table->free_head = index;
	table->free_tail = index;
	table->used--;
}

void *table_next(const struct table *table, uint32_t *index)
{
	void *object;

	if (*index < table->layout->first)
		*index = table->layout->first;
	while (*index < table->fresh) {
		object = table_entry(table, (*index)++)->object;
		if (object)
			return object;
	}
	return NULL;
}
