// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pages.h"
#include "state.h"

/* The list while it is read: what stands in the host's memory is read once. */
struct page_reader {
	struct ferry_engine *e;
	struct region *r;
	const struct ferry_page_list *list;
	uint64_t block;		/* bytes */
	uint64_t left;		/* blocks to go */
	uint64_t size;		/* bytes taken so far */
	uint64_t run_addr, run_len; /* blocks that follow each other, not yet an extent */
	uint32_t capacity;
	uint32_t *field;
};

static bool extents_grow(struct page_reader *p)
{
	struct region *r = p->r;
	uint32_t capacity = p->capacity * 2 < 64 ? 64 : p->capacity * 2;
	struct extent *grown = engine_alloc(p->e, capacity * sizeof(*grown));

	if (!grown)
		return false;
	memcpy(grown, r->extent, r->count * sizeof(*grown));
	if (r->extent != &r->one)
		engine_free(p->e, r->extent);
	r->extent = grown;
	p->capacity = capacity;
	return true;
}

static bool extent_add(struct page_reader *p, uint64_t addr, uint64_t len, uint8_t *host)
{
	struct region *r = p->r;

	if (r->count == p->capacity && !extents_grow(p))
		return false;
	r->extent[r->count++] = (struct extent) { .offset = p->size, .addr = addr, .host = host };
	p->size += len;
	if (addr < r->lowest)
		r->lowest = addr;
	if (addr + len > r->highest)
		r->highest = addr + len;
	return true;
}

/*
 * The length from @addr on, up to @len, that the embedder maps as one piece; all of it
 * where its first page is not mapped at all.
 */
static uint64_t mapped_run(struct page_reader *p, uint64_t addr, uint64_t len, uint8_t **host)
{
	const struct ferry_port *port = &p->e->port;
	uint64_t n = min_u64(len, FERRY_PAGE_SIZE);
	void *more;

	*host = port->map(port->ctx, addr, len, p->r->write);
	if (*host)
		return len;
	*host = port->map(port->ctx, addr, n, p->r->write);
	if (!*host)
		return len;
	while (n * 2 <= len) {
		more = port->map(port->ctx, addr, n * 2, p->r->write);
		if (!more)
			break;
		*host = more;
		n *= 2;
	}
	return n;
}

/* Turns the run into extents. */
static bool run_flush(struct page_reader *p)
{
	while (p->run_len) {
		uint8_t *host;
		uint64_t n = mapped_run(p, p->run_addr, p->run_len, &host);

		if (!extent_add(p, p->run_addr, n, host))
			return false;
		p->run_addr += n;
		p->run_len -= n;
	}
	return true;
}

static enum ferry_admin_status block_add(struct page_reader *p, uint64_t addr)
{
	if (addr & (p->block - 1) || addr + p->block < addr) {
		*p->field = p->list->levels ? offsetof(struct ferry_page_list, root) :
					      offsetof(struct ferry_page_list, inline_);
		return FERRY_ADMIN_BAD_PARAM;
	}
	if (p->run_len && addr == p->run_addr + p->run_len) {
		p->run_len += p->block;
		return FERRY_ADMIN_OK;
	}
	if (!run_flush(p))
		return FERRY_ADMIN_NO_RESOURCES;
	p->run_addr = addr;
	p->run_len = p->block;
	return FERRY_ADMIN_OK;
}

static enum ferry_admin_status blocks_add(struct page_reader *p, const __le64 *entry)
{
	enum ferry_admin_status status = FERRY_ADMIN_OK;
	uint64_t i, n = min_u64(p->left, FERRY_LEAF_ENTRIES);

	for (i = 0; i < n && !status; i++)
		status = block_add(p, le64(entry[i]));
	p->left -= n;
	return status;
}

static enum ferry_admin_status leaf_read(struct page_reader *p, uint64_t addr)
{
	uint64_t n = min_u64(p->left, FERRY_LEAF_ENTRIES);
	__le64 *entry = (__le64 *)p->e->scratch;

	if (addr & 7) {
		*p->field = offsetof(struct ferry_page_list, root);
		return FERRY_ADMIN_BAD_PARAM;
	}
	if (!host_read(p->e, addr, entry, n * sizeof(*entry)))
		return FERRY_ADMIN_DMA_FAULT;
	return blocks_add(p, entry);
}

static enum ferry_admin_status root_read(struct page_reader *p)
{
	uint64_t root = le64(p->list->root), leaf[64], leaves, i, n;
	enum ferry_admin_status status = FERRY_ADMIN_OK;

	if (root & 7) {
		*p->field = offsetof(struct ferry_page_list, root);
		return FERRY_ADMIN_BAD_PARAM;
	}
	while (p->left && !status) {
		leaves = (p->left + FERRY_LEAF_ENTRIES - 1) / FERRY_LEAF_ENTRIES;
		n = min_u64(leaves, ARRAY_SIZE(leaf));
		if (!host_read(p->e, root, leaf, n * sizeof(*leaf)))
			return FERRY_ADMIN_DMA_FAULT;
		root += n * sizeof(*leaf);
		for (i = 0; i < n && !status; i++)
			status = leaf_read(p, le64(leaf[i]));
	}
	return status;
}

/* The field that is wrong, or -1. */
static int list_check(const struct ferry_page_list *list, uint64_t size)
{
	if (list->block_shift < FERRY_BLOCK_SHIFT_MIN || list->block_shift > FERRY_BLOCK_SHIFT_MAX)
		return offsetof(struct ferry_page_list, block_shift);
	if (list->levels != 0 && list->levels != 2)
		return offsetof(struct ferry_page_list, levels);
	if (list->rsvd)
		return offsetof(struct ferry_page_list, rsvd);
	if ((uint64_t)le32(list->count) << list->block_shift < size)
		return offsetof(struct ferry_page_list, count);
	if (!list->levels && le32(list->count) > FERRY_INLINE_BLOCKS)
		return offsetof(struct ferry_page_list, count);
	if (!list->levels && list->root)
		return offsetof(struct ferry_page_list, root);
	return -1;
}

enum ferry_admin_status pages_region(struct ferry_engine *e, struct region *r,
				     const struct ferry_page_list *list, uint64_t size,
				     bool write, uint32_t *field)
{
	struct page_reader p = { .e = e, .r = r, .list = list, .capacity = 1, .field = field };
	enum ferry_admin_status status;
	int wrong = list_check(list, size);

	region_init(r);
	if (wrong >= 0) {
		*field = (uint32_t)wrong;
		return FERRY_ADMIN_BAD_PARAM;
	}
	p.block = 1ull << list->block_shift;
	p.left = (size + p.block - 1) / p.block;
	r->extent = &r->one;
	r->lowest = UINT64_MAX;
	r->write = write;
	list_add_tail(&e->regions, &r->link);

	status = list->levels ? root_read(&p) : blocks_add(&p, list->inline_);
	if (!status && !run_flush(&p))
		status = FERRY_ADMIN_NO_RESOURCES;
	if (status) {
		region_release(e, r);
		return status;
	}
	r->size = p.size;
	region_finish(r);
	return FERRY_ADMIN_OK;
}
