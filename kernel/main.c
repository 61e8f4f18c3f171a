// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The PCI function: from probe to ib_register_device() and back.
 */
#include <linux/module.h>

#include "ferry.h"
#include "net.h"

static int ferry_map(struct ferry_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;

	if (pci_resource_len(pdev, FERRY_BAR_REGS) < FERRY_REGS_SIZE ||
	    pci_resource_len(pdev, FERRY_BAR_DOORBELL) < FERRY_PAGE_SIZE) {
		dev_err(&pdev->dev, "BARs are missing or too small\n");
		return -ENODEV;
	}
	dev->regs = pci_iomap(pdev, FERRY_BAR_REGS, FERRY_REGS_SIZE);
	if (!dev->regs)
		return -ENOMEM;
	dev->kernel_db = pci_iomap(pdev, FERRY_BAR_DOORBELL, FERRY_PAGE_SIZE);
	if (!dev->kernel_db) {
		pci_iounmap(pdev, dev->regs);
		return -ENOMEM;
	}
	dev->db_base = pci_resource_start(pdev, FERRY_BAR_DOORBELL);
	return 0;
}

static void ferry_unmap(struct ferry_dev *dev)
{
	pci_iounmap(dev->pdev, dev->kernel_db);
	pci_iounmap(dev->pdev, dev->regs);
}

/* What limits say must also fit the doorbell BAR. */
static int ferry_check_contexts(struct ferry_dev *dev)
{
	u64 pages = pci_resource_len(dev->pdev, FERRY_BAR_DOORBELL) >> FERRY_PAGE_SHIFT;

	if (dev->limits.max_contexts <= pages)
		return 0;
	dev_err(&dev->pdev->dev, "%u contexts, but %llu doorbell pages\n",
		dev->limits.max_contexts, pages);
	return -EINVAL;
}

/* The device takes commands and raises events; nobody knows of it yet. */
static int ferry_start(struct ferry_dev *dev)
{
	int err;

	err = ferry_dma_alloc(dev, &dev->status, PAGE_SIZE, GFP_KERNEL);
	if (err)
		return err;
	err = ferry_admin_init(dev);
	if (err)
		goto err_status;
	err = ferry_eqs_request(dev);
	if (err)
		goto err_admin;
	err = ferry_device_enable(dev);
	if (!err)
		err = ferry_device_query(dev);
	if (!err)
		err = ferry_check_contexts(dev);
	if (!err)
		err = ferry_device_set_status_page(dev);
	if (!err)
		err = ferry_eqs_create(dev);
	if (!err)
		err = ferry_assist_create(dev);
	if (err)
		goto err_enabled;
	return 0;

err_enabled:
	ferry_device_lost(dev, NULL);
	ferry_eqs_release(dev);
err_admin:
	ferry_admin_free(dev);
err_status:
	ferry_dma_free(dev, &dev->status);
	return err;
}

static void ferry_stop(struct ferry_dev *dev)
{
	ferry_device_lost(dev, NULL);
	ferry_context_release(&dev->kernel);
	ferry_eqs_release(dev);
	ferry_assist_destroy(dev);
	ferry_admin_free(dev);
	ferry_dma_free(dev, &dev->status);
}

static int ferry_open_pci(struct pci_dev *pdev)
{
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = pci_request_mem_regions(pdev, FERRY_DRIVER_NAME);
	if (err) {
		pci_disable_device(pdev);
		return err;
	}
	/*
	 * For ferry_slot_reset(): with memory decoding on, and each time anew, since whoever restores
	 * a saved state uses it up.
	 */
	pci_save_state(pdev);
	return 0;
}

static void ferry_close_pci(struct pci_dev *pdev)
{
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
}

/* The regime first: whatever the device does then is under it. */
static int ferry_open_dma(struct ferry_dev *dev)
{
	int err;

	err = ferry_dma_init(dev);
	if (!err)
		pci_set_master(dev->pdev);
	return err;
}

static void ferry_close_dma(struct ferry_dev *dev)
{
	pci_clear_master(dev->pdev);
	ferry_dma_exit(dev);
}

static struct ferry_dev *ferry_alloc(struct pci_dev *pdev)
{
	struct ferry_dev *dev = ib_alloc_device(ferry_dev, ibdev);

	if (!dev)
		return NULL;
	dev->pdev = pdev;
	xa_init_flags(&dev->cqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_LOCK_IRQ);
	xa_init(&dev->assisted);
	ferry_context_init(&dev->kernel, dev, NULL);
	ferry_device_init_watch(dev);
	return dev;
}

static void ferry_free(struct ferry_dev *dev)
{
	xa_destroy(&dev->assisted);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->cqs);
	ib_dealloc_device(&dev->ibdev);
}

static void ferry_introduce(struct ferry_dev *dev)
{
	static const struct {
		u32 cap;
		const char *name;
	} caps[] = {
		{ FERRY_CAP_POLL, " poll" }, { FERRY_CAP_UD, " ud" }, { FERRY_CAP_SRQ, " srq" },
		{ FERRY_CAP_ATOMIC, " atomic" }, { FERRY_CAP_MW, " mw" },
		{ FERRY_CAP_FAST_REG, " fast-reg" }, { FERRY_CAP_RESIZE_CQ, " resize-cq" },
		{ FERRY_CAP_ASSIST, " assist" },
	};
	u32 version = ferry_read(dev, FERRY_REG_VERSION);
	char names[80] = "";
	int i;

	for (i = 0; i < ARRAY_SIZE(caps); i++)
		if (dev->limits.caps & caps[i].cap)
			strlcat(names, caps[i].name, sizeof(names));
	dev_info(&dev->pdev->dev,
		 "%s: interface %u.%u, firmware %s, capabilities:%s; DMA %s%s; %u vectors\n",
		 dev_name(&dev->ibdev.dev), version >> 16, version & 0xffff, dev->limits.firmware,
		 names, ferry_dma_regime_names[dev->regime],
		 dev->regime == FERRY_DMA_DIRECT ? ", the device is trusted with all memory" : "",
		 dev->num_eqs);
}

/* Everything from an enabled function to a registered device; drvdata says that it is there. */
static int ferry_up(struct pci_dev *pdev)
{
	struct ferry_dev *dev;
	int err;

	err = ferry_open_pci(pdev);
	if (err)
		return err;
	err = -ENOMEM;
	dev = ferry_alloc(pdev);
	if (!dev)
		goto err_pci;
	err = ferry_map(dev);
	if (err)
		goto err_dev;
	err = ferry_device_check(dev);
	if (!err)
		err = ferry_device_reset(dev);
	if (!err)
		err = ferry_open_dma(dev);
	if (err)
		goto err_map;
	err = ferry_start(dev);
	if (err)
		goto err_dma;
	err = ferry_net_create(dev);
	if (err)
		goto err_start;
	err = ferry_ib_register(dev);
	if (err)
		goto err_net;
	ferry_device_watch(dev);
	pci_set_drvdata(pdev, dev);
	ferry_introduce(dev);
	return 0;

err_net:
	ferry_net_destroy(dev);
err_start:
	ferry_stop(dev);
err_dma:
	ferry_close_dma(dev);
err_map:
	/* It reads registers. */
	ferry_device_unwatch(dev);
	ferry_unmap(dev);
err_dev:
	ferry_free(dev);
err_pci:
	ferry_close_pci(pdev);
	return err;
}

static void ferry_down(struct pci_dev *pdev)
{
	struct ferry_dev *dev = pci_get_drvdata(pdev);

	if (!dev)
		return;
	pci_set_drvdata(pdev, NULL);
	ferry_ib_unregister(dev);
	ferry_net_destroy(dev);
	ferry_device_unwatch(dev);
	ferry_stop(dev);
	ferry_close_dma(dev);
	ferry_unmap(dev);
	ferry_free(dev);
	ferry_close_pci(pdev);
}

static int ferry_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	return ferry_up(pdev);
}

/* Before another kernel starts: no DMA into it. */
static void ferry_shutdown(struct pci_dev *pdev)
{
	struct ferry_dev *dev = pci_get_drvdata(pdev);

	if (dev)
		ferry_device_lost(dev, NULL);
}

/*
 * The device forgets its QPs when it loses power or is reset, and their peers do not
 * wait. So to everybody else a sleep or a reset is an unplug and a plug.
 */
static int ferry_suspend(struct device *d)
{
	ferry_down(to_pci_dev(d));
	return 0;
}

static int ferry_resume(struct device *d)
{
	return ferry_up(to_pci_dev(d));
}

static DEFINE_SIMPLE_DEV_PM_OPS(ferry_pm_ops, ferry_suspend, ferry_resume);

static pci_ers_result_t ferry_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct ferry_dev *dev = pci_get_drvdata(pdev);

	if (dev)
		ferry_device_lost(dev, "PCI error");
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT :
						      PCI_ERS_RESULT_NEED_RESET;
}

/* The reset has taken the BARs away. The state is saved again for the next time. */
static pci_ers_result_t ferry_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	pci_save_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void ferry_error_resume(struct pci_dev *pdev)
{
	ferry_down(pdev);
	ferry_up(pdev);
}

static void ferry_reset_done(struct pci_dev *pdev)
{
	ferry_up(pdev);
}

static const struct pci_error_handlers ferry_error_handlers = {
	.error_detected = ferry_error_detected,
	.slot_reset = ferry_slot_reset,
	.resume = ferry_error_resume,
	.reset_prepare = ferry_down,
	.reset_done = ferry_reset_done,
};

static const struct pci_device_id ferry_ids[] = {
	{ PCI_DEVICE(FERRY_PCI_VENDOR, FERRY_PCI_DEVICE) },
	{}
};
MODULE_DEVICE_TABLE(pci, ferry_ids);

static struct pci_driver ferry_driver = {
	.name = FERRY_DRIVER_NAME,
	.id_table = ferry_ids,
	.probe = ferry_probe,
	.remove = ferry_down,
	.shutdown = ferry_shutdown,
	.err_handler = &ferry_error_handlers,
	.driver_managed_dma = FERRY_OWNS_DMA,
	.driver.pm = pm_sleep_ptr(&ferry_pm_ops),
};
module_pci_driver(ferry_driver);

MODULE_DESCRIPTION("Ferry RDMA NIC");
MODULE_LICENSE("Dual BSD/GPL");
