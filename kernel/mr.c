// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/slab.h>

#include "pagelist.h"
#include "verbs.h"

/* Rights that mean something here; the core has refused unknown ones. */
#define FERRY_MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ACCESS_HUGETLB | \
			 IB_ACCESS_OPTIONAL)

static int ferry_mr_check(struct ferry_dev *dev, u64 length, u64 iova, int access)
{
	u64 end;

	if (!length || length > dev->limits.max_mr_size || check_add_overflow(iova, length, &end))
		return -EINVAL;
	if (access & ~FERRY_MR_ACCESS)
		return -EOPNOTSUPP;
	if (access & IB_ACCESS_REMOTE_ATOMIC && !ferry_has(dev, FERRY_CAP_ATOMIC))
		return -EOPNOTSUPP;
	return 0;
}

static int ferry_mr_tell(struct ferry_dev *dev, struct ferry_mr *mr, u32 pdn, u64 length,
			 int access)
{
	struct ferry_admin_create_mr cmd = {
		.pd = cpu_to_le32(pdn),
		.access = ferry_access(access),
		.iova = cpu_to_le64(mr->mem.iova),
		.length = cpu_to_le64(length),
		.offset = cpu_to_le64(mr->mem.offset),
	};
	struct ferry_pages pages;
	int err;

	err = ferry_dma_list_user(dev, &mr->mem, &pages, &cmd.pages);
	if (!err)
		err = ferry_admin_create(dev, FERRY_ADMIN_CREATE_MR, &cmd, &mr->ibmr.lkey);
	ferry_pages_free(dev, &pages);
	return err;
}

struct ib_mr *ferry_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				FERRY_REG_USER_MR_ARGS)
{
	struct ferry_dev *dev = to_ferry(ibpd->device);
	struct ferry_mr *mr;
	int err;

	if (FERRY_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	err = ib_no_udata_io(udata);
	if (!err)
		err = ferry_mr_check(dev, length, iova, access);
	if (err)
		return ERR_PTR(err);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = ferry_dma_pin(dev, &mr->mem, start, length, iova, access);
	if (err)
		goto err_mr;
	err = ferry_mr_tell(dev, mr, to_ferry_pd(ibpd)->pdn, length, access);
	if (err)
		goto err_pin;
	mr->ibmr.rkey = mr->ibmr.lkey;
	mr->ibmr.page_size = 1u << mr->mem.block_shift;
	return &mr->ibmr;

err_pin:
	ferry_dma_unpin(dev, &mr->mem);
err_mr:
	kfree(mr);
	return ERR_PTR(err);
}

int ferry_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct ferry_mr *mr = to_ferry_mr(ibmr);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	ferry_admin_destroy(to_ferry(ibmr->device), FERRY_ADMIN_DESTROY_MR, ibmr->lkey);
	ferry_dma_unpin(to_ferry(ibmr->device), &mr->mem);
	kfree(mr);
	return 0;
}
