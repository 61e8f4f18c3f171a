// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hostmem.h"
#include "tap.h"

#define HOSTMEM_LARGE	(1u << 20)

void hostmem_init(struct hostmem *mem, uint64_t seed)
{
	memset(mem, 0, sizeof(*mem));
	rng_init(&mem->rng, seed);
}

/* Large chunks are pages that exist once they are touched. */
static uint8_t *backing_alloc(size_t len)
{
	uint8_t *va;

	if (len >= HOSTMEM_LARGE) {
		va = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		need(va != MAP_FAILED);
		return va;
	}
	va = aligned_alloc(HOSTMEM_PAGE, len);
	need(va);
	memset(va, 0, len);
	return va;
}

static void backing_free(uint8_t *va, size_t len)
{
	if (len >= HOSTMEM_LARGE)
		munmap(va, len);
	else
		free(va);
}

static void chunk_free(struct hostmem_chunk *chunk)
{
	backing_free(chunk->va, chunk->len);
	free(chunk->windows);
	free(chunk);
}

void hostmem_destroy(struct hostmem *mem)
{
	unsigned int i;

	for (i = 0; i < mem->count; i++)
		chunk_free(mem->chunks[i]);
	free(mem->chunks);
	memset(mem, 0, sizeof(*mem));
}

/* How many chunks begin at or below @dma. */
static unsigned int chunks_upto(const struct hostmem *mem, uint64_t dma)
{
	unsigned int low = 0, high = mem->count;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (mem->chunks[middle]->dma <= dma)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct hostmem_chunk *hostmem_find(struct hostmem *mem, uint64_t dma)
{
	unsigned int n = chunks_upto(mem, dma);

	if (!n || dma - mem->chunks[n - 1]->dma >= mem->chunks[n - 1]->len)
		return NULL;
	return mem->chunks[n - 1];
}

static bool range_free(const struct hostmem *mem, uint64_t dma, uint64_t len)
{
	unsigned int n = chunks_upto(mem, dma);

	if (n && dma - mem->chunks[n - 1]->dma < mem->chunks[n - 1]->len)
		return false;
	return n == mem->count || mem->chunks[n]->dma - dma >= len;
}

/* Every fourth chunk follows the one before it, so that some runs of blocks are contiguous. */
static uint64_t pick_address(struct hostmem *mem, uint64_t len, uint64_t align)
{
	uint64_t dma;

	if (rng_chance(&mem->rng, 25) && mem->last_end && !(mem->last_end & (align - 1)) &&
	    range_free(mem, mem->last_end, len))
		return mem->last_end;
	do {
		dma = rng_range(&mem->rng, 1, (1ull << 40) - 1) * HOSTMEM_PAGE & ~(align - 1);
	} while (!dma || !range_free(mem, dma, len));
	return dma;
}

struct hostmem_chunk *hostmem_alloc(struct hostmem *mem, size_t len, uint64_t align)
{
	struct hostmem_chunk *chunk = calloc(1, sizeof(*chunk));
	unsigned int at;

	need(chunk);
	chunk->len = len;
	chunk->dma = pick_address(mem, len, align);
	chunk->va = backing_alloc(len);
	chunk->message = mem->message || (mem->mixed && rng_chance(&mem->rng, 30));
	mem->last_end = chunk->dma + len;

	if (mem->count == mem->capacity) {
		mem->capacity = mem->capacity * 2 + 64;
		mem->chunks = realloc(mem->chunks, mem->capacity * sizeof(mem->chunks[0]));
		need(mem->chunks);
	}
	at = chunks_upto(mem, chunk->dma);
	memmove(&mem->chunks[at + 1], &mem->chunks[at],
		(mem->count - at) * sizeof(mem->chunks[0]));
	mem->chunks[at] = chunk;
	mem->count++;
	return chunk;
}

void hostmem_free(struct hostmem *mem, struct hostmem_chunk *chunk)
{
	unsigned int at = chunks_upto(mem, chunk->dma) - 1;

	need(mem->chunks[at] == chunk);
	mem->count--;
	memmove(&mem->chunks[at], &mem->chunks[at + 1],
		(mem->count - at) * sizeof(mem->chunks[0]));
	chunk_free(chunk);
}

void hostmem_move(struct hostmem_chunk *chunk)
{
	uint8_t *va = backing_alloc(chunk->len);

	memcpy(va, chunk->va, chunk->len);
	memset(chunk->va, 0xdd, chunk->len);
	backing_free(chunk->va, chunk->len);
	chunk->va = va;
}

void hostmem_allow(struct hostmem *mem, uint64_t dma, uint64_t len, unsigned int rights)
{
	struct hostmem_chunk *chunk = hostmem_find(mem, dma);

	need(chunk && len <= chunk->len - (dma - chunk->dma));
	if (chunk->num_windows == chunk->max_windows) {
		chunk->max_windows = chunk->max_windows * 2 + 2;
		chunk->windows = realloc(chunk->windows,
					 chunk->max_windows * sizeof(chunk->windows[0]));
		need(chunk->windows);
	}
	chunk->windows[chunk->num_windows++] = (struct hostmem_window) {
		.first = dma - chunk->dma,
		.end = dma - chunk->dma + len,
		.rights = rights,
	};
}

void hostmem_deny(struct hostmem *mem, uint64_t dma, uint64_t len, unsigned int rights)
{
	struct hostmem_chunk *chunk = hostmem_find(mem, dma);
	uint64_t first = dma - chunk->dma;
	unsigned int i;

	for (i = 0; i < chunk->num_windows; i++) {
		struct hostmem_window *w = &chunk->windows[i];

		if (w->first == first && w->end == first + len && w->rights == rights) {
			*w = chunk->windows[--chunk->num_windows];
			return;
		}
	}
	need_that(false, "no window at %#" PRIx64, dma);
}

/* How far windows with @rights reach from @at on without a gap. */
static uint64_t allowed_end(const struct hostmem_chunk *chunk, uint64_t at, unsigned int rights)
{
	uint64_t end = at, before;
	unsigned int i;

	do {
		before = end;
		for (i = 0; i < chunk->num_windows; i++) {
			const struct hostmem_window *w = &chunk->windows[i];

			if ((w->rights & rights) && w->first <= end && w->end > end)
				end = w->end;
		}
	} while (end != before);
	return end;
}

static bool page_allowed(const struct hostmem_chunk *chunk, uint64_t page, unsigned int rights)
{
	unsigned int i;

	for (i = 0; i < chunk->num_windows; i++) {
		const struct hostmem_window *w = &chunk->windows[i];

		if ((w->rights & rights) && w->first < page + HOSTMEM_PAGE && w->end > page)
			return true;
	}
	return false;
}

static const char *rights_name(unsigned int rights)
{
	return rights == HOSTMEM_READ ? "read" : "written";
}

static bool fails_now(struct hostmem *mem)
{
	need_that(!mem->sealed, "the device touches memory although it must not");
	return mem->countdown && !--mem->countdown;
}

/*
 * Where [addr, addr + *len) begins, with *len cut at the chunk's end. An access outside
 * the windows ends the test; one to memory that is out of reach is refused.
 */
static uint8_t *touch(struct hostmem *mem, uint64_t addr, size_t *len, unsigned int rights)
{
	struct hostmem_chunk *chunk = hostmem_find(mem, addr);
	uint64_t at;

	if (!chunk) {
		need_that(mem->lenient, "the device has %s %#zx bytes at %#" PRIx64
			  ", where nothing is", rights_name(rights), *len, addr);
		return NULL;
	}
	if (chunk->gone)
		return NULL;
	at = addr - chunk->dma;
	if (*len > chunk->len - at)
		*len = chunk->len - at;
	need_that(mem->lenient || allowed_end(chunk, at, rights) >= at + *len,
		  "the device has %s %#zx bytes at %#" PRIx64 " that it was not given",
		  rights_name(rights), *len, addr);
	return chunk->va + at;
}

int hostmem_read(struct hostmem *mem, uint64_t addr, void *to, size_t len)
{
	uint8_t *at = to;

	mem->reads++;
	if (fails_now(mem))
		return -1;
	while (len) {
		size_t n = len;
		const uint8_t *from = touch(mem, addr, &n, HOSTMEM_READ);

		if (!from)
			return -1;
		memcpy(at, from, n);
		at += n;
		addr += n;
		len -= n;
	}
	return 0;
}

int hostmem_write(struct hostmem *mem, uint64_t addr, const void *from, size_t len)
{
	const uint8_t *at = from;

	mem->writes++;
	if (fails_now(mem))
		return -1;
	while (len) {
		size_t n = len;
		uint8_t *to = touch(mem, addr, &n, HOSTMEM_WRITE);

		if (!to)
			return -1;
		memcpy(to, at, n);
		at += n;
		addr += n;
		len -= n;
	}
	return 0;
}

/* A map of pages that were not given, or not for writing, ends the test. */
void *hostmem_map(struct hostmem *mem, uint64_t addr, uint64_t len, bool write)
{
	unsigned int rights = write ? HOSTMEM_WRITE : HOSTMEM_READ | HOSTMEM_WRITE;
	struct hostmem_chunk *chunk = hostmem_find(mem, addr);
	uint64_t page;

	mem->maps++;
	if (fails_now(mem))
		return NULL;
	if (!chunk) {
		need_that(mem->lenient, "the device maps %#" PRIx64 ", where nothing is", addr);
		return NULL;
	}
	if (chunk->message || chunk->gone || len > chunk->len - (addr - chunk->dma))
		return NULL;
	for (page = (addr - chunk->dma) & ~(uint64_t)(HOSTMEM_PAGE - 1);
	     page < addr - chunk->dma + len && !mem->lenient; page += HOSTMEM_PAGE)
		need_that(page_allowed(chunk, page, rights | HOSTMEM_MAP(rights)),
			  "the device maps the page %#" PRIx64 " to be %s; it was not given so",
			  chunk->dma + page, rights_name(rights));
	return chunk->va + (addr - chunk->dma);
}
