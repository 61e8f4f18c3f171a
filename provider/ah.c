// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Address handles: what a UD WQE says about the way to the peer, prepared once.
 */
#include <stdlib.h>
#include <string.h>

#include "ferry.h"

struct ibv_ah *ferry_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ferry_create_ah_answer resp = {};
	struct ferry_ah *ah;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	/* The kernel checks the attributes, and finds the peer's MAC. */
	if (ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &resp.core, sizeof(resp))) {
		free(ah);
		return NULL;
	}
	memcpy(ah->av.dgid, attr->grh.dgid.raw, sizeof(ah->av.dgid));
	memcpy(ah->av.dmac, resp.ferry.dmac, sizeof(ah->av.dmac));
	ah->av.vlan = htole16(0xffff);
	ah->av.flow_label = htole32(attr->grh.flow_label & IB_GRH_FLOWLABEL_MASK);
	ah->av.sgid_index = htole16(attr->grh.sgid_index);
	ah->av.hop_limit = attr->grh.hop_limit;
	ah->av.traffic_class = attr->grh.traffic_class;
	ah->av.sl = attr->sl;
	return &ah->ibv_ah;
}

int ferry_destroy_ah(struct ibv_ah *ibah)
{
	int err = ibv_cmd_destroy_ah(ibah);

	if (err)
		return err;
	free(to_fah(ibah));
	return 0;
}
