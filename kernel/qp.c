// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * QPs. The device has the state machine; the driver checks what belongs to verbs and
 * puts it into the device's words.
 */
#include <linux/log2.h>

#include "verbs.h"

/* ------------------------------------------------------------------------- events */

static const enum ib_event_type ferry_qp_ib_event[FERRY_EVENT_COUNT] = {
	[FERRY_EVENT_QP_FATAL]		= IB_EVENT_QP_FATAL,
	[FERRY_EVENT_QP_REQ_ERR]	= IB_EVENT_QP_REQ_ERR,
	[FERRY_EVENT_QP_ACCESS_ERR]	= IB_EVENT_QP_ACCESS_ERR,
	[FERRY_EVENT_COMM_EST]		= IB_EVENT_COMM_EST,
	[FERRY_EVENT_SQ_DRAINED]	= IB_EVENT_SQ_DRAINED,
	[FERRY_EVENT_LAST_WQE]		= IB_EVENT_QP_LAST_WQE_REACHED,
};

static void ferry_qp_event(struct ferry_object *obj, enum ferry_event type)
{
	struct ib_qp *ibqp = &container_of(obj, struct ferry_qp, obj)->ibqp;
	struct ib_event event = {
		.device = ibqp->device,
		.element.qp = ibqp,
		.event = ferry_qp_ib_event[type],
	};

	if (ibqp->event_handler)
		ibqp->event_handler(&event, ibqp->qp_context);
}

/* ----------------------------------------------------------------------- creation */

static int ferry_qp_check(struct ferry_dev *dev, const struct ib_qp_init_attr *init,
			  struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &init->cap;
	const struct ferry_limits *limits = &dev->limits;

	if (!udata || init->create_flags || init->xrcd || init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (init->qp_type != IB_QPT_RC &&
	    !(init->qp_type == IB_QPT_UD && ferry_has(dev, FERRY_CAP_UD)))
		return -EOPNOTSUPP;
	if (cap->max_send_wr > limits->max_sq_depth || cap->max_send_sge > limits->max_sge ||
	    cap->max_inline_data > limits->max_inline)
		return -EINVAL;
	if (!init->srq &&
	    (cap->max_recv_wr > limits->max_rq_depth || cap->max_recv_sge > limits->max_sge))
		return -EINVAL;
	return ib_is_udata_in_empty(udata);
}

/*
 * Strides from what the user asks for, and back: what fits into them is what the user
 * gets.
 */
static int ferry_qp_size(struct ferry_dev *dev, struct ferry_qp *qp,
			 const struct ib_qp_init_attr *init)
{
	bool ud = init->qp_type == IB_QPT_UD;
	u32 head = ud ? sizeof(struct ferry_wqe_ud) : sizeof(struct ferry_wqe_rdma);
	u32 least = ud ? 0 : sizeof(struct ferry_wqe_atomic) + sizeof(struct ferry_sge);
	const struct ib_qp_cap *cap = &init->cap;
	u32 data = max_t(u32, cap->max_send_sge * sizeof(struct ferry_sge), cap->max_inline_data);

	qp->sq.stride_shift = ferry_shift(max(head + data, least), FERRY_WQE_SHIFT_MIN);
	if (qp->sq.stride_shift > FERRY_WQE_SHIFT_MAX)
		return -EINVAL;
	/*
	 * A ring is a page at least: all of it is of use. Programs count on it: perftest posts
	 * to a queue of one before it has polled the completion it was woken for.
	 */
	qp->sq.depth_shift = ferry_shift(cap->max_send_wr, PAGE_SHIFT - qp->sq.stride_shift);
	data = (1u << qp->sq.stride_shift) - head;
	qp->cap.max_send_wr = 1u << qp->sq.depth_shift;
	qp->cap.max_send_sge = min_t(u32, data / sizeof(struct ferry_sge), dev->limits.max_sge);
	qp->cap.max_inline_data = min_t(u32, data, dev->limits.max_inline);
	if (init->srq)
		return 0;

	qp->rq.stride_shift = ferry_rqe_shift(cap->max_recv_sge);
	if (qp->rq.stride_shift > FERRY_RQE_SHIFT_MAX)
		return -EINVAL;
	qp->rq.depth_shift = ferry_shift(cap->max_recv_wr, PAGE_SHIFT - qp->rq.stride_shift);
	qp->cap.max_recv_wr = 1u << qp->rq.depth_shift;
	qp->cap.max_recv_sge = ferry_rqe_sges(dev, qp->rq.stride_shift);
	return 0;
}

static int ferry_qp_alloc_queues(struct ferry_qp *qp, bool srq)
{
	int err;

	err = ferry_queue_alloc(qp->ctx, &qp->sq, qp->sq.depth_shift, qp->sq.stride_shift);
	if (err || srq)
		return err;
	err = ferry_queue_alloc(qp->ctx, &qp->rq, qp->rq.depth_shift, qp->rq.stride_shift);
	if (err)
		ferry_queue_free(&qp->sq);
	return err;
}

static void ferry_qp_free_queues(struct ferry_qp *qp)
{
	ferry_queue_free(&qp->rq);
	ferry_queue_free(&qp->sq);
}

static int ferry_qp_tell(struct ferry_qp *qp, const struct ib_qp_init_attr *init)
{
	u32 srq = init->srq ? to_ferry_srq(init->srq)->obj.number : 0;
	struct ferry_admin_create_qp cmd = {
		.pd = cpu_to_le32(to_ferry_pd(qp->ibqp.pd)->pdn),
		.send_cq = cpu_to_le32(to_ferry_cq(init->send_cq)->obj.number),
		.recv_cq = cpu_to_le32(to_ferry_cq(init->recv_cq)->obj.number),
		.srq = cpu_to_le32(srq),
		.type = init->qp_type == IB_QPT_UD ? FERRY_QPT_UD : FERRY_QPT_RC,
		.flags = qp->signal_all ? FERRY_QP_SIGNAL_ALL : 0,
	};

	return ferry_queue_create_qp(qp->ctx, &qp->sq, &qp->rq, &cmd, &qp->obj.number);
}

static int ferry_qp_respond(struct ferry_qp *qp, struct ib_udata *udata)
{
	struct ferry_create_qp_resp resp = {
		.sq_depth = 1u << qp->sq.depth_shift,
		.sq_stride = 1u << qp->sq.stride_shift,
	};
	int err;

	if (qp->rq.ring) {
		resp.rq_depth = 1u << qp->rq.depth_shift;
		resp.rq_stride = 1u << qp->rq.stride_shift;
	}
	err = ferry_queue_share(&qp->sq, &resp.sq, &resp.sq_slot);
	if (!err)
		err = ferry_queue_share(&qp->rq, &resp.rq, &resp.rq_slot);
	return err ?: ib_respond_udata(udata, resp);
}

int ferry_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibqp->device);
	struct ferry_qp *qp = to_ferry_qp(ibqp);
	int err;

	err = ferry_qp_check(dev, init, udata);
	if (!err)
		err = ferry_qp_size(dev, qp, init);
	if (err)
		return err;

	mutex_init(&qp->lock);
	qp->ctx = &ferry_udata_uctx(udata)->ctx;
	qp->state = IB_QPS_RESET;
	qp->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->obj.event = ferry_qp_event;

	err = ferry_qp_alloc_queues(qp, init->srq);
	if (err)
		return err;
	err = ferry_qp_tell(qp, init);
	if (err)
		goto err_queues;
	err = ferry_object_add(dev, &dev->qps, &qp->obj);
	if (err)
		goto err_device;
	err = ferry_qp_respond(qp, udata);
	if (err)
		goto err_object;
	ibqp->qp_num = qp->obj.number;
	init->cap = qp->cap;
	return 0;

err_object:
	ferry_object_remove(&dev->qps, &qp->obj, &dev->eqs[0]);
err_device:
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_QP, qp->obj.number);
err_queues:
	ferry_qp_free_queues(qp);
	return err;
}

int ferry_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibqp->device);
	struct ferry_qp *qp = to_ferry_qp(ibqp);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	ferry_object_remove(&dev->qps, &qp->obj, &dev->eqs[0]);
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_QP, qp->obj.number);
	ferry_qp_free_queues(qp);
	return 0;
}

/* --------------------------------------------------------------- modify and query */

static const u8 ferry_qps_of_ib[] = {
	[IB_QPS_RESET]	= FERRY_QPS_RESET,
	[IB_QPS_INIT]	= FERRY_QPS_INIT,
	[IB_QPS_RTR]	= FERRY_QPS_RTR,
	[IB_QPS_RTS]	= FERRY_QPS_RTS,
	[IB_QPS_SQD]	= FERRY_QPS_SQD,
	[IB_QPS_SQE]	= FERRY_QPS_SQE,
	[IB_QPS_ERR]	= FERRY_QPS_ERR,
};

static const enum ib_qp_state ferry_qps_to_ib[FERRY_QPS_COUNT] = {
	[FERRY_QPS_RESET]	= IB_QPS_RESET,
	[FERRY_QPS_INIT]	= IB_QPS_INIT,
	[FERRY_QPS_RTR]		= IB_QPS_RTR,
	[FERRY_QPS_RTS]		= IB_QPS_RTS,
	[FERRY_QPS_SQD]		= IB_QPS_SQD,
	[FERRY_QPS_SQE]		= IB_QPS_SQE,
	[FERRY_QPS_ERR]		= IB_QPS_ERR,
};

/* Attributes that go to the device under another name, one to one. */
static const struct {
	int ib;
	u32 ferry;
} ferry_qp_attr_map[] = {
	{ IB_QP_STATE,			FERRY_QP_ATTR_STATE },
	{ IB_QP_CUR_STATE,		FERRY_QP_ATTR_CUR_STATE },
	{ IB_QP_EN_SQD_ASYNC_NOTIFY,	FERRY_QP_ATTR_SQD_NOTIFY },
	{ IB_QP_ACCESS_FLAGS,		FERRY_QP_ATTR_ACCESS },
	{ IB_QP_PKEY_INDEX,		FERRY_QP_ATTR_PKEY_INDEX },
	{ IB_QP_QKEY,			FERRY_QP_ATTR_QKEY },
	{ IB_QP_AV,			FERRY_QP_ATTR_AV },
	{ IB_QP_PATH_MTU,		FERRY_QP_ATTR_PATH_MTU },
	{ IB_QP_TIMEOUT,		FERRY_QP_ATTR_TIMEOUT },
	{ IB_QP_RETRY_CNT,		FERRY_QP_ATTR_RETRY_CNT },
	{ IB_QP_RNR_RETRY,		FERRY_QP_ATTR_RNR_RETRY },
	{ IB_QP_RQ_PSN,			FERRY_QP_ATTR_RQ_PSN },
	{ IB_QP_SQ_PSN,			FERRY_QP_ATTR_SQ_PSN },
	{ IB_QP_MAX_QP_RD_ATOMIC,	FERRY_QP_ATTR_MAX_RD_ATOMIC },
	{ IB_QP_MAX_DEST_RD_ATOMIC,	FERRY_QP_ATTR_MAX_DEST_RD_ATOMIC },
	{ IB_QP_MIN_RNR_TIMER,		FERRY_QP_ATTR_MIN_RNR_TIMER },
	{ IB_QP_DEST_QPN,		FERRY_QP_ATTR_DEST_QPN },
};

/*
 * Peers may be given the right to FLUSH, as no capability tells programs that there is no such
 * request here: it would be refused all the same.
 */
#define FERRY_QP_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_FLUSH_GLOBAL | \
			 IB_ACCESS_FLUSH_PERSISTENT)

static int ferry_qp_check_attr(struct ferry_dev *dev, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_ACCESS_FLAGS &&
	    attr->qp_access_flags & ~(FERRY_QP_ACCESS | IB_ACCESS_OPTIONAL))
		return -EINVAL;
	if (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & IB_ACCESS_REMOTE_ATOMIC &&
	    !ferry_has(dev, FERRY_CAP_ATOMIC))
		return -EOPNOTSUPP;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return -EINVAL;
	if ((mask & IB_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31))
		return -EINVAL;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > dev->limits.max_rd_atomic) ||
	    (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	     attr->max_dest_rd_atomic > dev->limits.max_rd_atomic))
		return -EINVAL;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num > 0xffffff)
		return -EINVAL;
	/* There is one path, and it cannot migrate. */
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state != IB_MIG_MIGRATED)
		return -EINVAL;
	return mask & IB_QP_AV ? ferry_check_path(&attr->ah_attr) : 0;
}

static int ferry_qp_check_modify(struct ferry_dev *dev, struct ferry_qp *qp,
				 const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS || mask & (IB_QP_CAP | IB_QP_ALT_PATH))
		return -EOPNOTSUPP;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	return ferry_qp_check_attr(dev, attr, mask) ?: ib_no_udata_io(udata);
}

static void ferry_qp_fill_av(struct ferry_qp *qp, struct ferry_av *av,
			     const struct rdma_ah_attr *ah, u32 dest_qpn)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	memcpy(av->dmac, ah->roce.dmac, sizeof(av->dmac));
	av->vlan = cpu_to_le16(FERRY_UNTAGGED);
	av->flow_label = cpu_to_le32(grh->flow_label & 0xfffff);
	av->sgid_index = cpu_to_le16(grh->sgid_index);
	av->udp_sport = cpu_to_le16(rdma_get_udp_sport(grh->flow_label, qp->obj.number, dest_qpn));
	av->hop_limit = grh->hop_limit;
	av->traffic_class = grh->traffic_class;
	av->sl = rdma_ah_get_sl(ah);
}

static void ferry_qp_fill(struct ferry_qp *qp, struct ferry_qp_attr *to,
			  const struct ib_qp_attr *attr, int mask)
{
	u32 dest_qpn = mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->dest_qpn;
	u32 bits = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(ferry_qp_attr_map); i++)
		if (mask & ferry_qp_attr_map[i].ib)
			bits |= ferry_qp_attr_map[i].ferry;
	to->mask = cpu_to_le32(bits);

	/* Fields that the mask does not name stay zero, whatever the caller left in his. */
	if (mask & IB_QP_STATE)
		to->state = ferry_qps_of_ib[attr->qp_state];
	if (mask & IB_QP_CUR_STATE)
		to->cur_state = ferry_qps_of_ib[attr->cur_qp_state];
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		to->sqd_notify = !!attr->en_sqd_async_notify;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->access = ferry_access(attr->qp_access_flags);
	if (mask & IB_QP_QKEY)
		to->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = cpu_to_le32(attr->rq_psn);
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = cpu_to_le32(attr->sq_psn);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qpn = cpu_to_le32(dest_qpn);
	if (mask & IB_QP_AV)
		ferry_qp_fill_av(qp, &to->av, &attr->ah_attr, dest_qpn);
}

/* Indices begin at 0 again. What the records say would look new to the device. */
static void ferry_qp_clear_records(struct ferry_qp *qp)
{
	WRITE_ONCE(ferry_record_slot(&qp->sq.record)->db, 0);
	if (qp->rq.ring)
		WRITE_ONCE(ferry_record_slot(&qp->rq.record)->db, 0);
}

int ferry_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata)
{
	struct ferry_dev *dev = to_ferry(ibqp->device);
	struct ferry_qp *qp = to_ferry_qp(ibqp);
	struct ferry_admin_modify_qp cmd = { .qp = cpu_to_le32(qp->obj.number) };
	int err;

	mutex_lock(&qp->lock);
	err = ferry_qp_check_modify(dev, qp, attr, mask, udata);
	if (err)
		goto out;
	ferry_qp_fill(qp, &cmd.attr, attr, mask);
	err = ferry_admin_exec(dev, FERRY_ADMIN_MODIFY_QP, &cmd);
	if (err)
		goto out;
	if (mask & IB_QP_STATE)
		qp->state = attr->qp_state;
	if (qp->state == IB_QPS_RESET)
		ferry_qp_clear_records(qp);
	if (mask & IB_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num;
out:
	mutex_unlock(&qp->lock);
	return err;
}

static int ferry_access_to_ib(u8 access)
{
	return (access & FERRY_ACCESS_LOCAL_WRITE ? IB_ACCESS_LOCAL_WRITE : 0) |
	       (access & FERRY_ACCESS_REMOTE_WRITE ? IB_ACCESS_REMOTE_WRITE : 0) |
	       (access & FERRY_ACCESS_REMOTE_READ ? IB_ACCESS_REMOTE_READ : 0) |
	       (access & FERRY_ACCESS_REMOTE_ATOMIC ? IB_ACCESS_REMOTE_ATOMIC : 0);
}

static void ferry_qp_read_av(const struct ferry_av *av, struct rdma_ah_attr *ah)
{
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_sl(ah, av->sl);
	rdma_ah_set_ah_flags(ah, IB_AH_GRH);
	rdma_ah_set_grh(ah, NULL, le32_to_cpu(av->flow_label), le16_to_cpu(av->sgid_index),
			av->hop_limit, av->traffic_class);
	rdma_ah_set_dgid_raw(ah, (void *)av->dgid);
	memcpy(ah->roce.dmac, av->dmac, sizeof(av->dmac));
}

static void ferry_qp_read(const struct ferry_qp_attr *from, struct ib_qp_attr *attr)
{
	attr->qp_state = ferry_qps_to_ib[min_t(u8, from->state, FERRY_QPS_ERR)];
	attr->cur_qp_state = attr->qp_state;
	attr->path_mtu = from->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = le32_to_cpu(from->qkey);
	attr->rq_psn = le32_to_cpu(from->rq_psn);
	attr->sq_psn = le32_to_cpu(from->sq_psn);
	attr->dest_qp_num = le32_to_cpu(from->dest_qpn);
	attr->qp_access_flags = ferry_access_to_ib(from->access);
	attr->pkey_index = le16_to_cpu(from->pkey_index);
	attr->en_sqd_async_notify = from->sqd_notify;
	attr->sq_draining = from->sq_draining;
	attr->max_rd_atomic = from->max_rd_atomic;
	attr->max_dest_rd_atomic = from->max_dest_rd_atomic;
	attr->min_rnr_timer = from->min_rnr_timer;
	attr->timeout = from->timeout;
	attr->retry_cnt = from->retry_cnt;
	attr->rnr_retry = from->rnr_retry;
	ferry_qp_read_av(&from->av, &attr->ah_attr);
}

int ferry_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct ferry_dev *dev = to_ferry(ibqp->device);
	struct ferry_qp *qp = to_ferry_qp(ibqp);
	struct ferry_admin_cqe answer;
	int err;

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	err = ferry_admin_query(dev, FERRY_ADMIN_QUERY_QP, qp->obj.number, &answer);
	if (err && !ferry_is_lost(dev))
		return err;
	if (err)
		attr->qp_state = attr->cur_qp_state = IB_QPS_ERR;
	else
		ferry_qp_read(&answer.qp, attr);
	attr->port_num = 1;
	attr->cap = qp->cap;
	init->cap = qp->cap;
	init->qp_type = ibqp->qp_type;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->port_num = 1;
	return 0;
}
