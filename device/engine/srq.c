// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shared receive queues.
 */
#include "admin.h"
#include "state.h"

void srq_check_limit(struct ferry_engine *e, struct srq *srq)
{
	if (likely(!srq->limit) || srq->wq.pi - srq->wq.ci >= srq->limit)
		return;
	wq_refresh(e, &srq->wq, FERRY_DB_SRQ, srq->source.number);
	if (srq->wq.pi - srq->wq.ci >= srq->limit)
		return;
	srq->limit = 0;
	eq_raise(e, NULL, &srq->source, FERRY_EVENT_SRQ_LIMIT);
}

static enum ferry_admin_status srq_create(struct ferry_engine *e, struct srq *srq,
					  const struct ferry_admin_create_srq *c,
					  struct ferry_admin_cqe *answer)
{
	static const uint16_t offset[] = {
		[WQ_DEPTH] = offsetof(struct ferry_admin_create_srq, depth_shift),
		[WQ_STRIDE] = offsetof(struct ferry_admin_create_srq, wqe_shift),
		[WQ_SLOT] = offsetof(struct ferry_admin_create_srq, slot_addr),
		[WQ_PAGES] = offsetof(struct ferry_admin_create_srq, ring),
	};
	const struct wq_params params = {
		.pages = &c->ring,
		.slot_addr = le64(c->slot_addr),
		.depth_shift = c->depth_shift,
		.wqe_shift = c->wqe_shift,
		.wqe_shift_min = FERRY_RQE_SHIFT_MIN,
	};
	enum ferry_admin_status status;
	enum wq_field field;
	uint32_t detail;

	status = wq_create(e, &srq->wq, srq->context, &params, &field, &detail);
	if (status == FERRY_ADMIN_BAD_PARAM)
		return admin_bad_param(answer, offset[field] + detail);
	if (status)
		return status;
	event_source_init(&srq->source, table_add(e, &e->srqs, srq));
	if (srq->source.number)
		return FERRY_ADMIN_OK;
	wq_destroy(e, &srq->wq);
	return FERRY_ADMIN_NO_RESOURCES;
}

enum ferry_admin_status admin_create_srq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_create_srq *c = &cmd->create_srq;
	struct context *context = context_find(e, le32(c->context));
	struct pd *pd = table_find(&e->pds, le32(c->pd));
	enum ferry_admin_status status;
	struct srq *srq;

	if (!context)
		return admin_not_found(answer, le32(c->context));
	if (!pd || pd->context != context)
		return admin_not_found(answer, le32(c->pd));
	srq = engine_alloc(e, sizeof(*srq));
	if (!srq)
		return FERRY_ADMIN_NO_RESOURCES;
	srq->context = context;
	srq->pd = pd;
	status = srq_create(e, srq, c, answer);
	if (status) {
		engine_free(e, srq);
		return status;
	}
	pd->users++;
	answer->number = le32(srq->source.number);
	return FERRY_ADMIN_OK;
}

void srq_release(struct ferry_engine *e, struct srq *srq)
{
	event_source_release(e, &srq->source);
	table_remove(&e->srqs, srq->source.number);
	wq_destroy(e, &srq->wq);
	srq->pd->users--;
	engine_free(e, srq);
}

enum ferry_admin_status admin_destroy_srq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					  struct ferry_admin_cqe *answer)
{
	struct srq *srq = table_find(&e->srqs, le32(cmd->object.number));

	if (!srq)
		return admin_not_found(answer, le32(cmd->object.number));
	if (srq->users)
		return FERRY_ADMIN_BUSY;
	srq_release(e, srq);
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_modify_srq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	struct srq *srq = table_find(&e->srqs, le32(cmd->modify_srq.srq));

	if (!srq)
		return admin_not_found(answer, le32(cmd->modify_srq.srq));
	if (le16(cmd->modify_srq.limit) > srq->wq.depth)
		return admin_bad_param(answer, offsetof(struct ferry_admin_modify_srq, limit));
	srq->limit = le16(cmd->modify_srq.limit);
	srq_check_limit(e, srq);
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_query_srq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	struct srq *srq = table_find(&e->srqs, le32(cmd->object.number));

	if (!srq)
		return admin_not_found(answer, le32(cmd->object.number));
	wq_refresh(e, &srq->wq, FERRY_DB_SRQ, srq->source.number);
	answer->srq.limit = le16(srq->limit);
	answer->srq.left = le32(srq->wq.pi - srq->wq.ci);
	return FERRY_ADMIN_OK;
}
