// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the device can do, its port and its GIDs, in the words of verbs.
 */
#include <linux/etherdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "net.h"
#include "verbs.h"

/* "1.2.3" as the core wants it. */
static u64 ferry_fw_ver(const char *firmware)
{
	unsigned int part[3] = {};

	sscanf(firmware, "%u.%u.%u", &part[0], &part[1], &part[2]);
	return (u64)(part[0] & 0xffff) << 32 | (part[1] & 0xffff) << 16 | (part[2] & 0xffff);
}

int ferry_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibdev);
	const struct ferry_limits *limits = &dev->limits;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;

	*attr = (struct ib_device_attr) {
		.fw_ver = ferry_fw_ver(limits->firmware),
		.sys_image_guid = ibdev->node_guid,
		.vendor_id = dev->pdev->vendor,
		.vendor_part_id = dev->pdev->device,
		.hw_ver = dev->pdev->revision,
		.device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_CURR_QP_STATE_MOD |
				    IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID,
		.max_mr_size = limits->max_mr_size,
		.page_size_cap = limits->page_sizes,
		.max_mr = min_t(u32, limits->max_mrs, S32_MAX),
		.max_pd = min_t(u32, limits->max_pds, S32_MAX),
		.max_cq = min_t(u32, limits->max_cqs, S32_MAX),
		.max_cqe = min_t(u32, limits->max_cqe, S32_MAX),
		.max_qp = min_t(u32, limits->max_qps, S32_MAX),
		.max_qp_wr = min3(limits->max_sq_depth, limits->max_rq_depth, (u32)S32_MAX),
		.max_send_sge = limits->max_sge,
		.max_recv_sge = limits->max_sge,
		.max_sge_rd = limits->max_sge,
		.max_qp_rd_atom = limits->max_rd_atomic,
		.max_qp_init_rd_atom = limits->max_rd_atomic,
		.max_res_rd_atom = min_t(u64, (u64)limits->max_qps * limits->max_rd_atomic, S32_MAX),
		.atomic_cap = ferry_has(dev, FERRY_CAP_ATOMIC) ? IB_ATOMIC_HCA : IB_ATOMIC_NONE,
		.max_ah = S32_MAX,
		.max_srq = min_t(u32, limits->max_srqs, S32_MAX),
		.max_srq_wr = min_t(u32, limits->max_srq_depth, S32_MAX),
		.max_srq_sge = limits->max_sge,
		.max_pkeys = 1,
		/* Of completions: ns in 64 bits. */
		.timestamp_mask = U64_MAX,
		.hca_core_clock = 1000000, /* kHz */
		.cq_caps.max_cq_moderation_count = U16_MAX,
		.cq_caps.max_cq_moderation_period = U16_MAX,
	};
	return 0;
}

void ferry_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%s", to_ferry(ibdev)->limits.firmware);
}

/* The closest of the speeds that verbs can name, and not above. */
static void ferry_port_speed(u32 mbps, u16 *speed, u8 *width)
{
	static const struct {
		u32 mbps;
		u16 speed;
		u8 width;
	} names[] = {
		{ 800000, IB_SPEED_NDR, IB_WIDTH_8X },
		{ 400000, IB_SPEED_NDR, IB_WIDTH_4X },
		{ 200000, IB_SPEED_HDR, IB_WIDTH_4X },
		{ 100000, IB_SPEED_EDR, IB_WIDTH_4X },
		{ 50000, IB_SPEED_HDR, IB_WIDTH_1X },
		{ 40000, IB_SPEED_FDR10, IB_WIDTH_4X },
		{ 25000, IB_SPEED_EDR, IB_WIDTH_1X },
		{ 10000, IB_SPEED_FDR10, IB_WIDTH_1X },
		{ 0, IB_SPEED_SDR, IB_WIDTH_1X },
	};
	int i = 0;

	while (mbps < names[i].mbps)
		i++;
	*speed = names[i].speed;
	*width = names[i].width;
}

int ferry_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct ferry_dev *dev = to_ferry(ibdev);
	struct net_device *netdev = ferry_net_device(dev);
	bool up = netif_running(netdev) && netif_carrier_ok(netdev) && !ferry_is_lost(dev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = iboe_get_mtu(dev->limits.max_mtu);
	attr->active_mtu = max(iboe_get_mtu(READ_ONCE(netdev->mtu)), IB_MTU_256);
	attr->phys_mtu = READ_ONCE(netdev->mtu);
	attr->gid_tbl_len = dev->limits.gids;
	attr->ip_gids = true;
	attr->max_msg_sz = min_t(u64, dev->limits.max_msg_size, U32_MAX);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	ferry_port_speed(ferry_net_speed(dev), &attr->active_speed, &attr->active_width);
	return 0;
}

int ferry_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

int ferry_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->gid_tbl_len = to_ferry(ibdev)->limits.gids;
	immutable->pkey_tbl_len = 1;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

enum rdma_link_layer ferry_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

int ferry_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct ferry_admin_set_gid cmd = {
		.index = cpu_to_le16(attr->index),
		.valid = 1,
		.vlan = cpu_to_le16(FERRY_UNTAGGED),
	};
	u16 vlan;
	int err;

	err = rdma_read_gid_l2_fields(attr, &vlan, NULL);
	if (err)
		return err;
	if (vlan != FERRY_UNTAGGED || attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	memcpy(cmd.gid, attr->gid.raw, sizeof(cmd.gid));
	return ferry_admin_exec(to_ferry(attr->device), FERRY_ADMIN_SET_GID, &cmd);
}

int ferry_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct ferry_admin_set_gid cmd = {
		.index = cpu_to_le16(attr->index),
		.vlan = cpu_to_le16(FERRY_UNTAGGED),
	};

	return ferry_admin_exec(to_ferry(attr->device), FERRY_ADMIN_SET_GID, &cmd);
}

/* The netdev's carrier or state has changed. Under the lock of the first event queue. */
void ferry_port_changed(struct ferry_dev *dev, bool up)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = 1,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (FERRY_DISPATCHES_PORT_EVENTS && READ_ONCE(dev->registered))
		ib_dispatch_event(&event);
}
