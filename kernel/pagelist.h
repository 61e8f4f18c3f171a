/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page lists: how a ring or an MR is described to the device. It copies a list when it
 * takes the command, so the list's own memory is freed after the answer.
 */
#ifndef FERRY_PAGELIST_H
#define FERRY_PAGELIST_H

#include "dma.h"

struct ferry_ring;

struct ferry_page_list;

/* What a list needs besides the command: nothing if it has up to 16 entries. */
struct ferry_pages {
	struct ferry_ring *leaves;
	struct ferry_buf root;
};

int ferry_pages_alloc(struct ferry_dev *dev, struct ferry_pages *pages,
		      struct ferry_page_list *hw, u32 count, unsigned int block_shift);
void ferry_pages_set(struct ferry_pages *pages, struct ferry_page_list *hw, u32 i, u64 addr);
void ferry_pages_free(struct ferry_dev *dev, struct ferry_pages *pages);

#endif
