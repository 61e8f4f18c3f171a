// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Completion queues: create, arm, clean, destroy. poll.c has the data path.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <ccan/minmax.h>

#include "cache.h"
#include "cqe.h"

/*
 * One arm is good for one event, and tells from which entry on: an event comes for what
 * is there already. So until the application has taken that event (ferry_cq_event), a
 * second arm adds nothing, unless it asks for more than the first. The sequence number
 * thus never runs more than two ahead of the last event, and the device can tell a new
 * arm from an old one, whichever way and in whichever order it sees them.
 *
 * Not under the lock of the CQ: a program may arm between start_poll and end_poll, which hold
 * that. Of entries that another thread is taking meanwhile an event more may come.
 */
int ferry_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	const enum ferry_db type = solicited_only ? FERRY_DB_CQ_ARM_SOLICITED : FERRY_DB_CQ_ARM;
	struct ferry_cq *cq = to_fcq(ibcq);
	uint64_t ci;

	ferry_lock(&cq->arm_lock);
	if (cq->armed != FERRY_DB_CQ_ARM && cq->armed != type) {
		cq->armed = type;
		cq->arm_seq++;
		ci = __atomic_load_n(&cq->ci, __ATOMIC_RELAXED);
		ferry_ring(&cq->bell, cq->bell.base | FERRY_DB_ARM(type, 0, ci, cq->arm_seq));
	}
	ferry_unlock(&cq->arm_lock);
	return 0;
}

/* The application has taken an event. */
void ferry_cq_event(struct ibv_cq *ibcq)
{
	struct ferry_cq *cq = to_fcq(ibcq);

	ferry_lock(&cq->arm_lock);
	cq->armed = FERRY_DB_NONE;
	ferry_unlock(&cq->arm_lock);
}

/*
 * Of the entries from @ci on, takes out what is there for @qp, which is gone or reset: what
 * stays moves up towards the device's end. Returns where it starts now.
 */
static uint64_t ferry_cqes_drop(struct ferry_cqes *cqes, uint64_t ci, const struct ferry_qp *qp)
{
	const uint32_t qpn = qp->vqp.qp.qp_num;
	uint64_t end = ci, from, to;
	struct ferry_cqe *cqe, *place;

	while (end - ci <= cqes->mask && ferry_cqe_ready(cqes, end))
		end++;
	ferry_fence_valid_body();
	for (from = to = end; from != ci;) {
		cqe = ferry_cqe_at(cqes, --from);
		if (le32toh(cqe->qpn) == qpn) {
			if (qp->srq && FERRY_CQE_OP(cqe->op) >= FERRY_WC_RECV)
				ferry_srq_complete(qp->srq, le16toh(cqe->wqe_index));
			continue;
		}
		if (--to == from)
			continue;
		place = ferry_cqe_at(cqes, to);
		*place = *cqe;
		/* Valid on the lap it has moved to. */
		place->op ^= (from ^ to) & (cqes->mask + 1) ? FERRY_CQE_PHASE : 0;
	}
	return to;
}

/* The same of a CQ, and the places at the front become free. */
static void ferry_cq_drop(struct ferry_cq *cq, const struct ferry_qp *qp)
{
	struct ferry_next_cqes *next;
	uint64_t ci;

	ci = ferry_cqes_drop(&cq->cqes, cq->ci, qp);
	for (next = cq->next; next; next = next->next)
		next->first = ferry_cqes_drop(&next->cqes, next->first, qp);
	ferry_fence_moved_index();
	ferry_cq_release(cq, ci);
}

/* Goes on in the next ring if the one in use is empty for good. The lock is held. */
void ferry_cq_follow(struct ferry_cq *cq)
{
	struct ferry_next_cqes *next;

	while ((next = cq->next) && cq->ci == next->start) {
		ferry_unmap_ring(&cq->cqes.ring);
		cq->cqes = next->cqes;
		cq->next = next->next;
		ferry_cq_release(cq, next->first);
		free(next);
	}
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
	cq->last_key = FERRY_NO_KEY;
	wq->pi = 0;
	ferry_wq_complete(wq, 0);
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

/* 0, or -1 with errno set. */
static int ferry_map_cqes(struct ferry_context *ctx, struct ferry_cqes *cqes,
			  const struct ferry_ring_map *ring, uint32_t depth)
{
	cqes->mask = depth - 1;
	cqes->lap_shift = 63 - __builtin_ctz(depth);
	return ferry_map_ring(ctx, &cqes->ring, ring);
}

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
	err = ENOMEM;
	if (ctx->cache) {
		cq->seen = calloc(1, sizeof(*cq->seen));
		if (!cq->seen)
			goto err_destroy;
	}
	list_head_init(&cq->wqs);
	cq->last_key = FERRY_NO_KEY;
	if (ferry_map_cqes(ctx, &cq->cqes, &resp.ferry.ring, resp.ferry.depth) ||
	    ferry_map_bell(ctx, &cq->bell, &resp.ferry.slot, FERRY_DB_NONE, resp.ferry.cqn)) {
		err = errno;
		goto err_destroy;
	}
	ferry_store64(&cq->bell.slot->ci, FERRY_DB(FERRY_DB_CQ_CI, resp.ferry.cqn, 0));
	return cq;

err_destroy:
	ferry_unmap_ring(&cq->cqes.ring);
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_free:
	free(cq->seen);
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
	bool single;

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
	single = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED ||
		 (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
		  ferry_pd_single(attr->parent_domain));
	cq->lock.none = single;
	cq->arm_lock.none = single;
	ferry_set_poll_ops(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int ferry_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

/* The device fills @next from @start on: behind all that has been resized to before. */
static void ferry_cq_append(struct ferry_cq *cq, struct ferry_next_cqes *next, uint32_t start)
{
	struct ferry_next_cqes **last;

	ferry_lock(&cq->lock);
	next->start = cq->ci + (uint32_t)(start - cq->ci);
	next->first = next->start;
	for (last = &cq->next; *last; last = &(*last)->next)
		;
	*last = next;
	ferry_unlock(&cq->lock);
}

static int ferry_resize_cq_step(struct ibv_cq *ibcq, int cqe, enum ferry_resize_cq_step step,
				struct ferry_resize_cq_resp *resp)
{
	struct ferry_resize_cq_command cmd = { .ferry.step = step };
	struct ferry_resize_cq_answer answer = {};
	int err;

	err = ibv_cmd_resize_cq(ibcq, cqe, &cmd.core, sizeof(cmd), &answer.core, sizeof(answer));
	*resp = answer.ferry;
	return err;
}

/*
 * What has completed stays in the ring in use until it is taken: other threads may poll all the
 * while. A CQ is resized by one thread at a time, so that rings come in their order.
 *
 * The device moves once the new ring is mapped. Until then every error leaves the CQ as it is.
 */
int ferry_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct ferry_context *ctx = to_fctx(ibcq->context);
	struct ferry_resize_cq_resp resp;
	struct ferry_next_cqes *next;
	int err;

	if (cqe <= 0)
		return EINVAL;
	next = calloc(1, sizeof(*next));
	if (!next)
		return ENOMEM;
	cqe = max(cqe, FERRY_CQ_DEPTH_MIN);
	pthread_mutex_lock(&ctx->lock);
	err = ferry_resize_cq_step(ibcq, cqe, FERRY_RESIZE_CQ_PREPARE, &resp);
	if (err)
		goto err_next;
	if (ferry_map_cqes(ctx, &next->cqes, &resp.ring, resp.depth)) {
		err = errno;
		goto err_next;
	}
	err = ferry_resize_cq_step(ibcq, cqe, FERRY_RESIZE_CQ_COMMIT, &resp);
	if (err)
		goto err_map;
	ferry_cq_append(to_fcq(ibcq), next, resp.start);
	pthread_mutex_unlock(&ctx->lock);
	return 0;

err_map:
	ferry_unmap_ring(&next->cqes.ring);
err_next:
	pthread_mutex_unlock(&ctx->lock);
	free(next);
	return err;
}

int ferry_destroy_cq(struct ibv_cq *ibcq)
{
	struct ferry_cq *cq = to_fcq(ibcq);
	struct ferry_next_cqes *next;
	int err = ibv_cmd_destroy_cq(ibcq);

	if (err)
		return err;
	for (; (next = cq->next); free(next)) {
		ferry_unmap_ring(&next->cqes.ring);
		cq->next = next->next;
	}
	ferry_unmap_ring(&cq->cqes.ring);
	free(cq->seen);
	free(cq);
	return 0;
}
