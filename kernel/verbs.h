/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects of verbs, and the operations on them that ib.c hands to the core.
 */
#ifndef FERRY_VERBS_H
#define FERRY_VERBS_H

#include <linux/completion.h>
#include <linux/refcount.h>

#include "compat.h"
#include "ferry.h"
#include "queue.h"
#include "umem.h"

#define FERRY_UNTAGGED	0xffff		/* instead of a VLAN */

struct ferry_ucontext {
	struct ib_ucontext ibuctx;
	struct ferry_context ctx;
	struct mutex mmap_lock;		/* see ferry_mmap_share() */
	struct ferry_mmap *doorbell;
	struct ferry_mmap *status;

	/* What key 1 addresses, see methods.c. */
	struct mutex memory_lock;
	struct ferry_mmap **memory;
	unsigned int memory_count;
	unsigned int memory_shift;	/* log2 of the smallest of them */
	u64 memory_bytes;
};

struct ferry_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct ferry_cq {
	struct ib_cq ibcq;
	struct ferry_object obj;
	struct ferry_eq *eq;
	struct ferry_queue queue;
	struct mutex resize_lock;	/* all below, queue.ring, queue.depth_shift once it exists */
	struct ferry_ring *prepared;	/* what it will be resized to, or NULL */
	unsigned int prepared_shift;	/* log2 of the entries of that */
};

struct ferry_srq {
	struct ib_srq ibsrq;
	struct ferry_object obj;
	struct ferry_queue queue;
	u32 max_sge;
};

struct ferry_qp {
	struct ib_qp ibqp;
	struct ferry_object obj;
	struct ferry_context *ctx;
	struct ferry_queue sq;
	struct ferry_queue rq;		/* without a ring beside an SRQ */
	struct ib_qp_cap cap;
	bool signal_all;
	struct mutex lock;		/* state, dest_qpn */
	enum ib_qp_state state;
	u32 dest_qpn;
};

struct ferry_ah {
	struct ib_ah ibah;
};

struct ferry_mr {
	struct ib_mr ibmr;
	struct ferry_umem mem;
	bool writable;
	bool assisted;			/* in dev->assisted */
	refcount_t users;		/* of mem, for assist */
	struct completion unused;
};

static inline struct ferry_ucontext *to_ferry_uctx(struct ib_ucontext *ibuctx)
{
	return container_of(ibuctx, struct ferry_ucontext, ibuctx);
}

static inline struct ferry_pd *to_ferry_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct ferry_pd, ibpd);
}

static inline struct ferry_cq *to_ferry_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct ferry_cq, ibcq);
}

static inline struct ferry_srq *to_ferry_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct ferry_srq, ibsrq);
}

static inline struct ferry_qp *to_ferry_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct ferry_qp, ibqp);
}

static inline struct ferry_mr *to_ferry_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct ferry_mr, ibmr);
}

/* The context of the process that made the call; NULL if the kernel made it. */
static inline struct ferry_ucontext *ferry_udata_uctx(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct ferry_ucontext, ibuctx);
}

static inline bool ferry_has(const struct ferry_dev *dev, u32 cap)
{
	return dev->limits.caps & cap;
}

/* The rights of verbs as the device knows them. */
static inline u8 ferry_access(int access)
{
	return (access & IB_ACCESS_LOCAL_WRITE ? FERRY_ACCESS_LOCAL_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_WRITE ? FERRY_ACCESS_REMOTE_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_READ ? FERRY_ACCESS_REMOTE_READ : 0) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? FERRY_ACCESS_REMOTE_ATOMIC : 0) |
	       (access & IB_ACCESS_MW_BIND ? FERRY_ACCESS_MW_BIND : 0);
}

/* log2 of the stride of receives with up to @sges, and how many such a stride has room for. */
static inline unsigned int ferry_rqe_shift(u32 sges)
{
	return ferry_shift(sizeof(struct ferry_rqe) + sges * sizeof(struct ferry_sge),
			   FERRY_RQE_SHIFT_MIN);
}

static inline u32 ferry_rqe_sges(const struct ferry_dev *dev, unsigned int stride_shift)
{
	u32 room = (1u << stride_shift) - sizeof(struct ferry_rqe);

	return min_t(u32, room / sizeof(struct ferry_sge), dev->limits.max_sge);
}

/* ucontext.c */
int ferry_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata);
void ferry_dealloc_ucontext(struct ib_ucontext *ibuctx);
void ferry_disassociate_ucontext(struct ib_ucontext *ibuctx);

/* pd.c */
int ferry_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int ferry_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* cq.c */
int ferry_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs);
int ferry_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int ferry_resize_cq(struct ib_cq *ibcq, ferry_cqe_t cqe, struct ib_udata *udata);
int ferry_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);

/* srq.c */
int ferry_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int ferry_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata);
int ferry_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int ferry_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);

/* ah.c */
int ferry_check_path(const struct rdma_ah_attr *attr);
int ferry_create_user_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			 struct ib_udata *udata);
int ferry_destroy_ah(struct ib_ah *ibah, u32 flags);

/* qp.c */
int ferry_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int ferry_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
int ferry_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
int ferry_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* mr.c */
struct ib_mr *ferry_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				FERRY_REG_USER_MR_ARGS);
int ferry_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
struct ferry_mr *ferry_mr_get(struct ferry_dev *dev, u32 key);
void ferry_mr_put(struct ferry_mr *mr);

/* methods.c */
extern const struct uapi_definition ferry_uapi_defs[];

/* port.c */
int ferry_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata);
int ferry_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int ferry_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int ferry_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable);
enum rdma_link_layer ferry_get_link_layer(struct ib_device *ibdev, u32 port);
void ferry_get_dev_fw_str(struct ib_device *ibdev, char *str);
int ferry_add_gid(const struct ib_gid_attr *attr, void **context);
int ferry_del_gid(const struct ib_gid_attr *attr, void **context);

/* counters.c */
struct rdma_hw_stats *ferry_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int ferry_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);

/* restrack.c */
int ferry_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int ferry_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int ferry_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);

#endif
