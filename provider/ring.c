// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Mapping the driver's memory: rings in chunks, side by side, and record pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ferry.h"

/* A record page serves many queues and stays mapped as long as its context. */
struct ferry_record_map {
	struct list_node entry;
	uint64_t offset;
	struct ferry_record_page *page;
};

/*
 * A child would only share what its parent works with, so it does not get it. There is
 * no way back (MADV_DOFORK refuses such mappings), and none is needed.
 */
static int ferry_map_chunks(int fd, void *at, const struct ferry_ring_map *map)
{
	uint32_t done;

	for (done = 0; done < map->bytes; done += map->chunk_bytes)
		if (mmap(at + done, map->chunk_bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, map->offset + done) == MAP_FAILED)
			return -1;
	return madvise(at, map->bytes, MADV_DONTFORK);
}

/* 0, or -1 with errno set. */
int ferry_map_ring(struct ferry_context *ctx, struct ferry_ring *ring,
		   const struct ferry_ring_map *map)
{
	void *mem;

	/* Reserved first, so that the chunks find their places free. */
	mem = mmap(NULL, map->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return -1;
	if (ferry_map_chunks(ctx->ibv_ctx.context.cmd_fd, mem, map)) {
		int err = errno;

		munmap(mem, map->bytes);
		errno = err;
		return -1;
	}
	ring->mem = mem;
	ring->bytes = map->bytes;
	return 0;
}

void ferry_unmap_ring(struct ferry_ring *ring)
{
	if (ring->mem)
		munmap(ring->mem, ring->bytes);
	ring->mem = NULL;
}

static struct ferry_record_map *ferry_map_record_page(struct ferry_context *ctx, uint64_t offset)
{
	struct ferry_record_map *rec;

	rec = calloc(1, sizeof(*rec));
	if (!rec)
		return NULL;
	rec->offset = offset;
	rec->page = mmap(NULL, sizeof(*rec->page), PROT_READ | PROT_WRITE, MAP_SHARED,
			 ctx->ibv_ctx.context.cmd_fd, offset);
	if (rec->page == MAP_FAILED)
		goto err_free;
	if (madvise(rec->page, sizeof(*rec->page), MADV_DONTFORK))
		goto err_unmap;
	list_add(&ctx->record_pages, &rec->entry);
	return rec;

err_unmap:
	munmap(rec->page, sizeof(*rec->page));
err_free:
	free(rec);
	return NULL;
}

static struct ferry_record_page *ferry_record_page(struct ferry_context *ctx, uint64_t offset)
{
	struct ferry_record_map *rec, *found = NULL;

	pthread_mutex_lock(&ctx->lock);
	list_for_each(&ctx->record_pages, rec, entry)
		if (rec->offset == offset)
			found = rec;
	if (!found)
		found = ferry_map_record_page(ctx, offset);
	pthread_mutex_unlock(&ctx->lock);
	return found ? found->page : NULL;
}

/* 0, or -1 with errno set. */
int ferry_map_bell(struct ferry_context *ctx, struct ferry_bell *bell,
		   const struct ferry_slot_map *map, enum ferry_db type, uint32_t number)
{
	struct ferry_record_page *page = ferry_record_page(ctx, map->page_offset);

	if (!page)
		return -1;
	bell->base = FERRY_DB(type, number, 0);
	bell->slot = &page->slot[map->slot];
	bell->word = ctx->poll ? &page->word : NULL;
	bell->status = ctx->status;
	bell->page = ctx->doorbell;
	/* Nothing is posted. From here on mostly the index changes: see ferry_store_index(). */
	ferry_store64(&bell->slot->db, bell->base);
	return 0;
}

void ferry_unmap_records(struct ferry_context *ctx)
{
	struct ferry_record_map *rec, *next;

	list_for_each_safe(&ctx->record_pages, rec, next, entry) {
		munmap(rec->page, sizeof(*rec->page));
		free(rec);
	}
}
