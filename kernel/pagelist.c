// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/log2.h>

#include "ferry.h"
#include "pagelist.h"
#include "ring.h"

#define FERRY_LEAF_BYTES	(FERRY_LEAF_ENTRIES * sizeof(__le64))

/**
 * ferry_pages_alloc - begins a page list
 * @dev: the device it is for
 * @pages: its memory; to be freed in any case
 * @hw: the list as it stands in a command
 * @count: of its blocks
 * @block_shift: log2 of their size
 *
 * Return: 0, then ferry_pages_set() for each entry; or -ENOMEM.
 */
int ferry_pages_alloc(struct ferry_dev *dev, struct ferry_pages *pages,
		      struct ferry_page_list *hw, u32 count, unsigned int block_shift)
{
	u32 i, leaves = DIV_ROUND_UP(count, FERRY_LEAF_ENTRIES);
	__le64 *root;
	int err;

	*pages = (struct ferry_pages) {};
	*hw = (struct ferry_page_list) {
		.block_shift = block_shift,
		.count = cpu_to_le32(count),
	};
	if (count <= FERRY_INLINE_BLOCKS)
		return 0;

	err = ferry_dma_alloc(dev, &pages->root, leaves * sizeof(*root), GFP_KERNEL | __GFP_NOWARN);
	if (err)
		return err;
	pages->leaves = ferry_ring_alloc(dev, NULL, roundup_pow_of_two(leaves) * FERRY_LEAF_BYTES);
	if (!pages->leaves)
		return -ENOMEM;

	root = pages->root.cpu;
	for (i = 0; i < leaves; i++)
		root[i] = cpu_to_le64(ferry_ring_dma(pages->leaves, i * FERRY_LEAF_BYTES));
	hw->levels = 2;
	hw->root = cpu_to_le64(pages->root.dma);
	return 0;
}

void ferry_pages_set(struct ferry_pages *pages, struct ferry_page_list *hw, u32 i, u64 addr)
{
	__le64 *entry;

	if (pages->leaves)
		entry = ferry_ring_at(pages->leaves, i * sizeof(*entry));
	else
		entry = &hw->inline_[i];
	*entry = cpu_to_le64(addr);
}

void ferry_pages_free(struct ferry_dev *dev, struct ferry_pages *pages)
{
	ferry_ring_free(pages->leaves);
	ferry_dma_free(dev, &pages->root);
}
