// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The device as ib_core sees it.
 */
#include <net/addrconf.h>

#include "mmap.h"
#include "net.h"
#include "verbs.h"

static ssize_t dma_regime_show(struct device *d, struct device_attribute *attr, char *text)
{
	struct ferry_dev *dev = rdma_device_to_drv_device(d, struct ferry_dev, ibdev);

	return sysfs_emit(text, "%s\n", ferry_dma_regime_names[dev->regime]);
}
static DEVICE_ATTR_RO(dma_regime);

static struct attribute *ferry_attrs[] = {
	&dev_attr_dma_regime.attr,
	NULL
};

static const struct attribute_group ferry_attr_group = { .attrs = ferry_attrs };

/* No post_send: kernel users come when QP1 does, and ib_core keeps them away until then. */
static const struct ib_device_ops ferry_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = FERRY_ABI_VERSION,
	FERRY_ROBUST_UDATA
	.device_group = &ferry_attr_group,

	.query_device = ferry_query_device,
	.query_port = ferry_query_port,
	.query_pkey = ferry_query_pkey,
	.get_port_immutable = ferry_get_port_immutable,
	.get_link_layer = ferry_get_link_layer,
	.get_dev_fw_str = ferry_get_dev_fw_str,
	.add_gid = ferry_add_gid,
	.del_gid = ferry_del_gid,

	.alloc_ucontext = ferry_alloc_ucontext,
	.dealloc_ucontext = ferry_dealloc_ucontext,
	.disassociate_ucontext = ferry_disassociate_ucontext,
	.mmap = ferry_mmap,
	.mmap_free = ferry_mmap_free,

	.alloc_pd = ferry_alloc_pd,
	.dealloc_pd = ferry_dealloc_pd,
	.create_cq = ferry_create_cq,
	.modify_cq = ferry_modify_cq,
	.FERRY_RESIZE_CQ_OP = ferry_resize_cq,
	.destroy_cq = ferry_destroy_cq,
	.create_srq = ferry_create_srq,
	.modify_srq = ferry_modify_srq,
	.query_srq = ferry_query_srq,
	.destroy_srq = ferry_destroy_srq,
	.create_user_ah = ferry_create_user_ah,
	.destroy_ah = ferry_destroy_ah,
	.create_qp = ferry_create_qp,
	.modify_qp = ferry_modify_qp,
	.query_qp = ferry_query_qp,
	.destroy_qp = ferry_destroy_qp,
	.reg_user_mr = ferry_reg_user_mr,
	.dereg_mr = ferry_dereg_mr,

	.alloc_hw_port_stats = ferry_alloc_hw_port_stats,
	.get_hw_stats = ferry_get_hw_stats,
	.fill_res_cq_entry = ferry_fill_res_cq,
	.fill_res_qp_entry = ferry_fill_res_qp,
	.fill_res_mr_entry = ferry_fill_res_mr,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, ferry_ucontext, ibuctx),
	INIT_RDMA_OBJ_SIZE(ib_pd, ferry_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_cq, ferry_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_srq, ferry_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ah, ferry_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_qp, ferry_qp, ibqp),
};

/* The netdev must be there: GIDs come from its addresses. */
int ferry_ib_register(struct ferry_dev *dev)
{
	struct net_device *netdev = ferry_net_device(dev);
	struct ib_device *ibdev = &dev->ibdev;
	int err;

	ib_set_device_ops(ibdev, &ferry_ops);
	ibdev->driver_def = ferry_uapi_defs;
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = ferry_comp_vectors(dev);
	ibdev->dev.parent = &dev->pdev->dev;
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, netdev->dev_addr);
	strscpy(ibdev->node_desc, "Ferry RDMA NIC", sizeof(ibdev->node_desc));

	err = ib_device_set_netdev(ibdev, netdev, 1);
	if (err)
		return err;
	err = ib_register_device(ibdev, "ferry_%d", &dev->pdev->dev);
	if (err) {
		ib_device_set_netdev(ibdev, NULL, 1);
		return err;
	}
	ferry_device_announce(dev, true);
	return 0;
}

/* Processes that still have the device open lose it here. */
void ferry_ib_unregister(struct ferry_dev *dev)
{
	ferry_device_announce(dev, false);
	/* Who saw that there was somebody to tell has told him. */
	ferry_eq_flush(&dev->eqs[0]);
	ib_unregister_device(&dev->ibdev);
}
