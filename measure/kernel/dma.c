// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The DMA API as the device's driver meets it: mapping, and cache maintenance. On a
 * coherent device without an IOMMU both come to almost nothing; that is a result too.
 */
#include <linux/cacheflush.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/ktime.h>
#include <linux/libnvdimm.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "measure.h"

#define MAP_GROUP	"DMA map"
#define SYNC_GROUP	"cache, kernel"

struct dma_job {
	struct device *dev;
	enum dma_data_direction dir;
	size_t sync;			/* bytes of each mapping */
	struct sg_table sgt;
	dma_addr_t addr[MEASURE_BATCH];
	void *cpu[MEASURE_BATCH];
};

/* ---------------------------------------------------------------- mapping */

static void unmap_pages(struct measure_job *job, unsigned int count)
{
	struct dma_job *d = job->context;

	while (count--)
		dma_unmap_page(d->dev, d->addr[count], job->size, d->dir);
}

static int map_pages(struct measure *m, struct measure_job *job)
{
	struct dma_job *d = job->context;
	unsigned int i;

	for (i = 0; i < job->batch; i++) {
		d->addr[i] = dma_map_page(d->dev, measure_page(m, job, i), 0, job->size, d->dir);
		if (dma_mapping_error(d->dev, d->addr[i])) {
			unmap_pages(job, i);
			return -ENOMEM;
		}
	}
	return 0;
}

static int round_map(struct measure *m, struct measure_job *job, u64 ns[2])
{
	u64 began = ktime_get_ns(), mapped;
	int err;

	err = map_pages(m, job);
	if (err)
		return err;
	mapped = ktime_get_ns();
	unmap_pages(job, job->batch);
	ns[0] += mapped - began;
	ns[1] += ktime_get_ns() - mapped;
	return 0;
}

static int round_map_sg(struct measure *m, struct measure_job *job, u64 ns[2])
{
	struct dma_job *d = job->context;
	u64 began = ktime_get_ns(), mapped;
	int err;

	err = dma_map_sgtable(d->dev, &d->sgt, d->dir, 0);
	if (err)
		return err;
	mapped = ktime_get_ns();
	dma_unmap_sgtable(d->dev, &d->sgt, d->dir, 0);
	ns[0] += mapped - began;
	ns[1] += ktime_get_ns() - mapped;
	return 0;
}

static void free_coherent(struct measure_job *job, unsigned int count)
{
	struct dma_job *d = job->context;

	while (count--)
		dma_free_coherent(d->dev, job->size, d->cpu[count], d->addr[count]);
}

static int round_coherent(struct measure *m, struct measure_job *job, u64 ns[2])
{
	struct dma_job *d = job->context;
	u64 began = ktime_get_ns(), allocated;
	unsigned int i;

	for (i = 0; i < job->batch; i++) {
		d->cpu[i] = dma_alloc_coherent(d->dev, job->size, &d->addr[i],
					       GFP_KERNEL | __GFP_NOWARN);
		if (!d->cpu[i]) {
			free_coherent(job, i);
			return -ENOMEM;
		}
	}
	allocated = ktime_get_ns();
	free_coherent(job, job->batch);
	ns[0] += allocated - began;
	ns[1] += ktime_get_ns() - allocated;
	return 0;
}

static const size_t map_sizes[] = { SZ_4K, SZ_64K, SZ_1M };
static const unsigned int map_pages_counts[] = { 1, 16, 256 };

static const struct {
	enum dma_data_direction dir;
	const char *map[2];
	const char *sg[2];
	const char *sync[2];
} directions[] = {
	{ DMA_TO_DEVICE,
	  { "map, to device", "unmap, to device" },
	  { "map of scattered pages, to device", "unmap of scattered pages, to device" },
	  { "sync for device, to device", "sync for CPU, to device" } },
	{ DMA_FROM_DEVICE,
	  { "map, from device", "unmap, from device" },
	  { "map of scattered pages, from device", "unmap of scattered pages, from device" },
	  { "sync for device, from device", "sync for CPU, from device" } },
	{ DMA_BIDIRECTIONAL,
	  { "map, both ways", "unmap, both ways" },
	  { "map of scattered pages, both ways", "unmap of scattered pages, both ways" },
	  { "sync for device, both ways", "sync for CPU, both ways" } },
};

/* Pages in an order in which no two are neighbours. */
static int scatter(struct measure *m, struct measure_job *job, unsigned int pages)
{
	struct dma_job *d = job->context;
	struct scatterlist *sg;
	unsigned int i;
	int err;

	err = sg_alloc_table(&d->sgt, pages, GFP_KERNEL);
	if (err)
		return err;
	for_each_sgtable_sg(&d->sgt, sg, i) {
		unsigned int page = (2 * i + 1) % (MEASURE_POOL / PAGE_SIZE);

		sg_set_page(sg, m->pool[page * PAGE_SIZE / MEASURE_CHUNK] +
			    page % (MEASURE_CHUNK / PAGE_SIZE), PAGE_SIZE, 0);
	}
	return 0;
}

static int map_direction(struct measure *m, struct seq_file *s, struct dma_job *d, int direction)
{
	struct measure_job job = { .group = MAP_GROUP, .context = d };
	unsigned int i;
	int err;

	d->dir = directions[direction].dir;
	for (i = 0; i < ARRAY_SIZE(map_sizes); i++) {
		job.names[0] = directions[direction].map[0];
		job.names[1] = directions[direction].map[1];
		job.size = map_sizes[i];
		job.parameter = job.size;
		job.batch = measure_batch(job.size);
		job.round = round_map;
		err = measure_run(m, s, &job);
		if (err)
			return err;
	}
	for (i = 0; i < ARRAY_SIZE(map_pages_counts); i++) {
		job.names[0] = directions[direction].sg[0];
		job.names[1] = directions[direction].sg[1];
		job.parameter = map_pages_counts[i];
		job.batch = 1;
		job.round = round_map_sg;
		err = scatter(m, &job, map_pages_counts[i]);
		if (err)
			return err;
		err = measure_run(m, s, &job);
		sg_free_table(&d->sgt);
		if (err)
			return err;
	}
	return 0;
}

static struct dma_job *alloc_job(struct measure *m)
{
	struct dma_job *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (d)
		d->dev = &m->pdev->dev;
	return d;
}

/* Without a driver nobody has said what the device can address, or whether it is coherent. */
static bool has_driver(struct measure *m, struct seq_file *s, const char *group)
{
	if (m->pdev->dev.driver)
		return true;
	measure_none(s, group, "all", "no driver is bound to the device");
	return false;
}

int measure_map(struct measure *m, struct seq_file *s)
{
	struct measure_job job = {
		.group = MAP_GROUP,
		.names = { "dma_alloc_coherent", "dma_free_coherent" },
		.batch = 4,
		.round = round_coherent,
	};
	struct dma_job *d;
	unsigned int i;
	int err = 0;

	if (!has_driver(m, s, MAP_GROUP))
		return 0;
	d = alloc_job(m);
	if (!d)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(directions) && !err; i++)
		err = map_direction(m, s, d, i);
	job.context = d;
	for (i = 0; i < ARRAY_SIZE(map_sizes) && !err; i++) {
		job.size = map_sizes[i];
		job.parameter = job.size;
		err = measure_run(m, s, &job);
	}
	kfree(d);
	return err;
}

/* ---------------------------------------------------------------- cache maintenance */

/* The CPU has written all of it when it goes to the device. */
static void dirty(struct measure *m, struct measure_job *job)
{
	struct dma_job *d = job->context;
	unsigned int i;

	for (i = 0; i < job->batch; i++)
		memset(page_address(measure_page(m, job, i)), 1, d->sync);
}

static int round_sync(struct measure *m, struct measure_job *job, u64 ns[2])
{
	struct dma_job *d = job->context;
	u64 began, half;
	unsigned int i;

	dirty(m, job);
	began = ktime_get_ns();
	for (i = 0; i < job->batch; i++)
		dma_sync_single_for_device(d->dev, d->addr[i], d->sync, d->dir);
	half = ktime_get_ns();
	for (i = 0; i < job->batch; i++)
		dma_sync_single_for_cpu(d->dev, d->addr[i], d->sync, d->dir);
	ns[0] += half - began;
	ns[1] += ktime_get_ns() - half;
	return 0;
}

#ifdef CONFIG_ARCH_HAS_PMEM_API
static int round_write_back(struct measure *m, struct measure_job *job, u64 ns[2])
{
	struct dma_job *d = job->context;
	u64 began;
	unsigned int i;

	dirty(m, job);
	began = ktime_get_ns();
	for (i = 0; i < job->batch; i++)
		arch_wb_cache_pmem(page_address(measure_page(m, job, i)), d->sync);
	/* As before a doorbell. */
	wmb();
	ns[0] += ktime_get_ns() - began;
	return 0;
}
#endif

static const size_t sync_sizes[] = { SZ_64, SZ_1K, SZ_4K, SZ_64K, SZ_1M };

static void set_sync_size(struct measure_job *job, struct dma_job *d, size_t size)
{
	d->sync = size;
	job->parameter = size;
	/* What is mapped are pages, whatever of them is synchronised. */
	job->size = PAGE_ALIGN(size);
	job->batch = measure_batch(job->size);
}

static int sync_direction(struct measure *m, struct seq_file *s, struct dma_job *d, int direction)
{
	struct measure_job job = {
		.group = SYNC_GROUP,
		.names = { directions[direction].sync[0], directions[direction].sync[1] },
		.round = round_sync,
		.context = d,
	};
	unsigned int i;
	int err = 0;

	d->dir = directions[direction].dir;
	for (i = 0; i < ARRAY_SIZE(sync_sizes) && !err; i++) {
		set_sync_size(&job, d, sync_sizes[i]);
		err = map_pages(m, &job);
		if (err)
			return err;
		err = measure_run(m, s, &job);
		unmap_pages(&job, job.batch);
	}
	return err;
}

/* What the CPU can, whether this device needs it or not. */
static int write_back(struct measure *m, struct seq_file *s, struct dma_job *d)
{
	const char *name = "write back (arch_wb_cache_pmem)";

#ifdef CONFIG_ARCH_HAS_PMEM_API
	struct measure_job job = {
		.group = SYNC_GROUP,
		.names = { name },
		.round = round_write_back,
		.context = d,
	};
	unsigned int i;
	int err = 0;

#ifdef CONFIG_RISCV
	if (!riscv_cbom_block_size) {
		measure_none(s, SYNC_GROUP, name, "the CPU has no Zicbom");
		return 0;
	}
#endif
	for (i = 0; i < ARRAY_SIZE(sync_sizes) && !err; i++) {
		set_sync_size(&job, d, sync_sizes[i]);
		err = measure_run(m, s, &job);
	}
	return err;
#else
	measure_none(s, SYNC_GROUP, name, "the kernel has no such function");
	return 0;
#endif
}

int measure_sync(struct measure *m, struct seq_file *s)
{
	struct dma_job *d = alloc_job(m);
	unsigned int i;
	int err;

	if (!d)
		return -ENOMEM;
	err = write_back(m, s, d);
	if (!err && has_driver(m, s, SYNC_GROUP))
		for (i = 0; i < ARRAY_SIZE(directions) && !err; i++)
			err = sync_direction(m, s, d, i);
	kfree(d);
	return err;
}

/* ---------------------------------------------------------------- facts */

static const char *regime(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	if (!domain)
		return "direct: no IOMMU";
	if (iommu_is_dma_domain(domain))
		return "translated: the DMA API maps through the IOMMU";
	if (domain->type == IOMMU_DOMAIN_IDENTITY)
		return "identity: there is an IOMMU, and it lets everything pass";
	return "a domain of its driver's or a user's";
}

int measure_facts(struct measure *m, struct seq_file *s)
{
	struct device *dev = &m->pdev->dev;

	seq_printf(s, "fact\tdevice\t%s %04x:%04x\n", pci_name(m->pdev), m->pdev->vendor,
		   m->pdev->device);
	seq_printf(s, "fact\tdevice's driver\t%s\n", dev->driver ? dev->driver->name : "none");
	if (dev->driver) {
		seq_printf(s, "fact\tcoherent\t%s\n", dev_is_dma_coherent(dev) ? "yes" : "no");
		seq_printf(s, "fact\tDMA mask\t%#llx\n", dma_get_mask(dev));
	}
	seq_printf(s, "fact\tDMA regime\t%s\n", regime(dev));
#ifdef CONFIG_RISCV
	seq_printf(s, "fact\tcache block, kernel\t%u\n", riscv_cbom_block_size);
#endif
	seq_printf(s, "fact\tkernel's clock, ns a reading\t%llu.%03u\n",
		   div_u64(m->clock_ps, 1000), (u32)(m->clock_ps % 1000));
	return 0;
}
