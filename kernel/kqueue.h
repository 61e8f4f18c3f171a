/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues of the kernel itself: a CQ with a callback, and the raw Ethernet QP, whose work
 * requests name DMA addresses. The netdev is their user.
 *
 * Posting to one queue, and polling one CQ, is for one thread at a time.
 */
#ifndef FERRY_KQUEUE_H
#define FERRY_KQUEUE_H

#include "ferry.h"
#include "queue.h"

struct ferry_kcq {
	struct ferry_object obj;
	struct ferry_dev *dev;
	struct ferry_eq *eq;
	struct ferry_queue queue;
	u32 ci;
	u8 arm_seq;
	/* In interrupt context, once for each ferry_kcq_arm(); or the device is lost. */
	void (*complete)(struct ferry_kcq *cq);
};

struct ferry_kqp {
	struct ferry_dev *dev;
	u32 pdn;
	u32 number;
	struct ferry_queue sq;
	struct ferry_queue rq;
	u32 sq_pi;
	u32 rq_pi;
};

int ferry_kcq_create(struct ferry_dev *dev, struct ferry_kcq *cq, unsigned int depth_shift,
		     unsigned int vector, void (*complete)(struct ferry_kcq *cq));
void ferry_kcq_destroy(struct ferry_kcq *cq);
const struct ferry_cqe *ferry_kcq_next(struct ferry_kcq *cq);
void ferry_kcq_publish(struct ferry_kcq *cq);
void ferry_kcq_arm(struct ferry_kcq *cq);

int ferry_kqp_create_eth(struct ferry_dev *dev, struct ferry_kqp *qp, struct ferry_kcq *cq,
			 unsigned int sq_shift, unsigned int rq_shift);
void ferry_kqp_destroy(struct ferry_kqp *qp);
void ferry_kqp_send(struct ferry_kqp *qp, u64 dma, u32 length);
void ferry_kqp_ring_send(struct ferry_kqp *qp);
void ferry_kqp_recv(struct ferry_kqp *qp, u64 dma, u32 length, u16 id);
void ferry_kqp_publish_recv(struct ferry_kqp *qp);

#endif
