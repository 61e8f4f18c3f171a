/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Host memory. A region is a range that the host has given to one object: a ring, an
 * MR, a record page. It is a list of extents, each contiguous for the host's DMA; where
 * the embedder maps an extent, its pointer is kept until ferry_engine_unmapped().
 *
 * The host may change its memory at any time: whoever reads takes a copy and looks at
 * that alone.
 */
#ifndef FERRY_REGION_H
#define FERRY_REGION_H

#include "base.h"

struct ferry_engine;

struct extent {
	uint64_t offset;	/* of its first byte in the region */
	uint64_t addr;		/* DMA address */
	uint8_t *host;		/* NULL: not mapped, or not asked again since an unmap */
};

struct region {
	struct list link;	/* engine->regions; empty while the region is not set up */
	struct extent *extent;	/* by offset */
	uint32_t count;
	uint32_t hint;		/* the extent found last */
	uint64_t size;
	uint64_t lowest, highest; /* DMA addresses: no extent lies outside [lowest, highest) */
	uint8_t even_shift;	/* not 0: extent i lies at i << even_shift */
	bool write;		/* the device writes it */
	struct extent one;	/* what extent points to when there is but one */
};

/* Part of an extent. */
struct place {
	uint8_t *host;		/* NULL: reach it by addr */
	uint64_t addr;
	uint64_t len;
};

/* Where bytes lie that are to be copied: a region, our own memory, or a DMA address. */
struct vec {
	struct region *region;
	uint8_t *flat;		/* not NULL: our own memory */
	uint64_t offset;	/* in the region; without one the DMA address */
	uint32_t len;
};

#define VECS_MAX	16

struct vecs {
	unsigned int count;
	uint32_t len;		/* of all */
	struct vec vec[VECS_MAX];
};

/* Which side of a copy failed. */
enum copy_result { COPY_OK, COPY_BAD_SOURCE, COPY_BAD_TARGET };

void region_init(struct region *r);
void region_single(struct ferry_engine *e, struct region *r, uint64_t addr, uint64_t len,
		   bool write);
/* @from is empty afterwards. */
void region_move(struct region *to, struct region *from);
/* To be called once all extents are there. */
void region_finish(struct region *r);
void region_release(struct ferry_engine *e, struct region *r);
void region_forget(struct region *r, uint64_t addr, uint64_t len);
bool region_mapped(const struct region *r);

/* The place at @offset, up to @len bytes of it. [offset, offset + len) is in the region. */
struct place region_place_slow(struct ferry_engine *e, struct region *r, uint64_t offset,
			       uint64_t len);

static inline struct place region_place(struct ferry_engine *e, struct region *r, uint64_t offset,
					uint64_t len)
{
	const struct extent *x = r->extent;
	uint64_t skip = offset, most = len;

	if (r->count != 1) {
		if (!r->even_shift)
			return region_place_slow(e, r, offset, len);
		x += offset >> r->even_shift;
		skip = offset & ((1ull << r->even_shift) - 1);
		most = (1ull << r->even_shift) - skip;
	}
	if (likely(x->host))
		return (struct place) { x->host + skip, x->addr + skip, min_u64(len, most) };
	return region_place_slow(e, r, offset, len);
}

/* False where a byte could not be reached. The range must be in the region. */
bool region_read(struct ferry_engine *e, struct region *r, uint64_t offset, void *to,
		 uint64_t len);
bool region_write(struct ferry_engine *e, struct region *r, uint64_t offset, const void *from,
		  uint64_t len);

/*
 * One aligned word. Loads acquire: what the host stored before it is seen after. Stores
 * release: what the device wrote, and read, before is done before.
 */
bool region_load32(struct ferry_engine *e, struct region *r, uint64_t offset, uint32_t *value);
bool region_load64(struct ferry_engine *e, struct region *r, uint64_t offset, uint64_t *value);
bool region_store32(struct ferry_engine *e, struct region *r, uint64_t offset, uint32_t value);
bool region_store64(struct ferry_engine *e, struct region *r, uint64_t offset, uint64_t value);

/* Anywhere in host memory, by DMA address. */
bool host_read(struct ferry_engine *e, uint64_t addr, void *to, uint64_t len);

/*
 * Copies @len bytes, which both sides have from their offsets on. The last bytes become
 * visible after all others: programs poll on them.
 */
enum copy_result vecs_copy(struct ferry_engine *e, const struct vecs *to, const struct vecs *from);

/* The bytes [skip, skip + len) of @v; they must be there. */
void vecs_part(const struct vecs *v, uint32_t skip, uint32_t len, struct vecs *part);

/* To and from our own memory. */
bool vecs_gather(struct ferry_engine *e, const struct vecs *from, void *to);
bool vecs_scatter(struct ferry_engine *e, const struct vecs *to, const void *from, uint32_t len);

static inline void vecs_flat(struct vecs *v, const void *data, uint32_t len)
{
	v->count = 1;
	v->len = len;
	v->vec[0] = (struct vec) { .flat = (uint8_t *)(uintptr_t)data, .len = len };
}

static inline void vecs_add(struct vecs *v, struct region *region, uint64_t offset, uint32_t len)
{
	v->vec[v->count++] = (struct vec) { .region = region, .offset = offset, .len = len };
	v->len += len;
}

#endif
