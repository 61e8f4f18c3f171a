// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The memory of a memory region.
 *
 * On coherent hosts the core pins it. The core refuses hosts whose caches the device does
 * not snoop, as it cannot see to it that they are maintained; there it is pinned here, and
 * maintained by the provider, by FERRY_METHOD_MR_SYNC and by assist. Either way no more
 * than a part of it, exactly: the DMA API's own maintenance would cover all of it, and
 * invalidate what the process has stored meanwhile.
 */
#include <linux/dma-direct.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "cache.h"
#include "compat.h"
#include "ferry.h"
#include "locked.h"
#include "mmap.h"
#include "pagelist.h"
#include "umem.h"

#define FERRY_FLUSH_STEP	SZ_1M	/* bytes between two chances to be preempted */

/* Pages that follow each other. */
struct ferry_segment {
	u64 pos;			/* of its first byte, from the first page on */
	struct page *page;
	dma_addr_t dma;
};

struct ferry_pinned {
	struct ferry_locked locked;
	size_t first;			/* of the MR's first byte in the first page */
	u64 bytes;			/* of all pages */
	bool writable;
	struct sg_append_table table;
	unsigned int count;
	struct ferry_segment *segment;
};

/* ------------------------------------------------------------------------- pinning */

static void ferry_pinned_unpin(struct ferry_pinned *pin)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&pin->table.sgt, sg, i)
		unpin_user_page_range_dirty_lock(sg_page(sg), sg->length >> PAGE_SHIFT,
						 pin->writable);
	sg_free_append_table(&pin->table);
}

/* As many as go into @pages at once. Returns how many, or an error. */
static long ferry_pinned_add(struct ferry_dev *dev, struct ferry_pinned *pin, u64 start,
			     unsigned long left, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM | (pin->writable ? FOLL_WRITE : 0);
	unsigned long most = min(left, PAGE_SIZE / sizeof(*pages));
	long got;
	int err;

	got = pin_user_pages_fast(start, most, flags, pages);
	if (got <= 0)
		return got ?: -EFAULT;
	err = sg_alloc_append_table_from_pages(&pin->table, pages, got, 0, got << PAGE_SHIFT,
					       dma_get_max_seg_size(&dev->pdev->dev), left - got,
					       GFP_KERNEL_ACCOUNT);
	if (err) {
		unpin_user_pages(pages, got);
		return err;
	}
	return got;
}

static int ferry_pinned_pin(struct ferry_dev *dev, struct ferry_pinned *pin, u64 start)
{
	struct page **pages = (struct page **)__get_free_page(GFP_KERNEL);
	unsigned long done = 0, count = pin->locked.pages;
	long got = 0;

	if (!pages)
		return -ENOMEM;
	while (done < count && got >= 0) {
		cond_resched();
		got = ferry_pinned_add(dev, pin, start + (done << PAGE_SHIFT), count - done, pages);
		if (got > 0)
			done += got;
		if (fatal_signal_pending(current))
			got = -EINTR;
	}
	free_page((unsigned long)pages);
	if (got >= 0)
		return 0;
	ferry_pinned_unpin(pin);
	return got;
}

/*
 * Where each byte lies. A segment that the DMA API has moved to a buffer of its own (which
 * it would fill when it maintains the whole) cannot be shared with the device.
 */
static int ferry_pinned_index(struct ferry_dev *dev, struct ferry_pinned *pin)
{
	struct sg_table *sgt = &pin->table.sgt;
	struct ferry_segment *segment;
	struct scatterlist *sg;
	unsigned int i;
	u64 pos = 0;

	segment = kvmalloc_array(sgt->orig_nents, sizeof(*segment), GFP_KERNEL_ACCOUNT);
	if (!segment)
		return -ENOMEM;
	for_each_sgtable_sg(sgt, sg, i) {
		if (sgt->nents != sgt->orig_nents ||
		    dma_to_phys(&dev->pdev->dev, sg_dma_address(sg)) != sg_phys(sg)) {
			kvfree(segment);
			return -EOPNOTSUPP;
		}
		segment[i] = (struct ferry_segment) {
			.pos = pos,
			.page = sg_page(sg),
			.dma = sg_dma_address(sg),
		};
		pos += sg->length;
	}
	pin->segment = segment;
	pin->count = sgt->orig_nents;
	pin->bytes = pos;
	return 0;
}

static void ferry_pinned_free(struct ferry_dev *dev, struct ferry_pinned *pin)
{
	kvfree(pin->segment);
	dma_unmap_sgtable(&dev->pdev->dev, &pin->table.sgt, DMA_BIDIRECTIONAL,
			  DMA_ATTR_SKIP_CPU_SYNC);
	ferry_pinned_unpin(pin);
	ferry_locked_uncharge(&pin->locked);
	kfree(pin);
}

static struct ferry_pinned *ferry_pinned_create(struct ferry_dev *dev, u64 start, u64 length,
						bool writable)
{
	size_t first = offset_in_page(start);
	struct ferry_pinned *pin;
	int err;

	pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	if (!pin)
		return ERR_PTR(-ENOMEM);
	pin->first = first;
	pin->writable = writable;
	err = ferry_locked_charge(&pin->locked, PFN_UP(first + length));
	if (err)
		goto err_pin;
	err = ferry_pinned_pin(dev, pin, start & PAGE_MASK);
	if (err)
		goto err_charge;
	err = dma_map_sgtable(&dev->pdev->dev, &pin->table.sgt, DMA_BIDIRECTIONAL,
			      DMA_ATTR_SKIP_CPU_SYNC);
	if (err)
		goto err_pages;
	err = ferry_pinned_index(dev, pin);
	if (err)
		goto err_map;
	return pin;

err_map:
	dma_unmap_sgtable(&dev->pdev->dev, &pin->table.sgt, DMA_BIDIRECTIONAL,
			  DMA_ATTR_SKIP_CPU_SYNC);
err_pages:
	ferry_pinned_unpin(pin);
err_charge:
	ferry_locked_uncharge(&pin->locked);
err_pin:
	kfree(pin);
	return ERR_PTR(err);
}

/* ---------------------------------------------------------------------- maintenance */

/* The segment that holds the byte at @pos. */
static unsigned int ferry_pinned_find(const struct ferry_pinned *pin, u64 pos)
{
	unsigned int low = 0, high = pin->count;

	while (high - low > 1) {
		unsigned int middle = low + (high - low) / 2;

		if (pin->segment[middle].pos <= pos)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The stretch that begins at @pos, no longer than to @end. */
static struct ferry_stretch ferry_pinned_stretch(const struct ferry_pinned *pin, u64 pos, u64 end)
{
	unsigned int i = ferry_pinned_find(pin, pos);
	const struct ferry_segment *segment = &pin->segment[i];
	u64 last = i + 1 < pin->count ? segment[1].pos : pin->bytes;

	return (struct ferry_stretch) {
		.page = segment->page,
		.offset = pos - segment->pos,
		.dma = segment->dma + (pos - segment->pos),
		.length = min3(end, last, pos + FERRY_FLUSH_STEP) - pos,
	};
}

static void ferry_pinned_each(struct ferry_dev *dev, const struct ferry_pinned *pin, u64 pos,
			      u64 end, void (*maintain)(struct ferry_dev *dev,
							const struct ferry_stretch *s))
{
	while (pos < end) {
		struct ferry_stretch s = ferry_pinned_stretch(pin, pos, end);

		maintain(dev, &s);
		pos += s.length;
		cond_resched();
	}
}

static u64 ferry_pinned_pos(const struct ferry_umem *mem, u64 addr)
{
	return mem->pinned->first + (addr - mem->iova);
}

/* Whether [@addr, @addr + @length) lies in it. */
bool ferry_umem_has(const struct ferry_umem *mem, u64 addr, u64 length)
{
	return addr >= mem->iova && length <= mem->length &&
	       addr - mem->iova <= mem->length - length;
}

/* What the CPUs have stored in the range, which must lie in @mem, reaches memory. */
void ferry_umem_clean(struct ferry_dev *dev, const struct ferry_umem *mem, u64 addr, u64 length)
{
	u64 pos;

	if (!ferry_umem_is_cached(mem))
		return;
	pos = ferry_pinned_pos(mem, addr);
	ferry_pinned_each(dev, mem->pinned, pos, pos + length, ferry_cache_clean);
}

/*
 * The same, and the CPUs read memory anew: in the lines that lie in the range as a whole.
 * Those at its ends may hold what others store, and the device never writes them.
 */
void ferry_umem_flush(struct ferry_dev *dev, const struct ferry_umem *mem, u64 addr, u64 length)
{
	u64 pos, end;

	if (!ferry_umem_is_cached(mem))
		return;
	pos = ferry_pinned_pos(mem, addr);
	end = round_down(pos + length, dev->cache_line);
	ferry_pinned_each(dev, mem->pinned, round_up(pos, dev->cache_line), end,
			  ferry_cache_flush);
}

/* The last bytes by one store, as large as it can be, and after all others. */
static void ferry_store(void *to, const void *from, size_t length)
{
	unsigned int shift = min_t(unsigned int, __ffs((unsigned long)to + length), ilog2(length));
	size_t last = min_t(size_t, 1ul << shift, sizeof(u64));
	u64 word;

	memcpy(to, from, length - last);
	to += length - last;
	memcpy(&word, from + length - last, last);
	/* Litmus: none; a program that polls the last word is ordered by its own fence r,r. */
	smp_wmb();
	switch (last) {
	case 8:
		WRITE_ONCE(*(u64 *)to, word);
		break;
	case 4:
		WRITE_ONCE(*(u32 *)to, word);
		break;
	case 2:
		WRITE_ONCE(*(u16 *)to, word);
		break;
	default:
		WRITE_ONCE(*(u8 *)to, word);
	}
}

/* Stores bytes as the process would. The range must lie in @mem. */
void ferry_umem_store(const struct ferry_umem *mem, u64 addr, const void *from, size_t length)
{
	u64 pos = ferry_pinned_pos(mem, addr), end = pos + length;

	while (pos < end) {
		struct ferry_stretch s = ferry_pinned_stretch(mem->pinned, pos, end);

		ferry_store(page_address(s.page) + s.offset, from, s.length);
		from += s.length;
		pos += s.length;
	}
}

/* ------------------------------------------------------------------- as the device sees it */

static struct sg_table *ferry_umem_table(const struct ferry_umem *mem)
{
	return mem->umem ? &mem->umem->sgt_append.sgt : &mem->pinned->table.sgt;
}

/*
 * The largest blocks that it consists of: each aligned to its size, and but for the ends
 * of the whole no part of one is missing.
 */
static int ferry_umem_find_blocks(struct ferry_dev *dev, struct ferry_umem *mem, size_t first)
{
	struct sg_table *sgt = ferry_umem_table(mem);
	u64 left = mem->length, addr = 0, edges = 0, blocks;
	struct scatterlist *sg;
	unsigned int i, shift;

	if (mem->run.size) {
		addr = mem->run.addr + first;
		edges = 0;
		shift = fls64(addr ^ (addr + mem->length - 1));
	} else {
		for_each_sgtable_dma_sg(sgt, sg, i) {
			u64 start = sg_dma_address(sg) + (i ? 0 : first);
			u64 bytes = min_t(u64, sg_dma_len(sg) - (i ? 0 : first), left);

			if (i)
				edges |= start;
			else
				addr = start;
			left -= bytes;
			if (left)
				edges |= start + bytes;
		}
		shift = fls64(addr ^ (addr + mem->length - 1));
	}
	if (edges)
		shift = __ffs64(edges);
	shift = clamp(shift, PAGE_SHIFT, FERRY_BLOCK_SHIFT_MAX);
	while (shift > PAGE_SHIFT && !(dev->limits.page_sizes >> shift & 1))
		shift--;
	mem->block_shift = shift;
	mem->offset = addr & ((1ull << shift) - 1);
	blocks = (mem->offset + mem->length - 1 + (1ull << shift)) >> shift;
	if (blocks > U32_MAX)
		return -EINVAL;
	mem->blocks = blocks;
	return 0;
}

/**
 * ferry_umem_pin - pins memory of the calling process and makes it visible to the device
 * @dev: the device
 * @mem: what is known about it then
 * @start: its address there
 * @length: bytes, 1 or more
 * @iova: the address by which work requests will name its first byte
 * @access: IB_ACCESS_*
 *
 * Return: 0 or an error.
 */
int ferry_umem_pin(struct ferry_dev *dev, struct ferry_umem *mem, u64 start, u64 length,
		   u64 iova, int access)
{
	bool writable = ib_access_writable(access);
	int err;

	*mem = (struct ferry_umem) { .iova = iova, .length = length };
	if (dev->cache_line) {
		mem->pinned = ferry_pinned_create(dev, start, length, writable);
		if (IS_ERR(mem->pinned))
			return PTR_ERR(mem->pinned);
	} else {
		mem->umem = ib_umem_get_va(&dev->ibdev, start, length, access);
		if (IS_ERR(mem->umem))
			return PTR_ERR(mem->umem);
	}
	err = ferry_dma_map_run(dev, &mem->run, ferry_umem_table(mem), start & PAGE_MASK, writable);
	if (err)
		goto err_pin;
	err = ferry_umem_find_blocks(dev, mem, offset_in_page(start));
	if (err)
		goto err_run;
	return 0;

err_run:
	ferry_dma_unmap_run(dev, &mem->run);
err_pin:
	if (mem->umem)
		ib_umem_release(mem->umem);
	else
		ferry_pinned_free(dev, mem->pinned);
	return err;
}

/**
 * ferry_umem_borrow - takes memory that the driver gave to the calling process
 * @dev: the device
 * @mem: what is known about it then
 * @ibuctx: of the process
 * @map_offset: where the process found it for mmap
 * @skip: bytes of it before the first
 * @length: bytes, 1 or more
 * @iova: the address by which work requests will name its first byte
 *
 * Return: 0 or an error.
 */
int ferry_umem_borrow(struct ferry_dev *dev, struct ferry_umem *mem, struct ib_ucontext *ibuctx,
		      u64 map_offset, u64 skip, u64 length, u64 iova)
{
	size_t chunk_bytes;
	u64 first, count;
	int err;

	*mem = (struct ferry_umem) { .iova = iova, .length = length };
	chunk_bytes = ferry_mmap_chunk_bytes(ibuctx, map_offset);
	if (!chunk_bytes)
		return -EINVAL;
	first = skip / chunk_bytes;
	mem->offset = skip % chunk_bytes;
	count = (mem->offset + length - 1) / chunk_bytes + 1;
	if (check_add_overflow(skip, length, &skip) || count > FERRY_CHUNKS_MAX ||
	    first > FERRY_CHUNKS_MAX)
		return -EINVAL;
	mem->chunk = kvcalloc(count, sizeof(*mem->chunk), GFP_KERNEL_ACCOUNT);
	if (!mem->chunk)
		return -ENOMEM;
	mem->block_shift = ilog2(chunk_bytes);
	err = ferry_mmap_get_chunks(ibuctx, map_offset + first * chunk_bytes, chunk_bytes,
				    mem->chunk, count);
	if (err) {
		kvfree(mem->chunk);
		return err;
	}
	mem->blocks = count;
	return 0;
}

/*
 * The device must have been told before. What it has written reaches the CPUs, whoever
 * uses the pages next; a process that dies comes by here, too.
 */
void ferry_umem_release(struct ferry_dev *dev, struct ferry_umem *mem)
{
	if (mem->chunk) {
		ferry_mmap_put_chunks(mem->chunk, mem->blocks);
		kvfree(mem->chunk);
		return;
	}
	ferry_dma_unmap_run(dev, &mem->run);
	if (mem->umem) {
		ib_umem_release(mem->umem);
		return;
	}
	ferry_umem_flush(dev, mem, mem->iova, mem->length);
	ferry_pinned_free(dev, mem->pinned);
}

/* @hw is what the device gets; @pages must live until it has answered. */
int ferry_umem_list(struct ferry_dev *dev, const struct ferry_umem *mem,
		    struct ferry_pages *pages, struct ferry_page_list *hw)
{
	u64 block_bytes = 1ull << mem->block_shift;
	struct ib_block_iter block;
	struct sg_table *sgt;
	u32 i = 0;
	int err;

	err = ferry_pages_alloc(dev, pages, hw, mem->blocks, mem->block_shift);
	if (err)
		return err;
	if (mem->chunk) {
		for (; i < mem->blocks; i++)
			ferry_pages_set(pages, hw, i, mem->chunk[i]->buf.dma);
	} else if (mem->run.size) {
		for (; i < mem->blocks; i++)
			ferry_pages_set(pages, hw, i,
					round_down(mem->run.addr, block_bytes) + i * block_bytes);
	} else {
		sgt = ferry_umem_table(mem);
		rdma_for_each_block(sgt->sgl, &block, sgt->nents, block_bytes)
			if (i < mem->blocks)
				ferry_pages_set(pages, hw, i++, rdma_block_iter_dma_address(&block));
	}
	return 0;
}
