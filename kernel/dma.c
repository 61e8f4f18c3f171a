// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How memory becomes visible to the device. Regimes: *translated*, the DMA API maps by
 * an IOMMU; *direct*, there is none, and the device can reach all of memory.
 */
#include <linux/dma-map-ops.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>

#include "compat.h"
#include "ferry.h"
#include "pagelist.h"

int ferry_dma_init(struct ferry_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	int err;

	if (!dev_is_dma_coherent(d)) {
		dev_err(d, "DMA is not coherent with the CPUs' caches here: not supported\n");
		return -EOPNOTSUPP;
	}
	err = dma_set_mask_and_coherent(d, DMA_BIT_MASK(64));
	if (err) {
		dev_err(d, "no 64-bit DMA\n");
		return err;
	}
	/* A segment of user memory may be as long as the memory is contiguous. */
	dma_set_max_seg_size(d, UINT_MAX);
	return 0;
}

/* For people: who keeps the device from other memory. */
const char *ferry_dma_regime(struct ferry_dev *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&dev->pdev->dev);

	if (domain && iommu_is_dma_domain(domain))
		return "translated by the IOMMU";
	return "direct, the device is trusted with all memory";
}

int ferry_dma_alloc(struct ferry_dev *dev, struct ferry_buf *buf, size_t size, gfp_t gfp)
{
	size = PAGE_ALIGN(size);
	/* Contiguous behind an IOMMU as well: user mappings are by physical address. */
	buf->cpu = dma_alloc_attrs(&dev->pdev->dev, size, &buf->dma, gfp,
				   DMA_ATTR_FORCE_CONTIGUOUS);
	if (!buf->cpu)
		return -ENOMEM;
	buf->size = size;
	return 0;
}

void ferry_dma_free(struct ferry_dev *dev, struct ferry_buf *buf)
{
	if (!buf->cpu)
		return;
	dma_free_attrs(&dev->pdev->dev, buf->size, buf->cpu, buf->dma, DMA_ATTR_FORCE_CONTIGUOUS);
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

/**
 * ferry_dma_pin - pins user memory and makes it visible to the device
 * @dev: the device
 * @mem: what is known about it then
 * @start: address in the calling process
 * @length: bytes
 * @iova: the address by which work requests will name its first byte
 * @access: IB_ACCESS_*
 *
 * Return: 0 or an error.
 */
int ferry_dma_pin(struct ferry_dev *dev, struct ferry_user_mem *mem, u64 start, u64 length,
		  u64 iova, int access)
{
	unsigned long block;
	size_t blocks;

	mem->umem = ib_umem_get_va(&dev->ibdev, start, length, access);
	if (IS_ERR(mem->umem))
		return PTR_ERR(mem->umem);

	block = ib_umem_find_best_pgsz(mem->umem, dev->limits.page_sizes, iova);
	blocks = block ? ib_umem_num_dma_blocks(mem->umem, block) : 0;
	if (!blocks || blocks > U32_MAX) {
		ib_umem_release(mem->umem);
		return -EINVAL;
	}
	mem->iova = iova;
	mem->blocks = blocks;
	mem->block_shift = ilog2(block);
	return 0;
}

/* The device must have been told before. */
void ferry_dma_unpin(struct ferry_user_mem *mem)
{
	ib_umem_release(mem->umem);
}

int ferry_dma_list_user(struct ferry_dev *dev, const struct ferry_user_mem *mem,
			struct ferry_pages *pages, struct ferry_page_list *hw)
{
	struct ib_block_iter block;
	u32 i = 0;
	int err;

	err = ferry_pages_alloc(dev, pages, hw, mem->blocks, mem->block_shift);
	if (err)
		return err;
	rdma_umem_for_each_dma_block(mem->umem, &block, 1ul << mem->block_shift)
		ferry_pages_set(pages, hw, i++, rdma_block_iter_dma_address(&block));
	return 0;
}
