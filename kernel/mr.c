// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/slab.h>

#include "pagelist.h"
#include "verbs.h"

/* Rights that mean something here; the core has refused unknown ones. */
#define FERRY_MR_REMOTE (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)
#define FERRY_MR_ACCESS (IB_ACCESS_LOCAL_WRITE | FERRY_MR_REMOTE | IB_ACCESS_MW_BIND | \
			 IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

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

/* A provider that knows nothing of this sends nothing. */
static int ferry_mr_request(struct ib_udata *udata, struct ferry_reg_mr_req *req)
{
	int err;

	if (!udata || !udata->inlen)
		return 0;
	err = ib_copy_validate_udata_in(udata, *req, skip);
	if (err)
		return err;
	if (req->flags & ~(FERRY_REG_MR_MEMORY | FERRY_REG_MR_NO_ASSIST) || req->reserved)
		return -EOPNOTSUPP;
	if (!(req->flags & FERRY_REG_MR_MEMORY) && (req->memory || req->skip))
		return -EINVAL;
	return 0;
}

static int ferry_mr_tell(struct ferry_dev *dev, struct ferry_mr *mr, u32 pdn, int access)
{
	struct ferry_admin_create_mr cmd = {
		.pd = cpu_to_le32(pdn),
		.access = ferry_access(access),
		.flags = mr->assisted ? FERRY_MR_ASSIST : 0,
		.iova = cpu_to_le64(mr->mem.iova),
		.length = cpu_to_le64(mr->mem.length),
		.offset = cpu_to_le64(mr->mem.offset),
	};
	struct ferry_pages pages;
	int err;

	err = ferry_umem_list(dev, &mr->mem, &pages, &cmd.pages);
	if (!err)
		err = ferry_admin_create(dev, FERRY_ADMIN_CREATE_MR, &cmd, &mr->ibmr.lkey);
	ferry_pages_free(dev, &pages);
	return err;
}

/*
 * Where the device does not snoop and peers have access, somebody has to maintain the
 * caches when they use it: assist, unless the program has said that it does so itself.
 */
static int ferry_mr_settle_assist(struct ferry_dev *dev, struct ferry_mr *mr, int access, u32 flags)
{
	if (!ferry_umem_is_cached(&mr->mem) || !(access & FERRY_MR_REMOTE))
		return 0;
	/* Peers find what the program has stored up to now, assist or not. */
	ferry_umem_clean(dev, &mr->mem, mr->mem.iova, mr->mem.length);
	if (flags & FERRY_REG_MR_NO_ASSIST)
		return 0;
	if (!ferry_assist_ready(&dev->assist))
		return -EOPNOTSUPP;
	mr->assisted = true;
	return 0;
}

static int ferry_mr_create(struct ferry_dev *dev, struct ferry_mr *mr, u32 pdn, int access,
			   u32 flags)
{
	int err;

	mr->writable = ib_access_writable(access);
	refcount_set(&mr->users, 1);
	init_completion(&mr->unused);
	err = ferry_mr_settle_assist(dev, mr, access, flags);
	if (!err)
		err = ferry_mr_tell(dev, mr, pdn, access);
	if (err || !mr->assisted)
		return err;
	err = xa_insert(&dev->assisted, mr->ibmr.lkey, mr, GFP_KERNEL_ACCOUNT);
	if (err == -EBUSY)
		ferry_device_lost(dev, "it gave a key twice");
	if (err)
		ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_MR, mr->ibmr.lkey);
	return err;
}

/* The device has no more access; nor has assist for it. */
static void ferry_mr_destroy(struct ferry_dev *dev, struct ferry_mr *mr)
{
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_MR, mr->ibmr.lkey);
	if (!mr->assisted)
		return;
	xa_erase(&dev->assisted, mr->ibmr.lkey);
	ferry_mr_put(mr);
	wait_for_completion(&mr->unused);
}

struct ib_mr *ferry_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				FERRY_REG_USER_MR_ARGS)
{
	struct ferry_dev *dev = to_ferry(ibpd->device);
	struct ferry_reg_mr_resp resp = {};
	struct ferry_reg_mr_req req = {};
	struct ferry_mr *mr;
	int err;

	if (FERRY_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	err = ferry_mr_request(udata, &req);
	if (!err)
		err = ferry_mr_check(dev, length, iova, access);
	if (err)
		return ERR_PTR(err);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	if (req.flags & FERRY_REG_MR_MEMORY)
		err = ferry_umem_borrow(dev, &mr->mem, &ferry_udata_uctx(udata)->ibuctx,
					req.memory, req.skip, length, iova);
	else
		err = ferry_umem_pin(dev, &mr->mem, start, length, iova, access);
	if (err)
		goto err_mr;
	err = ferry_mr_create(dev, mr, to_ferry_pd(ibpd)->pdn, access, req.flags);
	if (err)
		goto err_mem;
	mr->ibmr.rkey = mr->ibmr.lkey;
	mr->ibmr.page_size = 1u << mr->mem.block_shift;

	resp.flags = (ferry_umem_is_cached(&mr->mem) ? FERRY_MR_CACHED : 0) |
		     (mr->assisted ? FERRY_MR_ASSISTED : 0);
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_create;
	return &mr->ibmr;

err_create:
	ferry_mr_destroy(dev, mr);
err_mem:
	ferry_umem_release(dev, &mr->mem);
err_mr:
	kfree(mr);
	return ERR_PTR(err);
}

int ferry_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibmr->device);
	struct ferry_mr *mr = to_ferry_mr(ibmr);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	ferry_mr_destroy(dev, mr);
	ferry_umem_release(dev, &mr->mem);
	kfree(mr);
	return 0;
}

/* The assisted MR of that key, to be put; NULL: there is none, or none any more. */
struct ferry_mr *ferry_mr_get(struct ferry_dev *dev, u32 key)
{
	struct ferry_mr *mr;

	xa_lock(&dev->assisted);
	mr = xa_load(&dev->assisted, key);
	if (mr)
		refcount_inc(&mr->users);
	xa_unlock(&dev->assisted);
	return mr;
}

void ferry_mr_put(struct ferry_mr *mr)
{
	if (refcount_dec_and_test(&mr->users))
		complete(&mr->unused);
}
