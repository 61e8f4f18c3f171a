// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shadow.h"

#include <stddef.h>
#include <stdlib.h>

bool shadow_create(struct coherence *c, const char *path, uint64_t ram_base, uint64_t ram_size)
{
	uint64_t pages = (sizeof(struct coherence_header) + COHERENCE_PAGE - 1) /
			 COHERENCE_PAGE * COHERENCE_PAGE;
	uint64_t lines = pages + (ram_size / COHERENCE_PAGE + COHERENCE_PAGE - 1) /
			 COHERENCE_PAGE * COHERENCE_PAGE;
	uint64_t size = lines + ram_size / COHERENCE_LINE * sizeof(struct coherence_line);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool done;

	if (fd < 0)
		return false;
	done = !ftruncate(fd, (off_t)size) && coherence_lay_out(c, fd, size);
	close(fd);
	if (!done)
		return false;
	c->header->ram_base = ram_base;
	c->header->ram_size = ram_size;
	c->header->pages_offset = pages;
	c->header->lines_offset = lines;
	c->pages = (uint8_t *)c->header + pages;
	c->lines = (struct coherence_line *)((char *)c->header + lines);
	__atomic_store_n(&c->header->magic, COHERENCE_MAGIC, __ATOMIC_RELEASE);
	return true;
}

static struct finding found(enum coherence_event event, uint64_t bytes)
{
	return (struct finding){ .event = event, .bytes = bytes };
}

struct finding shadow_load(struct coherence *c, uint64_t addr, unsigned int len)
{
	struct coherence_line *line = coherence_line(c, addr);
	struct coherence_state state;
	uint64_t bytes, lost;

	if (!line)
		return found(0, 0);
	bytes = __atomic_load_n(&line->stale, __ATOMIC_RELAXED) & coherence_bytes(addr, len);
	if (!bytes)
		return found(0, 0);
	state = coherence_state_exact(line);
	bytes &= state.stale;
	lost = bytes & state.dirty;
	return lost ? found(COHERENCE_LOAD_LOST, lost) : found(COHERENCE_LOAD_STALE, bytes);
}

/* What the device wrote besides will be destroyed when the line is written back. */
void shadow_store(struct coherence *c, uint64_t addr, unsigned int len, uint64_t storer)
{
	struct coherence_line *line = coherence_line(c, addr);
	uint64_t bytes = coherence_bytes(addr, len);
	struct coherence_state old, new;
	uint8_t *page;

	if (!line)
		return;
	page = coherence_page(c, addr);
	if (__atomic_load_n(page, __ATOMIC_RELAXED))
		__atomic_store_n(page, 0, __ATOMIC_RELAXED);
	do {
		old = coherence_state(line);
		new.stale = old.stale & ~bytes;
		new.dirty = old.dirty | bytes | new.stale;
	} while (!coherence_change(line, old, new));
	if (line->storer != storer)
		__atomic_store_n(&line->storer, storer, __ATOMIC_RELAXED);
}

struct finding shadow_uncached(struct coherence *c, uint64_t addr)
{
	struct coherence_line *line = coherence_line(c, addr);
	struct coherence_state old, new = { 0, 0 };
	uint8_t *page;

	if (!line)
		return found(0, 0);
	page = coherence_page(c, addr);
	if (!__atomic_load_n(page, __ATOMIC_RELAXED))
		__atomic_store_n(page, 1, __ATOMIC_RELAXED);
	do {
		old = coherence_state(line);
	} while (!coherence_change(line, old, new));
	return found(COHERENCE_ACCESS_ALIAS, old.dirty);
}

void shadow_clean(struct coherence *c, uint64_t addr)
{
	struct coherence_line *line = coherence_line(c, addr);
	struct coherence_state old, new;

	if (!line)
		return;
	do {
		old = coherence_state(line);
		new.stale = old.stale;
		new.dirty = old.dirty & old.stale;
	} while (!coherence_change(line, old, new));
}

struct finding shadow_flush(struct coherence *c, uint64_t addr)
{
	struct coherence_line *line = coherence_line(c, addr);
	struct coherence_state old, new = { 0, 0 };

	if (!line)
		return found(0, 0);
	do {
		old = coherence_state(line);
	} while (!coherence_change(line, old, new));
	return found(COHERENCE_FLUSH_LOST, old.dirty & old.stale);
}

struct finding shadow_inval(struct coherence *c, uint64_t addr)
{
	struct coherence_line *line = coherence_line(c, addr);
	struct coherence_state old, new;

	if (!line)
		return found(0, 0);
	do {
		old = coherence_state(line);
		new.dirty = old.dirty;
		new.stale = old.dirty;
	} while (!coherence_change(line, old, new));
	return found(COHERENCE_INVAL_DIRTY, old.dirty & ~old.stale);
}

static void forget_lines(struct coherence_line *line, size_t count)
{
	struct coherence_state old, new = { 0, 0 };

	for (; count; count--, line++) {
		do {
			old = coherence_state(line);
			new.dirty = old.dirty;
		} while (old.stale && !coherence_change(line, old, new));
	}
}

/* Only in the pages of the file that are there: it is sparse. */
void shadow_forget(struct coherence *c)
{
	const size_t pages = (c->size - c->header->lines_offset) / COHERENCE_PAGE;
	const size_t each = COHERENCE_PAGE / sizeof(struct coherence_line);
	unsigned char *there = malloc(pages);
	size_t i;

	if (!there || mincore(c->lines, pages * COHERENCE_PAGE, there))
		abort();
	for (i = 0; i < pages; i++)
		if (there[i] & 1)
			forget_lines(c->lines + i * each, each);
	free(there);
}
