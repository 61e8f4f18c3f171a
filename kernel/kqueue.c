// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Post and poll in the kernel. The handshakes are those of every provider, in the
 * kernel's barriers: dma_mb() is fence rw,rw, and mfence on x86.
 */
#include <linux/log2.h>

#include "kqueue.h"

/* ---------------------------------------------------------------------------- CQ */

static void ferry_kcq_event(struct ferry_object *obj, enum ferry_event type)
{
	struct ferry_kcq *cq = container_of(obj, struct ferry_kcq, obj);

	if (type == FERRY_EVENT_COMPLETION)
		cq->complete(cq);
	else
		ferry_device_suspect(cq->dev, "a CQ of the kernel failed");
}

int ferry_kcq_create(struct ferry_dev *dev, struct ferry_kcq *cq, unsigned int depth_shift,
		     unsigned int vector, void (*complete)(struct ferry_kcq *cq))
{
	int err;

	*cq = (struct ferry_kcq) {
		.obj.event = ferry_kcq_event,
		.dev = dev,
		.eq = ferry_comp_eq(dev, vector),
		.complete = complete,
	};
	err = ferry_queue_alloc(&dev->kernel, &cq->queue, depth_shift,
				ilog2(sizeof(struct ferry_cqe)));
	if (err)
		return err;
	err = ferry_queue_create_cq(&dev->kernel, &cq->queue, cq->eq, &cq->obj.number);
	if (err)
		goto err_queue;
	err = ferry_object_add(dev, &dev->cqs, &cq->obj);
	if (err)
		goto err_device;
	return 0;

err_device:
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_CQ, cq->obj.number);
err_queue:
	ferry_queue_free(&cq->queue);
	return err;
}

void ferry_kcq_destroy(struct ferry_kcq *cq)
{
	ferry_object_remove(&cq->dev->cqs, &cq->obj, cq->eq);
	ferry_admin_destroy(cq->dev, FERRY_ADMIN_DESTROY_CQ, cq->obj.number);
	ferry_queue_free(&cq->queue);
}

/* The next completion, or NULL. It is taken by this: read it before ferry_kcq_publish(). */
const struct ferry_cqe *ferry_kcq_next(struct ferry_kcq *cq)
{
	const struct ferry_cqe *cqe = ferry_queue_entry(&cq->queue, cq->ci);
	u32 lap = cq->ci >> cq->queue.depth_shift;

	bool phase = READ_ONCE(cqe->op) & FERRY_CQE_PHASE;

	if (phase == (lap & 1))
		return NULL;
	/* Valid bit before body, and before the data it announces: fence r,r. */
	dma_rmb();
	cq->ci++;
	return cqe;
}

/* Gives the places of all that was taken back to the device. */
void ferry_kcq_publish(struct ferry_kcq *cq)
{
	/* Body before index: fence r,w (litmus ci-body-rw). */
	dma_mb();
	WRITE_ONCE(ferry_record_slot(&cq->queue.record)->ci,
		   cpu_to_le64(FERRY_DB(FERRY_DB_CQ_CI, cq->obj.number, cq->ci)));
}

/*
 * Stores a doorbell word into its record and sees to it that the device notices. One
 * fence w,r serves both handshakes: the group word (litmus group-word, grp3-recs) and
 * the device's sleep (doorbell-sleep).
 */
static void ferry_kring(struct ferry_dev *dev, struct ferry_record *record, u64 word)
{
	WRITE_ONCE(ferry_record_slot(record)->db, cpu_to_le64(word));
	if (dev->limits.caps & FERRY_CAP_POLL) {
		dma_mb();
		if (!READ_ONCE(*ferry_record_word(record)))
			WRITE_ONCE(*ferry_record_word(record), cpu_to_le32(1));
		if (READ_ONCE(ferry_status(dev)->awake))
			return;
	}
	/* Record before doorbell: writeq() orders it (fence w,o). */
	writeq(word, dev->kernel_db);
}

/*
 * Asks for a callback for the next completion. If it is there already it comes at once:
 * the device compares the index, so nobody need look again (litmus arm1).
 */
void ferry_kcq_arm(struct ferry_kcq *cq)
{
	cq->arm_seq = (cq->arm_seq + 1) & 0xf;
	ferry_kring(cq->dev, &cq->queue.record,
		    FERRY_DB_ARM(FERRY_DB_CQ_ARM, cq->obj.number, cq->ci, cq->arm_seq));
}

/* --------------------------------------------------------------- raw Ethernet QP */

static int ferry_kqp_alloc_queues(struct ferry_kqp *qp, unsigned int sq_shift,
				  unsigned int rq_shift)
{
	const size_t wqe = sizeof(struct ferry_wqe_rdma) + sizeof(struct ferry_sge);
	const size_t rqe = sizeof(struct ferry_rqe) + sizeof(struct ferry_sge);
	int err;

	err = ferry_queue_alloc(&qp->dev->kernel, &qp->sq, sq_shift,
				ferry_shift(wqe, FERRY_WQE_SHIFT_MIN));
	if (err)
		return err;
	err = ferry_queue_alloc(&qp->dev->kernel, &qp->rq, rq_shift,
				ferry_shift(rqe, FERRY_RQE_SHIFT_MIN));
	if (err)
		ferry_queue_free(&qp->sq);
	return err;
}

static void ferry_kqp_free_queues(struct ferry_kqp *qp)
{
	ferry_queue_free(&qp->rq);
	ferry_queue_free(&qp->sq);
}

static int ferry_kqp_tell(struct ferry_kqp *qp, struct ferry_kcq *cq)
{
	struct ferry_admin_create_qp cmd = {
		.pd = cpu_to_le32(qp->pdn),
		.send_cq = cpu_to_le32(cq->obj.number),
		.recv_cq = cpu_to_le32(cq->obj.number),
		.type = FERRY_QPT_ETH,
		.flags = FERRY_QP_SIGNAL_ALL,
	};

	return ferry_queue_create_qp(&qp->dev->kernel, &qp->sq, &qp->rq, &cmd, &qp->number);
}

static int ferry_kqp_to_rts(struct ferry_kqp *qp)
{
	static const u8 way[] = { FERRY_QPS_INIT, FERRY_QPS_RTR, FERRY_QPS_RTS };
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(way) && !err; i++) {
		struct ferry_admin_modify_qp cmd = {
			.qp = cpu_to_le32(qp->number),
			.attr.mask = cpu_to_le32(FERRY_QP_ATTR_STATE),
			.attr.state = way[i],
		};

		err = ferry_admin_exec(qp->dev, FERRY_ADMIN_MODIFY_QP, &cmd);
	}
	return err;
}

/* The QP that gets and sends all frames that are not RoCE; ready to send when this returns. */
int ferry_kqp_create_eth(struct ferry_dev *dev, struct ferry_kqp *qp, struct ferry_kcq *cq,
			 unsigned int sq_shift, unsigned int rq_shift)
{
	struct ferry_admin_create_pd cmd = { .context = cpu_to_le32(dev->kernel.number) };
	int err;

	*qp = (struct ferry_kqp) { .dev = dev };
	err = ferry_admin_create(dev, FERRY_ADMIN_CREATE_PD, &cmd, &qp->pdn);
	if (err)
		return err;
	err = ferry_kqp_alloc_queues(qp, sq_shift, rq_shift);
	if (err)
		goto err_pd;
	err = ferry_kqp_tell(qp, cq);
	if (err)
		goto err_queues;
	err = ferry_kqp_to_rts(qp);
	if (err)
		goto err_qp;
	return 0;

err_qp:
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_QP, qp->number);
err_queues:
	ferry_kqp_free_queues(qp);
err_pd:
	ferry_admin_destroy(dev, FERRY_ADMIN_DESTROY_PD, qp->pdn);
	return err;
}

void ferry_kqp_destroy(struct ferry_kqp *qp)
{
	ferry_admin_destroy(qp->dev, FERRY_ADMIN_DESTROY_QP, qp->number);
	ferry_kqp_free_queues(qp);
	ferry_admin_destroy(qp->dev, FERRY_ADMIN_DESTROY_PD, qp->pdn);
}

static struct ferry_sge ferry_kqp_sge(u64 dma, u32 length)
{
	return (struct ferry_sge) {
		.addr = cpu_to_le64(dma),
		.length = cpu_to_le32(length),
		.lkey = cpu_to_le32(FERRY_KEY_LOCAL_DMA),
	};
}

/* The caller sees to it that the queue is not full. */
void ferry_kqp_send(struct ferry_kqp *qp, u64 dma, u32 length)
{
	struct ferry_wqe_rdma *wqe = ferry_queue_entry(&qp->sq, qp->sq_pi++);

	*wqe = (struct ferry_wqe_rdma) {
		.head.opcode = FERRY_WR_SEND,
		.head.flags = FERRY_WQE_SIGNALED,
		.head.num_sge = 1,
	};
	wqe->sge[0] = ferry_kqp_sge(dma, length);
}

/* For all sends since the last time. */
void ferry_kqp_ring_send(struct ferry_kqp *qp)
{
	/* WQEs and what they name before the record: fence iorw,ow (litmus repost-rww). */
	dma_mb();
	ferry_kring(qp->dev, &qp->sq.record, FERRY_DB(FERRY_DB_SQ, qp->number, qp->sq_pi));
}

/* @id comes back with the completion. The caller sees to it that the queue is not full. */
void ferry_kqp_recv(struct ferry_kqp *qp, u64 dma, u32 length, u16 id)
{
	struct ferry_rqe *rqe = ferry_queue_entry(&qp->rq, qp->rq_pi++);

	*rqe = (struct ferry_rqe) {
		.num_sge = cpu_to_le16(1),
		.id = cpu_to_le16(id),
	};
	rqe->sge[0] = ferry_kqp_sge(dma, length);
}

/* For all receives since the last time; record only, the device looks when it needs one. */
void ferry_kqp_publish_recv(struct ferry_kqp *qp)
{
	/*
	 * The buffer was read before it is given away again, the RQE is written before the
	 * record: fence iorw,ow (litmus repost-rww).
	 */
	dma_mb();
	WRITE_ONCE(ferry_record_slot(&qp->rq.record)->db,
		   cpu_to_le64(FERRY_DB(FERRY_DB_RQ, qp->number, qp->rq_pi)));
}
