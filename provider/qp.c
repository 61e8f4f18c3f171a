// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs: create, modify, query, destroy. post.c has the data path.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ccan/array_size.h>
#include <ccan/minmax.h>

#include "sink.h"

static const struct ferry_send_type *const ferry_send_types[] = {
	[IBV_QPT_RC] = &ferry_rc_send,
	[IBV_QPT_UD] = &ferry_ud_send,
};

static int ferry_publish_qp(struct ferry_context *ctx, struct ferry_qp *qp)
{
	const uint32_t qpn = qp->vqp.qp.qp_num & 0xffffff;
	struct ferry_qp_leaf *leaf = &ctx->qps[qpn >> FERRY_QP_LEAF_BITS];
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (!leaf->qps)
		leaf->qps = calloc(FERRY_QP_LEAF_SIZE, sizeof(struct ferry_qp *));
	if (leaf->qps) {
		leaf->qps[qpn % FERRY_QP_LEAF_SIZE] = qp;
		leaf->used++;
	} else {
		err = ENOMEM;
	}
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

static void ferry_withdraw_qp(struct ferry_context *ctx, struct ferry_qp *qp)
{
	const uint32_t qpn = qp->vqp.qp.qp_num & 0xffffff;
	struct ferry_qp_leaf *leaf = &ctx->qps[qpn >> FERRY_QP_LEAF_BITS];

	pthread_mutex_lock(&ctx->lock);
	leaf->qps[qpn % FERRY_QP_LEAF_SIZE] = NULL;
	if (!--leaf->used) {
		free(leaf->qps);
		leaf->qps = NULL;
	}
	pthread_mutex_unlock(&ctx->lock);
}

struct ferry_wq_params {
	const struct ferry_ring_map *ring;
	const struct ferry_slot_map *slot;
	uint32_t depth, stride;
	uint32_t data;			/* where the SGEs start in an entry, bytes */
	enum ferry_db type;
};

/* 0 or an errno. */
static int ferry_init_wq(struct ferry_context *ctx, struct ferry_wq *wq,
			 const struct ferry_wq_params *params)
{
	const uint32_t room = params->stride - params->data;
	uint32_t i;

	if (params->depth > FERRY_WQ_DEPTH_MAX)
		return EINVAL;
	ferry_wq_complete(wq, 0);
	wq->mask = params->depth - 1;
	/* Whatever the driver grants, nothing is written beyond an entry. */
	wq->max_sge = min_t(uint32_t, wq->max_sge, room / sizeof(struct ferry_sge));
	wq->max_inline = min_t(uint32_t, wq->max_inline, room);
	wq->places = calloc(params->depth, sizeof(*wq->places));
	if (!wq->places)
		return ENOMEM;
	if (ferry_map_ring(ctx, &wq->ring, params->ring) ||
	    ferry_map_bell(ctx, &wq->bell, params->slot, params->type, wq->qp->vqp.qp.qp_num))
		return errno;
	for (i = 0; i < params->depth; i++)
		wq->places[i].entry = wq->ring.mem + (size_t)i * params->stride;
	return 0;
}

static void ferry_free_wq(struct ferry_context *ctx, struct ferry_wq *wq)
{
	ferry_sinks_destroy(ctx, wq->sinks);
	ferry_unmap_ring(&wq->ring);
	free(wq->places);
}

/* Only these have operations that bring data to the sender. */
static bool ferry_sends_fetch(const struct ferry_send_type *type)
{
	return type == &ferry_rc_send;
}

/* On hosts that are not coherent. 0 or an errno. */
static int ferry_init_sinks(struct ferry_context *ctx, struct ferry_qp *qp, const struct ibv_pd *pd)
{
	const bool fetch = ferry_sends_fetch(qp->type);
	int err;

	err = ferry_sinks_create(ctx, &qp->sq.sinks, qp->sq.mask + 1,
				 fetch ? FERRY_SINK_SGES(qp->sq.max_sge) : qp->sq.max_sge, pd,
				 fetch);
	if (err || qp->srq)
		return err;
	return ferry_sinks_create(ctx, &qp->rq.sinks, qp->rq.mask + 1,
				  FERRY_SINK_SGES(qp->rq.max_sge), pd, true);
}

static int ferry_init_wqs(struct ferry_context *ctx, struct ferry_qp *qp,
			  const struct ibv_qp_init_attr_ex *attr,
			  const struct ferry_create_qp_resp *resp)
{
	const struct ferry_wq_params sq = {
		.ring = &resp->sq,
		.slot = &resp->sq_slot,
		.depth = resp->sq_depth,
		.stride = resp->sq_stride,
		.data = qp->type->data,
		.type = FERRY_DB_SQ,
	};
	const struct ferry_wq_params rq = {
		.ring = &resp->rq,
		.slot = &resp->rq_slot,
		.depth = resp->rq_depth,
		.stride = resp->rq_stride,
		.data = sizeof(struct ferry_rqe),
		.type = FERRY_DB_RQ,
	};
	int err;

	qp->sq.qp = qp;
	qp->rq.qp = qp;
	qp->sq.max_sge = attr->cap.max_send_sge;
	qp->sq.max_inline = attr->cap.max_inline_data;
	qp->rq.max_sge = attr->cap.max_recv_sge;
	list_node_init(&qp->rq.cq_entry);
	err = ferry_init_wq(ctx, &qp->sq, &sq);
	if (!err && !qp->srq)
		err = ferry_init_wq(ctx, &qp->rq, &rq);
	if (!err && ctx->cache)
		err = ferry_init_sinks(ctx, qp, attr->pd);
	return err;
}

/*
 * On hosts that are not coherent a list may become more SGEs of the device than it has
 * itself: what the application asks for, as the driver is asked. 0 or an errno.
 */
static int ferry_cap_for_pieces(const struct ferry_send_type *type, struct ibv_qp_cap *cap)
{
	if (max(cap->max_send_sge, cap->max_recv_sge) > FERRY_PIECES_MAX)
		return EINVAL;
	if (cap->max_recv_sge)
		cap->max_recv_sge = FERRY_SINK_PIECES(cap->max_recv_sge);
	if (cap->max_send_sge && ferry_sends_fetch(type))
		cap->max_send_sge = FERRY_SINK_PIECES(cap->max_send_sge);
	return 0;
}

/* And back again. */
static void ferry_cap_of_pieces(const struct ferry_send_type *type, struct ibv_qp_cap *cap)
{
	cap->max_recv_sge = FERRY_SINK_SGES(cap->max_recv_sge);
	if (ferry_sends_fetch(type))
		cap->max_send_sge = FERRY_SINK_SGES(cap->max_send_sge);
}

/*
 * A program that asks for the depth it needs, arms its CQ and polls once for each event,
 * posts while completions of earlier requests still lie in the CQ. Room for that is cheap,
 * and other devices give it, too.
 */
#define FERRY_SQ_DEPTH_MIN	16

/* What the provider refuses without asking the driver. 0 or an errno. */
static int ferry_check_qp_attr(const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type >= ARRAY_SIZE(ferry_send_types) || !ferry_send_types[attr->qp_type] ||
	    !check_comp_mask(attr->comp_mask, IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	return attr->comp_mask & IBV_QP_INIT_ATTR_PD && attr->send_cq && attr->recv_cq ? 0 : EINVAL;
}

/* The driver's part. 0 or an errno. */
static int ferry_ask_for_qp(struct ferry_qp *qp, struct ibv_qp_init_attr_ex *attr,
			    struct ferry_create_qp_answer *resp)
{
	const bool wr_ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct ibv_create_qp cmd = {};
	int err;

	if (wr_ops) {
		err = ferry_set_wr_ops(qp, attr);
		if (err)
			return err;
	}
	if (to_fctx(attr->pd->context)->cache) {
		err = ferry_cap_for_pieces(qp->type, &attr->cap);
		if (err)
			return err;
	}
	attr->cap.max_send_wr = max_t(uint32_t, attr->cap.max_send_wr, FERRY_SQ_DEPTH_MIN);
	err = ibv_cmd_create_qp_ex(attr->pd->context, &qp->vqp, attr, &cmd, sizeof(cmd),
				   &resp->core, sizeof(*resp));
	if (!err && wr_ops)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	return err;
}

/* What the application asked for is asked of the driver in @attr, and what was granted comes there. */
static struct ibv_qp *ferry_new_qp(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ferry_context *ctx = to_fctx(ibctx);
	struct ferry_create_qp_answer resp = {};
	struct ferry_qp *qp = NULL;
	int err;

	err = ferry_check_qp_attr(attr);
	if (err)
		goto err_free;
	err = ENOMEM;
	qp = aligned_alloc(_Alignof(struct ferry_qp), sizeof(*qp));
	if (!qp)
		goto err_free;
	memset(qp, 0, sizeof(*qp));
	qp->type = ferry_send_types[attr->qp_type];
	qp->srq = attr->srq ? to_fsrq(attr->srq) : NULL;
	qp->sq.lock.none = ferry_pd_single(attr->pd);
	qp->rq.lock.none = ferry_pd_single(attr->pd);
	err = ferry_ask_for_qp(qp, attr, &resp);
	if (err)
		goto err_free;
	err = ferry_init_wqs(ctx, qp, attr, &resp.ferry);
	if (err)
		goto err_destroy;
	err = ferry_publish_qp(ctx, qp);
	if (err)
		goto err_destroy;
	ferry_cq_add(to_fcq(attr->send_cq), &qp->sq);
	if (!qp->srq)
		ferry_cq_add(to_fcq(attr->recv_cq), &qp->rq);
	if (ctx->cache)
		ferry_cap_of_pieces(qp->type, &attr->cap);
	return &qp->vqp.qp;

err_destroy:
	ferry_free_wq(ctx, &qp->rq);
	ferry_free_wq(ctx, &qp->sq);
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	free(qp);
	errno = err;
	return NULL;
}

struct ibv_qp *ferry_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex asked = *attr;
	struct ibv_qp *ibqp = ferry_new_qp(ibctx, &asked);

	/* A program that failed may try again with what it has. */
	if (ibqp)
		attr->cap = asked.cap;
	return ibqp;
}

struct ibv_qp *ferry_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *ibqp = ferry_new_qp(pd->context, &attr_ex);

	if (ibqp)
		attr->cap = attr_ex.cap;
	return ibqp;
}

static void ferry_store_records(struct ferry_qp *qp, uint64_t sq, uint64_t rq)
{
	ferry_store64(&qp->sq.bell.slot->db, sq);
	if (!qp->srq)
		ferry_store64(&qp->rq.bell.slot->db, rq);
}

/*
 * A QP that is reset counts from 0 again, and the device must not take an index of its
 * last life for new work. So the records are empty before it gets there.
 */
static int ferry_reset_qp(struct ferry_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct ibv_modify_qp cmd = {};
	int err;

	ferry_store_records(qp, 0, 0);
	err = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (!err) {
		ferry_cq_clean(to_fcq(ibqp->send_cq), &qp->sq);
		ferry_cq_clean(to_fcq(ibqp->recv_cq), &qp->rq);
	}
	ferry_lock(&qp->sq.lock);
	ferry_lock(&qp->rq.lock);
	ferry_store_records(qp, qp->sq.bell.base | (uint32_t)qp->sq.pi,
			    qp->rq.bell.base | (uint32_t)qp->rq.pi);
	ferry_unlock(&qp->rq.lock);
	/* The QP lives on, and its record may have been looked at while it was empty. */
	if (err)
		ferry_ring_index(&qp->sq.bell, qp->sq.pi);
	ferry_unlock(&qp->sq.lock);
	return err;
}

int ferry_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct ferry_qp *qp = to_fqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int err;

	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		err = ferry_reset_qp(qp, attr, mask);
	else
		err = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (!err && mask & IBV_QP_STATE) {
		if (attr->qp_state < IBV_QPS_RTS)
			memset(qp->ops, 0, sizeof(qp->ops));
		else
			memcpy(qp->ops, qp->type->ops, sizeof(qp->ops));
	}
	return err;
}

int ferry_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd = {};
	int err;

	err = ibv_cmd_query_qp(ibqp, attr, mask, init, &cmd, sizeof(cmd));
	if (!err && to_fctx(ibqp->context)->cache) {
		ferry_cap_of_pieces(to_fqp(ibqp)->type, &init->cap);
		attr->cap = init->cap;
	}
	return err;
}

int ferry_destroy_qp(struct ibv_qp *ibqp)
{
	struct ferry_context *ctx = to_fctx(ibqp->context);
	struct ferry_qp *qp = to_fqp(ibqp);
	int err = ibv_cmd_destroy_qp(ibqp);

	if (err)
		return err;
	ferry_cq_remove(to_fcq(ibqp->send_cq), &qp->sq);
	ferry_cq_remove(to_fcq(ibqp->recv_cq), &qp->rq);
	ferry_withdraw_qp(ctx, qp);
	ferry_free_wq(ctx, &qp->rq);
	ferry_free_wq(ctx, &qp->sq);
	free(qp);
	return 0;
}
