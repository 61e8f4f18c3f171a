/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page lists, as rings and MRs bring them.
 */
#ifndef FERRY_PAGES_H
#define FERRY_PAGES_H

#include "region.h"

/*
 * Sets @r up from @list, of which the first @size bytes count. Returns FERRY_ADMIN_OK,
 * or what is wrong: BAD_PARAM (then *@field is the offset of the wrong field in the
 * list), NO_RESOURCES or DMA_FAULT.
 */
enum ferry_admin_status pages_region(struct ferry_engine *e, struct region *r,
				     const struct ferry_page_list *list, uint64_t size,
				     bool write, uint32_t *field);

#endif
