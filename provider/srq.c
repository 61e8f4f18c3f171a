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

#include "wqe.h"

static int ferry_init_srq(struct ferry_context *ctx, struct ferry_srq *srq,
			  const struct ferry_create_srq_resp *resp, uint32_t max_sge)
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
	return 0;
}

static void ferry_free_srq(struct ferry_srq *srq)
{
	ferry_unmap_ring(&srq->ring);
	free(srq->next);
	free(srq->wr_id);
	free(srq);
}

struct ibv_srq *ferry_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ferry_create_srq_answer resp = {};
	struct ibv_create_srq cmd = {};
	struct ferry_srq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	err = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd, sizeof(cmd), &resp.core,
				 sizeof(resp));
	if (err)
		goto err_free;
	srq->lock.none = ferry_pd_single(pd);
	err = ferry_init_srq(to_fctx(pd->context), srq, &resp.ferry, attr->attr.max_sge);
	if (err)
		goto err_destroy;
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_free:
	ferry_free_srq(srq);
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

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int ferry_destroy_srq(struct ibv_srq *ibsrq)
{
	int err = ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	ferry_free_srq(to_fsrq(ibsrq));
	return 0;
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

/* The device reads the record when it has no receive left: nothing to ring. */
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
	if (likely(pi != srq->pi)) {
		srq->pi = pi;
		ferry_fence_work_record();
		ferry_store64(&srq->bell.slot->db, srq->bell.base | (uint32_t)pi);
	}
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
