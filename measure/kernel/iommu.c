// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The IOMMU by itself: a paging domain, mapped and unmapped without the DMA API. Where
 * nobody drives the device, the domain is attached to it, so that unmapping has to
 * invalidate what the IOMMU has cached; else what is timed is the page table alone, and
 * the rows say so.
 */
#include <linux/iommu.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "measure.h"

#define GROUP		"IOMMU"
/* Above what memory and interrupt controllers usually have. */
#define FIRST_IOVA	SZ_4G

struct iommu_job {
	struct iommu_domain *domain;
	struct iommu_group *group;
	dma_addr_t iova;
	bool claimed, attached;
};

static int round_iommu(struct measure *m, struct measure_job *job, u64 ns[2])
{
	struct iommu_job *j = job->context;
	u64 began = ktime_get_ns(), mapped;
	unsigned int i, done;
	int err = 0;

	for (done = 0; done < job->batch; done++) {
		err = iommu_map(j->domain, j->iova + done * job->size,
				page_to_phys(measure_page(m, job, done)), job->size,
				IOMMU_READ | IOMMU_WRITE | IOMMU_CACHE, GFP_KERNEL);
		if (err)
			break;
	}
	mapped = ktime_get_ns();
	for (i = 0; i < done; i++)
		if (iommu_unmap(j->domain, j->iova + i * job->size, job->size) != job->size)
			err = -EIO;
	ns[0] += mapped - began;
	ns[1] += ktime_get_ns() - mapped;
	return err;
}

/* The device belongs to us if nobody drives it. */
static void try_to_attach(struct measure *m, struct iommu_job *j)
{
	if (m->pdev->dev.driver || iommu_device_claim_dma_owner(&m->pdev->dev, m))
		return;
	j->claimed = true;
	j->attached = !iommu_attach_group(j->domain, j->group);
}

static void detach(struct measure *m, struct iommu_job *j)
{
	if (j->attached)
		iommu_detach_group(j->domain, j->group);
	if (j->claimed)
		iommu_device_release_dma_owner(&m->pdev->dev);
}

static int run_sizes(struct measure *m, struct seq_file *s, struct iommu_job *j)
{
	static const size_t sizes[] = { SZ_4K, SZ_64K, SZ_1M };
	struct measure_job job = { .group = GROUP, .round = round_iommu, .context = j };
	unsigned int i;
	int err = 0;

	job.names[0] = j->attached ? "map" : "map, page table only";
	job.names[1] = j->attached ? "unmap" : "unmap, page table only";
	for (i = 0; i < ARRAY_SIZE(sizes) && !err; i++) {
		job.size = sizes[i];
		job.parameter = sizes[i];
		job.batch = measure_batch(sizes[i]);
		err = measure_run(m, s, &job);
	}
	return err;
}

int measure_iommu(struct measure *m, struct seq_file *s)
{
	const struct iommu_domain_geometry *geometry;
	struct iommu_job j = {};
	int err = 0;

	j.group = iommu_group_get(&m->pdev->dev);
	if (!j.group) {
		measure_none(s, GROUP, "all", "no IOMMU translates for this device");
		return 0;
	}
	j.domain = iommu_paging_domain_alloc(&m->pdev->dev);
	if (IS_ERR(j.domain)) {
		measure_none(s, GROUP, "all", "its IOMMU has no paging domains");
		goto put_group;
	}
	geometry = &j.domain->geometry;
	j.iova = max_t(dma_addr_t, FIRST_IOVA, ALIGN(geometry->aperture_start, SZ_1M));
	if (geometry->aperture_end < j.iova + MEASURE_POOL) {
		measure_none(s, GROUP, "all", "its IOMMU translates too few addresses");
		goto free_domain;
	}
	try_to_attach(m, &j);
	err = run_sizes(m, s, &j);
	detach(m, &j);
free_domain:
	iommu_domain_free(j.domain);
put_group:
	iommu_group_put(j.group);
	return err;
}
