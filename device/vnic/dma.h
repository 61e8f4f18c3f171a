/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Guest memory that the client lets the device reach by mapping it: a sorted table of
 * DMA address ranges. Only the shard's thread calls this, so a look-up takes no lock.
 *
 * Each memory file is mapped once, whole, however many ranges lie in it; a map or an
 * unmap edits the table and nothing else. A file without ranges stays mapped for a
 * while, since a guest with an IOMMU maps and unmaps pages all day.
 */
#ifndef VNIC_DMA_H
#define VNIC_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DMA_MAX_RANGES	65535	/* what vfio-user promises unless told otherwise */
#define DMA_MAX_FILES	64
#define DMA_IDLE_FILES	8	/* kept without any range */
#define DMA_PAGE_SIZE	4096

#define DMA_READ	(1u << 0)	/* the device may read */
#define DMA_WRITE	(1u << 1)

struct dma_file {
	dev_t dev;
	ino_t ino;
	bool writable;
	char *base;		/* NULL: the slot is free */
	uint64_t length;
	unsigned int ranges;
	uint64_t idle_since;	/* a count of maps, to find the one idle longest */
};

struct dma_range {
	uint64_t addr;
	uint64_t last;		/* the last byte's address */
	char *host;		/* NULL: the client sent no file, out of reach */
	struct dma_file *file;
	unsigned int rights;	/* DMA_READ, DMA_WRITE */
};

struct dma_table {
	struct dma_range *range;	/* by address, none overlaps */
	size_t count;
	size_t room;
	size_t hit;			/* where the last look-up ended */
	uint64_t ticks;
	struct dma_file file[DMA_MAX_FILES];
};

void dma_init(struct dma_table *table);
void dma_clear(struct dma_table *table);

/*
 * Adds [addr, addr + size). @fd is a memory file that holds it at @offset, or -1; it
 * remains the caller's. 0 or a negative errno: -EEXIST for an overlap, -EINVAL for a range
 * that is empty, wraps or is not whole pages, or for a file that is no regular one or too
 * short, -ENOSPC for a full table.
 */
int dma_map(struct dma_table *table, uint64_t addr, uint64_t size, unsigned int rights, int fd,
	    uint64_t offset);

/*
 * Takes away all that is mapped in [addr, last], also parts of ranges. Returns how many
 * bytes that were, or -ENOSPC if a range would have to become two and the table is full.
 */
int64_t dma_unmap(struct dma_table *table, uint64_t addr, uint64_t last);

/*
 * Where [addr, addr + len) lies, if it is mapped whole, with @rights, and contiguous in
 * our memory as well; else NULL.
 */
void *dma_lookup(struct dma_table *table, uint64_t addr, uint64_t len, unsigned int rights);

/*
 * Copies, piece by piece where the range is scattered. 0, or -EFAULT when a byte cannot be
 * reached; the pieces before it have been copied.
 */
int dma_read(struct dma_table *table, uint64_t addr, void *to, size_t len);
int dma_write(struct dma_table *table, uint64_t addr, const void *from, size_t len);

#endif
