/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The device as all parts of the driver see it.
 */
#ifndef FERRY_H
#define FERRY_H

#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "ferry_hw.h"
#include "ferry-abi.h"
#include "admin.h"
#include "assist.h"
#include "dma.h"
#include "eq.h"
#include "record.h"

#define FERRY_DRIVER_NAME	"ferry"

static_assert(PAGE_SIZE == FERRY_PAGE_SIZE);

struct ferry_net;

/* struct ferry_device_limits in host order. */
struct ferry_limits {
	u64 max_mr_size;
	u64 page_sizes;
	u64 max_msg_size;
	u32 caps;
	u32 max_contexts;
	u32 max_pds;
	u32 max_eqs;
	u32 max_cqs;
	u32 max_qps;
	u32 max_srqs;
	u32 max_mrs;
	u32 max_cqe;
	u32 max_sq_depth;
	u32 max_rq_depth;
	u32 max_srq_depth;
	u32 max_record_pages;
	u16 max_sge;
	u16 max_inline;
	u16 max_rd_atomic;
	u16 gids;
	u16 max_mtu;
	char firmware[17];
};

/*
 * What the device calls by a number: a CQ, a QP or an SRQ, of a user or of the kernel.
 * event() runs in interrupt context, or in a thread when the device is lost; never
 * after ferry_object_remove() has returned.
 */
struct ferry_object {
	u32 number;
	void (*event)(struct ferry_object *obj, enum ferry_event type);
};

struct ferry_dev {
	struct ib_device ibdev;		/* first: ib_alloc_device() */
	struct pci_dev *pdev;
	struct ferry_limits limits;
	unsigned int cache_line;	/* bytes; 0: the device snoops the CPUs' caches */

	enum ferry_dma_regime regime;
	struct ferry_isolation *isolation;	/* with FERRY_DMA_ISOLATED */

	void __iomem *regs;		/* BAR0 */
	void __iomem *kernel_db;	/* page 0 of BAR2 */
	phys_addr_t db_base;		/* BAR2 */

	struct ferry_buf status;	/* struct ferry_status_page */
	struct ferry_admin admin;
	struct ferry_eq *eqs;		/* 0: events of the device; the rest: completions */
	unsigned int num_eqs;
	struct ferry_buf eq_records;	/* consumer indices, a line each */

	struct ferry_context kernel;	/* context 0 */
	atomic_long_t bytes;		/* of all contexts, see mmap.c */
	struct ferry_net *net;
	struct ferry_assist assist;

	/* Number to struct ferry_object. Interrupts look up under RCU, see eq.c. */
	struct xarray cqs;
	struct xarray qps;
	struct xarray srqs;
	struct xarray assisted;		/* key to struct ferry_mr, see assist.c */

	/* The end of the device, see device.c. */
	struct mutex lost_lock;
	bool lost;			/* written under lost_lock, read anywhere */
	bool registered;		/* takes ib events; under lost_lock */
	const char *suspicion;		/* what an interrupt saw */
	struct work_struct suspected;	/* acts on it */
	struct delayed_work health;
};

static inline struct ferry_dev *to_ferry(struct ib_device *ibdev)
{
	return container_of(ibdev, struct ferry_dev, ibdev);
}

static inline struct ferry_status_page *ferry_status(struct ferry_dev *dev)
{
	return dev->status.cpu;
}

static inline bool ferry_is_lost(const struct ferry_dev *dev)
{
	return READ_ONCE(dev->lost);
}

static inline u32 ferry_read(const struct ferry_dev *dev, unsigned int reg)
{
	return readl(dev->regs + reg);
}

static inline void ferry_write(struct ferry_dev *dev, unsigned int reg, u32 value)
{
	writel(value, dev->regs + reg);
}

/* device.c */
int ferry_device_check(struct ferry_dev *dev);
int ferry_device_reset(struct ferry_dev *dev);
int ferry_device_enable(struct ferry_dev *dev);
int ferry_device_query(struct ferry_dev *dev);
int ferry_device_set_status_page(struct ferry_dev *dev);
void ferry_device_init_watch(struct ferry_dev *dev);
void ferry_device_watch(struct ferry_dev *dev);
void ferry_device_unwatch(struct ferry_dev *dev);
void ferry_device_suspect(struct ferry_dev *dev, const char *why);
void ferry_device_lost(struct ferry_dev *dev, const char *why);
void ferry_device_announce(struct ferry_dev *dev, bool registered);

int ferry_object_add(struct ferry_dev *dev, struct xarray *xa, struct ferry_object *obj);
void ferry_object_remove(struct xarray *xa, struct ferry_object *obj, struct ferry_eq *eq);

/* ib.c */
int ferry_ib_register(struct ferry_dev *dev);
void ferry_ib_unregister(struct ferry_dev *dev);

/* port.c */
void ferry_port_changed(struct ferry_dev *dev, bool up);

#endif
