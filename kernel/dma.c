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

/* Nothing of the device's is mapped any more, and it does no DMA. */
void ferry_dma_exit(struct ferry_dev *dev)
{
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
 * ferry_dma_map_run - shows pinned user pages to the device
 * @dev: the device
 * @run: where it sees them then
 * @sgt: the pages, already mapped by the DMA API
 * @start: the user address of the first page, for alignment
 * @writable: whether the device may write
 *
 * Return: 0 or an error.
 */
int ferry_dma_map_run(struct ferry_dev *dev, struct ferry_dma_run *run, struct sg_table *sgt,
		      u64 start, bool writable)
{
	*run = (struct ferry_dma_run) {};
	return 0;
}

/* The device must have been told before. */
void ferry_dma_unmap_run(struct ferry_dev *dev, struct ferry_dma_run *run)
{
	run->size = 0;
}

static int ferry_dma_blocks_of_umem(struct ferry_dev *dev, struct ferry_user_mem *mem)
{
	unsigned long block = ib_umem_find_best_pgsz(mem->umem, dev->limits.page_sizes, mem->iova);
	size_t blocks = block ? ib_umem_num_dma_blocks(mem->umem, block) : 0;

	if (!blocks || blocks > U32_MAX)
		return -EINVAL;
	mem->blocks = blocks;
	mem->block_shift = ilog2(block);
	mem->offset = mem->iova & (block - 1);
	return 0;
}

/* One block that holds it all, or as few as the device's largest size allows. */
static int ferry_dma_blocks_of_run(struct ferry_dev *dev, struct ferry_user_mem *mem, u64 addr,
				   u64 length)
{
	unsigned int shift = max(fls64(addr ^ (addr + length - 1)), PAGE_SHIFT);
	u64 sizes = dev->limits.page_sizes;
	u64 blocks;

	shift = sizes >> shift ? shift + __ffs64(sizes >> shift) : __fls(sizes);
	mem->offset = addr & ((1ull << shift) - 1);
	blocks = (mem->offset + length - 1 + (1ull << shift)) >> shift;
	if (blocks > U32_MAX)
		return -EINVAL;
	mem->blocks = blocks;
	mem->block_shift = shift;
	return 0;
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
	struct ib_umem *umem = ib_umem_get_va(&dev->ibdev, start, length, access);
	int err;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mem->umem = umem;
	mem->iova = iova;
	err = ferry_dma_map_run(dev, &mem->run, &umem->sgt_append.sgt, start & PAGE_MASK,
				umem->writable);
	if (err)
		goto err_umem;
	if (mem->run.size)
		err = ferry_dma_blocks_of_run(dev, mem, mem->run.addr + offset_in_page(start), length);
	else
		err = ferry_dma_blocks_of_umem(dev, mem);
	if (err)
		goto err_run;
	return 0;

err_run:
	ferry_dma_unmap_run(dev, &mem->run);
err_umem:
	ib_umem_release(umem);
	return err;
}

/* The device must have been told before. */
void ferry_dma_unpin(struct ferry_dev *dev, struct ferry_user_mem *mem)
{
	ferry_dma_unmap_run(dev, &mem->run);
	ib_umem_release(mem->umem);
}

int ferry_dma_list_user(struct ferry_dev *dev, const struct ferry_user_mem *mem,
			struct ferry_pages *pages, struct ferry_page_list *hw)
{
	u64 block_bytes = 1ull << mem->block_shift;
	struct ib_block_iter block;
	u32 i = 0;
	int err;

	err = ferry_pages_alloc(dev, pages, hw, mem->blocks, mem->block_shift);
	if (err)
		return err;
	if (mem->run.size)
		for (; i < mem->blocks; i++)
			ferry_pages_set(pages, hw, i, (mem->run.addr & -block_bytes) +
						      i * block_bytes);
	else
		rdma_umem_for_each_dma_block(mem->umem, &block, block_bytes)
			ferry_pages_set(pages, hw, i++, rdma_block_iter_dma_address(&block));
	return 0;
}
