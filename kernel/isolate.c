// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An I/O address space that the driver owns, for kernels that have a driver for the IOMMU
 * but no DMA API that uses it (RISC-V: IOMMU_DMA is not selected there, and every device
 * stays in an identity domain, see doc/riscv.md).
 *
 * Each buffer and each MR has a range of addresses of its own. So two MRs may share pages,
 * and unmapping one takes nothing from the other; scattered pages lie in a row; and an
 * address that the device should not use any more leads nowhere. A page that is never
 * mapped follows each range: running over its end faults as well.
 *
 * The ranges in use are kept in a maple tree that knows its gaps: taking and giving back
 * one costs no more than the logarithm of their number.
 *
 * Interrupts are writes that the IOMMU translates, too. Each hart's interrupt page is
 * mapped, at its physical address since that is what the interrupt controller puts into
 * the MSI-X table, for as long as the domain exists: so they may move to any hart.
 */
#include <linux/iommu.h>
#include <linux/log2.h>
#include <linux/maple_tree.h>
#include <linux/pfn.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#ifdef CONFIG_RISCV
#include <linux/irqchip/riscv-imsic.h>
#endif

#include "isolate.h"

struct ferry_isolation {
	struct device *d;
	struct iommu_group *group;
	struct iommu_domain *domain;
	struct maple_tree space;	/* ranges in use, in pages; has a lock of its own */
	unsigned long first, last;	/* what ranges are taken from, in pages */
	int prot;			/* for memory, besides the rights */
};

/* Whether the group of @d was taken over, by another driver or for another device. */
bool ferry_isolation_foreign(struct device *d)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(d);

	return domain && !iommu_is_dma_domain(domain) && domain->type != IOMMU_DOMAIN_IDENTITY;
}

bool ferry_isolation_api_translates(struct device *d)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(d);

	return domain && iommu_is_dma_domain(domain);
}

/* ------------------------------------------------------------------ interrupt pages */

#ifdef CONFIG_RISCV
static int ferry_isolation_map_msi(struct ferry_isolation *iso, phys_addr_t page)
{
	unsigned long index = PHYS_PFN(page);
	int err;

	/* Nothing else shall get its address. */
	err = mtree_insert(&iso->space, index, iso, GFP_KERNEL);
	if (err)
		return err;
	/* A kernel that maps interrupt pages by itself has done so when the domain was attached. */
	if (iommu_iova_to_phys(iso->domain, page) == page)
		return 0;
	return iommu_map(iso->domain, page, page, PAGE_SIZE,
			 IOMMU_WRITE | IOMMU_MMIO | IOMMU_NOEXEC, GFP_KERNEL);
}

static int ferry_isolation_map_interrupts(struct ferry_isolation *iso)
{
	const struct imsic_global_config *imsic = imsic_get_global_config();
	phys_addr_t page;
	int cpu, err = 0;

	if (!imsic)
		return -ENXIO;
	for_each_possible_cpu(cpu) {
		page = per_cpu_ptr(imsic->local, cpu)->msi_pa;
		if (page)
			err = ferry_isolation_map_msi(iso, page);
		if (err)
			return err;
	}
	return 0;
}
#else
static int ferry_isolation_map_interrupts(struct ferry_isolation *iso)
{
	return -ENXIO;
}
#endif

/* --------------------------------------------------------------------- life and death */

/* The upper half of what the IOMMU takes: away from where memory and devices are. */
static int ferry_isolation_init_space(struct ferry_isolation *iso)
{
	const struct iommu_domain_geometry *geometry = &iso->domain->geometry;
	u64 half = (geometry->aperture_end - geometry->aperture_start) / 2 + 1;

	iso->first = PHYS_PFN(geometry->aperture_start + half);
	iso->last = PHYS_PFN(geometry->aperture_end);
	mt_init_flags(&iso->space, MT_FLAGS_ALLOC_RANGE);
	return iso->first < iso->last && iso->domain->pgsize_bitmap & PAGE_SIZE ? 0 : -ERANGE;
}

static int ferry_isolation_attach(struct ferry_isolation *iso)
{
	int err;

	iso->domain = iommu_paging_domain_alloc(iso->d);
	if (IS_ERR(iso->domain))
		return PTR_ERR(iso->domain);
	err = ferry_isolation_init_space(iso);
	if (!err)
		err = iommu_attach_group(iso->domain, iso->group);
	if (err)
		goto err_domain;
	err = ferry_isolation_map_interrupts(iso);
	if (err)
		goto err_group;
	return 0;

err_group:
	iommu_detach_group(iso->domain, iso->group);
err_domain:
	iommu_domain_free(iso->domain);
	mtree_destroy(&iso->space);
	return err;
}

/**
 * ferry_isolate - takes the device out of every I/O address space but one of our own
 * @d: the device; it does no DMA
 * @coherent: whether its DMA is coherent with the CPUs' caches
 *
 * Return: the address space, empty but for the interrupt pages; or an error: -ENODEV, no
 * IOMMU; -EPERM, another driver uses a device of the same group; -ENXIO, interrupt pages
 * are not known here.
 */
struct ferry_isolation *ferry_isolate(struct device *d, bool coherent)
{
	struct ferry_isolation *iso;
	int err;

	iso = kzalloc(sizeof(*iso), GFP_KERNEL);
	if (!iso)
		return ERR_PTR(-ENOMEM);
	iso->d = d;
	/*
	 * An IOMMU that knows memory types (Svpbmt) takes them from its own entries: cached with
	 * this right, non-cached without.
	 */
	iso->prot = coherent ? IOMMU_CACHE : 0;
	iso->group = iommu_group_get(d);
	if (!iso->group) {
		err = -ENODEV;
		goto err_iso;
	}
	/* From here on the device reaches nothing. */
	err = iommu_device_claim_dma_owner(d, iso);
	if (err)
		goto err_group;
	err = ferry_isolation_attach(iso);
	if (err)
		goto err_owner;
	return iso;

err_owner:
	iommu_device_release_dma_owner(d);
err_group:
	iommu_group_put(iso->group);
err_iso:
	kfree(iso);
	return ERR_PTR(err);
}

/* The device does no DMA any more: where the kernel puts it now, it may reach everything. */
void ferry_isolation_end(struct ferry_isolation *iso)
{
	iommu_detach_group(iso->domain, iso->group);
	iommu_domain_free(iso->domain);
	iommu_device_release_dma_owner(iso->d);
	iommu_group_put(iso->group);
	mtree_destroy(&iso->space);
	kfree(iso);
}

/* ------------------------------------------------------------------------- mappings */

/*
 * Takes @size bytes of addresses, so that their place within @align bytes (a power of two)
 * is that of @like.
 */
static int ferry_run_take(struct ferry_isolation *iso, struct ferry_dma_run *run, size_t size,
			    u64 align, u64 like, gfp_t gfp)
{
	unsigned long index, pages = PHYS_PFN(size) + 1 + PHYS_PFN(align) - 1;
	int err;

	err = mtree_alloc_range(&iso->space, &index, run, pages, iso->first, iso->last, gfp);
	if (err)
		return err;
	run->addr = PFN_PHYS(index) + ((like - PFN_PHYS(index)) & (align - 1));
	run->size = size;
	return 0;
}

static void ferry_run_give(struct ferry_isolation *iso, struct ferry_dma_run *run)
{
	/* Whatever address of it is named, it goes whole. */
	mtree_erase(&iso->space, PHYS_PFN(run->addr));
	run->size = 0;
}

/**
 * ferry_isolation_map - shows contiguous memory to the device, to read and write
 * @iso: its address space
 * @run: where it sees it then; aligned to the size rounded up to a power of two
 * @phys: the memory
 * @size: bytes, whole pages
 * @gfp: how to allocate what that takes; may sleep
 *
 * Return: 0 or an error.
 */
int ferry_isolation_map(struct ferry_isolation *iso, struct ferry_dma_run *run, phys_addr_t phys,
			size_t size, gfp_t gfp)
{
	int err;

	err = ferry_run_take(iso, run, size, roundup_pow_of_two(size), 0, gfp);
	if (err)
		return err;
	err = iommu_map(iso->domain, run->addr, phys, size,
			IOMMU_READ | IOMMU_WRITE | IOMMU_NOEXEC | iso->prot, gfp);
	if (err)
		ferry_run_give(iso, run);
	return err;
}

/**
 * ferry_isolation_map_sg - shows scattered pages to the device, in a row
 * @iso: its address space
 * @run: where it sees them then
 * @sgl: the pages
 * @nents: of the list, as it was before the DMA API mapped it
 * @size: bytes in all
 * @like: an address (of the process) in which large pages lie as they lie in memory
 * @writable: whether the device may write
 *
 * What is contiguous in memory becomes one mapping of the largest pages that the IOMMU has.
 *
 * Return: 0 or an error.
 */
int ferry_isolation_map_sg(struct ferry_isolation *iso, struct ferry_dma_run *run,
			   struct scatterlist *sgl, unsigned int nents, size_t size, u64 like,
			   bool writable)
{
	int prot = IOMMU_READ | IOMMU_NOEXEC | iso->prot | (writable ? IOMMU_WRITE : 0);
	u64 align = BIT_ULL(__fls(iso->domain->pgsize_bitmap & GENMASK(__fls(size), 0)));
	ssize_t mapped;
	int err;

	err = ferry_run_take(iso, run, size, align, like, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	mapped = iommu_map_sg(iso->domain, run->addr, sgl, nents, prot, GFP_KERNEL_ACCOUNT);
	if (mapped == size)
		return 0;
	if (mapped > 0)
		iommu_unmap(iso->domain, run->addr, mapped);
	ferry_run_give(iso, run);
	return mapped < 0 ? mapped : -EINVAL;
}

/*
 * When this returns no access by these addresses is under way or will be. The device must
 * have been told before. Nothing happens to an empty run.
 */
void ferry_isolation_unmap(struct ferry_isolation *iso, struct ferry_dma_run *run)
{
	if (!run->size)
		return;
	WARN_ON(iommu_unmap(iso->domain, run->addr, run->size) != run->size);
	ferry_run_give(iso, run);
}
