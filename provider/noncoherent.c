// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The data path of a host that is not coherent: in front of the usual one, since what
 * differs is which SGEs the device gets and what happens to the caches before a record and
 * after a phase bit.
 */
#include <errno.h>
#include <limits.h>

#include "cqe.h"
#include "noncoherent.h"
#include "sink.h"

#define FERRY_ATOMIC_BYTES	8

/* How much a request of the SQ brings at most; 0: nothing. */
static uint32_t ferry_brings(uint8_t opcode)
{
	switch (opcode) {
	case FERRY_WR_READ:
		return UINT32_MAX;
	case FERRY_WR_ATOMIC_CS:
	case FERRY_WR_ATOMIC_FA:
		return FERRY_ATOMIC_BYTES;
	default:
		return 0;
	}
}

/*
 * The data of a send request at @place, which is free. False if the device gets the list as it
 * is, true if it gets @pieces.
 */
static bool ferry_send_data(struct ferry_qp *qp, uint64_t place, uint8_t opcode,
			    const struct ibv_sge *list, uint32_t num, struct ferry_pieces *pieces)
{
	struct ferry_context *ctx = to_fctx(qp->vqp.qp.context);
	const uint32_t most = ferry_brings(opcode);

	if (most)
		ferry_sink_post(ctx, qp->sq.sinks, place, list, num, most, pieces);
	else
		ferry_source(ctx, qp->sq.sinks, list, num);
	return most;
}

static int ferry_put_send_noncoherent(struct ferry_qp *qp, uint64_t pi,
				      const struct ibv_send_wr *wr)
{
	struct ferry_wq *sq = &qp->sq;
	const uint64_t place = pi & sq->mask;
	struct ferry_pieces pieces;
	struct ibv_send_wr told;
	uint8_t opcode;

	if (wr->opcode >= FERRY_SEND_OPS || !qp->ops[wr->opcode].what ||
	    (uint32_t)wr->num_sge > sq->sinks->max_sge)
		return EINVAL;
	if (ferry_wq_full(sq, pi))
		return ENOMEM;
	ferry_sink_none(sq->sinks, place);
	opcode = ferry_send_opcode(qp->ops[wr->opcode].what);
	if (wr->send_flags & IBV_SEND_INLINE ||
	    !ferry_send_data(qp, place, opcode, wr->sg_list, wr->num_sge, &pieces))
		return ferry_put_send(qp, pi, wr, false);
	told = *wr;
	told.sg_list = pieces.sge;
	told.num_sge = pieces.num;
	return ferry_put_send(qp, pi, &told, false);
}

static int ferry_post_send_noncoherent(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
				       struct ibv_send_wr **bad)
{
	struct ferry_qp *qp = to_fqp(ibqp);
	struct ferry_wq *sq = &qp->sq;
	uint64_t pi;
	int err = 0;

	ferry_lock(&sq->lock);
	for (pi = sq->pi; wr; wr = wr->next, pi++) {
		err = ferry_put_send_noncoherent(qp, pi, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (pi == sq->pi) {
		ferry_unlock(&sq->lock);
		return err;
	}
	ferry_publish_send(sq, pi);
	ferry_unlock_fenced(&sq->lock);
	return err;
}

static int ferry_post_recv_noncoherent(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
				       struct ibv_recv_wr **bad)
{
	struct ferry_qp *qp = to_fqp(ibqp);
	struct ferry_wq *rq = &qp->rq;
	struct ferry_pieces pieces;
	struct ibv_recv_wr told;
	uint64_t pi;
	int err = 0;

	ferry_lock(&rq->lock);
	for (pi = rq->pi; wr; wr = wr->next, pi++) {
		if (ibqp->state == IBV_QPS_RESET || qp->srq ||
		    (uint32_t)wr->num_sge > rq->sinks->max_sge)
			err = EINVAL;
		else if (ferry_wq_full(rq, pi))
			err = ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		ferry_sink_post(to_fctx(ibqp->context), rq->sinks, pi & rq->mask, wr->sg_list,
				wr->num_sge, UINT32_MAX, &pieces);
		told = *wr;
		told.sg_list = pieces.sge;
		told.num_sge = pieces.num;
		ferry_put_recv(rq, pi, &told);
	}
	if (pi != rq->pi)
		ferry_publish_recv(rq, pi);
	ferry_unlock(&rq->lock);
	return err;
}

static int ferry_post_srq_recv_noncoherent(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
					   struct ibv_recv_wr **bad)
{
	struct ferry_srq *srq = to_fsrq(ibsrq);
	struct ferry_pieces pieces;
	struct ibv_recv_wr told;
	uint64_t pi;
	int err = 0;

	ferry_lock(&srq->lock);
	for (pi = srq->pi; wr; wr = wr->next, pi++) {
		if ((uint32_t)wr->num_sge > srq->sinks->max_sge)
			err = EINVAL;
		else if (!srq->free)
			err = ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		ferry_sink_post(to_fctx(ibsrq->context), srq->sinks, srq->first, wr->sg_list,
				wr->num_sge, UINT32_MAX, &pieces);
		told = *wr;
		told.sg_list = pieces.sge;
		told.num_sge = pieces.num;
		ferry_put_srq_recv(srq, pi, &told);
	}
	if (pi != srq->pi)
		ferry_publish_srq_recv(srq, pi);
	ferry_unlock(&srq->lock);
	return err;
}

/* ------------------------------------------------------------------ ibv_wr_*() */

static void ferry_wr_set_sge_list_noncoherent(struct ibv_qp_ex *ibqp, size_t num,
					      const struct ibv_sge *list)
{
	struct ferry_qp *qp = container_of(ibqp, struct ferry_qp, vqp.qp_ex);
	struct ferry_wq *sq = &qp->sq;
	struct ferry_pieces pieces;

	if (qp->wr_err)
		return;
	if (num > sq->sinks->max_sge || num > qp->wr_max_sge) {
		qp->wr_err = EINVAL;
		return;
	}
	if (ferry_send_data(qp, (qp->wr_pi - 1) & sq->mask, qp->wr_head->opcode, list, num,
			    &pieces)) {
		list = pieces.sge;
		num = pieces.num;
	}
	ferry_put_sges(qp->wr_data, list, num);
	qp->wr_head->num_sge = num;
}

static void ferry_wr_set_sge_noncoherent(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr,
					 uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	ferry_wr_set_sge_list_noncoherent(ibqp, 1, &sge);
}

void ferry_noncoherent_wr_ops(struct ibv_qp_ex *ibqp)
{
	ibqp->wr_set_sge = ferry_wr_set_sge_noncoherent;
	ibqp->wr_set_sge_list = ferry_wr_set_sge_list_noncoherent;
}

/* --------------------------------------------------------------------- polling */

/* How many bytes an entry of a receive queue has brought into its list. */
static uint32_t ferry_received(const struct ferry_cqe *cqe)
{
	/* What it counts has gone to where the peer said. */
	if (FERRY_CQE_OP(cqe->op) == FERRY_WC_RECV_WRITE_IMM)
		return 0;
	return le32toh(cqe->byte_len);
}

/*
 * A request that completes, and with it all before it that were not signalled: these have
 * gone well, since the first that fails is told of. False if there is no such request.
 */
static bool ferry_arrive_wqe(struct ferry_cq *cq, const struct ferry_wq *wq,
			     const struct ferry_cqe *cqe, uint64_t *done)
{
	struct ferry_context *ctx = to_fctx(cq->vcq.cq.context);
	const uint64_t last = *done + (uint16_t)(le16toh(cqe->wqe_index) - *done);
	const bool recv = FERRY_CQE_OP(cqe->op) & FERRY_WC_RECV;

	if (last >= __atomic_load_n(&wq->pi, __ATOMIC_RELAXED))
		return false;
	for (; *done < last; ++*done)
		ferry_sink_arrive(ctx, cq->seen, wq->sinks, *done & wq->mask, UINT32_MAX, true);
	ferry_sink_arrive(ctx, cq->seen, wq->sinks, last & wq->mask,
			  recv ? ferry_received(cqe) : UINT32_MAX, !cqe->status);
	++*done;
	return true;
}

/* The same of an SRQ's. */
static void ferry_arrive_srq_wqe(struct ferry_cq *cq, struct ferry_srq *srq,
				 const struct ferry_cqe *cqe)
{
	struct ferry_context *ctx = to_fctx(cq->vcq.cq.context);
	const uint64_t id = le16toh(cqe->wqe_index) & srq->mask;

	ferry_sink_arrive(ctx, cq->seen, srq->sinks, id, ferry_received(cqe), !cqe->status);
	/* A device that completes it once more must not reach what is no longer the sink. */
	ferry_sink_none(srq->sinks, id);
}

/**
 * ferry_arrive_run - makes what lies ready in a CQ visible
 * @cq: the CQ, whose lock is held
 * @max: entries to look at; not 0
 *
 * Before the entries are taken, which gives the places of the requests back.
 *
 * Return: how many entries of one work queue are ready now.
 */
int ferry_arrive_run(struct ferry_cq *cq, int max)
{
	const uint64_t last = ferry_cqe_last(ferry_cqe_at(&cq->cqes, cq->ci));
	const int n = ferry_cq_run(cq, max, last);
	struct ferry_cqe entry;
	struct ferry_qp *qp;
	struct ferry_wq *wq;
	uint64_t done;
	int i;

	if (!n)
		return 0;
	ferry_fence_valid_flush();
	qp = ferry_cqe_qp(cq, last);
	if (!qp)
		return n;
	wq = ferry_last_is_recv(last) ? &qp->rq : &qp->sq;
	done = ferry_wq_ci(wq, __atomic_load_n(&wq->pi, __ATOMIC_RELAXED));
	for (i = 0; i < n; i++) {
		entry = *ferry_cqe_at(&cq->cqes, cq->ci + i);
		/* Of a lost device nothing has come. */
		if (!ferry_alive(&cq->bell))
			break;
		if (wq == &qp->rq && qp->srq)
			ferry_arrive_srq_wqe(cq, qp->srq, &entry);
		else if (!ferry_arrive_wqe(cq, wq, &entry, &done))
			break;
	}
	return n;
}

const struct verbs_context_ops ferry_noncoherent_ops = {
	.poll_cq = ferry_poll_cq_noncoherent,
	.post_recv = ferry_post_recv_noncoherent,
	.post_send = ferry_post_send_noncoherent,
	.post_srq_recv = ferry_post_srq_recv_noncoherent,
};
