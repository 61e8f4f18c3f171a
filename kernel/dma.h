/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How memory becomes visible to the device: everything it reads or writes was allocated
 * here, or pinned by umem.c.
 */
#ifndef FERRY_DMA_H
#define FERRY_DMA_H

#include <linux/types.h>
#include <linux/mm_types.h>

#include "isolate.h"

struct ferry_dev;
struct sg_table;

/*
 * Memory that CPU and device share without cache maintenance, zeroed when allocated.
 * Whole pages, physically contiguous, aligned to its size rounded up to a power of two.
 */
struct ferry_buf {
	void *cpu;		/* NULL: none */
	u64 dma;		/* what the device calls it */
	size_t size;		/* bytes */
	dma_addr_t api;		/* what the DMA API calls it */
	struct ferry_dma_run run;
};

/* Who keeps the device from other memory. */
enum ferry_dma_regime {
	FERRY_DMA_DIRECT,	/* nobody */
	FERRY_DMA_TRANSLATED,	/* the DMA API, by an IOMMU */
	FERRY_DMA_ISOLATED,	/* the driver, by an IOMMU that the DMA API leaves alone */
	FERRY_DMA_REGIMES
};

int ferry_dma_init(struct ferry_dev *dev);
void ferry_dma_exit(struct ferry_dev *dev);
extern const char * const ferry_dma_regime_names[FERRY_DMA_REGIMES];

int ferry_dma_alloc(struct ferry_dev *dev, struct ferry_buf *buf, size_t size, gfp_t gfp);
void ferry_dma_hide(struct ferry_dev *dev, struct ferry_buf *buf);
void ferry_dma_free(struct ferry_dev *dev, struct ferry_buf *buf);
unsigned long ferry_dma_pfn(const struct ferry_buf *buf);
pgprot_t ferry_dma_pgprot(struct ferry_dev *dev, pgprot_t prot);

int ferry_dma_map_run(struct ferry_dev *dev, struct ferry_dma_run *run, struct sg_table *sgt,
		      u64 start, bool writable);
void ferry_dma_unmap_run(struct ferry_dev *dev, struct ferry_dma_run *run);

#endif
