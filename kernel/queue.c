// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/log2.h>

#include "pagelist.h"
#include "queue.h"

/* Memory for a queue of @ctx; the device does not know of it yet. */
int ferry_queue_alloc(struct ferry_context *ctx, struct ferry_queue *q, unsigned int depth_shift,
		      unsigned int stride_shift)
{
	int err;

	q->depth_shift = depth_shift;
	q->stride_shift = stride_shift;
	q->ring = ferry_ring_alloc(ctx->dev, ctx, 1ul << (depth_shift + stride_shift));
	if (!q->ring)
		return -ENOMEM;
	err = ferry_record_get(ctx, &q->record);
	if (err) {
		ferry_ring_free(q->ring);
		q->ring = NULL;
	}
	return err;
}

/* The device must have been told before. */
void ferry_queue_free(struct ferry_queue *q)
{
	if (!q->ring)
		return;
	ferry_record_put(q->ring->ctx, &q->record);
	ferry_ring_free(q->ring);
	q->ring = NULL;
}

/* Lets the process of its context map it, and says where. */
int ferry_queue_share(struct ferry_queue *q, struct ferry_ring_map *ring,
		      struct ferry_slot_map *slot)
{
	if (!q->ring)
		return 0;
	ferry_record_describe(&q->record, slot);
	return ferry_ring_share(q->ring, ring);
}

int ferry_queue_create_cq(struct ferry_context *ctx, struct ferry_queue *q,
			  const struct ferry_eq *eq, u32 *number)
{
	struct ferry_admin_create_cq cmd = {
		.context = cpu_to_le32(ctx->number),
		.eq = cpu_to_le32(eq->number),
		.depth_shift = q->depth_shift,
		.slot_addr = ferry_record_addr(&q->record),
	};
	struct ferry_pages pages;
	int err;

	err = ferry_ring_list(q->ring, &pages, &cmd.ring);
	if (!err)
		err = ferry_admin_create(ctx->dev, FERRY_ADMIN_CREATE_CQ, &cmd, number);
	ferry_pages_free(ctx->dev, &pages);
	return err;
}

/**
 * ferry_queue_resize_cq - moves a CQ to another ring
 * @q: the CQ's queue; the caller serialises
 * @cqn: its number
 * @ring: the new ring, which is @q's from then on; its old one is freed
 * @depth_shift: log2 of its entries
 * @start: is set to the index of the first entry in it
 *
 * Return: 0, or an error, and then nothing has changed.
 */
int ferry_queue_resize_cq(struct ferry_queue *q, u32 cqn, struct ferry_ring *ring,
			  unsigned int depth_shift, u32 *start)
{
	struct ferry_admin_create_cq cmd = {
		.cq = cpu_to_le32(cqn),
		.depth_shift = depth_shift,
	};
	struct ferry_pages pages;
	int err;

	err = ferry_ring_list(ring, &pages, &cmd.ring);
	if (!err)
		err = ferry_admin_create(ring->dev, FERRY_ADMIN_RESIZE_CQ, &cmd, start);
	ferry_pages_free(ring->dev, &pages);
	if (err)
		return err;
	ferry_ring_free(q->ring);
	q->ring = ring;
	q->depth_shift = depth_shift;
	return 0;
}

int ferry_queue_create_srq(struct ferry_context *ctx, struct ferry_queue *q, u32 pdn,
			   u32 *number)
{
	struct ferry_admin_create_srq cmd = {
		.context = cpu_to_le32(ctx->number),
		.pd = cpu_to_le32(pdn),
		.depth_shift = q->depth_shift,
		.wqe_shift = q->stride_shift,
		.slot_addr = ferry_record_addr(&q->record),
	};
	struct ferry_pages pages;
	int err;

	err = ferry_ring_list(q->ring, &pages, &cmd.ring);
	if (!err)
		err = ferry_admin_create(ctx->dev, FERRY_ADMIN_CREATE_SRQ, &cmd, number);
	ferry_pages_free(ctx->dev, &pages);
	return err;
}

/* @cmd: what is not said by the queues is filled in by the caller. */
int ferry_queue_create_qp(struct ferry_context *ctx, struct ferry_queue *sq,
			  struct ferry_queue *rq, struct ferry_admin_create_qp *cmd, u32 *number)
{
	struct ferry_pages sq_pages, rq_pages = {};
	int err;

	cmd->context = cpu_to_le32(ctx->number);
	cmd->sq_shift = sq->depth_shift;
	cmd->sq_wqe_shift = sq->stride_shift;
	cmd->sq_slot_addr = ferry_record_addr(&sq->record);
	err = ferry_ring_list(sq->ring, &sq_pages, &cmd->sq);
	if (!err && rq->ring) {
		cmd->rq_shift = rq->depth_shift;
		cmd->rq_wqe_shift = rq->stride_shift;
		cmd->rq_slot_addr = ferry_record_addr(&rq->record);
		err = ferry_ring_list(rq->ring, &rq_pages, &cmd->rq);
	}
	if (!err)
		err = ferry_admin_create(ctx->dev, FERRY_ADMIN_CREATE_QP, cmd, number);
	ferry_pages_free(ctx->dev, &rq_pages);
	ferry_pages_free(ctx->dev, &sq_pages);
	return err;
}
