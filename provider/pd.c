// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Protection domains, thread domains, and the parent domains that join the two: a queue
 * made in a parent domain with a thread domain needs no lock.
 */
#include <errno.h>
#include <stdlib.h>

#include "ferry.h"

struct ibv_pd *ferry_alloc_pd(struct ibv_context *ibctx)
{
	struct ferry_alloc_pd_answer resp = {};
	struct ibv_alloc_pd cmd = {};
	struct ferry_pd *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	if (ibv_cmd_alloc_pd(ibctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp.core, sizeof(resp))) {
		free(pd);
		return NULL;
	}
	return &pd->ibv_pd;
}

int ferry_dealloc_pd(struct ibv_pd *ibpd)
{
	struct ferry_pd *pd = to_fpd(ibpd);
	int err;

	if (atomic_load(&pd->refs))
		return EBUSY;
	if (pd->parent_of) {
		atomic_fetch_sub(&pd->parent_of->refs, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->refs, 1);
	} else {
		err = ibv_cmd_dealloc_pd(ibpd);
		if (err)
			return err;
	}
	free(pd);
	return 0;
}

struct ibv_td *ferry_alloc_td(struct ibv_context *ibctx, struct ibv_td_init_attr *attr)
{
	struct ferry_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ibctx;
	return &td->ibv_td;
}

int ferry_dealloc_td(struct ibv_td *ibtd)
{
	struct ferry_td *td = container_of(ibtd, struct ferry_td, ibv_td);

	if (atomic_load(&td->refs))
		return EBUSY;
	free(td);
	return 0;
}

struct ibv_pd *ferry_alloc_parent_domain(struct ibv_context *ibctx,
					 struct ibv_parent_domain_init_attr *attr)
{
	struct ferry_pd *pd;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	/* Our rings are the driver's memory: there is nothing to allocate by callbacks. */
	if (!check_comp_mask(attr->comp_mask, IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->parent_of = to_fpd(attr->pd);
	atomic_fetch_add(&pd->parent_of->refs, 1);
	if (attr->td) {
		pd->td = container_of(attr->td, struct ferry_td, ibv_td);
		atomic_fetch_add(&pd->td->refs, 1);
	}
	ibv_initialize_parent_domain(&pd->ibv_pd, attr->pd);
	return &pd->ibv_pd;
}
