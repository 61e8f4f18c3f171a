/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An I/O address space that the driver owns: the device reaches what is mapped here, and
 * nothing else.
 */
#ifndef FERRY_ISOLATE_H
#define FERRY_ISOLATE_H

#include <linux/err.h>
#include <linux/types.h>

struct device;
struct ferry_isolation;
struct scatterlist;

/*
 * Where the DMA API may translate, the driver core keeps a claim on the device's IOMMU
 * group for as long as a driver is bound, and no driver can take it over. Elsewhere the
 * claim is left to us.
 */
#define FERRY_OWNS_DMA	(IS_ENABLED(CONFIG_IOMMU_API) && !IS_ENABLED(CONFIG_IOMMU_DMA))

/*
 * Addresses in a row at which the device sees something. Only in a space of ours; else
 * size is 0, and the addresses are those of the DMA API.
 */
struct ferry_dma_run {
	u64 addr;		/* of the first page */
	size_t size;		/* bytes, whole pages */
};

#ifdef CONFIG_IOMMU_API
bool ferry_isolation_foreign(struct device *d);
bool ferry_isolation_api_translates(struct device *d);
struct ferry_isolation *ferry_isolate(struct device *d, bool coherent);
void ferry_isolation_end(struct ferry_isolation *iso);
int ferry_isolation_map(struct ferry_isolation *iso, struct ferry_dma_run *run, phys_addr_t phys,
			size_t size, gfp_t gfp);
int ferry_isolation_map_sg(struct ferry_isolation *iso, struct ferry_dma_run *run,
			   struct scatterlist *sgl, unsigned int nents, size_t size, u64 like,
			   bool writable);
void ferry_isolation_unmap(struct ferry_isolation *iso, struct ferry_dma_run *run);
#else
static inline bool ferry_isolation_foreign(struct device *d)
{
	return false;
}

static inline bool ferry_isolation_api_translates(struct device *d)
{
	return false;
}

static inline struct ferry_isolation *ferry_isolate(struct device *d, bool coherent)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void ferry_isolation_end(struct ferry_isolation *iso)
{
}

static inline int ferry_isolation_map(struct ferry_isolation *iso, struct ferry_dma_run *run,
				      phys_addr_t phys, size_t size, gfp_t gfp)
{
	return -EOPNOTSUPP;
}

static inline int ferry_isolation_map_sg(struct ferry_isolation *iso, struct ferry_dma_run *run,
					 struct scatterlist *sgl, unsigned int nents, size_t size,
					 u64 like, bool writable)
{
	return -EOPNOTSUPP;
}

static inline void ferry_isolation_unmap(struct ferry_isolation *iso, struct ferry_dma_run *run)
{
}
#endif

#endif
