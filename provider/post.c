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

struct ferry_sge *ferry_put_atomic(struct ferry_wqe_head *head, const struct ibv_send_wr *wr)
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

struct ferry_sge *ferry_put_ud(struct ferry_wqe_head *head, const struct ibv_send_wr *wr)
{
	struct ferry_wqe_ud *wqe = container_of(head, struct ferry_wqe_ud, head);

	if (!wr->wr.ud.ah)
		return NULL;
	wqe->av = to_fah(wr->wr.ud.ah)->av;
	wqe->dest_qpn = htole32(wr->wr.ud.remote_qpn);
	wqe->qkey = htole32(wr->wr.ud.remote_qkey);
	return wqe->sge;
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
	ferry_publish_send(sq, pi);
	ferry_unlock(&sq->lock);
	return err;
}

int ferry_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ferry_qp *qp = to_fqp(ibqp);

	ferry_lock(&qp->sq.lock);
	return ferry_post_sends(qp, wr, bad);
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
	ferry_publish_recv(rq, pi);
out:
	ferry_unlock(&rq->lock);
	return err;
}
