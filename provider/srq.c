// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shared receive queues.
 *
 * The device takes entries in the order of the ring, but they complete in any order. It
 * copies an entry when it takes it, so a place of the ring is free once fewer than a ring
 * of receives are outstanding; wr_ids stay behind under an id from a list of free ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <ccan/minmax.h>

#include "sink.h"

static int ferry_init_srq(struct ferry_context *ctx, struct ferry_srq *srq,
			  const struct ferry_create_srq_resp *resp, uint32_t max_sge,
			  const struct ibv_pd *pd)
{
	uint32_t id;

	srq->mask = resp->depth - 1;
	srq->shift = __builtin_ctz(resp->stride);
	srq->max_sge = min_t(uint32_t, max_sge,
			     (resp->stride - sizeof(struct ferry_rqe)) / sizeof(struct ferry_sge));
	srq->free = resp->depth;
	srq->next = calloc(resp->depth, sizeof(*srq->next));
	srq->wr_id = calloc(resp->depth, sizeof(*srq->wr_id));
	if (!srq->next || !srq->wr_id)
		return ENOMEM;
	for (id = 0; id < resp->depth; id++)
		srq->next[id] = id + 1;
	if (ferry_map_ring(ctx, &srq->ring, &resp->ring) ||
	    ferry_map_bell(ctx, &srq->bell, &resp->slot, FERRY_DB_SRQ, resp->srqn))
		return errno;
	if (ctx->cache)
		return ferry_sinks_create(ctx, &srq->sinks, resp->depth,
					  FERRY_SINK_SGES(srq->max_sge), pd, true);
	return 0;
}

static void ferry_free_srq(struct ferry_context *ctx, struct ferry_srq *srq)
{
	ferry_sinks_destroy(ctx, srq->sinks);
	ferry_unmap_ring(&srq->ring);
	free(srq->next);
	free(srq->wr_id);
	free(srq);
}

struct ibv_srq *ferry_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ferry_context *ctx = to_fctx(pd->context);
	struct ferry_create_srq_answer resp = {};
	struct ibv_srq_init_attr asked = *attr;
	struct ibv_create_srq cmd = {};
	struct ferry_srq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	err = EINVAL;
	if (ctx->cache) {
		if (attr->attr.max_sge > FERRY_PIECES_MAX)
			goto err_free;
		asked.attr.max_sge = FERRY_SINK_PIECES(attr->attr.max_sge);
	}
	err = ibv_cmd_create_srq(pd, &srq->vsrq.srq, &asked, &cmd, sizeof(cmd), &resp.core,
				 sizeof(resp));
	if (err)
		goto err_free;
	srq->lock.none = ferry_pd_single(pd);
	err = ferry_init_srq(ctx, srq, &resp.ferry, asked.attr.max_sge, pd);
	if (err)
		goto err_destroy;
	if (ctx->cache)
		asked.attr.max_sge = FERRY_SINK_SGES(asked.attr.max_sge);
	attr->attr = asked.attr;
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_free:
	ferry_free_srq(ctx, srq);
	errno = err;
	return NULL;
}

int ferry_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd = {};

	return ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd));
}

int ferry_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};
	int err;

	err = ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
	if (!err && to_fctx(ibsrq->context)->cache)
		attr->max_sge = FERRY_SINK_SGES(attr->max_sge);
	return err;
}

int ferry_destroy_srq(struct ibv_srq *ibsrq)
{
	struct ferry_context *ctx = to_fctx(ibsrq->context);
	int err = ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	ferry_free_srq(ctx, to_fsrq(ibsrq));
	return 0;
}

int ferry_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ferry_srq *srq = to_fsrq(ibsrq);
	uint64_t pi;
	int err = 0;

	ferry_lock(&srq->lock);
	for (pi = srq->pi; wr; wr = wr->next, pi++) {
		err = ferry_put_srq_recv(srq, pi, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(pi != srq->pi))
		ferry_publish_srq_recv(srq, pi);
	ferry_unlock(&srq->lock);
	return err;
}

/* Ends the receive of @id, which came from the device: the wr_id. */
uint64_t ferry_srq_complete(struct ferry_srq *srq, uint16_t id)
{
	uint64_t wr_id;

	id &= srq->mask;
	ferry_lock(&srq->lock);
	wr_id = srq->wr_id[id];
	srq->next[id] = srq->first;
	srq->first = id;
	srq->free++;
	ferry_unlock(&srq->lock);
	return wr_id;
}
