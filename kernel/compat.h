/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What differs between the kernels served, 6.12 to 7.x: nothing else of the driver looks
 * at the kernel's version. Names are those of the newest kernel where it has one.
 */
#ifndef FERRY_COMPAT_H
#define FERRY_COMPAT_H

#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* 6.17: reg_user_mr takes a DMA handle. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define FERRY_REG_USER_MR_ARGS	struct ib_dmah *dmah, struct ib_udata *udata
#define FERRY_DMAH		dmah
#else
#define FERRY_REG_USER_MR_ARGS	struct ib_udata *udata
#define FERRY_DMAH		NULL
#endif

/* 7.2: helpers for driver data, and the promise that all of it goes through them. */
#ifdef ib_respond_udata
#define FERRY_ROBUST_UDATA	.uverbs_robust_udata = true,
#else
#define FERRY_ROBUST_UDATA

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	if (!udata || !udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen))
		return 0;
	return -EOPNOTSUPP;
}

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	if (udata && udata->outlen && clear_user(udata->outbuf, udata->outlen))
		return -EFAULT;
	return 0;
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	return ib_is_udata_in_empty(udata) ?: ib_respond_empty_udata(udata);
}

static inline int _ib_respond_udata(struct ib_udata *udata, const void *src, size_t len)
{
	size_t copy = min(len, udata->outlen);

	if (copy_to_user(udata->outbuf, src, copy) ||
	    clear_user(udata->outbuf + copy, udata->outlen - copy))
		return -EFAULT;
	return 0;
}
#define ib_respond_udata(udata, resp) _ib_respond_udata(udata, &(resp), sizeof(resp))

static inline int _ib_copy_validate_udata_in(struct ib_udata *udata, void *req, size_t size,
					     size_t least)
{
	if (udata->inlen < least)
		return -EINVAL;
	if (udata->inlen > size && !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	return ib_copy_from_udata(req, udata, min(size, udata->inlen));
}
#define ib_copy_validate_udata_in(udata, req, last) \
	_ib_copy_validate_udata_in(udata, &(req), sizeof(req), offsetofend(typeof(req), last))
#endif

/* Moved from ib_umem.h in 7.x, and in some stable releases of older ones. */
#ifdef FERRY_HAVE_RDMA_ITER_H	/* by Kbuild */
#include <rdma/iter.h>
#endif

/* 7.2: other sources of a umem than a user address; a CQ may bring its own buffer. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define ib_umem_get_va		ib_umem_get

static inline bool ferry_brings_cq_buffer(const struct uverbs_attr_bundle *attrs)
{
	return false;
}
#else
static inline bool ferry_brings_cq_buffer(const struct uverbs_attr_bundle *attrs)
{
	return uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_CQ_BUF_UMEM) ||
	       uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_CQ_BUFFER_VA) ||
	       uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_CQ_BUFFER_FD);
}
#endif

/* 7.2: a CQ of a user and one of the kernel have operations of their own. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define FERRY_RESIZE_CQ_OP	resize_cq
typedef int ferry_cqe_t;
#else
#define FERRY_RESIZE_CQ_OP	resize_user_cq
typedef unsigned int ferry_cqe_t;
#endif

/* 6.14: the core turns changes of the netdev into port events by itself. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define FERRY_DISPATCHES_PORT_EVENTS	true
#else
#define FERRY_DISPATCHES_PORT_EVENTS	false
#endif

#endif
