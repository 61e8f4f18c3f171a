// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/log2.h>

#include "verbs.h"

static void ferry_srq_event(struct ferry_object *obj, enum ferry_event type)
{
	struct ib_srq *ibsrq = &container_of(obj, struct ferry_srq, obj)->ibsrq;
	struct ib_event event = {
		.device = ibsrq->device,
		.element.srq = ibsrq,
		.event = type == FERRY_EVENT_SRQ_LIMIT ? IB_EVENT_SRQ_LIMIT_REACHED :
							 IB_EVENT_SRQ_ERR,
	};

	if (ibsrq->event_handler)
		ibsrq->event_handler(&event, ibsrq->srq_context);
}

static int ferry_srq_check(struct ferry_dev *dev, const struct ib_srq_init_attr *init,
			   struct ib_udata *udata)
{
	const struct ib_srq_attr *attr = &init->attr;

	if (!udata || init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > dev->limits.max_srq_depth ||
	    attr->max_sge > dev->limits.max_sge ||
	    ferry_rqe_shift(attr->max_sge) > FERRY_RQE_SHIFT_MAX)
		return -EINVAL;
	return ib_is_udata_in_empty(udata);
}

static int ferry_srq_respond(struct ferry_srq *srq, struct ib_udata *udata)
{
	struct ferry_create_srq_resp resp = {
		.srqn = srq->obj.number,
		.depth = 1u << srq->queue.depth_shift,
		.stride = 1u << srq->queue.stride_shift,
	};
	int err;

	err = ferry_queue_share(&srq->queue, &resp.ring, &resp.slot);
	return err ?: ib_respond_udata(udata, resp);
}

int ferry_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibsrq->device);
	struct ferry_srq *srq = to_ferry_srq(ibsrq);
	struct ferry_context *ctx;
	int err;

	err = ferry_srq_check(dev, init, udata);
	if (err)
		return err;
	ctx = &ferry_udata_uctx(udata)->ctx;

	srq->obj.event = ferry_srq_event;
	err = ferry_queue_alloc(ctx, &srq->queue, ferry_shift(init->attr.max_wr, 0),
				ferry_rqe_shift(init->attr.max_sge));
	if (err)
		return err;
	err = ferry_queue_create_srq(ctx, &srq->queue, to_ferry_pd(ibsrq->pd)->pdn,
				     &srq->obj.number);
	if (err)
		goto err_queue;
	err = ferry_object_add(dev, &dev->srqs, &srq->obj);
	if (err)
		goto err_device;
	err = ferry_srq_respond(srq, udata);
	if (err)
		goto err_object;
	init->attr.max_wr = 1u << srq->queue.depth_shift;
	init->attr.max_sge = ferry_rqe_sges(dev, srq->queue.stride_shift);
	srq->max_sge = init->attr.max_sge;
	return 0;

err_object:
	ferry_object_remove(&dev->srqs, &srq->obj, &dev->eqs[0]);
err_device:
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_SRQ, srq->obj.number);
err_queue:
	ferry_queue_free(&srq->queue);
	return err;
}

int ferry_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata)
{
	struct ferry_srq *srq = to_ferry_srq(ibsrq);
	struct ferry_admin_modify_srq cmd = { .srq = cpu_to_le32(srq->obj.number) };
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!mask)
		return 0;
	if (attr->srq_limit > 1u << srq->queue.depth_shift)
		return -EINVAL;
	cmd.limit = cpu_to_le16(attr->srq_limit);
	return ferry_admin_exec(to_ferry(ibsrq->device), FERRY_ADMIN_MODIFY_SRQ, &cmd);
}

int ferry_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct ferry_srq *srq = to_ferry_srq(ibsrq);
	struct ferry_admin_cqe answer;
	int err;

	err = ferry_admin_query(to_ferry(ibsrq->device), FERRY_ADMIN_QUERY_SRQ, srq->obj.number,
				&answer);
	if (err)
		return err;
	attr->max_wr = 1u << srq->queue.depth_shift;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = le16_to_cpu(answer.srq.limit);
	return 0;
}

int ferry_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibsrq->device);
	struct ferry_srq *srq = to_ferry_srq(ibsrq);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	ferry_object_remove(&dev->srqs, &srq->obj, &dev->eqs[0]);
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_SRQ, srq->obj.number);
	ferry_queue_free(&srq->queue);
	return 0;
}
