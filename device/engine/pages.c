// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pages.h"
#include "state.h"

#define STEP_LEAVES	64	/* leaves in a step */
#define LEAF_BYTES	(FERRY_LEAF_ENTRIES * sizeof(__le64))

static bool extents_grow(struct ferry_engine *e, struct page_reader *p)
{
	struct region *r = p->region;
	uint32_t capacity = p->capacity * 2 < 64 ? 64 : p->capacity * 2;
	struct extent *grown = engine_alloc(e, (size_t)capacity * sizeof(*grown));

	if (!grown)
		return false;
	memcpy(grown, r->extent, r->count * sizeof(*grown));
	if (r->extent != &r->one)
		engine_free(e, r->extent);
	r->extent = grown;
	p->capacity = capacity;
	return true;
}

static bool extent_add(struct ferry_engine *e, struct page_reader *p, uint64_t addr, uint64_t len,
		       uint8_t *host)
{
	struct region *r = p->region;

	if (r->count == p->capacity && !extents_grow(e, p))
		return false;
	r->extent[r->count++] = (struct extent) { .offset = p->size, .addr = addr, .host = host };
	p->size += len;
	r->size = p->size;
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
static uint64_t mapped_run(struct ferry_engine *e, const struct region *r, uint64_t addr,
			   uint64_t len, uint8_t **host)
{
	const struct ferry_port *port = &e->port;
	uint64_t n = min_u64(len, FERRY_PAGE_SIZE);
	void *more;

	*host = port->map(port->ctx, addr, len, r->write);
	if (*host)
		return len;
	*host = port->map(port->ctx, addr, n, r->write);
	if (!*host)
		return len;
	while (n * 2 <= len) {
		more = port->map(port->ctx, addr, n * 2, r->write);
		if (!more)
			break;
		*host = more;
		n *= 2;
	}
	return n;
}

/* Turns the run into extents. */
static bool run_flush(struct ferry_engine *e, struct page_reader *p)
{
	while (p->run_len) {
		uint8_t *host;
		uint64_t n = mapped_run(e, p->region, p->run_addr, p->run_len, &host);

		if (!extent_add(e, p, p->run_addr, n, host))
			return false;
		p->run_addr += n;
		p->run_len -= n;
	}
	return true;
}

static enum ferry_admin_status bad_field(struct page_reader *p, size_t offset)
{
	p->field = (uint32_t)offset;
	return FERRY_ADMIN_BAD_PARAM;
}

static enum ferry_admin_status block_add(struct ferry_engine *e, struct page_reader *p,
					 uint64_t addr)
{
	if (addr & (p->block - 1) || addr + p->block < addr)
		return bad_field(p, p->list.levels ? offsetof(struct ferry_page_list, root) :
						     offsetof(struct ferry_page_list, inline_));
	if (p->run_len && addr == p->run_addr + p->run_len) {
		p->run_len += p->block;
		return FERRY_ADMIN_OK;
	}
	if (!run_flush(e, p))
		return FERRY_ADMIN_NO_RESOURCES;
	p->run_addr = addr;
	p->run_len = p->block;
	return FERRY_ADMIN_OK;
}

static enum ferry_admin_status blocks_add(struct ferry_engine *e, struct page_reader *p,
					  const __le64 *entry, uint64_t n)
{
	enum ferry_admin_status status = FERRY_ADMIN_OK;
	uint64_t i;

	for (i = 0; i < n && !status; i++)
		status = block_add(e, p, le64(entry[i]));
	p->left -= n;
	return status;
}

/* How many of the leaves lie one behind the other, as far as the scratch buffer holds them. */
static uint64_t leaves_in_row(const __le64 *leaf, uint64_t n)
{
	uint64_t i;

	n = min_u64(n, SCRATCH_SIZE / LEAF_BYTES);
	for (i = 1; i < n && le64(leaf[i]) == le64(leaf[0]) + i * LEAF_BYTES; i++)
		;
	return i;
}

static enum ferry_admin_status leaves_read(struct ferry_engine *e, struct page_reader *p,
					   const __le64 *leaf, uint64_t count)
{
	uint64_t n = min_u64(p->left, count * FERRY_LEAF_ENTRIES);
	__le64 *entry = (__le64 *)e->scratch;

	if (le64(leaf[0]) & 7)
		return bad_field(p, offsetof(struct ferry_page_list, root));
	if (!host_read(e, le64(leaf[0]), entry, n * sizeof(*entry)))
		return FERRY_ADMIN_DMA_FAULT;
	return blocks_add(e, p, entry, n);
}

static enum ferry_admin_status root_read(struct ferry_engine *e, struct page_reader *p)
{
	uint64_t i, in_row, n = (p->left + FERRY_LEAF_ENTRIES - 1) / FERRY_LEAF_ENTRIES;
	enum ferry_admin_status status = FERRY_ADMIN_OK;
	__le64 leaf[STEP_LEAVES];

	n = min_u64(n, STEP_LEAVES);
	if (!host_read(e, p->root, leaf, n * sizeof(*leaf)))
		return FERRY_ADMIN_DMA_FAULT;
	p->root += n * sizeof(*leaf);
	for (i = 0; i < n && !status; i += in_row) {
		in_row = leaves_in_row(leaf + i, n - i);
		status = leaves_read(e, p, leaf + i, in_row);
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
	if (list->levels ? le64(list->root) & 7 : list->root)
		return offsetof(struct ferry_page_list, root);
	return -1;
}

enum ferry_admin_status pages_begin(struct ferry_engine *e, struct page_reader *p,
				    struct region *r, const struct ferry_page_list *list,
				    uint64_t size, bool write)
{
	int wrong = list_check(list, size);

	region_init(r);
	memset(p, 0, sizeof(*p));
	if (wrong >= 0)
		return bad_field(p, (size_t)wrong);
	p->region = r;
	p->list = *list;
	p->block = 1ull << list->block_shift;
	p->left = (size + p->block - 1) / p->block;
	p->root = le64(list->root);
	p->capacity = 1;
	r->extent = &r->one;
	r->lowest = UINT64_MAX;
	r->write = write;
	list_add_tail(&e->regions, &r->link);
	return PAGES_MORE;
}

enum ferry_admin_status pages_step(struct ferry_engine *e, struct page_reader *p)
{
	enum ferry_admin_status status;

	status = p->list.levels ? root_read(e, p) : blocks_add(e, p, p->list.inline_, p->left);
	if (!status && p->left)
		return PAGES_MORE;
	if (!status && !run_flush(e, p))
		status = FERRY_ADMIN_NO_RESOURCES;
	if (status)
		region_release(e, p->region);
	else
		region_finish(p->region);
	return status;
}

enum ferry_admin_status pages_region(struct ferry_engine *e, struct region *r,
				     const struct ferry_page_list *list, uint64_t size,
				     bool write, uint32_t *field)
{
	struct page_reader p;
	enum ferry_admin_status status = pages_begin(e, &p, r, list, size, write);

	while (status == PAGES_MORE)
		status = pages_step(e, &p);
	*field = p.field;
	return status;
}
