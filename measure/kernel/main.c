// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files of /sys/kernel/debug/ferry_measure: reading one takes the measurement, and gives
 * rows as measure/sample.h has them. For CAP_SYS_ADMIN.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/iommu.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "measure.h"

/* All rows of a file: what did not fit would be measured again. */
#define BUFFER_SIZE	(256 << 10)

static char *device;
module_param(device, charp, 0400);
MODULE_PARM_DESC(device, "PCI device to measure with, such as 0000:01:00.0");

static unsigned int repeats = 31;
module_param(repeats, uint, 0400);
MODULE_PARM_DESC(repeats, "samples of each row, 3 to 201");

static unsigned int sample_us = 2000;
module_param(sample_us, uint, 0400);
MODULE_PARM_DESC(sample_us, "least time of a sample, 1 to 100000 microseconds");

static struct measure measure;
static struct dentry *directory;

static const struct part {
	const char *name;
	int (*show)(struct measure *m, struct seq_file *s);
} parts[] = {
	{ "facts", measure_facts },
	{ "map", measure_map },
	{ "sync", measure_sync },
	{ "iommu", measure_iommu },
};

static int measure_show(struct seq_file *s, void *unused)
{
	const struct part *part = s->private;
	struct device *dev = &measure.pdev->dev;
	int err;

	/* One measurement at a time, and drivers neither come nor go meanwhile. */
	err = device_lock_interruptible(dev);
	if (err)
		return err;
	err = device_is_registered(dev) ? part->show(&measure, s) : -ENODEV;
	device_unlock(dev);
	if (!err && seq_has_overflowed(s))
		err = -EOVERFLOW;
	return err;
}

static int measure_open(struct inode *inode, struct file *file)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return single_open_size(file, measure_show, inode->i_private, BUFFER_SIZE);
}

static const struct file_operations measure_fops = {
	.owner = THIS_MODULE,
	.open = measure_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
};

static struct pci_dev *find_device(const char *name)
{
	unsigned int domain, bus, slot, function;
	struct pci_dev *pdev = NULL;

	if (name && sscanf(name, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4 &&
	    bus <= 0xff && slot <= 0x1f && function <= 7)
		pdev = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
	/* Its one name, since numbers can be written in many ways. */
	if (pdev && !strcmp(pci_name(pdev), name))
		return pdev;
	pci_dev_put(pdev);
	pr_err("device= must name a PCI device, such as 0000:01:00.0\n");
	return ERR_PTR(-ENODEV);
}

static void free_pool(void)
{
	unsigned int i;

	for (i = 0; i < MEASURE_CHUNKS; i++)
		if (measure.pool[i])
			__free_pages(measure.pool[i], MEASURE_CHUNK_ORDER);
}

static int alloc_pool(void)
{
	int node = dev_to_node(&measure.pdev->dev);
	unsigned int i;

	for (i = 0; i < MEASURE_CHUNKS; i++) {
		measure.pool[i] = alloc_pages_node(node, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN,
						   MEASURE_CHUNK_ORDER);
		if (!measure.pool[i]) {
			free_pool();
			return -ENOMEM;
		}
	}
	return 0;
}

static int __init ferry_measure_init(void)
{
	unsigned int i;
	int err;

	if (repeats < 3 || repeats > MEASURE_MAX_REPEATS || !sample_us || sample_us > 100000) {
		pr_err("repeats= from 3 to %d, sample_us= from 1 to 100000\n",
		       MEASURE_MAX_REPEATS);
		return -EINVAL;
	}
	measure.pdev = find_device(device);
	if (IS_ERR(measure.pdev))
		return PTR_ERR(measure.pdev);
	measure.repeats = repeats;
	measure.sample_ns = sample_us * (u64)NSEC_PER_USEC;
	err = alloc_pool();
	if (err)
		goto put_device;
	measure_clock(&measure);

	directory = debugfs_create_dir("ferry_measure", NULL);
	if (IS_ERR(directory)) {
		err = PTR_ERR(directory);
		goto free_pool;
	}
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		debugfs_create_file(parts[i].name, 0400, directory, (void *)&parts[i],
				    &measure_fops);
	return 0;

free_pool:
	free_pool();
put_device:
	pci_dev_put(measure.pdev);
	return err;
}

static void __exit ferry_measure_exit(void)
{
	debugfs_remove(directory);
	free_pool();
	pci_dev_put(measure.pdev);
}

module_init(ferry_measure_init);
module_exit(ferry_measure_exit);
MODULE_DESCRIPTION("What DMA mapping and cache maintenance cost");
MODULE_LICENSE("Dual BSD/GPL");
