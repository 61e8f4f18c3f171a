/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ferry_measure.ko: what only the kernel can time, for one PCI device: cache maintenance,
 * mapping through the DMA API, mapping through the IOMMU. It drives no device, and
 * nothing it maps is ever made known to one.
 */
#ifndef FERRY_MEASURE_H
#define FERRY_MEASURE_H

#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/types.h>

#define MEASURE_MAX_REPEATS	201
#define MEASURE_CHUNK_ORDER	8
#define MEASURE_CHUNK		(PAGE_SIZE << MEASURE_CHUNK_ORDER)
#define MEASURE_CHUNKS		4
#define MEASURE_POOL		(MEASURE_CHUNKS * MEASURE_CHUNK)
/* Buffers of a round. */
#define MEASURE_BATCH		64

/**
 * struct measure - the measurements of one device
 * @pdev: held
 * @repeats: samples of a row
 * @sample_ns: least time of a sample
 * @clock_ps: what reading the clock costs; taken off
 * @pool: pages to map; each chunk is contiguous
 * @values: of the row at hand, picoseconds; whoever measures holds the device's lock
 */
struct measure {
	struct pci_dev *pdev;
	unsigned int repeats;
	u64 sample_ns;
	u64 clock_ps;
	struct page *pool[MEASURE_CHUNKS];
	u64 values[2][MEASURE_MAX_REPEATS];
};

/**
 * struct measure_job - one or two rows
 * @group: of the rows
 * @names: of the rows; the second may be NULL
 * @parameter: of the rows: bytes, or pages
 * @batch: operations of a round
 * @size: bytes of a buffer
 * @round: does the work @batch times and adds the time of each half, ns
 * @context: for @round
 */
struct measure_job {
	const char *group;
	const char *names[2];
	u64 parameter;
	unsigned int batch;
	size_t size;
	int (*round)(struct measure *m, struct measure_job *job, u64 ns[2]);
	void *context;
};

/* A buffer of the pool, of @job->size bytes: they do not overlap. */
struct page *measure_page(struct measure *m, const struct measure_job *job, unsigned int i);
/* As many buffers of @size as the pool has, up to MEASURE_BATCH. */
unsigned int measure_batch(size_t size);

/* Prints rows, or why there are none. An error is that of a signal: give up. */
int measure_run(struct measure *m, struct seq_file *s, struct measure_job *job);
void measure_none(struct seq_file *s, const char *group, const char *name, const char *reason);
void measure_clock(struct measure *m);

/* What there is to read in debugfs. The device is locked. */
int measure_facts(struct measure *m, struct seq_file *s);
int measure_map(struct measure *m, struct seq_file *s);
int measure_sync(struct measure *m, struct seq_file *s);
int measure_iommu(struct measure *m, struct seq_file *s);

#endif
