/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Building WQEs: what both ways of posting, ibv_post_send() and ibv_wr_*(), share.
 */
#ifndef FERRY_WQE_H
#define FERRY_WQE_H

#include <string.h>

#include "ferry.h"

/*
 * What stands in a WQE between its head and its data: a bit each, which is cheap to test,
 * above an enum ferry_wr.
 */
enum ferry_send_kind {
	FERRY_SEND_NOT = 0,		/* no such request here */
	FERRY_SEND_PLAIN = 1 << 8,	/* nothing: SEND */
	FERRY_SEND_RDMA = 2 << 8,	/* the peer's address and key: WRITE, READ */
	FERRY_SEND_RDMA_IMM = 4 << 8,	/* the same, and the head has immediate data */
	FERRY_SEND_ATOMIC = 8 << 8,	/* the same, and the operands */
	FERRY_SEND_UD = 16 << 8,	/* the way to the peer, its QP and key */
};

/* The enum ferry_wr of it. */
static inline uint8_t ferry_send_opcode(uint32_t what)
{
	return what;
}

/* How a type of QP sends. */
struct ferry_send_type {
	unsigned int data;		/* where the data of most WQEs start, bytes */
	struct ferry_send_op ops[FERRY_SEND_OPS];
};

/* post.c */
uint32_t ferry_put_pieces(const struct ferry_wq *sq, void *to, const struct ibv_sge *from,
			  uint32_t n);
extern const struct ferry_send_type ferry_rc_send;
extern const struct ferry_send_type ferry_ud_send;

/* The flags of a WQE are those of verbs. */
#define FERRY_SEND_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
static_assert(FERRY_WQE_FENCE == IBV_SEND_FENCE && FERRY_WQE_SIGNALED == IBV_SEND_SIGNALED &&
	      FERRY_WQE_SOLICITED == IBV_SEND_SOLICITED && FERRY_WQE_INLINE == IBV_SEND_INLINE,
	      "the flags of a WQE are not those of verbs");

/* The lock is held. Looks at what others write, only when it must. */
static inline bool ferry_wq_full(struct ferry_wq *wq, uint64_t pi)
{
	if (likely(pi != wq->limit))
		return false;
	wq->limit = ferry_wq_ci(wq, pi) + wq->mask + 1;
	return pi == wq->limit;
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
static inline void ferry_put_words(uint64_t *to, const uint64_t *from, uint32_t bytes)
{
	const uint64_t *end;

	*to = *from;
	if (likely(bytes == sizeof(*to)))
		return;
	for (end = from + bytes / sizeof(*to); ++from != end;)
		*++to = *from;
}

/*
 * Most inline data are a few aligned words. No call of memcpy(): it costs more than it
 * saves, and all that the caller holds in registers.
 */
static inline void ferry_put_bytes(void *to, const void *from, uint32_t bytes)
{
	const void *end;

	if (unlikely(!bytes))
		return;
	if (likely(((uint32_t)(uintptr_t)from | bytes) % sizeof(uint64_t) == 0 &&
		   (uintptr_t)to % sizeof(uint64_t) == 0)) {
		ferry_put_words(to, from, bytes);
		return;
	}
	for (end = from + bytes; from != end; from++, to++)
		*(uint8_t *)to = *(const uint8_t *)from;
}

/*
 * False when there is no room for the data, or, with @one, when they are not one piece, as they
 * mostly are. One piece needs no SGE.
 */
static inline bool ferry_put_inline(struct ferry_wqe_head *head, void *to,
				    const struct ibv_send_wr *wr, const struct ferry_wq *sq,
				    bool one)
{
	uint32_t length;

	if (likely(wr->num_sge == 1)) {
		length = wr->sg_list->length;
		if (unlikely(length > sq->max_inline))
			return false;
		ferry_put_bytes(__builtin_assume_aligned(to, sizeof(uint64_t)),
				(const void *)(uintptr_t)wr->sg_list->addr, length);
	} else {
		length = one ? UINT32_MAX : ferry_put_pieces(sq, to, wr->sg_list, wr->num_sge);
		if (unlikely(length == UINT32_MAX))
			return false;
	}
	head->num_sge = 0;
	head->inline_len = htole16(length);
	return true;
}

/* Immediate data, or a key to invalidate. What has neither does without meaning to. */
static inline void ferry_put_imm(struct ferry_wqe_head *head, const struct ibv_send_wr *wr,
				 uint32_t what)
{
	if (ferry_send_opcode(what) == FERRY_WR_SEND_INV)
		head->inv_key = htole32(wr->invalidate_rkey);
	else
		head->inv_key = (__force __le32)wr->imm_data;
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

static inline struct ferry_sge *ferry_put_rdma(struct ferry_wqe_rdma *wqe,
					       const struct ibv_send_wr *wr)
{
	wqe->raddr = htole64(wr->wr.rdma.remote_addr);
	wqe->rkey = htole32(wr->wr.rdma.rkey);
	return wqe->sge;
}

/*
 * Writes what stands between the head and the data, and immediate data, and tells where the
 * data go. NULL: the request makes no sense.
 */
static inline struct ferry_sge *ferry_put_remote(struct ferry_wqe_head *head,
						 const struct ibv_send_wr *wr, uint32_t what)
{
	struct ferry_wqe_rdma *wqe = container_of(head, struct ferry_wqe_rdma, head);

	if (likely(what & FERRY_SEND_RDMA))
		return ferry_put_rdma(wqe, wr);
	if (unlikely(what & FERRY_SEND_ATOMIC))
		return ferry_put_atomic(head, wr);
	ferry_put_imm(head, wr, what);
	if (likely(what & FERRY_SEND_PLAIN))
		return wqe->sge;
	if (what & FERRY_SEND_RDMA_IMM)
		return ferry_put_rdma(wqe, wr);
	if (what & FERRY_SEND_UD)
		return ferry_put_ud(head, wr);
	return NULL;
}

/*
 * Writes the WQE of index @pi. With @one, what is unusual is refused as well, so that there is
 * no call in it: see ferry_post_send().
 */
static inline ALWAYS_INLINE int ferry_put_send(struct ferry_qp *qp, uint64_t pi,
					       const struct ibv_send_wr *wr, bool one)
{
	struct ferry_wq *sq = &qp->sq;
	const unsigned int send_flags = wr->send_flags;
	struct ferry_place *at = &sq->places[pi & sq->mask];
	const struct ferry_send_op *op;
	struct ferry_wqe_head *head;
	struct ferry_sge *data;
	uint32_t what;

	if (unlikely(wr->opcode >= FERRY_SEND_OPS))
		return EINVAL;
	op = &qp->ops[wr->opcode];
	what = op->what;
	if (unlikely(send_flags & op->refused))
		return EINVAL;
	if (unlikely(ferry_wq_full(sq, pi)))
		return ENOMEM;

	head = at->entry;
	data = ferry_put_remote(head, wr, what);
	if (unlikely(!data))
		return EINVAL;
	/* It is with little data that instructions count. */
	if (likely(send_flags & IBV_SEND_INLINE)) {
		if (unlikely(!ferry_put_inline(head, data, wr, sq, one)))
			return EINVAL;
	} else {
		if (unlikely((uint32_t)wr->num_sge > sq->max_sge))
			return EINVAL;
		ferry_put_sges(data, wr->sg_list, wr->num_sge);
		head->num_sge = wr->num_sge;
		head->inline_len = 0;
	}
	head->opcode = ferry_send_opcode(what);
	head->flags = send_flags;
	at->wr_id = wr->wr_id;
	return 0;
}

/*
 * Announces what has been written up to @pi. The lock is held, and ferry_unlock_fenced() may
 * release it then.
 */
static inline void ferry_publish_send(struct ferry_wq *sq, uint64_t pi)
{
	sq->pi = pi;
	ferry_fence_work_record();
	ferry_ring_index(&sq->bell, pi);
}

static inline int ferry_put_recv(struct ferry_wq *rq, uint64_t pi, const struct ibv_recv_wr *wr)
{
	struct ferry_place *at = &rq->places[pi & rq->mask];
	struct ferry_rqe *rqe = at->entry;

	if (unlikely((unsigned int)wr->num_sge > rq->max_sge))
		return EINVAL;
	if (unlikely(ferry_wq_full(rq, pi)))
		return ENOMEM;

	rqe->num_sge = htole16(wr->num_sge);
	rqe->id = htole16(pi);
	ferry_put_sges(rqe->sge, wr->sg_list, wr->num_sge);
	at->wr_id = wr->wr_id;
	return 0;
}

/* The device reads the record when it has no receive left: nothing to ring. */
static inline void ferry_publish_recv(struct ferry_wq *rq, uint64_t pi)
{
	rq->pi = pi;
	ferry_fence_work_record();
	ferry_store_index(&rq->bell.slot->db, pi);
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
	ferry_store_index(&srq->bell.slot->db, pi);
}

#endif
