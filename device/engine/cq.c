// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "admin.h"
#include "pages.h"
#include "state.h"

/* ------------------------------------------------------------------------ events */

static void cq_event(struct ferry_engine *e, struct cq *cq)
{
	cq->armed = CQ_IDLE;
	cq->mod_pending = 0;
	timer_cancel(e, &cq->mod_timer);
	/* An event never gets ahead of its CQE. */
	cq_flush(e, cq);
	eq_raise(e, cq->eq, &cq->source, FERRY_EVENT_COMPLETION);
}

static void cq_mod_expired(struct ferry_engine *e, struct timer *timer)
{
	struct cq *cq = container_of(timer, struct cq, mod_timer);

	if (cq->armed != CQ_IDLE)
		cq_event(e, cq);
}

/* A CQE has come that the host has armed for. */
static void cq_moderate(struct ferry_engine *e, struct cq *cq)
{
	cq->mod_pending++;
	if (cq->mod_count <= 1 || !cq->mod_period_us || cq->mod_pending >= cq->mod_count)
		cq_event(e, cq);
	else if (!timer_armed(&cq->mod_timer))
		timer_arm(e, &cq->mod_timer, cq->mod_period_us * 1000ull);
}

void cq_arm(struct ferry_engine *e, struct cq *cq, bool solicited, uint32_t index, uint32_t seq)
{
	uint32_t ahead = (seq - cq->arm_seq) & 0xf, come = solicited ? cq->solicited_pi : cq->pi;

	if (!ahead || ahead > 8 || cq->failed)
		return;
	cq->arm_seq = (uint8_t)seq;
	cq->mod_pending = 0;
	cq->armed = solicited ? CQ_ARMED_SOLICITED : CQ_ARMED;
	/* The index tells what the host has seen: no second look is needed (litmus arm1). */
	if ((int32_t)(come - index) > 0)
		cq_event(e, cq);
}

/* ---------------------------------------------------------------------- overflow */

static void cq_fail(struct ferry_engine *e, struct cq *cq)
{
	if (cq->failed)
		return;
	cq->failed = true;
	cq->staged = 0;
	list_del(&cq->stage_link);
	eq_raise(e, cq->eq, &cq->source, FERRY_EVENT_CQ_ERR);
	qp_fail_all(e, cq);
}

/* The record is read only when the CQ looks full. */
static bool cq_full(struct ferry_engine *e, struct cq *cq)
{
	uint64_t word;
	uint32_t ci;

	if (likely(cq->pi - cq->ci < cq->depth))
		return false;
	if (!record_load_ci(e, &cq->slot, &word))
		return true;
	ci = FERRY_DB_INDEX(word);
	if (FERRY_DB_TYPE(word) == FERRY_DB_CQ_CI &&
	    FERRY_DB_NUMBER(word) == cq->source.number && cq->pi - ci <= cq->pi - cq->ci)
		cq->ci = ci;
	return cq->pi - cq->ci >= cq->depth;
}

/* ------------------------------------------------------------------------- CQEs */

static uint64_t cqe_last(const struct ferry_cqe *cqe)
{
	uint64_t last;

	memcpy(&last, &cqe->qpn, sizeof(last));
	return le64(last);
}

static uint64_t cq_offset(const struct cq *cq, uint32_t index)
{
	return (uint64_t)(index & (cq->depth - 1)) * sizeof(struct ferry_cqe);
}

/*
 * Body, then the word with the phase in one release store: all the device has read and
 * written for this CQE comes before it.
 */
static bool cqe_write(struct ferry_engine *e, struct cq *cq, uint32_t index,
		      const struct ferry_cqe *cqe)
{
	const size_t body = offsetof(struct ferry_cqe, qpn);
	uint64_t at = cq_offset(cq, index);

	return region_write(e, &cq->ring, at, cqe, body) &&
	       region_store64(e, &cq->ring, at + body, cqe_last(cqe));
}

/*
 * A batch: the host takes CQEs in turn, so those behind the first may be written whole
 * as long as the first becomes valid last.
 */
static bool cq_write_batch(struct ferry_engine *e, struct cq *cq, uint32_t first, unsigned int n,
			   const struct ferry_cqe *cqe)
{
	if (n > 1 && !region_write(e, &cq->ring, cq_offset(cq, first + 1), cqe + 1,
				   (n - 1) * sizeof(*cqe)))
		return false;
	return cqe_write(e, cq, first, cqe);
}

void cq_flush(struct ferry_engine *e, struct cq *cq)
{
	uint32_t first = cq->pi - cq->staged, wrap = cq->depth - (first & (cq->depth - 1));
	unsigned int n = cq->staged, lap = min_u32(n, wrap);
	bool ok;

	if (!n)
		return;
	list_del(&cq->stage_link);
	cq->staged = 0;
	/* What wraps goes first: the batch becomes valid by its first entry. */
	ok = n == lap || region_write(e, &cq->ring, 0, cq->stage + lap,
				      (n - lap) * sizeof(*cq->stage));
	if (!ok || !cq_write_batch(e, cq, first, lap, cq->stage))
		cq_fail(e, cq);
}

void cq_flush_all(struct ferry_engine *e)
{
	while (!list_empty(&e->staged))
		cq_flush(e, container_of(e->staged.next, struct cq, stage_link));
}

static bool cq_put(struct ferry_engine *e, struct cq *cq, const struct ferry_cqe *cqe)
{
	if (likely(!cq->stage))
		return cqe_write(e, cq, cq->pi, cqe);
	if (cq->staged == CQ_STAGE)
		cq_flush(e, cq);
	if (!cq->staged)
		list_add_tail(&e->staged, &cq->stage_link);
	cq->stage[cq->staged++] = *cqe;
	return true;
}

void cq_push(struct ferry_engine *e, struct cq *cq, struct ferry_cqe *cqe, bool event)
{
	if (unlikely(cq->failed))
		return;
	if (unlikely(cq_full(e, cq))) {
		stat_inc(e, cq_overflows);
		cq_flush(e, cq);
		cq_fail(e, cq);
		return;
	}
	cqe->timestamp = le64(e->now);
	if (!(cq->pi & cq->depth))
		cqe->op |= FERRY_CQE_PHASE;
	if (unlikely(!cq_put(e, cq, cqe))) {
		cq_fail(e, cq);
		return;
	}
	cq->pi++;
	if (event)
		cq->solicited_pi = cq->pi;
	if (cq->armed == CQ_ARMED || (event && cq->armed == CQ_ARMED_SOLICITED))
		cq_moderate(e, cq);
}

/* ---------------------------------------------------------------------- commands */

static enum ferry_admin_status cq_map(struct ferry_engine *e, struct region *ring,
				      struct ferry_cqe **stage, uint32_t depth,
				      const struct ferry_page_list *list,
				      struct ferry_admin_cqe *answer)
{
	enum ferry_admin_status status;
	uint32_t field;

	status = pages_region(e, ring, list, (uint64_t)depth * sizeof(struct ferry_cqe), true,
			      &field);
	if (status == FERRY_ADMIN_BAD_PARAM)
		admin_bad_param(answer, offsetof(struct ferry_admin_create_cq, ring) + field);
	*stage = NULL;
	/* A batch must fit into the ring, with its first entry apart from its last. */
	if (status || region_mapped(ring) || depth < CQ_STAGE)
		return status;
	*stage = engine_alloc(e, CQ_STAGE * sizeof(**stage));
	if (*stage)
		return FERRY_ADMIN_OK;
	region_release(e, ring);
	return FERRY_ADMIN_NO_RESOURCES;
}

static enum ferry_admin_status cq_create(struct ferry_engine *e, struct cq *cq,
					 const struct ferry_admin_create_cq *c,
					 struct ferry_admin_cqe *answer)
{
	enum ferry_admin_status status;

	cq->depth = 1u << c->depth_shift;
	list_init(&cq->send_qps);
	list_init(&cq->recv_qps);
	list_init(&cq->stage_link);
	timer_init(&cq->mod_timer, cq_mod_expired);
	if (!record_take(cq->context, le64(c->slot_addr), &cq->slot))
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_cq, slot_addr));
	status = cq_map(e, &cq->ring, &cq->stage, cq->depth, &c->ring, answer);
	if (status)
		goto err_slot;
	event_source_init(&cq->source, table_add(e, &e->cqs, cq));
	if (cq->source.number)
		return FERRY_ADMIN_OK;
	status = FERRY_ADMIN_NO_RESOURCES;
	engine_free(e, cq->stage);
	region_release(e, &cq->ring);
err_slot:
	record_put(&cq->slot);
	return status;
}

enum ferry_admin_status admin_create_cq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_create_cq *c = &cmd->create_cq;
	struct context *context = context_find(e, le32(c->context));
	struct eq *eq = eq_find(e, le32(c->eq));
	enum ferry_admin_status status;
	struct cq *cq;

	if (!context)
		return admin_not_found(answer, le32(c->context));
	if (!eq)
		return admin_not_found(answer, le32(c->eq));
	if (c->depth_shift > MAX_CQ_SHIFT)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_cq, depth_shift));
	cq = engine_alloc(e, sizeof(*cq));
	if (!cq)
		return FERRY_ADMIN_NO_RESOURCES;
	cq->context = context;
	cq->eq = eq;
	status = cq_create(e, cq, c, answer);
	if (status) {
		engine_free(e, cq);
		return status;
	}
	context->users++;
	eq->users++;
	answer->number = le32(cq->source.number);
	return FERRY_ADMIN_OK;
}

/* Nothing it holds is written any more: what is staged was for a user that is gone. */
void cq_release(struct ferry_engine *e, struct cq *cq)
{
	list_del(&cq->stage_link);
	timer_cancel(e, &cq->mod_timer);
	event_source_release(e, &cq->source);
	table_remove(&e->cqs, cq->source.number);
	record_put(&cq->slot);
	region_release(e, &cq->ring);
	engine_free(e, cq->stage);
	cq->context->users--;
	cq->eq->users--;
	engine_free(e, cq);
}

enum ferry_admin_status admin_destroy_cq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	struct cq *cq = table_find(&e->cqs, le32(cmd->object.number));

	if (!cq)
		return admin_not_found(answer, le32(cmd->object.number));
	if (cq->users)
		return FERRY_ADMIN_BUSY;
	cq_release(e, cq);
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_modify_cq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	struct cq *cq = table_find(&e->cqs, le32(cmd->modify_cq.cq));

	if (!cq)
		return admin_not_found(answer, le32(cmd->modify_cq.cq));
	cq->mod_count = le16(cmd->modify_cq.count);
	cq->mod_period_us = le16(cmd->modify_cq.period_us);
	/* What was held back by the old setting must not wait for ever under the new one. */
	if (cq->mod_pending)
		cq_event(e, cq);
	return FERRY_ADMIN_OK;
}

/*
 * Entry of the new ring at @index: marked invalid, whatever its lap. Entries the host
 * has not taken yet stay in the old ring.
 */
static bool cq_clear(struct ferry_engine *e, struct region *ring, uint32_t depth, uint32_t pi)
{
	struct ferry_cqe blank[128];
	uint32_t i, j, n;

	for (i = 0; i < depth; i += n) {
		n = min_u32(depth - i, ARRAY_SIZE(blank));
		memset(blank, 0, sizeof(blank));
		for (j = 0; j < n; j++) {
			uint32_t index = pi + ((i + j - pi) & (depth - 1));

			if (index & depth)
				blank[j].op = FERRY_CQE_PHASE;
		}
		if (!region_write(e, ring, (uint64_t)i * sizeof(*blank), blank, n * sizeof(*blank)))
			return false;
	}
	return true;
}

enum ferry_admin_status admin_resize_cq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_create_cq *c = &cmd->create_cq;
	struct cq *cq = table_find(&e->cqs, le32(c->cq));
	enum ferry_admin_status status;
	struct ferry_cqe *stage;
	struct region ring;
	uint32_t depth;

	if (!cq)
		return admin_not_found(answer, le32(c->cq));
	if (c->depth_shift > MAX_CQ_SHIFT)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_cq, depth_shift));
	depth = 1u << c->depth_shift;
	status = cq_map(e, &ring, &stage, depth, &c->ring, answer);
	if (status)
		return status;
	if (!cq_clear(e, &ring, depth, cq->pi)) {
		engine_free(e, stage);
		region_release(e, &ring);
		return FERRY_ADMIN_DMA_FAULT;
	}
	cq_flush(e, cq);
	region_release(e, &cq->ring);
	engine_free(e, cq->stage);
	region_move(&cq->ring, &ring);
	cq->stage = stage;
	cq->depth = depth;
	/* The host takes what is older from the old ring. */
	cq->ci = cq->pi;
	answer->number = le32(cq->pi);
	return FERRY_ADMIN_OK;
}
