// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/dma-map-ops.h>
#include <linux/log2.h>
#include <linux/mm.h>

#include "cache.h"
#include "ferry.h"

#ifdef CONFIG_RISCV
#include <asm/cacheflush.h>
#include <asm/cpufeature.h>
#include <asm/errata_list.h>
#endif

#define FERRY_LINE_MIN	16	/* what SET_ASSIST takes */
#define FERRY_LINE_MAX	64

static unsigned int ferry_cache_line(void)
{
#ifdef CONFIG_RISCV
	if (riscv_cbom_block_size)
		return riscv_cbom_block_size;
#endif
	return dma_get_cache_alignment();
}

/*
 * Whether the page allocator's memory can be mapped non-cached. Where it cannot, there may
 * be a pool of memory that is non-cached by itself; dma_alloc_coherent() takes it then.
 */
static bool ferry_cache_avoidable(struct ferry_dev *dev)
{
	struct ferry_buf buf;
	unsigned long pfn;

	if (pgprot_val(pgprot_dmacoherent(PAGE_KERNEL)) != pgprot_val(PAGE_KERNEL))
		return true;
	if (ferry_dma_alloc(dev, &buf, PAGE_SIZE, GFP_KERNEL))
		return false;
	pfn = ferry_dma_pfn(&buf);
	ferry_dma_free(dev, &buf);
	return !pfn_valid(pfn) || PageReserved(pfn_to_page(pfn));
}

/* What is missing on this host, or NULL. */
static const char *ferry_cache_missing(struct ferry_dev *dev, unsigned int line)
{
	if (dma_get_cache_alignment() == 1)
		return "no cache operations";
	if (!is_power_of_2(line) || line < FERRY_LINE_MIN || line > FERRY_LINE_MAX)
		return "an unknown size of cache lines";
	if (dev->regime == FERRY_DMA_TRANSLATED)
		return "an IOMMU that the DMA API uses";
	if (!ferry_cache_avoidable(dev))
		return "no non-cached memory (Svpbmt)";
	return NULL;
}

/**
 * ferry_cache_init - finds out whether the device snoops the CPUs' caches
 * @dev: the device; memory can be allocated for it
 *
 * Sets dev->cache_line, to 0 if it does.
 *
 * Return: 0, or -EOPNOTSUPP: the host has not what it takes to do without.
 */
int ferry_cache_init(struct ferry_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	const char *missing;
	unsigned int line;

	dev->cache_line = 0;
	if (dev_is_dma_coherent(d))
		return 0;
	line = ferry_cache_line();
	missing = ferry_cache_missing(dev, line);
	if (missing) {
		dev_err(d, "DMA is not coherent with the CPUs' caches, and the host has %s: not supported\n",
			missing);
		return -EOPNOTSUPP;
	}
	dev->cache_line = line;
	return 0;
}

/* What the CPUs have stored reaches memory, in each line that @s touches. */
void ferry_cache_clean(struct ferry_dev *dev, const struct ferry_stretch *s)
{
	dma_sync_single_for_device(&dev->pdev->dev, s->dma, s->length, DMA_TO_DEVICE);
}

/*
 * The same, and the CPUs read memory anew. Whole lines.
 *
 * The DMA API has no flush on RISC-V: for_device cleans, for_cpu invalidates, and what a
 * CPU stores between the two is lost. That is allowed only in memory that nobody stores to
 * meanwhile, and when an MR goes other threads may well do so. So where the CPUs have the
 * one instruction that does both, it is used.
 */
void ferry_cache_flush(struct ferry_dev *dev, const struct ferry_stretch *s)
{
#ifdef CONFIG_RISCV
	if (riscv_has_extension_likely(RISCV_ISA_EXT_ZICBOM)) {
		void *start = page_address(s->page) + s->offset;

		/* For the compiler; the hardware orders them like stores to the same bytes. */
		barrier();
		ALT_CMO_OP(FLUSH, start, s->length, riscv_cbom_block_size);
		barrier();
		return;
	}
#endif
	dma_sync_single_for_device(&dev->pdev->dev, s->dma, s->length, DMA_BIDIRECTIONAL);
	dma_sync_single_for_cpu(&dev->pdev->dev, s->dma, s->length, DMA_BIDIRECTIONAL);
}
