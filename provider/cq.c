// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Completion queues: create, arm, clean, destroy. poll.c has the data path.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <ccan/minmax.h>

#include "cqe.h"

/*
 * One arm is good for one event, and tells from which entry on: an event comes for what
 * is there already. So until the application has taken that event (ferry_cq_event), a
 * second arm adds nothing, unless it asks for more than the first. The sequence number
 * thus never runs more than two ahead of the last event, and the device can tell a new
 * arm from an old one, whichever way and in whichever order it sees them.
 */
int ferry_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	const enum ferry_db type = solicited_only ? FERRY_DB_CQ_ARM_SOLICITED : FERRY_DB_CQ_ARM;
	struct ferry_cq *cq = to_fcq(ibcq);

	ferry_lock(&cq->lock);
	if (cq->armed != FERRY_DB_CQ_ARM && cq->armed != type) {
		cq->armed = type;
		cq->arm_seq++;
		ferry_ring(&cq->bell, cq->bell.base | FERRY_DB_ARM(type, 0, cq->ci, cq->arm_seq));
	}
	ferry_unlock(&cq->lock);
	return 0;
}

/* The application has taken an event. */
void ferry_cq_event(struct ibv_cq *ibcq)
{
	struct ferry_cq *cq = to_fcq(ibcq);

	ferry_lock(&cq->lock);
	cq->armed = FERRY_DB_NONE;
	ferry_unlock(&cq->lock);
}

/*
 * Takes out what is there for @qp, which is gone or reset: what stays moves up towards
 * the device's end, and the places at the front become free.
 */
static void ferry_cq_drop(struct ferry_cq *cq, const struct ferry_qp *qp)
{
	const uint32_t qpn = qp->vqp.qp.qp_num;
	uint64_t end = cq->ci, from, to;
	struct ferry_cqe *cqe, *place;

	while (end - cq->ci <= cq->mask &&
	       ferry_cqe_valid(cq, ferry_cqe_last(ferry_cqe_at(cq, end)), end))
		end++;
	ferry_fence_valid_body();
	for (from = to = end; from != cq->ci;) {
		cqe = ferry_cqe_at(cq, --from);
		if (le32toh(cqe->qpn) == qpn) {
			if (qp->srq && FERRY_CQE_OP(cqe->op) >= FERRY_WC_RECV)
				ferry_srq_complete(qp->srq, le16toh(cqe->wqe_index));
			continue;
		}
		if (--to == from)
			continue;
		place = ferry_cqe_at(cq, to);
		*place = *cqe;
		/* Valid on the lap it has moved to. */
		place->op ^= (from ^ to) & (cq->mask + 1) ? FERRY_CQE_PHASE : 0;
	}
	ferry_fence_body_index();
	ferry_cq_release(cq, to);
}

void ferry_cq_add(struct ferry_cq *cq, struct ferry_wq *wq)
{
	ferry_lock(&cq->lock);
	list_add_tail(&cq->wqs, &wq->cq_entry);
	ferry_unlock(&cq->lock);
}

/* @wq has no work any more; the device knows. */
void ferry_cq_clean(struct ferry_cq *cq, struct ferry_wq *wq)
{
	ferry_lock(&cq->lock);
	/* The ring of a lost device may be another page by now. */
	if (ferry_alive(&cq->bell))
		ferry_cq_drop(cq, wq->qp);
	cq->last_qp = NULL;
	wq->pi = 0;
	wq->ci = 0;
	wq->limit = 0;
	ferry_unlock(&cq->lock);
}

void ferry_cq_remove(struct ferry_cq *cq, struct ferry_wq *wq)
{
	ferry_cq_clean(cq, wq);
	ferry_lock(&cq->lock);
	list_del(&wq->cq_entry);
	ferry_unlock(&cq->lock);
}

/*
 * Programs that ask for no more than they have outstanding, and arm before they poll,
 * leave completions in the CQ while they post again. A page of entries costs no more than
 * one does.
 */
#define FERRY_CQ_DEPTH_MIN	((int)(FERRY_PAGE_SIZE / sizeof(struct ferry_cqe)))

static struct ferry_cq *ferry_new_cq(struct ibv_context *ibctx, int cqe,
				     struct ibv_comp_channel *channel, int vector)
{
	struct ferry_context *ctx = to_fctx(ibctx);
	struct ferry_create_cq_answer resp = {};
	struct ibv_create_cq cmd = {};
	struct ferry_cq *cq;
	int err;

	if (cqe <= 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cqe = max(cqe, FERRY_CQ_DEPTH_MIN);
	err = ibv_cmd_create_cq(ibctx, cqe, channel, vector, &cq->vcq.cq, &cmd, sizeof(cmd),
				&resp.core, sizeof(resp));
	if (err)
		goto err_free;
	list_head_init(&cq->wqs);
	cq->mask = resp.ferry.depth - 1;
	cq->lap_shift = 63 - __builtin_ctz(resp.ferry.depth);
	cq->ci_base = FERRY_DB(FERRY_DB_CQ_CI, resp.ferry.cqn, 0);
	if (ferry_map_ring(ctx, &cq->ring, &resp.ferry.ring) ||
	    ferry_map_bell(ctx, &cq->bell, &resp.ferry.slot, FERRY_DB_NONE, resp.ferry.cqn)) {
		err = errno;
		goto err_destroy;
	}
	return cq;

err_destroy:
	ferry_unmap_ring(&cq->ring);
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_free:
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq *ferry_create_cq(struct ibv_context *ibctx, int cqe,
			       struct ibv_comp_channel *channel, int vector)
{
	struct ferry_cq *cq = ferry_new_cq(ibctx, cqe, channel, vector);

	return cq ? &cq->vcq.cq : NULL;
}

#define FERRY_CQ_EX_WC_FLAGS \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)

struct ibv_cq_ex *ferry_create_cq_ex(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct ferry_cq *cq;

	if (attr->wc_flags & ~(uint64_t)FERRY_CQ_EX_WC_FLAGS ||
	    flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED ||
	    !check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS |
			     IBV_CQ_INIT_ATTR_MASK_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->cqe > INT_MAX) {
		errno = EINVAL;
		return NULL;
	}
	cq = ferry_new_cq(ibctx, attr->cqe, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	cq->lock.none = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED ||
			(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
			 ferry_pd_single(attr->parent_domain));
	ferry_set_poll_ops(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int ferry_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

int ferry_destroy_cq(struct ibv_cq *ibcq)
{
	struct ferry_cq *cq = to_fcq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	if (err)
		return err;
	ferry_unmap_ring(&cq->ring);
	free(cq);
	return 0;
}
