/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects of the provider.
 *
 * Locks: struct ferry_context.lock guards its tables; a CQ's lock its ring and what
 * completes through it; a work queue's lock its posting side. A CQ's lock may be held
 * when a work queue's lock is taken, never the other way round.
 */
#ifndef FERRY_PROVIDER_H
#define FERRY_PROVIDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <ccan/container_of.h>
#include <ccan/list.h>
#include <infiniband/driver.h>
#include <util/compiler.h>

#include "abi.h"
#include "doorbell.h"
#include "lock.h"

/* QPs by number, 24 bits: the upper half names a leaf, the lower half an entry of it. */
#define FERRY_QP_LEAF_BITS	12
#define FERRY_QP_LEAF_SIZE	(1u << FERRY_QP_LEAF_BITS)
#define FERRY_QP_LEAVES		(1u << (24 - FERRY_QP_LEAF_BITS))

struct ferry_cache;
struct ferry_seen;
struct ferry_sinks;

struct ferry_qp_leaf {
	struct ferry_qp **qps;		/* NULL while used is 0 */
	unsigned int used;
};

struct ferry_context {
	struct verbs_context ibv_ctx;
	void *doorbell;			/* MMIO, write only */
	const struct ferry_status_page *status;
	bool poll;			/* the device may read records by itself */
	struct ferry_cache *cache;	/* NULL: coherent */

	pthread_mutex_t lock;
	struct list_head record_pages;	/* struct ferry_record_map, until the context ends */
	struct list_head memory;	/* struct ferry_memory */
	struct ferry_qp_leaf qps[FERRY_QP_LEAVES];
};

struct ferry_td {
	struct ibv_td ibv_td;
	atomic_uint refs;		/* parent domains */
};

struct ferry_pd {
	struct ibv_pd ibv_pd;
	struct ferry_pd *parent_of;	/* a parent domain: the PD inside; else NULL */
	struct ferry_td *td;		/* of a parent domain; may be NULL */
	atomic_uint refs;		/* of a PD: parent domains over it */
};

/* Memory of the driver, mapped. */
struct ferry_ring {
	void *mem;			/* NULL: none */
	size_t bytes;
};

/* Where an entry of a ring is, and whose request it holds. */
struct ferry_place {
	void *entry;
	uint64_t wr_id;
};

/*
 * A queue of work: SQ or RQ. Whoever posts holds the lock, whoever completes holds the
 * CQ's lock; completed is what passes from the one to the other.
 *
 * Here and below indices have 64 bits, of which the device sees 32: they do not wrap,
 * and are added to pointers without being widened first.
 */
struct ferry_wq {
	struct ferry_lock lock;
	uint64_t pi;			/* posted so far */
	uint64_t limit;			/* pi at which it may be full: see ferry_wq_full() */
	uint64_t mask;			/* depth - 1 */
	uint32_t max_sge;
	uint32_t max_inline;		/* bytes; SQ */
	struct ferry_place *places;	/* depth of them */
	struct ferry_ring ring;
	struct ferry_bell bell;
	struct ferry_sinks *sinks;	/* NULL: coherent */
	struct ferry_qp *qp;
	struct list_node cq_entry;	/* of struct ferry_cq.wqs */

	/*
	 * The low bits of the index of the last request that is complete, as the device tells
	 * it: see ferry_wq_ci(). Written under the CQ's lock. On a line of its own: the thread
	 * that polls need not be the one that posts.
	 */
	_Alignas(64) uint16_t completed;
};

/* What struct ferry_wq.completed can tell apart, by far. */
#define FERRY_WQ_DEPTH_MAX	(1u << 15)

/* How many are complete, of @pi that are posted, which is at most a ring more. */
static inline uint64_t ferry_wq_ci(const struct ferry_wq *wq, uint64_t pi)
{
	const uint16_t completed = __atomic_load_n(&wq->completed, __ATOMIC_RELAXED);

	return pi - (uint16_t)(pi - 1 - completed);
}

/* The request of index @last, and all before it. (Volatile: see ferry_load32().) */
static inline void ferry_wq_complete_to(struct ferry_wq *wq, uint16_t last)
{
	*(volatile uint16_t *)&wq->completed = last;
}

/* @ci are complete. */
static inline void ferry_wq_complete(struct ferry_wq *wq, uint64_t ci)
{
	ferry_wq_complete_to(wq, ci - 1);
}

struct ferry_srq {
	struct verbs_srq vsrq;
	struct ferry_lock lock;
	uint32_t shift;
	uint64_t pi;			/* posted so far */
	uint64_t mask;
	uint32_t max_sge;
	uint32_t free;			/* ids in the list */
	uint16_t first;			/* of the list of free ids */
	uint16_t *next;			/* of that list, by id */
	uint64_t *wr_id;		/* by id */
	struct ferry_ring ring;
	struct ferry_bell bell;
	struct ferry_sinks *sinks;	/* by id; NULL: coherent */
};

/* How a request is sent. */
struct ferry_send_op {
	uint32_t what;			/* enum ferry_wr | enum ferry_send_kind; 0: refused */
	uint32_t refused;		/* IBV_SEND_* that may not be set */
};

#define FERRY_SEND_OPS	16		/* of a table by enum ibv_wr_opcode */

struct ferry_send_type;

struct ferry_qp {
	struct verbs_qp vqp;
	struct ferry_send_op ops[FERRY_SEND_OPS]; /* those of the type; nothing before RTS */
	const struct ferry_send_type *type;
	struct ferry_srq *srq;
	struct ferry_wq sq;
	struct ferry_wq rq;

	/* Between ibv_wr_start() and ibv_wr_complete(). */
	struct ferry_wqe_head *wr_head;	/* the request being built */
	struct ferry_sge *wr_data;	/* where its data go */
	uint64_t wr_pi;			/* after the last request begun */
	uint32_t wr_max_sge;		/* of that request */
	uint32_t wr_max_inline;
	int wr_err;
};

/* A ring of CQEs. */
struct ferry_cqes {
	struct ferry_ring ring;
	uint64_t mask;			/* depth - 1 */
	uint32_t lap_shift;		/* moves the lap's bit of an index to bit 63 */
};

/* The ring that a resized CQ goes on in, once the one before it is empty. */
struct ferry_next_cqes {
	struct ferry_cqes cqes;
	uint64_t start;			/* entries before it are in the ring before */
	uint64_t first;			/* the first to be taken: see ferry_cq_drop() */
	struct ferry_next_cqes *next;
};

struct ferry_cq {
	struct verbs_cq vcq;
	struct ferry_lock lock;
	uint64_t ci;			/* entries taken so far */
	struct ferry_qp *last_qp;	/* the QP of the last entry */
	uint64_t last_key;		/* ferry_last_key() of the last entry, or FERRY_NO_KEY */
	struct ferry_cqes cqes;
	struct ferry_next_cqes *next;	/* NULL: not resized, or all is moved */
	struct ferry_bell bell;		/* for arms */
	struct list_head wqs;		/* struct ferry_wq.cq_entry */
	struct ferry_seen *seen;	/* of what arrives; NULL: coherent */

	/* See ferry_req_notify_cq(). */
	struct ferry_lock arm_lock;
	enum ferry_db armed;		/* since the last event; FERRY_DB_NONE: not */
	uint32_t arm_seq;

	/* Between start_poll and end_poll of the extended interface. */
	struct ibv_wc wc;
	uint64_t timestamp;		/* ns, the device's clock; with timestamps */
	bool timestamps;
};

struct ferry_ah {
	struct ibv_ah ibv_ah;
	struct ferry_av av;
};

static inline struct ferry_context *to_fctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct ferry_context, ibv_ctx.context);
}

static inline struct ferry_pd *to_fpd(struct ibv_pd *pd)
{
	return container_of(pd, struct ferry_pd, ibv_pd);
}

static inline struct ferry_qp *to_fqp(struct ibv_qp *qp)
{
	return container_of(qp, struct ferry_qp, vqp.qp);
}

static inline struct ferry_cq *to_fcq(struct ibv_cq *cq)
{
	return container_of(cq, struct ferry_cq, vcq.cq);
}

static inline struct ferry_srq *to_fsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct ferry_srq, vsrq.srq);
}

static inline struct ferry_ah *to_fah(struct ibv_ah *ah)
{
	return container_of(ah, struct ferry_ah, ibv_ah);
}

/* One thread at a time, the application said. */
static inline bool ferry_pd_single(struct ibv_pd *pd)
{
	return to_fpd(pd)->td;
}

/* False once the device is lost; also when the kernel has taken its pages away. */
static inline bool ferry_alive(const struct ferry_bell *bell)
{
	return ferry_load32(&bell->status->alive);
}

/* NULL if there is no such QP. The caller holds the lock of a CQ that the QP uses. */
static inline struct ferry_qp *ferry_find_qp(const struct ferry_context *ctx, uint32_t qpn)
{
	struct ferry_qp **leaf = ctx->qps[qpn >> FERRY_QP_LEAF_BITS & (FERRY_QP_LEAVES - 1)].qps;

	return leaf ? leaf[qpn & (FERRY_QP_LEAF_SIZE - 1)] : NULL;
}

/* ferry.c */
extern const struct verbs_device_ops ferry_device_ops;

/* ring.c */
int ferry_map_ring(struct ferry_context *ctx, struct ferry_ring *ring,
		   const struct ferry_ring_map *map);
void ferry_unmap_ring(struct ferry_ring *ring);
int ferry_map_bell(struct ferry_context *ctx, struct ferry_bell *bell,
		   const struct ferry_slot_map *map, enum ferry_db type, uint32_t number);
void ferry_unmap_records(struct ferry_context *ctx);

/* pd.c */
struct ibv_pd *ferry_alloc_pd(struct ibv_context *ibctx);
int ferry_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_td *ferry_alloc_td(struct ibv_context *ibctx, struct ibv_td_init_attr *attr);
int ferry_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *ferry_alloc_parent_domain(struct ibv_context *ibctx,
					 struct ibv_parent_domain_init_attr *attr);

/* mr.c */
struct ibv_mr *ferry_reg_mr_flags(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  int access, uint32_t flags);
struct ibv_mr *ferry_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			    int access);
int ferry_dereg_mr(struct verbs_mr *vmr);

/* ah.c */
struct ibv_ah *ferry_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int ferry_destroy_ah(struct ibv_ah *ibah);

/* cq.c */
struct ibv_cq *ferry_create_cq(struct ibv_context *ibctx, int cqe,
			       struct ibv_comp_channel *channel, int vector);
struct ibv_cq_ex *ferry_create_cq_ex(struct ibv_context *ibctx,
				     struct ibv_cq_init_attr_ex *attr);
int ferry_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int ferry_resize_cq(struct ibv_cq *ibcq, int cqe);
int ferry_destroy_cq(struct ibv_cq *ibcq);
int ferry_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void ferry_cq_event(struct ibv_cq *ibcq);
void ferry_cq_add(struct ferry_cq *cq, struct ferry_wq *wq);
void ferry_cq_remove(struct ferry_cq *cq, struct ferry_wq *wq);
void ferry_cq_clean(struct ferry_cq *cq, struct ferry_wq *wq);
void ferry_cq_follow(struct ferry_cq *cq);

/* poll.c */
int ferry_poll_cq(struct ibv_cq *ibcq, int count, struct ibv_wc *wc);
int ferry_poll_cq_noncoherent(struct ibv_cq *ibcq, int count, struct ibv_wc *wc);
void ferry_set_poll_ops(struct ferry_cq *cq, uint64_t wc_flags);

/* qp.c */
struct ibv_qp *ferry_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *ferry_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr);
int ferry_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int ferry_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
int ferry_destroy_qp(struct ibv_qp *ibqp);

/* post.c */
int ferry_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ferry_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* srq.c */
struct ibv_srq *ferry_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int ferry_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask);
int ferry_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int ferry_destroy_srq(struct ibv_srq *ibsrq);
int ferry_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
uint64_t ferry_srq_complete(struct ferry_srq *srq, uint16_t id);

/* wr.c */
int ferry_set_wr_ops(struct ferry_qp *qp, const struct ibv_qp_init_attr_ex *attr);

#endif
