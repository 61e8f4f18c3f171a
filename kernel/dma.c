// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How memory becomes visible to the device, in one of three regimes, found out when it is
 * probed:
 *
 * translated: the DMA API maps what it is given, by an IOMMU;
 * isolated: there is an IOMMU that the DMA API does not use, so the driver does: the DMA
 *	API only maintains caches, and what it maps is mapped again in a space of ours;
 * direct: the device can reach all of memory.
 */
#include <linux/dma-map-ops.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "cache.h"
#include "ferry.h"

const char * const ferry_dma_regime_names[FERRY_DMA_REGIMES] = {
	[FERRY_DMA_DIRECT]	= "direct",
	[FERRY_DMA_TRANSLATED]	= "translated",
	[FERRY_DMA_ISOLATED]	= "isolated",
};

/* ---------------------------------------------------------------- what is asked for */

enum ferry_isolation_mode {
	FERRY_ISOLATION_AUTO,
	FERRY_ISOLATION_REQUIRED,
	FERRY_ISOLATION_OFF,
};

static const char * const ferry_isolation_modes[] = {
	[FERRY_ISOLATION_AUTO]		= "auto",
	[FERRY_ISOLATION_REQUIRED]	= "required",
	[FERRY_ISOLATION_OFF]		= "off",
};

static enum ferry_isolation_mode ferry_isolation_mode;

static int ferry_isolation_mode_set(const char *text, const struct kernel_param *param)
{
	int mode = sysfs_match_string(ferry_isolation_modes, text);

	if (mode < 0)
		return mode;
	WRITE_ONCE(ferry_isolation_mode, mode);
	return 0;
}

static int ferry_isolation_mode_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%s\n", ferry_isolation_modes[READ_ONCE(ferry_isolation_mode)]);
}

static const struct kernel_param_ops ferry_isolation_mode_ops = {
	.set = ferry_isolation_mode_set,
	.get = ferry_isolation_mode_get,
};
module_param_cb(isolation, &ferry_isolation_mode_ops, NULL, 0644);
MODULE_PARM_DESC(isolation,
		 "keep devices from memory they were not given, by an IOMMU: auto (where there is one; default), required (bind no other), off (leave that to the DMA API)");

/* ------------------------------------------------------------------------ the regime */

static const char *ferry_dma_why_not(struct device *d, int err)
{
	switch (err) {
	case -ENODEV:
		return device_iommu_mapped(d) ? "its IOMMU lets everything through (iommu=pt?)" :
						"no IOMMU stands before it";
	case -EPERM:
		return "it shares an IOMMU group with a device of another driver";
	case -ENXIO:
		return "where this machine's interrupts are written to is not known";
	default:
		return "the IOMMU gives it no address space";
	}
}

static int ferry_dma_isolate(struct ferry_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	struct ferry_isolation *iso;

	if (!FERRY_OWNS_DMA || !device_iommu_mapped(d))
		return -ENODEV;
	iso = ferry_isolate(d, dev_is_dma_coherent(d));
	if (IS_ERR(iso))
		return PTR_ERR(iso);
	dev->isolation = iso;
	return 0;
}

static int ferry_dma_choose(struct ferry_dev *dev)
{
	enum ferry_isolation_mode mode = READ_ONCE(ferry_isolation_mode);
	struct device *d = &dev->pdev->dev;
	int err = -ENODEV;

	if (ferry_isolation_api_translates(d)) {
		dev->regime = FERRY_DMA_TRANSLATED;
		return 0;
	}
	if (mode != FERRY_ISOLATION_OFF)
		err = ferry_dma_isolate(dev);
	if (!err) {
		dev->regime = FERRY_DMA_ISOLATED;
		return 0;
	}
	/* The machine has an IOMMU, but no memory just now: no reason to trust the device. */
	if (err == -ENOMEM)
		return err;
	if (ferry_isolation_foreign(d)) {
		dev_err(d, "its IOMMU group is taken, by another NIC or for user space: two cannot share one\n");
		return -EBUSY;
	}
	if (mode == FERRY_ISOLATION_REQUIRED) {
		dev_err(d, "isolation=required, but %s\n", ferry_dma_why_not(d, err));
		return -EPERM;
	}
	if (err != -ENODEV)
		dev_warn(d, "not isolated (%d): %s\n", err, ferry_dma_why_not(d, err));
	dev->regime = FERRY_DMA_DIRECT;
	return 0;
}

/* The device does no DMA yet. */
int ferry_dma_init(struct ferry_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	int err;

	err = dma_set_mask_and_coherent(d, DMA_BIT_MASK(64));
	if (err) {
		dev_err(d, "no 64-bit DMA\n");
		return err;
	}
	/* A segment of user memory may be as long as the memory is contiguous. */
	dma_set_max_seg_size(d, UINT_MAX);
	err = ferry_dma_choose(dev);
	if (err)
		return err;
	err = ferry_cache_init(dev);
	if (err)
		ferry_dma_exit(dev);
	return err;
}

/* Nothing is mapped for the device any more, and it does no DMA. */
void ferry_dma_exit(struct ferry_dev *dev)
{
	if (dev->isolation)
		ferry_isolation_end(dev->isolation);
	dev->isolation = NULL;
}

/* ---------------------------------------------------------------- memory of the kernel */

int ferry_dma_alloc(struct ferry_dev *dev, struct ferry_buf *buf, size_t size, gfp_t gfp)
{
	int err;

	size = PAGE_ALIGN(size);
	/* Contiguous behind an IOMMU as well: user mappings are by physical address. */
	buf->cpu = dma_alloc_attrs(&dev->pdev->dev, size, &buf->api, gfp,
				   DMA_ATTR_FORCE_CONTIGUOUS);
	if (!buf->cpu)
		return -ENOMEM;
	buf->size = size;
	buf->dma = buf->api;
	buf->run = (struct ferry_dma_run) {};
	if (!dev->isolation)
		return 0;
	err = ferry_isolation_map(dev->isolation, &buf->run, PFN_PHYS(ferry_dma_pfn(buf)), size,
				  gfp);
	if (err)
		ferry_dma_free(dev, buf);
	else
		buf->dma = buf->run.addr;
	return err;
}

/*
 * The device must have been told before. Where the driver maps, it does not reach the
 * memory from here on, though a process may keep it long after.
 */
void ferry_dma_hide(struct ferry_dev *dev, struct ferry_buf *buf)
{
	if (dev->isolation)
		ferry_isolation_unmap(dev->isolation, &buf->run);
}

/* The device must have been told before. */
void ferry_dma_free(struct ferry_dev *dev, struct ferry_buf *buf)
{
	if (!buf->cpu)
		return;
	ferry_dma_hide(dev, buf);
	dma_free_attrs(&dev->pdev->dev, buf->size, buf->cpu, buf->api, DMA_ATTR_FORCE_CONTIGUOUS);
	buf->cpu = NULL;
}

unsigned long ferry_dma_pfn(const struct ferry_buf *buf)
{
	if (is_vmalloc_addr(buf->cpu))
		return vmalloc_to_pfn(buf->cpu);
	return PHYS_PFN(virt_to_phys(buf->cpu));
}

/* How a process must map memory of ferry_dma_alloc(). */
pgprot_t ferry_dma_pgprot(struct ferry_dev *dev, pgprot_t prot)
{
	return dev_is_dma_coherent(&dev->pdev->dev) ? prot : pgprot_dmacoherent(prot);
}

/* --------------------------------------------------------------------- user memory */

/**
 * ferry_dma_map_run - shows pinned user pages to the device
 * @dev: the device
 * @run: where it sees them then
 * @sgt: the pages, whole, already mapped by the DMA API
 * @start: the user address of the first page, for alignment
 * @writable: whether the device may write
 *
 * Return: 0 or an error.
 */
int ferry_dma_map_run(struct ferry_dev *dev, struct ferry_dma_run *run, struct sg_table *sgt,
		      u64 start, bool writable)
{
	struct scatterlist *sg;
	size_t size = 0;
	unsigned int i;

	*run = (struct ferry_dma_run) {};
	if (!dev->isolation)
		return 0;
	for_each_sgtable_sg(sgt, sg, i)
		size += sg->length;
	return ferry_isolation_map_sg(dev->isolation, run, sgt->sgl, sgt->orig_nents, size, start,
				      writable);
}

/* The device must have been told before. */
void ferry_dma_unmap_run(struct ferry_dev *dev, struct ferry_dma_run *run)
{
	if (dev->isolation)
		ferry_isolation_unmap(dev->isolation, run);
}
