// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "region.h"
#include "state.h"

void region_init(struct region *r)
{
	memset(r, 0, sizeof(*r));
	list_init(&r->link);
}

static uint8_t *extent_map(struct ferry_engine *e, const struct region *r, uint64_t addr,
			   uint64_t len)
{
	return e->port.map(e->port.ctx, addr, len, r->write);
}

/* One contiguous range. */
void region_single(struct ferry_engine *e, struct region *r, uint64_t addr, uint64_t len,
		   bool write)
{
	region_init(r);
	r->extent = &r->one;
	r->count = 1;
	r->size = len;
	r->lowest = addr;
	r->highest = addr + len;
	r->write = write;
	r->one.addr = addr;
	r->one.host = extent_map(e, r, addr, len);
	list_add_tail(&e->regions, &r->link);
}

void region_move(struct region *to, struct region *from)
{
	*to = *from;
	if (from->extent == &from->one)
		to->extent = &to->one;
	list_init(&to->link);
	list_add_tail(&from->link, &to->link);
	list_del(&from->link);
	region_init(from);
}

void region_release(struct ferry_engine *e, struct region *r)
{
	if (list_empty(&r->link))
		return;
	list_del(&r->link);
	if (r->extent != &r->one)
		engine_free(e, r->extent);
	region_init(r);
}

static uint64_t extent_end(const struct region *r, uint32_t i)
{
	return i + 1 < r->count ? r->extent[i + 1].offset : r->size;
}

/* Drops the pointers into the DMA range. */
void region_forget(struct region *r, uint64_t addr, uint64_t len)
{
	uint64_t last = addr + (len - 1);
	uint32_t i;

	if (!len || r->highest <= addr || r->lowest > last)
		return;
	for (i = 0; i < r->count; i++) {
		uint64_t size = extent_end(r, i) - r->extent[i].offset;

		if (r->extent[i].addr <= last && r->extent[i].addr + (size - 1) >= addr)
			r->extent[i].host = NULL;
	}
}

/* When all extents are of one size, the last aside, they need no search. */
void region_finish(struct region *r)
{
	uint64_t size = extent_end(r, 0);
	uint32_t i;

	r->even_shift = 0;
	if (r->count < 2 || size & (size - 1))
		return;
	for (i = 1; i < r->count; i++) {
		if (r->extent[i].offset != i * size)
			return;
	}
	if (r->size - r->extent[r->count - 1].offset <= size)
		r->even_shift = (uint8_t)__builtin_ctzll(size);
}

/* Whether all of it can be reached by pointers. */
bool region_mapped(const struct region *r)
{
	uint32_t i;

	for (i = 0; i < r->count; i++) {
		if (!r->extent[i].host)
			return false;
	}
	return true;
}

static uint32_t region_find(struct region *r, uint64_t offset)
{
	uint32_t low = 0, high = r->count;

	if (r->even_shift)
		return (uint32_t)(offset >> r->even_shift);
	/* Where the last access was, or the extent behind it. */
	if (r->extent[r->hint].offset <= offset) {
		if (offset < extent_end(r, r->hint))
			return r->hint;
		if (offset < extent_end(r, r->hint + 1))
			return ++r->hint;
	}
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (r->extent[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	r->hint = low;
	return low;
}

/* What the embedder maps from @addr on: all of it, or its first page, or nothing. */
static struct place host_place(struct ferry_engine *e, uint64_t addr, uint64_t len, bool write)
{
	struct place p = { e->port.map(e->port.ctx, addr, len, write), addr, len };
	uint64_t page = FERRY_PAGE_SIZE - (addr & (FERRY_PAGE_SIZE - 1));

	if (likely(p.host) || page >= len)
		return p;
	p.host = e->port.map(e->port.ctx, addr, page, write);
	if (p.host)
		p.len = page;
	return p;
}

struct place region_place_slow(struct ferry_engine *e, struct region *r, uint64_t offset,
			       uint64_t len)
{
	uint32_t i = region_find(r, offset);
	struct extent *extent = &r->extent[i];
	uint64_t size = extent_end(r, i) - extent->offset;
	uint64_t skip = offset - extent->offset;
	struct place p = { .addr = extent->addr + skip, .len = min_u64(len, size - skip) };

	if (unlikely(!extent->host))
		extent->host = extent_map(e, r, extent->addr, size);
	if (likely(extent->host)) {
		p.host = extent->host + skip;
		return p;
	}
	/* The embedder may have the extent in pieces. */
	return host_place(e, p.addr, p.len, r->write);
}

static bool place_read(struct ferry_engine *e, const struct place *p, void *to)
{
	if (likely(p->host)) {
		copy_once(to, p->host, p->len);
		return true;
	}
	return !e->port.read(e->port.ctx, p->addr, to, p->len);
}

static bool place_write(struct ferry_engine *e, const struct place *p, const void *from)
{
	if (likely(p->host)) {
		memcpy(p->host, from, p->len);
		return true;
	}
	return !e->port.write(e->port.ctx, p->addr, from, p->len);
}

bool region_read(struct ferry_engine *e, struct region *r, uint64_t offset, void *to, uint64_t len)
{
	uint8_t *at = to;

	while (len) {
		struct place p = region_place(e, r, offset, len);

		if (!place_read(e, &p, at))
			return false;
		at += p.len;
		offset += p.len;
		len -= p.len;
	}
	return true;
}

bool region_write(struct ferry_engine *e, struct region *r, uint64_t offset, const void *from,
		  uint64_t len)
{
	const uint8_t *at = from;

	while (len) {
		struct place p = region_place(e, r, offset, len);

		if (!place_write(e, &p, at))
			return false;
		at += p.len;
		offset += p.len;
		len -= p.len;
	}
	return true;
}

bool region_load32(struct ferry_engine *e, struct region *r, uint64_t offset, uint32_t *value)
{
	struct place p = region_place(e, r, offset, sizeof(*value));

	if (p.host)
		*value = __atomic_load_n((uint32_t *)p.host, __ATOMIC_ACQUIRE);
	else if (e->port.read(e->port.ctx, p.addr, value, sizeof(*value)))
		return false;
	*value = le32(*value);
	return true;
}

bool region_load64(struct ferry_engine *e, struct region *r, uint64_t offset, uint64_t *value)
{
	struct place p = region_place(e, r, offset, sizeof(*value));

	if (p.host)
		*value = __atomic_load_n((uint64_t *)p.host, __ATOMIC_ACQUIRE);
	else if (e->port.read(e->port.ctx, p.addr, value, sizeof(*value)))
		return false;
	*value = le64(*value);
	return true;
}

bool region_store32(struct ferry_engine *e, struct region *r, uint64_t offset, uint32_t value)
{
	struct place p = region_place(e, r, offset, sizeof(value));

	value = le32(value);
	if (!p.host)
		return !e->port.write(e->port.ctx, p.addr, &value, sizeof(value));
	__atomic_store_n((uint32_t *)p.host, value, __ATOMIC_RELEASE);
	return true;
}

bool region_store64(struct ferry_engine *e, struct region *r, uint64_t offset, uint64_t value)
{
	struct place p = region_place(e, r, offset, sizeof(value));

	value = le64(value);
	if (!p.host)
		return !e->port.write(e->port.ctx, p.addr, &value, sizeof(value));
	__atomic_store_n((uint64_t *)p.host, value, __ATOMIC_RELEASE);
	return true;
}

bool host_read(struct ferry_engine *e, uint64_t addr, void *to, uint64_t len)
{
	uint8_t *at = to;

	while (len) {
		struct place p = host_place(e, addr, len, false);

		if (!place_read(e, &p, at))
			return false;
		addr += p.len;
		at += p.len;
		len -= p.len;
	}
	return true;
}

/* A position in vecs. */
struct cursor {
	const struct vec *vec;
	uint32_t used;		/* bytes of it */
};

/* What lies there, up to @len bytes. Vecs are never empty. */
static struct place cursor_place(struct ferry_engine *e, const struct cursor *c, uint64_t len,
				 bool write)
{
	const struct vec *v = c->vec;

	len = min_u64(len, v->len - c->used);
	if (v->region)
		return region_place(e, v->region, v->offset + c->used, len);
	if (v->flat)
		return (struct place) { .host = v->flat + c->used, .len = len };
	return host_place(e, v->offset + c->used, len, write);
}

static void cursor_skip(struct cursor *c, uint32_t len)
{
	c->used += len;
	if (c->used == c->vec->len) {
		c->vec++;
		c->used = 0;
	}
}

/*
 * The last word in one store, after the rest: a program that polls the end of a buffer
 * finds all of it.
 */
static void copy_last(uint8_t *to, const uint8_t *from, size_t len)
{
	if (len > 8) {
		memmove(to, from, len - 8);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		to += len - 8;
		from += len - 8;
		len = 8;
	}
	switch (len) {
	case 8:
		memcpy(to, from, 8);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	default:
		memcpy(to, from, len);
	}
}

/* A piece, with @left bytes from its start to the end of the copy. Ranges may overlap. */
static void copy_piece(uint8_t *to, const uint8_t *from, size_t len, size_t left)
{
	if (len == left)
		copy_last(to, from, len);
	else
		memmove(to, from, len);
}

static bool cursor_read(struct ferry_engine *e, struct cursor *c, uint8_t *to, uint32_t len)
{
	while (len) {
		struct place p = cursor_place(e, c, len, false);

		if (!place_read(e, &p, to))
			return false;
		cursor_skip(c, (uint32_t)p.len);
		to += p.len;
		len -= (uint32_t)p.len;
	}
	return true;
}

static bool cursor_write(struct ferry_engine *e, struct cursor *c, const uint8_t *from,
			 uint32_t len)
{
	while (len) {
		struct place p = cursor_place(e, c, len, true);

		if (p.host)
			copy_piece(p.host, from, p.len, len);
		else if (e->port.write(e->port.ctx, p.addr, from, p.len))
			return false;
		cursor_skip(c, (uint32_t)p.len);
		from += p.len;
		len -= (uint32_t)p.len;
	}
	return true;
}

/* Through the scratch buffer: as few and as large messages as there can be. */
static enum copy_result copy_bounced(struct ferry_engine *e, struct cursor *to,
				     struct cursor *from, uint32_t len)
{
	if (!cursor_read(e, from, e->scratch, len))
		return COPY_BAD_SOURCE;
	return cursor_write(e, to, e->scratch, len) ? COPY_OK : COPY_BAD_TARGET;
}

enum copy_result vecs_copy(struct ferry_engine *e, const struct vecs *to, const struct vecs *from)
{
	struct cursor t = { .vec = to->vec }, f = { .vec = from->vec };
	uint32_t len = from->len;

	while (len) {
		struct place pf = cursor_place(e, &f, len, false);
		struct place pt = cursor_place(e, &t, len, true);
		uint32_t n = (uint32_t)min_u64(pf.len, pt.len);

		if (likely(pf.host && pt.host)) {
			copy_piece(pt.host, pf.host, n, len);
		} else if (pf.host) {
			if (e->port.write(e->port.ctx, pt.addr, pf.host, n))
				return COPY_BAD_TARGET;
		} else {
			enum copy_result result;

			n = min_u32(len, SCRATCH_SIZE);
			result = copy_bounced(e, &t, &f, n);
			if (result)
				return result;
			len -= n;
			continue;
		}
		cursor_skip(&f, n);
		cursor_skip(&t, n);
		len -= n;
	}
	return COPY_OK;
}

void vecs_part(const struct vecs *v, uint32_t skip, uint32_t len, struct vecs *part)
{
	const struct vec *vec = v->vec;

	part->count = 0;
	part->len = len;
	for (; len; vec++) {
		struct vec *to = &part->vec[part->count];

		if (skip >= vec->len) {
			skip -= vec->len;
			continue;
		}
		*to = *vec;
		to->offset += skip;
		if (to->flat)
			to->flat += skip;
		to->len = min_u32(vec->len - skip, len);
		len -= to->len;
		skip = 0;
		part->count++;
	}
}

bool vecs_gather(struct ferry_engine *e, const struct vecs *from, void *to)
{
	struct cursor c = { .vec = from->vec };

	return cursor_read(e, &c, to, from->len);
}

bool vecs_scatter(struct ferry_engine *e, const struct vecs *to, const void *from, uint32_t len)
{
	struct cursor c = { .vec = to->vec };

	return cursor_write(e, &c, from, len);
}
