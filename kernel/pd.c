// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "verbs.h"

int ferry_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct ferry_ucontext *uctx = ferry_udata_uctx(udata);
	struct ferry_dev *dev = to_ferry(ibpd->device);
	struct ferry_pd *pd = to_ferry_pd(ibpd);
	struct ferry_admin_create_pd cmd = {};
	struct ferry_alloc_pd_resp resp = {};
	int err;

	if (!uctx)
		return -EOPNOTSUPP;
	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	cmd.context = cpu_to_le32(uctx->ctx.number);
	err = ferry_admin_create(dev, FERRY_ADMIN_CREATE_PD, &cmd, &pd->pdn);
	if (err)
		return err;
	resp.pdn = pd->pdn;
	err = ib_respond_udata(udata, resp);
	if (err)
		ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_PD, pd->pdn);
	return err;
}

int ferry_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	ferry_admin_destroy(to_ferry(ibpd->device), FERRY_ADMIN_DESTROY_PD,
			    to_ferry_pd(ibpd)->pdn);
	return 0;
}
