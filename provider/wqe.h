/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Building WQEs: what both ways of posting, ibv_post_send() and ibv_wr_*(), share.
 */
#ifndef FERRY_WQE_H
#define FERRY_WQE_H

#include <string.h>

#include "ferry.h"

/* What stands in a WQE between its head and its data. One bit each, which is cheap to test. */
enum ferry_send_kind {
	FERRY_SEND_NOT = 0,		/* no such request here */
	FERRY_SEND_PLAIN = 1,		/* nothing: SEND */
	FERRY_SEND_RDMA = 2,		/* the peer's address and key: WRITE, READ */
	FERRY_SEND_ATOMIC = 4,		/* these and the operands */
	FERRY_SEND_UD = 8,		/* the way to the peer, its QP and key */
};

struct ferry_send_op {
	uint8_t kind;			/* enum ferry_send_kind */
	uint8_t opcode;			/* enum ferry_wr */
	uint32_t refused;		/* IBV_SEND_* that may not be set */
};

#define FERRY_SEND_OPS	16		/* of a table by enum ibv_wr_opcode */

/* How a type of QP sends. */
struct ferry_send_type {
	unsigned int data;		/* where the data of most WQEs start, bytes */
	struct ferry_send_op ops[FERRY_SEND_OPS];
};

/* post.c */
extern const struct ferry_send_type ferry_rc_send;
extern const struct ferry_send_type ferry_ud_send;
extern const struct ferry_send_op ferry_no_send[FERRY_SEND_OPS];

/* The flags of a WQE are those of verbs. */
#define FERRY_SEND_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
static_assert(FERRY_WQE_FENCE == IBV_SEND_FENCE && FERRY_WQE_SIGNALED == IBV_SEND_SIGNALED &&
	      FERRY_WQE_SOLICITED == IBV_SEND_SOLICITED && FERRY_WQE_INLINE == IBV_SEND_INLINE,
	      "the flags of a WQE are not those of verbs");

/* The lock is held. Looks at ci, which others write, only when it must. */
static inline bool ferry_wq_full(struct ferry_wq *wq, uint64_t pi)
{
	if (likely(pi != wq->limit))
		return false;
	wq->limit = __atomic_load_n(&wq->ci, __ATOMIC_RELAXED) + wq->mask + 1;
	return pi == wq->limit;
}

static inline void *ferry_wqe_at(const struct ferry_wq *wq, uint64_t place)
{
	return wq->ring.mem + (place << wq->shift);
}

static inline void ferry_put_sges(struct ferry_sge *to, const struct ibv_sge *from, int n)
{
	const struct ibv_sge *end = from + n;

	for (; from != end; from++, to++) {
		to->addr = htole64(from->addr);
		to->length = htole32(from->length);
		to->lkey = htole32(from->lkey);
	}
}

/* The same of whole words, one at least. Often there is one. */
static inline void ferry_put_words(uint64_t *to, const uint64_t *from, size_t bytes)
{
	const uint64_t *end = (const void *)from + bytes;

	*to = *from;
	while (unlikely(++from != end))
		*++to = *from;
}

/*
 * Most inline data are a few aligned words. No call of memcpy(): it costs more than it
 * saves, and all that the caller holds in registers.
 */
static inline void ferry_put_bytes(void *to, const void *from, size_t bytes)
{
	const void *end = from + bytes;

	if (unlikely(!bytes))
		return;
	if (likely(((uintptr_t)to | (uintptr_t)from | bytes) % sizeof(uint64_t) == 0)) {
		ferry_put_words(to, from, bytes);
		return;
	}
	for (; from != end; from++, to++)
		*(uint8_t *)to = *(const uint8_t *)from;
}

/* False when the data are more than @max bytes. Most are one piece. */
static inline bool ferry_put_inline(struct ferry_wqe_head *head, void *to,
				    const struct ibv_sge *from, int n, uint32_t max)
{
	const struct ibv_sge *end = from + n;
	uint32_t length, done = 0;

	if (likely(n == 1)) {
		done = from->length;
		if (unlikely(done > max))
			return false;
		ferry_put_bytes(to, (const void *)(uintptr_t)from->addr, done);
	} else {
		for (; from != end; from++, to += length, done += length) {
			length = from->length;
			if (unlikely(length > max - done))
				return false;
			ferry_put_bytes(to, (const void *)(uintptr_t)from->addr, length);
		}
	}
	head->num_sge = 0;
	head->inline_len = htole16(done);
	return true;
}

static inline struct ferry_sge *ferry_put_atomic(struct ferry_wqe_head *head,
						 const struct ibv_send_wr *wr)
{
	struct ferry_wqe_atomic *wqe = container_of(head, struct ferry_wqe_atomic, head);
	const bool swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	if (wr->num_sge != 1)
		return NULL;
	wqe->raddr = htole64(wr->wr.atomic.remote_addr);
	wqe->rkey = htole32(wr->wr.atomic.rkey);
	wqe->swap_or_add = htole64(swap ? wr->wr.atomic.swap : wr->wr.atomic.compare_add);
	wqe->compare = htole64(swap ? wr->wr.atomic.compare_add : 0);
	return wqe->sge;
}

static inline struct ferry_sge *ferry_put_ud(struct ferry_wqe_head *head,
					     const struct ibv_send_wr *wr)
{
	struct ferry_wqe_ud *wqe = container_of(head, struct ferry_wqe_ud, head);

	if (!wr->wr.ud.ah)
		return NULL;
	wqe->av = to_fah(wr->wr.ud.ah)->av;
	wqe->dest_qpn = htole32(wr->wr.ud.remote_qpn);
	wqe->qkey = htole32(wr->wr.ud.remote_qkey);
	return wqe->sge;
}

/*
 * Writes what stands between the head and the data and tells where the data go. NULL: the
 * request makes no sense.
 */
static inline struct ferry_sge *ferry_put_remote(struct ferry_wqe_head *head,
						 const struct ibv_send_wr *wr, unsigned int kind)
{
	struct ferry_wqe_rdma *wqe = container_of(head, struct ferry_wqe_rdma, head);

	if (likely(kind & FERRY_SEND_RDMA)) {
		wqe->raddr = htole64(wr->wr.rdma.remote_addr);
		wqe->rkey = htole32(wr->wr.rdma.rkey);
		return wqe->sge;
	}
	if (likely(kind & FERRY_SEND_PLAIN))
		return wqe->sge;
	if (kind & FERRY_SEND_UD)
		return ferry_put_ud(head, wr);
	if (kind & FERRY_SEND_ATOMIC)
		return ferry_put_atomic(head, wr);
	return NULL;
}

/* Writes the WQE of index @pi. */
static inline ALWAYS_INLINE int ferry_put_send(struct ferry_qp *qp, uint64_t pi, const struct ibv_send_wr *wr)
{
	struct ferry_wq *sq = &qp->sq;
	const unsigned int send_flags = wr->send_flags;
	const uint64_t place = pi & sq->mask;
	const struct ferry_send_op *op;
	struct ferry_wqe_head *head;
	struct ferry_sge *data;

	if (unlikely(wr->opcode >= FERRY_SEND_OPS))
		return EINVAL;
	op = &qp->ops[wr->opcode];
	if (unlikely(send_flags & op->refused || (uint32_t)wr->num_sge > sq->max_sge))
		return EINVAL;
	if (unlikely(ferry_wq_full(sq, pi)))
		return ENOMEM;

	head = ferry_wqe_at(sq, place);
	data = ferry_put_remote(head, wr, op->kind);
	if (unlikely(!data))
		return EINVAL;
	if (send_flags & IBV_SEND_INLINE) {
		if (unlikely(!ferry_put_inline(head, data, wr->sg_list, wr->num_sge,
					       sq->max_inline)))
			return EINVAL;
	} else {
		ferry_put_sges(data, wr->sg_list, wr->num_sge);
		head->num_sge = wr->num_sge;
		head->inline_len = 0;
	}
	head->opcode = op->opcode;
	head->flags = send_flags;
	/* Without meaning to most requests. */
	if (op->opcode == FERRY_WR_SEND_INV)
		head->inv_key = htole32(wr->invalidate_rkey);
	else
		head->inv_key = (__force __le32)wr->imm_data;
	sq->wr_id[place] = wr->wr_id;
	return 0;
}

/* Announces what has been written up to @pi. The lock is held. */
static inline void ferry_publish_send(struct ferry_wq *sq, uint64_t pi)
{
	sq->pi = pi;
	ferry_fence_work_record();
	ferry_ring(&sq->bell, sq->bell.base | (uint32_t)pi);
}

static inline int ferry_put_recv(struct ferry_wq *rq, uint64_t pi, const struct ibv_recv_wr *wr)
{
	struct ferry_rqe *rqe;

	if (unlikely((unsigned int)wr->num_sge > rq->max_sge))
		return EINVAL;
	if (unlikely(ferry_wq_full(rq, pi)))
		return ENOMEM;

	rqe = ferry_wqe_at(rq, pi & rq->mask);
	rqe->num_sge = htole16(wr->num_sge);
	rqe->id = htole16(pi);
	ferry_put_sges(rqe->sge, wr->sg_list, wr->num_sge);
	rq->wr_id[pi & rq->mask] = wr->wr_id;
	return 0;
}

/* The device reads the record when it has no receive left: nothing to ring. */
static inline void ferry_publish_recv(struct ferry_wq *rq, uint64_t pi)
{
	rq->pi = pi;
	ferry_fence_work_record();
	ferry_store64(&rq->bell.slot->db, rq->bell.base | (uint32_t)pi);
}

static inline int ferry_put_srq_recv(struct ferry_srq *srq, uint64_t pi,
				     const struct ibv_recv_wr *wr)
{
	const uint16_t id = srq->first;
	struct ferry_rqe *rqe;

	if (unlikely((unsigned int)wr->num_sge > srq->max_sge))
		return EINVAL;
	if (unlikely(!srq->free))
		return ENOMEM;

	rqe = srq->ring.mem + ((pi & srq->mask) << srq->shift);
	rqe->num_sge = htole16(wr->num_sge);
	rqe->id = htole16(id);
	ferry_put_sges(rqe->sge, wr->sg_list, wr->num_sge);
	srq->wr_id[id] = wr->wr_id;
	srq->first = srq->next[id];
	srq->free--;
	return 0;
}

static inline void ferry_publish_srq_recv(struct ferry_srq *srq, uint64_t pi)
{
	srq->pi = pi;
	ferry_fence_work_record();
	ferry_store64(&srq->bell.slot->db, srq->bell.base | (uint32_t)pi);
}

#endif
