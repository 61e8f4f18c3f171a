// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Posting: ibv_post_send() and ibv_post_recv().
 */
#include <errno.h>

#include "wqe.h"

/* Data come here: nothing of them can be inline. */
#define FERRY_FETCH_FLAGS	(FERRY_SEND_FLAGS & ~IBV_SEND_INLINE)
#define FERRY_SEND(kind, opcode, flags) \
	{ (uint32_t)FERRY_SEND_##kind | FERRY_WR_##opcode, ~(flags) }

const struct ferry_send_type ferry_rc_send = {
	.data = sizeof(struct ferry_wqe_rdma),
	.ops = {
		[IBV_WR_SEND]			= FERRY_SEND(PLAIN, SEND, FERRY_SEND_FLAGS),
		[IBV_WR_SEND_WITH_IMM]		= FERRY_SEND(PLAIN, SEND_IMM, FERRY_SEND_FLAGS),
		[IBV_WR_SEND_WITH_INV]		= FERRY_SEND(PLAIN, SEND_INV, FERRY_SEND_FLAGS),
		[IBV_WR_RDMA_WRITE]		= FERRY_SEND(RDMA, WRITE, FERRY_SEND_FLAGS),
		[IBV_WR_RDMA_WRITE_WITH_IMM]	= FERRY_SEND(RDMA_IMM, WRITE_IMM, FERRY_SEND_FLAGS),
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

/**
 * ferry_put_pieces - writes inline data that are not one piece
 * @sq: the queue
 * @to: where they go in a WQE
 * @from: the SGEs
 * @n: how many
 *
 * Return: bytes; UINT32_MAX: there is no room for them.
 */
uint32_t ferry_put_pieces(const struct ferry_wq *sq, void *to, const struct ibv_sge *from,
			  uint32_t n)
{
	uint32_t done = 0;

	if (n > sq->max_sge)
		return UINT32_MAX;
	for (; n; n--, from++) {
		if (from->length > sq->max_inline - done)
			return UINT32_MAX;
		ferry_put_bytes(to + done, (const void *)(uintptr_t)from->addr, from->length);
		done += from->length;
	}
	return done;
}

/* Any list. Called with the lock, which it releases. */
static FERRY_APART int ferry_post_list(struct ferry_qp *qp, struct ibv_send_wr *wr,
				       struct ibv_send_wr **bad)
{
	struct ferry_wq *sq = &qp->sq;
	uint64_t pi;
	int err = 0;

	for (pi = sq->pi; wr; wr = wr->next, pi++) {
		err = ferry_put_send(qp, pi, wr, false);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (unlikely(pi == sq->pi)) {
		ferry_unlock(&sq->lock);
		return err;
	}
	ferry_publish_send(sq, pi);
	ferry_unlock_fenced(&sq->lock);
	return err;
}

static FERRY_COLD int ferry_post_later(struct ferry_qp *qp, struct ibv_send_wr *wr,
				       struct ibv_send_wr **bad)
{
	ferry_lock_wait(&qp->sq.lock);
	return ferry_post_list(qp, wr, bad);
}

/*
 * The fast way: one request that goes well. It only calls where it ends, and so saves no
 * registers.
 */
int ferry_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ferry_qp *qp = to_fqp(ibqp);
	struct ferry_wq *sq = &qp->sq;
	uint64_t pi;

	if (unlikely(!ferry_lock_at_once(&sq->lock)))
		return ferry_post_later(qp, wr, bad);
	pi = sq->pi;
	if (unlikely(!wr || wr->next || ferry_put_send(qp, pi, wr, true)))
		return ferry_post_list(qp, wr, bad);
	ferry_publish_send(sq, pi + 1);
	ferry_unlock_fenced(&sq->lock);
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
	if (likely(pi != rq->pi))
		ferry_publish_recv(rq, pi);
out:
	ferry_unlock(&rq->lock);
	return err;
}
