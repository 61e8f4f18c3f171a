// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs as objects: creation, states, what completes and what is flushed.
 */
#include "admin.h"
#include "qp_state.h"
#include "state.h"

#define QPN_GSI		1
#define FLUSH_BATCH	256	/* entries a visit flushes */
#define FLUSH_DELAY_MIN	1000000ull	/* ns between looks at a failed QP's receives */
#define FLUSH_DELAY_MAX	128000000ull

struct qp *qp_find(struct ferry_engine *e, uint32_t number)
{
	if (unlikely(number == QPN_GSI))
		return e->gsi;
	return table_find(&e->qps, number);
}

void qp_activate(struct ferry_engine *e, struct qp *qp, uint8_t work)
{
	qp->work |= work;
	if (qp->is_active)
		return;
	qp->is_active = true;
	list_add_tail(&e->active, &qp->active);
}

bool qp_doorbell(struct ferry_engine *e, struct qp *qp, uint32_t index)
{
	if (qp->state == FERRY_QPS_RESET || !wq_take_index(&qp->sq, index))
		return false;
	if (qp->state == FERRY_QPS_ERR || qp->state == FERRY_QPS_SQE)
		qp_activate(e, qp, QP_WORK_FLUSH);
	else if (qp->state == FERRY_QPS_RTS)
		qp_activate(e, qp, QP_WORK_SEND);
	return true;
}

/* ------------------------------------------------------------------- completions */

void qp_complete_send(struct ferry_engine *e, struct qp *qp, uint32_t index, uint8_t op,
		      enum ferry_wc_status status, uint32_t len, uint8_t vendor)
{
	struct ferry_cqe cqe = {
		.byte_len = le32(len),
		.vendor_err = vendor,
		.qpn = le32(qp_number(qp)),
		.wqe_index = le16((uint16_t)index),
		.status = (uint8_t)status,
		.op = op,
	};

	if (status == FERRY_WC_WR_FLUSH_ERR)
		stat_inc(e, req_cqe_flush_error);
	else if (status)
		stat_inc(e, req_cqe_error);
	cq_push(e, qp->send_cq, &cqe, status);
}

void qp_complete_recv(struct ferry_engine *e, struct qp *qp, struct ferry_cqe *cqe, bool event)
{
	cqe->qpn = le32(qp_number(qp));
	cq_push(e, qp->recv_cq, cqe, event);
}

void qp_complete_recv_error(struct ferry_engine *e, struct qp *qp, uint16_t id,
			    enum ferry_wc_status status, uint8_t vendor)
{
	struct ferry_cqe cqe = {
		.vendor_err = vendor,
		.wqe_index = le16(id),
		.status = (uint8_t)status,
		.op = FERRY_WC_RECV,
	};

	if (status == FERRY_WC_WR_FLUSH_ERR)
		stat_inc(e, resp_cqe_flush_error);
	else
		stat_inc(e, resp_cqe_error);
	qp_complete_recv(e, qp, &cqe, true);
}

static bool rq_has(struct ferry_engine *e, struct qp *qp)
{
	if (qp->rq.ci == qp->rq.pi)
		wq_refresh(e, &qp->rq, FERRY_DB_RQ, qp_number(qp));
	return qp->rq.ci != qp->rq.pi;
}

static bool rq_take(struct ferry_engine *e, struct qp *qp, struct recv *recv)
{
	if (!rq_has(e, qp))
		return false;
	recv_read(e, &qp->rq, recv);
	return true;
}

static bool srq_has(struct ferry_engine *e, struct srq *srq)
{
	if (srq->wq.ci == srq->wq.pi)
		wq_refresh(e, &srq->wq, FERRY_DB_SRQ, srq->source.number);
	return srq->wq.ci != srq->wq.pi;
}

bool qp_has_recv(struct ferry_engine *e, struct qp *qp)
{
	return qp->srq ? srq_has(e, qp->srq) : rq_has(e, qp);
}

bool qp_take_recv(struct ferry_engine *e, struct qp *qp, struct recv *recv)
{
	struct srq *srq = qp->srq;

	if (!srq)
		return rq_take(e, qp, recv);
	if (!srq_has(e, srq))
		return false;
	recv_read(e, &srq->wq, recv);
	srq_check_limit(e, srq);
	return true;
}

/* ------------------------------------------------------------------------- errors */

void qp_fail(struct ferry_engine *e, struct qp *qp, enum ferry_event event)
{
	if (qp->state == FERRY_QPS_RESET || qp->state == FERRY_QPS_ERR)
		return;
	qp->state = FERRY_QPS_ERR;
	qp->draining = false;
	requester_stop(e, qp);
	responder_stop(e, qp);
	if (event)
		eq_raise(e, NULL, &qp->source, event);
	if (qp->srq && !qp->last_wqe) {
		qp->last_wqe = true;
		eq_raise(e, NULL, &qp->source, FERRY_EVENT_LAST_WQE);
	}
	qp->flush_delay = FLUSH_DELAY_MIN;
	qp_activate(e, qp, QP_WORK_FLUSH);
}

void qp_fail_all(struct ferry_engine *e, struct cq *cq)
{
	struct list *pos;

	list_for_each(pos, &cq->send_qps)
		qp_fail(e, container_of(pos, struct qp, send_cq_link), FERRY_EVENT_QP_FATAL);
	list_for_each(pos, &cq->recv_qps)
		qp_fail(e, container_of(pos, struct qp, recv_cq_link), FERRY_EVENT_QP_FATAL);
}

static unsigned int flush_sq(struct ferry_engine *e, struct qp *qp, unsigned int most)
{
	unsigned int n = 0;

	for (; n < most && qp->sq.ci != qp->sq.pi; n++) {
		qp_complete_send(e, qp, qp->sq.ci, FERRY_WC_SEND, FERRY_WC_WR_FLUSH_ERR, 0, 0);
		qp->sq.ci++;
	}
	return n;
}

static unsigned int flush_rq(struct ferry_engine *e, struct qp *qp, unsigned int most)
{
	struct recv *recv = &qp->resp.recv;
	unsigned int n = 0;

	for (; n < most && rq_take(e, qp, recv); n++)
		qp_complete_recv_error(e, qp, recv->id, FERRY_WC_WR_FLUSH_ERR, 0);
	return n;
}

/*
 * The send queue announces new entries by its doorbell. The receive queue has none: look
 * at it from time to time, ever less often while nothing comes.
 */
void qp_flush(struct ferry_engine *e, struct qp *qp)
{
	unsigned int sent, received = 0;

	if (qp->state != FERRY_QPS_ERR && qp->state != FERRY_QPS_SQE)
		return;
	sent = flush_sq(e, qp, FLUSH_BATCH);
	if (qp->state == FERRY_QPS_ERR && qp->rq.depth)
		received = flush_rq(e, qp, FLUSH_BATCH);
	qp_charge(e, qp, (sent + received) * (uint32_t)sizeof(struct ferry_cqe));
	if (sent == FLUSH_BATCH || received == FLUSH_BATCH) {
		qp_activate(e, qp, QP_WORK_FLUSH);
		return;
	}
	if (qp->state != FERRY_QPS_ERR || !qp->rq.depth)
		return;
	if (received)
		qp->flush_delay = FLUSH_DELAY_MIN;
	else if (qp->flush_delay < FLUSH_DELAY_MAX)
		qp->flush_delay *= 2;
	timer_arm(e, &qp->flush_timer, qp->flush_delay);
}

static void qp_flush_expired(struct ferry_engine *e, struct timer *timer)
{
	qp_activate(e, container_of(timer, struct qp, flush_timer), QP_WORK_FLUSH);
}

/* --------------------------------------------------------------- creation and end */

struct qp_parents {
	struct context *context;
	struct pd *pd;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;
};

static enum ferry_admin_status qp_find_parents(struct ferry_engine *e,
					       const struct ferry_admin_create_qp *c,
					       struct qp_parents *p,
					       struct ferry_admin_cqe *answer)
{
	p->context = context_find(e, le32(c->context));
	if (!p->context)
		return admin_not_found(answer, le32(c->context));
	p->pd = table_find(&e->pds, le32(c->pd));
	if (!p->pd || p->pd->context != p->context)
		return admin_not_found(answer, le32(c->pd));
	p->send_cq = table_find(&e->cqs, le32(c->send_cq));
	if (!p->send_cq || p->send_cq->context != p->context)
		return admin_not_found(answer, le32(c->send_cq));
	p->recv_cq = table_find(&e->cqs, le32(c->recv_cq));
	if (!p->recv_cq || p->recv_cq->context != p->context)
		return admin_not_found(answer, le32(c->recv_cq));
	p->srq = table_find(&e->srqs, le32(c->srq));
	if (c->srq && (!p->srq || p->srq->context != p->context))
		return admin_not_found(answer, le32(c->srq));
	return FERRY_ADMIN_OK;
}

static enum ferry_admin_status qp_params(struct ferry_engine *e,
					 const struct ferry_admin_create_qp *c,
					 const struct qp_parents *p,
					 struct ferry_admin_cqe *answer)
{
	if (c->type >= FERRY_QPT_COUNT)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_qp, type));
	if (c->type >= FERRY_QPT_GSI && p->context != &e->kernel)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_qp, type));
	if ((c->type == FERRY_QPT_GSI && e->gsi) || (c->type == FERRY_QPT_ETH && e->eth))
		return FERRY_ADMIN_BUSY;
	if (c->flags & ~FERRY_QP_SIGNAL_ALL)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_qp, flags));
	if (p->srq && c->type != FERRY_QPT_RC && c->type != FERRY_QPT_UD)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_qp, srq));
	if (p->srq && c->rq_slot_addr)
		return admin_bad_param(answer,
				       offsetof(struct ferry_admin_create_qp, rq_slot_addr));
	if (p->srq && c->rq.count)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_qp, rq) +
				       offsetof(struct ferry_page_list, count));
	return FERRY_ADMIN_OK;
}

static enum ferry_admin_status qp_create_sq(struct ferry_engine *e, struct qp *qp,
					    const struct ferry_admin_create_qp *c,
					    struct ferry_admin_cqe *answer)
{
	static const uint16_t offset[] = {
		[WQ_DEPTH] = offsetof(struct ferry_admin_create_qp, sq_shift),
		[WQ_STRIDE] = offsetof(struct ferry_admin_create_qp, sq_wqe_shift),
		[WQ_SLOT] = offsetof(struct ferry_admin_create_qp, sq_slot_addr),
		[WQ_PAGES] = offsetof(struct ferry_admin_create_qp, sq),
	};
	const struct wq_params params = {
		.pages = &c->sq,
		.slot_addr = le64(c->sq_slot_addr),
		.depth_shift = c->sq_shift,
		.wqe_shift = c->sq_wqe_shift,
		.wqe_shift_min = FERRY_WQE_SHIFT_MIN,
	};
	enum ferry_admin_status status;
	enum wq_field field;
	uint32_t detail;

	status = wq_create(e, &qp->sq, qp->context, &params, &field, &detail);
	if (status == FERRY_ADMIN_BAD_PARAM)
		admin_bad_param(answer, offset[field] + detail);
	return status;
}

static enum ferry_admin_status qp_create_rq(struct ferry_engine *e, struct qp *qp,
					    const struct ferry_admin_create_qp *c,
					    struct ferry_admin_cqe *answer)
{
	static const uint16_t offset[] = {
		[WQ_DEPTH] = offsetof(struct ferry_admin_create_qp, rq_shift),
		[WQ_STRIDE] = offsetof(struct ferry_admin_create_qp, rq_wqe_shift),
		[WQ_SLOT] = offsetof(struct ferry_admin_create_qp, rq_slot_addr),
		[WQ_PAGES] = offsetof(struct ferry_admin_create_qp, rq),
	};
	const struct wq_params params = {
		.pages = &c->rq,
		.slot_addr = le64(c->rq_slot_addr),
		.depth_shift = c->rq_shift,
		.wqe_shift = c->rq_wqe_shift,
		.wqe_shift_min = FERRY_RQE_SHIFT_MIN,
	};
	enum ferry_admin_status status;
	enum wq_field field;
	uint32_t detail;

	if (qp->srq)
		return FERRY_ADMIN_OK;
	status = wq_create(e, &qp->rq, qp->context, &params, &field, &detail);
	if (status == FERRY_ADMIN_BAD_PARAM)
		admin_bad_param(answer, offset[field] + detail);
	return status;
}

/* Its number; GSI has a number of its own and needs no place in the table. */
static uint32_t qp_enter(struct ferry_engine *e, struct qp *qp)
{
	if (qp->type == FERRY_QPT_GSI) {
		e->gsi = qp;
		return QPN_GSI;
	}
	return table_add(e, &e->qps, qp);
}

static void qp_leave(struct ferry_engine *e, struct qp *qp)
{
	if (qp->type == FERRY_QPT_GSI)
		e->gsi = NULL;
	else
		table_remove(&e->qps, qp_number(qp));
	if (e->eth == qp)
		e->eth = NULL;
}

static enum ferry_admin_status qp_create(struct ferry_engine *e, struct qp *qp,
					 const struct ferry_admin_create_qp *c,
					 struct ferry_admin_cqe *answer)
{
	enum ferry_admin_status status;

	list_init(&qp->active);
	timer_init(&qp->flush_timer, qp_flush_expired);
	requester_init(qp);
	responder_init(qp);
	status = qp_create_sq(e, qp, c, answer);
	if (status)
		return status;
	status = qp_create_rq(e, qp, c, answer);
	if (status)
		goto err_sq;
	status = FERRY_ADMIN_NO_RESOURCES;
	qp->req.entries = min_u32(qp->sq.depth, WINDOW_WQES);
	qp->req.entry = engine_alloc(e, qp->req.entries * sizeof(*qp->req.entry));
	if (!qp->req.entry)
		goto err_rq;
	event_source_init(&qp->source, qp_enter(e, qp));
	if (qp->source.number)
		return FERRY_ADMIN_OK;
	engine_free(e, qp->req.entry);
err_rq:
	wq_destroy(e, &qp->rq);
err_sq:
	wq_destroy(e, &qp->sq);
	return status;
}

enum ferry_admin_status admin_create_qp(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_create_qp *c = &cmd->create_qp;
	enum ferry_admin_status status;
	struct qp_parents p;
	struct qp *qp;

	status = qp_find_parents(e, c, &p, answer);
	if (!status)
		status = qp_params(e, c, &p, answer);
	if (status)
		return status;
	qp = engine_alloc(e, sizeof(*qp));
	if (!qp)
		return FERRY_ADMIN_NO_RESOURCES;
	qp->type = c->type;
	qp->flags = c->flags;
	qp->weight = 1;
	qp->context = p.context;
	qp->pd = p.pd;
	qp->send_cq = p.send_cq;
	qp->recv_cq = p.recv_cq;
	qp->srq = p.srq;
	status = qp_create(e, qp, c, answer);
	if (status) {
		engine_free(e, qp);
		return status;
	}
	p.pd->users++;
	p.send_cq->users++;
	p.recv_cq->users++;
	if (p.srq)
		p.srq->users++;
	list_add_tail(&p.send_cq->send_qps, &qp->send_cq_link);
	list_add_tail(&p.recv_cq->recv_qps, &qp->recv_cq_link);
	if (qp->type == FERRY_QPT_ETH)
		e->eth = qp;
	answer->number = le32(qp_number(qp));
	return FERRY_ADMIN_OK;
}

/* Back to what it was after creation; nothing is completed. */
static void qp_reset(struct ferry_engine *e, struct qp *qp)
{
	qp->state = FERRY_QPS_RESET;
	requester_reset(e, qp);
	responder_reset(e, qp);
	timer_cancel(e, &qp->flush_timer);
	event_source_release(e, &qp->source);
	list_del(&qp->active);
	qp->is_active = false;
	qp->work = 0;
	qp->credit = 0;
	qp->draining = false;
	qp->last_wqe = false;
	memset(&qp->attr, 0, sizeof(qp->attr));
	wq_reset(&qp->sq);
	wq_reset(&qp->rq);
}

void qp_release(struct ferry_engine *e, struct qp *qp)
{
	qp_reset(e, qp);
	qp_leave(e, qp);
	list_del(&qp->send_cq_link);
	list_del(&qp->recv_cq_link);
	qp->send_cq->users--;
	qp->recv_cq->users--;
	if (qp->srq)
		qp->srq->users--;
	qp->pd->users--;
	wq_destroy(e, &qp->sq);
	wq_destroy(e, &qp->rq);
	engine_free(e, qp->req.entry);
	engine_free(e, qp);
}

enum ferry_admin_status admin_destroy_qp(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	struct qp *qp = qp_find(e, le32(cmd->object.number));

	if (!qp)
		return admin_not_found(answer, le32(cmd->object.number));
	/* CQEs already made are the host's: they go out before it is told. */
	cq_flush(e, qp->send_cq);
	cq_flush(e, qp->recv_cq);
	qp_release(e, qp);
	return FERRY_ADMIN_OK;
}

/* ------------------------------------------------------------------ modify and query */

static void qp_enter_rts(struct ferry_engine *e, struct qp *qp)
{
	qp->draining = false;
	if (qp->sq.ci != qp->sq.pi)
		qp_activate(e, qp, QP_WORK_SEND);
}

static void qp_enter_sqd(struct ferry_engine *e, struct qp *qp)
{
	qp->draining = true;
	requester_check_drained(e, qp);
}

/* What a change of state brings about; attributes are in place. */
static void qp_enter_state(struct ferry_engine *e, struct qp *qp, enum ferry_qp_state from,
			   enum ferry_qp_state to)
{
	if (to == FERRY_QPS_ERR) {
		qp_fail(e, qp, 0);
		return;
	}
	qp->state = (uint8_t)to;
	/* A record from before the reset may have been seen meanwhile. */
	if (from == FERRY_QPS_RESET && to == FERRY_QPS_INIT) {
		record_renew(&qp->sq.slot);
		record_renew(&qp->rq.slot);
	}
	if (to == FERRY_QPS_RTS && from != FERRY_QPS_RTS)
		qp_enter_rts(e, qp);
	if (to == FERRY_QPS_SQD && from != FERRY_QPS_SQD)
		qp_enter_sqd(e, qp);
}

enum ferry_admin_status admin_modify_qp(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	const struct ferry_qp_attr *attr = &cmd->modify_qp.attr;
	struct qp *qp = qp_find(e, le32(cmd->modify_qp.qp));
	enum ferry_admin_status status;
	enum ferry_qp_state from, to;

	if (!qp)
		return admin_not_found(answer, le32(cmd->modify_qp.qp));
	from = qp->state;
	status = qp_attr_check(qp, attr, &to, answer);
	if (status)
		return status;
	if (to == FERRY_QPS_RESET) {
		cq_flush(e, qp->send_cq);
		cq_flush(e, qp->recv_cq);
		qp_reset(e, qp);
		return FERRY_ADMIN_OK;
	}
	qp_attr_set(qp, attr);
	qp_enter_state(e, qp, from, to);
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_query_qp(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
				       struct ferry_admin_cqe *answer)
{
	struct qp *qp = qp_find(e, le32(cmd->object.number));

	if (!qp)
		return admin_not_found(answer, le32(cmd->object.number));
	answer->qp = qp->attr;
	answer->qp.mask = le32(FERRY_QP_ATTR_ALL);
	answer->qp.state = qp->state;
	answer->qp.cur_state = qp->state;
	answer->qp.rq_psn = le32(qp->resp.psn);
	answer->qp.sq_psn = le32(qp->req.max_psn);
	answer->qp.sq_draining = qp->draining;
	return FERRY_ADMIN_OK;
}
