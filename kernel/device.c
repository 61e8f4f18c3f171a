// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The device itself: reset, enabling, what it can do, and its end.
 *
 * A device is lost when it says so, is gone from the bus, does not answer a command or
 * breaks the rules. Then its DMA is stopped, for good and before anything else: bus
 * mastering off, reset. From then on every command fails at once, and what the device
 * knew may be freed without asking it.
 */
#include <linux/delay.h>
#include <linux/iopoll.h>

#include "ferry.h"
#include "net.h"

#define FERRY_HEALTH_PERIOD	HZ
#define FERRY_RESET_US		(5 * USEC_PER_SEC)	/* QEMU emulates on a busy machine */
#define FERRY_POLL_US		1000

/* Whether this is a device we can drive. */
int ferry_device_check(struct ferry_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	u32 magic = ferry_read(dev, FERRY_REG_MAGIC);
	u32 version = ferry_read(dev, FERRY_REG_VERSION);

	if (magic != FERRY_MAGIC) {
		dev_err(d, "not a Ferry device: magic %#x\n", magic);
		return -ENODEV;
	}
	if (version >> 16 != FERRY_VERSION_MAJOR) {
		dev_err(d, "hardware interface %u.%u, this driver knows %u.x\n",
			version >> 16, version & 0xffff, FERRY_VERSION_MAJOR);
		return -ENODEV;
	}
	return 0;
}

/* The device forgets everything and does no DMA any more. A device that is gone has, too. */
int ferry_device_reset(struct ferry_dev *dev)
{
	u32 ctrl;
	int err;

	ferry_write(dev, FERRY_REG_CTRL, FERRY_CTRL_RESET);
	err = read_poll_timeout(ferry_read, ctrl, !ctrl || ctrl == FERRY_STATUS_GONE,
				FERRY_POLL_US, FERRY_RESET_US, false, dev, FERRY_REG_CTRL);
	if (err)
		dev_err(&dev->pdev->dev, "does not finish a reset\n");
	return err;
}

/* After a reset: hands over the admin queue and waits until commands are taken. */
int ferry_device_enable(struct ferry_dev *dev)
{
	u32 status;
	int err;

	ferry_write(dev, FERRY_REG_ASQ_LO, lower_32_bits(dev->admin.sq.dma));
	ferry_write(dev, FERRY_REG_ASQ_HI, upper_32_bits(dev->admin.sq.dma));
	ferry_write(dev, FERRY_REG_ACQ_LO, lower_32_bits(dev->admin.cq.dma));
	ferry_write(dev, FERRY_REG_ACQ_HI, upper_32_bits(dev->admin.cq.dma));
	ferry_write(dev, FERRY_REG_ADMIN_SHIFT, FERRY_ADMIN_SHIFT);
	ferry_write(dev, FERRY_REG_CTRL, FERRY_CTRL_ENABLE);

	err = read_poll_timeout(ferry_read, status,
				status & (FERRY_STATUS_READY | FERRY_STATUS_FATAL),
				FERRY_POLL_US, FERRY_RESET_US, false, dev, FERRY_REG_STATUS);
	if (!err && (status == FERRY_STATUS_GONE || !(status & FERRY_STATUS_READY)))
		err = -EIO;
	if (err)
		dev_err(&dev->pdev->dev, "cannot be enabled: status %#x\n", status);
	return err;
}

int ferry_device_query(struct ferry_dev *dev)
{
	struct ferry_limits *to = &dev->limits;
	const struct ferry_device_limits *from;
	struct ferry_admin_cqe answer;
	int err;

	err = ferry_admin_query(dev, FERRY_ADMIN_QUERY_DEVICE, 0, &answer);
	if (err)
		return err;

	from = &answer.device;
	to->max_mr_size = le64_to_cpu(from->max_mr_size);
	to->page_sizes = le64_to_cpu(from->page_sizes);
	to->max_msg_size = le64_to_cpu(from->max_msg_size);
	to->caps = le32_to_cpu(from->caps);
	to->max_contexts = le32_to_cpu(from->max_contexts);
	to->max_pds = le32_to_cpu(from->max_pds);
	to->max_eqs = le32_to_cpu(from->max_eqs);
	to->max_cqs = le32_to_cpu(from->max_cqs);
	to->max_qps = le32_to_cpu(from->max_qps);
	to->max_srqs = le32_to_cpu(from->max_srqs);
	to->max_mrs = le32_to_cpu(from->max_mrs);
	/* What is above the interface's own ranges could not be asked for. */
	to->max_cqe = min(le32_to_cpu(from->max_cqe), 1u << FERRY_CQ_SHIFT_MAX);
	to->max_sq_depth = min(le32_to_cpu(from->max_sq_depth), 1u << FERRY_WQ_SHIFT_MAX);
	to->max_rq_depth = min(le32_to_cpu(from->max_rq_depth), 1u << FERRY_WQ_SHIFT_MAX);
	to->max_srq_depth = min(le32_to_cpu(from->max_srq_depth), 1u << FERRY_WQ_SHIFT_MAX);
	to->max_record_pages = le32_to_cpu(from->max_record_pages);
	to->max_sge = le16_to_cpu(from->max_sge);
	to->max_inline = le16_to_cpu(from->max_inline);
	to->max_rd_atomic = le16_to_cpu(from->max_rd_atomic);
	to->gids = le16_to_cpu(from->gids);
	to->max_mtu = min_t(u16, le16_to_cpu(from->max_mtu), FERRY_MTU_MAX);
	memcpy(to->firmware, from->firmware, sizeof(from->firmware));

	if (!(to->page_sizes & PAGE_SIZE) || !to->max_cqe || !to->max_sq_depth ||
	    !to->max_rq_depth || !to->max_sge || !to->gids || !to->max_eqs ||
	    to->max_mtu < FERRY_MTU_MIN) {
		dev_err(&dev->pdev->dev, "states limits that nothing could work with\n");
		return -EINVAL;
	}
	return 0;
}

int ferry_device_set_status_page(struct ferry_dev *dev)
{
	struct ferry_admin_set_page cmd = { .addr = cpu_to_le64(dev->status.dma) };

	WRITE_ONCE(ferry_status(dev)->alive, cpu_to_le32(1));
	return ferry_admin_exec(dev, FERRY_ADMIN_SET_STATUS_PAGE, &cmd);
}

static const char *ferry_fatal_cause(unsigned int cause)
{
	static const char * const causes[] = {
		[FERRY_FATAL_ADMIN_DMA]		= "it could not reach its admin queue",
		[FERRY_FATAL_EQ_OVERRUN]	= "an event queue overran",
		[FERRY_FATAL_EQ_DMA]		= "it could not reach an event queue",
		[FERRY_FATAL_INTERNAL]		= "it found itself broken",
	};

	return cause < ARRAY_SIZE(causes) && causes[cause] ? causes[cause] :
							     "it reports a fatal error";
}

/* What is wrong with the device, or NULL. */
static const char *ferry_device_diagnose(struct ferry_dev *dev)
{
	u32 status = ferry_read(dev, FERRY_REG_STATUS);

	if (status == FERRY_STATUS_GONE)
		return "it is gone from the bus";
	if (status & FERRY_STATUS_FATAL)
		return ferry_fatal_cause(FERRY_STATUS_CAUSE(status));
	if (!(status & FERRY_STATUS_READY))
		return "it was reset by somebody else";
	return READ_ONCE(dev->suspicion);
}

static void ferry_device_examine(struct ferry_dev *dev)
{
	const char *why = ferry_device_diagnose(dev);

	if (why)
		ferry_device_lost(dev, why);
}

static void ferry_device_health(struct work_struct *work)
{
	struct ferry_dev *dev = container_of(work, struct ferry_dev, health.work);

	ferry_device_examine(dev);
	if (!ferry_is_lost(dev))
		schedule_delayed_work(&dev->health, FERRY_HEALTH_PERIOD);
}

static void ferry_device_suspected(struct work_struct *work)
{
	ferry_device_examine(container_of(work, struct ferry_dev, suspected));
}

void ferry_device_init_watch(struct ferry_dev *dev)
{
	mutex_init(&dev->lost_lock);
	INIT_DELAYED_WORK(&dev->health, ferry_device_health);
	INIT_WORK(&dev->suspected, ferry_device_suspected);
}

void ferry_device_watch(struct ferry_dev *dev)
{
	schedule_delayed_work(&dev->health, FERRY_HEALTH_PERIOD);
}

void ferry_device_unwatch(struct ferry_dev *dev)
{
	disable_delayed_work_sync(&dev->health);
	disable_work_sync(&dev->suspected);
}

/* From any context: something is wrong, @why (a constant); a work shall act on it. */
void ferry_device_suspect(struct ferry_dev *dev, const char *why)
{
	WRITE_ONCE(dev->suspicion, why);
	schedule_work(&dev->suspected);
}

static void ferry_device_fatal_event(struct ferry_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	ib_dispatch_event(&event);
}

/*
 * Those who wait for completions wake up, find nothing, and see on the status page why.
 * The lock keeps each CQ from being destroyed meanwhile.
 */
static void ferry_device_wake_waiters(struct ferry_dev *dev)
{
	struct ferry_object *cq;
	unsigned long index;

	/* NAPI is among them: it runs when this ends. */
	local_bh_disable();
	xa_lock_irq(&dev->cqs);
	xa_for_each(&dev->cqs, index, cq)
		cq->event(cq, FERRY_EVENT_COMPLETION);
	xa_unlock_irq(&dev->cqs);
	local_bh_enable();
}

/*
 * The device is lost, for the reason @why; NULL if it is we who let go of it, then
 * nothing is said. Only the first call does anything. When any call returns, the device
 * does no DMA any more.
 */
void ferry_device_lost(struct ferry_dev *dev, const char *why)
{
	mutex_lock(&dev->lost_lock);
	if (dev->lost)
		goto out;
	WRITE_ONCE(dev->lost, true);
	if (why)
		dev_err(&dev->pdev->dev, "device lost: %s\n", why);

	pci_clear_master(dev->pdev);
	ferry_device_reset(dev);

	WRITE_ONCE(ferry_status(dev)->alive, 0);
	/* Who is woken below sees the device dead. */
	smp_wmb();
	ferry_admin_abort(dev);
	ferry_device_wake_waiters(dev);
	ferry_net_lost(dev);
	if (dev->registered)
		ferry_device_fatal_event(dev);
out:
	mutex_unlock(&dev->lost_lock);
}

/*
 * Whether there is somebody to tell when the device is lost. To be called after
 * registration (then it tells what has happened during it), and before it is undone.
 */
void ferry_device_announce(struct ferry_dev *dev, bool registered)
{
	mutex_lock(&dev->lost_lock);
	dev->registered = registered;
	if (registered && dev->lost)
		ferry_device_fatal_event(dev);
	mutex_unlock(&dev->lost_lock);
}

/* For what the device has created: a number that is in use would name two things. */
int ferry_object_add(struct ferry_dev *dev, struct xarray *xa, struct ferry_object *obj)
{
	int err = xa_insert_irq(xa, obj->number, obj, GFP_KERNEL);

	if (err == -EBUSY)
		ferry_device_lost(dev, "it gave a number twice");
	return err;
}

/*
 * To be called before the device is told: it may use the number again at once. @eq: the
 * one whose entries name the object.
 */
void ferry_object_remove(struct xarray *xa, struct ferry_object *obj, struct ferry_eq *eq)
{
	xa_erase_irq(xa, obj->number);
	ferry_eq_flush(eq);
}
