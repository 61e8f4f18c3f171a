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

/* Both are called with the lock and release it. They call nothing, so they save few registers. */
static FERRY_APART int ferry_post_one(struct ferry_qp *qp, struct ibv_send_wr *wr,
				      struct ibv_send_wr **bad)
{
	struct ferry_wq *sq = &qp->sq;
	const uint64_t pi = sq->pi;
	int err;

	err = ferry_put_send(qp, pi, wr);
	if (likely(!err))
		ferry_publish_send(sq, pi + 1);
	else
		*bad = wr;
	ferry_unlock(&sq->lock);
	return err;
}

static FERRY_APART int ferry_post_list(struct ferry_qp *qp, struct ibv_send_wr *wr,
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
	if (likely(pi != sq->pi))
		ferry_publish_send(sq, pi);
	ferry_unlock(&sq->lock);
	return err;
}

int ferry_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ferry_qp *qp = to_fqp(ibqp);

	ferry_lock(&qp->sq.lock);
	if (likely(wr && !wr->next))
		return ferry_post_one(qp, wr, bad);
	return ferry_post_list(qp, wr, bad);
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
