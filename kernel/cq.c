// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/log2.h>

#include "verbs.h"

#define FERRY_CQE_SHIFT	ilog2(sizeof(struct ferry_cqe))

static void ferry_cq_event(struct ferry_object *obj, enum ferry_event type)
{
	struct ib_cq *ibcq = &container_of(obj, struct ferry_cq, obj)->ibcq;
	struct ib_event event = {
		.device = ibcq->device,
		.element.cq = ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (type == FERRY_EVENT_COMPLETION)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
	else if (ibcq->event_handler)
		ibcq->event_handler(&event, ibcq->cq_context);
}

static int ferry_cq_check(struct ferry_dev *dev, const struct ib_cq_init_attr *attr,
			  struct uverbs_attr_bundle *attrs)
{
	if (!attrs || attr->flags)
		return -EOPNOTSUPP;
	/* Our rings are the kernel's memory, on every host. */
	if (ferry_brings_cq_buffer(attrs))
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > dev->limits.max_cqe ||
	    attr->comp_vector >= ferry_comp_vectors(dev))
		return -EINVAL;
	return ib_is_udata_in_empty(&attrs->driver_udata);
}

/* A ring is a page at least: all of it is of use, as with a QP's queues. */
static unsigned int ferry_cq_shift(u32 cqe)
{
	return ferry_shift(cqe, PAGE_SHIFT - FERRY_CQE_SHIFT);
}

static int ferry_cq_respond(struct ferry_cq *cq, struct ib_udata *udata)
{
	struct ferry_create_cq_resp resp = {
		.cqn = cq->obj.number,
		.depth = 1u << cq->queue.depth_shift,
	};
	int err;

	err = ferry_queue_share(&cq->queue, &resp.ring, &resp.slot);
	return err ?: ib_respond_udata(udata, resp);
}

int ferry_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct ferry_dev *dev = to_ferry(ibcq->device);
	struct ferry_cq *cq = to_ferry_cq(ibcq);
	struct ferry_context *ctx;
	int err;

	err = ferry_cq_check(dev, attr, attrs);
	if (err)
		return err;
	ctx = &ferry_udata_uctx(&attrs->driver_udata)->ctx;

	cq->eq = ferry_comp_eq(dev, attr->comp_vector);
	cq->obj.event = ferry_cq_event;
	mutex_init(&cq->resize_lock);
	err = ferry_queue_alloc(ctx, &cq->queue, ferry_cq_shift(attr->cqe), FERRY_CQE_SHIFT);
	if (err)
		return err;
	err = ferry_queue_create_cq(ctx, &cq->queue, cq->eq, &cq->obj.number);
	if (err)
		goto err_queue;
	err = ferry_object_add(dev, &dev->cqs, &cq->obj);
	if (err)
		goto err_device;
	err = ferry_cq_respond(cq, &attrs->driver_udata);
	if (err)
		goto err_object;
	ibcq->cqe = 1u << cq->queue.depth_shift;
	return 0;

err_object:
	ferry_object_remove(&dev->cqs, &cq->obj, cq->eq);
err_device:
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_CQ, cq->obj.number);
err_queue:
	ferry_queue_free(&cq->queue);
	return err;
}

/* Moderation: an event after so many CQEs, or so many microseconds after the first. */
int ferry_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct ferry_admin_modify_cq cmd = {
		.cq = cpu_to_le32(to_ferry_cq(ibcq)->obj.number),
		.count = cpu_to_le16(count),
		.period_us = cpu_to_le16(period),
	};

	return ferry_admin_exec(to_ferry(ibcq->device), FERRY_ADMIN_MODIFY_CQ, &cmd);
}

/* A new ring, to be mapped; the CQ works on in its own. */
static int ferry_cq_prepare(struct ferry_cq *cq, unsigned int shift,
			    struct ferry_resize_cq_resp *resp)
{
	struct ferry_context *ctx = cq->queue.ring->ctx;
	struct ferry_ring *ring;
	int err;

	ring = ferry_ring_alloc(ctx->dev, ctx, 1ul << (shift + FERRY_CQE_SHIFT));
	if (!ring)
		return -ENOMEM;
	err = ferry_ring_share(ring, &resp->ring);
	if (err) {
		ferry_ring_free(ring);
		return err;
	}
	ferry_ring_free(cq->prepared);
	cq->prepared = ring;
	cq->prepared_shift = shift;
	return 0;
}

/* After an error the new ring is there still, and the CQ works on in its own. */
static int ferry_cq_commit(struct ferry_cq *cq, unsigned int shift,
			   struct ferry_resize_cq_resp *resp)
{
	int err;

	if (!cq->prepared || cq->prepared_shift != shift)
		return -EINVAL;
	err = ferry_queue_resize_cq(&cq->queue, cq->obj.number, cq->prepared, shift, &resp->start);
	if (err)
		return err;
	cq->prepared = NULL;
	cq->ibcq.cqe = 1u << shift;
	return 0;
}

static int ferry_cq_resize_request(struct ib_udata *udata, struct ferry_resize_cq_req *req)
{
	int err;

	if (!udata->inlen)
		return 0;
	err = ib_copy_validate_udata_in(udata, *req, reserved);
	if (err)
		return err;
	return req->step > FERRY_RESIZE_CQ_COMMIT || req->reserved ? -EOPNOTSUPP : 0;
}

/*
 * What has completed already stays in the old ring, which lives as long as it is mapped.
 * A user who cannot be told that the device has moved (-EFAULT) has lost the CQ.
 */
int ferry_resize_cq(struct ib_cq *ibcq, ferry_cqe_t cqe, struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibcq->device);
	struct ferry_cq *cq = to_ferry_cq(ibcq);
	struct ferry_resize_cq_resp resp = {};
	struct ferry_resize_cq_req req = {};
	unsigned int shift;
	int err;

	if (!udata || !ferry_has(dev, FERRY_CAP_RESIZE_CQ))
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > dev->limits.max_cqe)
		return -EINVAL;
	err = ferry_cq_resize_request(udata, &req);
	if (err)
		return err;

	shift = ferry_cq_shift(cqe);
	resp.depth = 1u << shift;
	mutex_lock(&cq->resize_lock);
	if (req.step != FERRY_RESIZE_CQ_COMMIT)
		err = ferry_cq_prepare(cq, shift, &resp);
	if (!err && req.step != FERRY_RESIZE_CQ_PREPARE)
		err = ferry_cq_commit(cq, shift, &resp);
	if (!err)
		err = ib_respond_udata(udata, resp);
	mutex_unlock(&cq->resize_lock);
	return err;
}

int ferry_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibcq->device);
	struct ferry_cq *cq = to_ferry_cq(ibcq);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	ferry_object_remove(&dev->cqs, &cq->obj, cq->eq);
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_CQ, cq->obj.number);
	ferry_queue_free(&cq->queue);
	ferry_ring_free(cq->prepared);
	return 0;
}
