// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Paths to peers: in the attributes of a connected QP, and as address handles, which
 * need nothing from the device: a datagram's WQE carries its path.
 */
#include <rdma/ib_cache.h>

#include "verbs.h"

/* Whether the device can send along @attr. */
int ferry_check_path(const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	u16 vlan;
	int err;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) ||
	    rdma_ah_get_port_num(attr) != 1 || rdma_ah_get_sl(attr) > 7 ||
	    grh->sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EINVAL;
	err = rdma_read_gid_l2_fields(grh->sgid_attr, &vlan, NULL);
	if (err)
		return err;
	return vlan == FERRY_UNTAGGED ? 0 : -EOPNOTSUPP;
}

/* The core has resolved the MAC; the process puts it into its WQEs. */
int ferry_create_user_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			 struct ib_udata *udata)
{
	struct ferry_create_ah_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (!err)
		err = ferry_check_path(init->ah_attr);
	if (err)
		return err;
	memcpy(resp.dmac, init->ah_attr->roce.dmac, sizeof(resp.dmac));
	return ib_respond_udata(udata, resp);
}

int ferry_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
