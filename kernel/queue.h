/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a CQ, an SRQ and each half of a QP have in common: a ring and a doorbell record.
 */
#ifndef FERRY_QUEUE_H
#define FERRY_QUEUE_H

#include "ferry.h"
#include "ring.h"

struct ferry_queue {
	struct ferry_ring *ring;	/* NULL: none, as a receive queue beside an SRQ */
	struct ferry_record record;
	unsigned int depth_shift;	/* log2 of its entries */
	unsigned int stride_shift;	/* log2 of their size */
};

int ferry_queue_alloc(struct ferry_context *ctx, struct ferry_queue *q, unsigned int depth_shift,
		      unsigned int stride_shift);
void ferry_queue_free(struct ferry_queue *q);
int ferry_queue_share(struct ferry_queue *q, struct ferry_ring_map *ring,
		      struct ferry_slot_map *slot);

int ferry_queue_create_cq(struct ferry_context *ctx, struct ferry_queue *q,
			  const struct ferry_eq *eq, u32 *number);
int ferry_queue_resize_cq(struct ferry_queue *q, u32 cqn, struct ferry_ring *ring,
			  unsigned int depth_shift, u32 *start);
int ferry_queue_create_srq(struct ferry_context *ctx, struct ferry_queue *q, u32 pdn,
			   u32 *number);
int ferry_queue_create_qp(struct ferry_context *ctx, struct ferry_queue *sq,
			  struct ferry_queue *rq, struct ferry_admin_create_qp *cmd, u32 *number);

/* log2 of the power of two that is not less than @n, and not less than @least itself. */
static inline unsigned int ferry_shift(u32 n, unsigned int least)
{
	return max_t(unsigned int, order_base_2(n), least);
}

static inline void *ferry_queue_entry(const struct ferry_queue *q, u32 index)
{
	size_t slot = index & ((1u << q->depth_shift) - 1);

	return ferry_ring_at(q->ring, slot << q->stride_shift);
}

#endif
