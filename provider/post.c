// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Posting: ibv_post_send() and ibv_post_recv().
 */
#include <errno.h>

#include "wqe.h"

/* Data come here: nothing of them can be inline. */
#define FERRY_FETCH_FLAGS	(FERRY_SEND_FLAGS & ~IBV_SEND_INLINE)
#define FERRY_SEND(kind, opcode, flags)	{ FERRY_SEND_##kind, FERRY_WR_##opcode, ~(flags) }

const struct ferry_send_type ferry_rc_send = {
	.data = sizeof(struct ferry_wqe_rdma),
	.ops = {
		[IBV_WR_SEND]			= FERRY_SEND(PLAIN, SEND, FERRY_SEND_FLAGS),
		[IBV_WR_SEND_WITH_IMM]		= FERRY_SEND(PLAIN, SEND_IMM, FERRY_SEND_FLAGS),
		[IBV_WR_SEND_WITH_INV]		= FERRY_SEND(PLAIN, SEND_INV, FERRY_SEND_FLAGS),
		[IBV_WR_RDMA_WRITE]		= FERRY_SEND(RDMA, WRITE, FERRY_SEND_FLAGS),
		[IBV_WR_RDMA_WRITE_WITH_IMM]	= FERRY_SEND(RDMA, WRITE_IMM, FERRY_SEND_FLAGS),
		[IBV_WR_RDMA_READ]		= FERRY_SEND(RDMA, READ, FERRY_FETCH_FLAGS),
		[IBV_WR_ATOMIC_CMP_AND_SWP]	= FERRY_SEND(ATOMIC, ATOMIC_CS, FERRY_FETCH_FLAGS),
		[IBV_WR_ATOMIC_FETCH_AND_ADD]	= FERRY_SEND(ATOMIC, ATOMIC_FA, FERRY_FETCH_FLAGS),
	},
};

const struct ferry_send_type ferry_ud_send = {
	.data = sizeof(struct ferry_wqe_ud),
	.ops = {
		[IBV_WR_SEND]			= FERRY_SEND(UD, SEND, FERRY_SEND_FLAGS),
		[IBV_WR_SEND_WITH_IMM]		= FERRY_SEND(UD, SEND_IMM, FERRY_SEND_FLAGS),
	},
};

const struct ferry_send_op ferry_no_send[FERRY_SEND_OPS];

static struct ferry_sge *ferry_put_atomic(struct ferry_wqe_head *head, const struct ibv_send_wr *wr)
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

static struct ferry_sge *ferry_put_ud(struct ferry_wqe_head *head, const struct ibv_send_wr *wr)
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
static inline int ferry_put_send(struct ferry_qp *qp, uint64_t pi, const struct ibv_send_wr *wr)
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

/* Called with the lock, releases it. It calls nothing, so it saves no registers. */
static FERRY_APART int ferry_post_sends(struct ferry_qp *qp, struct ibv_send_wr *wr,
					struct ibv_send_wr **bad)
{
	struct ferry_wq *sq = &qp->sq;
	uint64_t pi;
	int err = 0;

	for (pi = sq->pi; wr; wr = wr->next, pi++) {
		err = ferry_put_send(qp, pi, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(pi != sq->pi)) {
		sq->pi = pi;
		ferry_fence_work_record();
		ferry_ring(&sq->bell, sq->bell.base | (uint32_t)pi);
	}
	ferry_unlock(&sq->lock);
	return err;
}

int ferry_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ferry_qp *qp = to_fqp(ibqp);

	ferry_lock(&qp->sq.lock);
	return ferry_post_sends(qp, wr, bad);
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
int ferry_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ferry_qp *qp = to_fqp(ibqp);
	struct ferry_wq *rq = &qp->rq;
	uint64_t pi;
	int err = 0;

	ferry_lock(&rq->lock);
	if (unlikely(ibqp->state == IBV_QPS_RESET || qp->srq)) {
		err = EINVAL;
		*bad = wr;
		goto out;
	}
	for (pi = rq->pi; wr; wr = wr->next, pi++) {
		err = ferry_put_recv(rq, pi, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(pi != rq->pi)) {
		rq->pi = pi;
		ferry_fence_work_record();
		ferry_store64(&rq->bell.slot->db, rq->bell.base | (uint32_t)pi);
	}
out:
	ferry_unlock(&rq->lock);
	return err;
}
