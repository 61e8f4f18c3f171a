/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page lists, as rings and MRs bring them.
 */
#ifndef FERRY_PAGES_H
#define FERRY_PAGES_H

#include "region.h"

/* A list while it is read. What stands in the host's memory is read once. */
struct page_reader {
	struct region *region;
	struct ferry_page_list list;
	uint64_t block;		/* bytes of a block */
	uint64_t left;		/* blocks to go */
	uint64_t root;		/* address of the next leaf's address */
	uint64_t size;		/* bytes that are extents */
	uint64_t run_addr, run_len; /* blocks that follow each other, not yet an extent */
	uint32_t capacity;	/* of region->extent[] */
	uint32_t field;		/* with BAD_PARAM: offset of the wrong field in the list */
};

/* Not an answer: more of the same is to be done. */
#define PAGES_MORE	FERRY_ADMIN_STATUS_COUNT

/*
 * Sets @r up from @list, of which the first @size bytes count, in as many steps as it
 * takes. FERRY_ADMIN_OK, BAD_PARAM, NO_RESOURCES, DMA_FAULT; a step: or PAGES_MORE.
 * After an error the region is as region_init() left it.
 */
enum ferry_admin_status pages_begin(struct ferry_engine *e, struct page_reader *p,
				    struct region *r, const struct ferry_page_list *list,
				    uint64_t size, bool write);
enum ferry_admin_status pages_step(struct ferry_engine *e, struct page_reader *p);

/* The whole at once: rings. */
enum ferry_admin_status pages_region(struct ferry_engine *e, struct region *r,
				     const struct ferry_page_list *list, uint64_t size,
				     bool write, uint32_t *field);

#endif
