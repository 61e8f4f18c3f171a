// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "admin.h"
#include "pages.h"
#include "state.h"

#define EQ_SHIFT_MIN	4
#define EQ_SHIFT_MAX	16

/* Reads how far the host is. An index that cannot be is not believed. */
static bool eq_refresh(struct ferry_engine *e, struct eq *eq)
{
	uint32_t ci;

	if (!region_load32(e, &eq->index, 0, &ci)) {
		engine_fatal(e, FERRY_FATAL_EQ_DMA);
		return false;
	}
	if (eq->pi - ci <= eq->pi - eq->ci)
		eq->ci = ci;
	return true;
}

static bool eq_write(struct ferry_engine *e, struct eq *eq, const struct ferry_eqe *eqe)
{
	uint64_t at = (uint64_t)(eq->pi & (eq->depth - 1)) * sizeof(*eqe), first;

	if (eqe->type == FERRY_EVENT_PORT &&
	    !region_write(e, &eq->ring, at + offsetof(struct ferry_eqe, data),
			  &eqe->data, sizeof(eqe->data)))
		return false;
	memcpy(&first, eqe, sizeof(first));
	return region_store64(e, &eq->ring, at, le64(first));
}

/* There must be room. */
static void eq_post(struct ferry_engine *e, struct eq *eq, enum ferry_event event, uint32_t number,
		    uint64_t data)
{
	struct ferry_eqe eqe = {
		.type = (uint8_t)event,
		.phase = !(eq->pi & eq->depth),
		.number = le32(number),
		.data = le64(data),
	};

	if (!eq_write(e, eq, &eqe)) {
		engine_fatal(e, FERRY_FATAL_EQ_DMA);
		return;
	}
	eq->pi++;
	/*
	 * The entry, then the index (fence w,r, and the host the other way round; litmus
	 * arm1): either the host finds the entry, or we see that it has taken all before it.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (eq_refresh(e, eq) && eq->ci == eq->pi - 1)
		engine_interrupt(e, eq->vector);
}

static bool eq_full(struct ferry_engine *e, struct eq *eq)
{
	if (eq->pi - eq->ci < eq->depth)
		return false;
	return !eq_refresh(e, eq) || eq->pi - eq->ci >= eq->depth;
}

static uint64_t event_data(const struct ferry_engine *e, enum ferry_event event)
{
	return event == FERRY_EVENT_PORT ? e->link : 0;
}

void eq_raise(struct ferry_engine *e, struct eq *eq, struct event_source *source,
	      enum ferry_event event)
{
	if (!eq && !list_empty(&e->eqs))
		eq = container_of(e->eqs.next, struct eq, link);
	if (!eq || engine_dead(e))
		return;
	if (list_empty(&eq->waiting) && !eq_full(e, eq)) {
		eq_post(e, eq, event, source->number, event_data(e, event));
		return;
	}
	source->pending |= 1u << event;
	if (list_empty(&source->link)) {
		list_add_tail(&eq->waiting, &source->link);
		e->events_waiting++;
	}
}

void event_source_release(struct ferry_engine *e, struct event_source *source)
{
	if (!list_empty(&source->link)) {
		list_del(&source->link);
		e->events_waiting--;
	}
	source->pending = 0;
}

static void eq_drain_waiting(struct ferry_engine *e, struct eq *eq)
{
	while (!list_empty(&eq->waiting) && !engine_dead(e) && !eq_full(e, eq)) {
		struct event_source *source = container_of(eq->waiting.next, struct event_source,
							   link);
		enum ferry_event event = (enum ferry_event)__builtin_ctz(source->pending);

		source->pending &= source->pending - 1;
		if (!source->pending)
			event_source_release(e, source);
		eq_post(e, eq, event, source->number, event_data(e, event));
	}
}

void eq_retry(struct ferry_engine *e)
{
	struct list *pos;

	if (likely(!e->events_waiting))
		return;
	list_for_each(pos, &e->eqs) {
		struct eq *eq = container_of(pos, struct eq, link);

		eq_drain_waiting(e, eq);
	}
}

static uint32_t eq_free_number(const struct ferry_engine *e)
{
	uint32_t number;

	for (number = 1; number <= MAX_EQS; number++) {
		if (!e->eq_table[number])
			return number;
	}
	return 0;
}

struct eq *eq_find(struct ferry_engine *e, uint32_t number)
{
	return number <= MAX_EQS ? e->eq_table[number] : NULL;
}

enum ferry_admin_status admin_create_eq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_create_eq *c = &cmd->create_eq;
	uint64_t ci_addr = le64(c->ci_addr);
	enum ferry_admin_status status;
	uint32_t number, field;
	struct eq *eq;

	if (le16(c->vector) >= e->config.vectors)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_eq, vector));
	if (c->depth_shift < EQ_SHIFT_MIN || c->depth_shift > EQ_SHIFT_MAX)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_eq, depth_shift));
	if (!ci_addr || ci_addr & 3)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_eq, ci_addr));
	number = eq_free_number(e);
	eq = number ? engine_alloc(e, sizeof(*eq)) : NULL;
	if (!eq)
		return FERRY_ADMIN_NO_RESOURCES;
	eq->number = number;
	eq->depth = 1u << c->depth_shift;
	eq->vector = le16(c->vector);
	list_init(&eq->waiting);
	status = pages_region(e, &eq->ring, &c->ring,
			      (uint64_t)eq->depth * sizeof(struct ferry_eqe), true, &field);
	if (status) {
		if (status == FERRY_ADMIN_BAD_PARAM)
			admin_bad_param(answer, field +
					offsetof(struct ferry_admin_create_eq, ring));
		engine_free(e, eq);
		return status;
	}
	region_single(e, &eq->index, ci_addr, sizeof(uint32_t), false);
	list_add_tail(&e->eqs, &eq->link);
	e->eq_table[number] = eq;
	answer->number = le32(number);
	return FERRY_ADMIN_OK;
}

/* What waits for room is dropped: a queue goes when nobody refers to it any more. */
void eq_release(struct ferry_engine *e, struct eq *eq)
{
	while (!list_empty(&eq->waiting))
		event_source_release(e, container_of(eq->waiting.next, struct event_source, link));
	list_del(&eq->link);
	e->eq_table[eq->number] = NULL;
	region_release(e, &eq->ring);
	region_release(e, &eq->index);
	engine_free(e, eq);
}

enum ferry_admin_status admin_destroy_eq(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	struct eq *eq = eq_find(e, le32(cmd->object.number));

	if (!eq)
		return admin_not_found(answer, le32(cmd->object.number));
	if (eq->users)
		return FERRY_ADMIN_BUSY;
	eq_release(e, eq);
	return FERRY_ADMIN_OK;
}
