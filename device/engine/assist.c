// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "admin.h"
#include "state.h"

#define SLOTS_MAX	256
#define LINE_MIN	16
#define LINE_MAX	64
#define ASSIST_WAIT	2000000000ull /* ns the driver, and who asked it, have */

FERRY_CHECK_SIZE(((struct ferry_assist_slot *)0)->head, LINE_MAX);

void assist_init(struct assist *a)
{
	memset(a, 0, sizeof(*a));
	region_init(&a->memory);
	list_init(&a->queue);
	list_init(&a->atomics);
	list_init(&a->frames_free);
}

/* --------------------------------------------------------------------------- asking */

static void ask_expired(struct ferry_engine *e, struct timer *timer)
{
	struct ask *ask = container_of(timer, struct ask, timer);

	if (ask->state != ASK_ANSWERED)
		engine_log(e, FERRY_LOG_ERROR, "the driver does not answer an assist");
	assist_forget(e, ask);
	ask->state = ASK_ANSWERED;
	ask->refused = true;
	ask->answered(e, ask);
}

void ask_init(struct ask *ask, void (*answered)(struct ferry_engine *e, struct ask *ask))
{
	list_init(&ask->link);
	timer_init(&ask->timer, ask_expired);
	ask->answered = answered;
	ask->state = ASK_IDLE;
}

static void ask_done(struct ferry_engine *e, struct ask *ask, bool refused)
{
	e->assist.users--;
	ask->state = ASK_ANSWERED;
	ask->refused = refused;
	ask->answered(e, ask);
}

static void slot_free(struct assist *a, uint32_t i)
{
	a->slot[i].busy = false;
	a->slot[i].unlocks = false;
	a->slot[i].ask = NULL;
	a->slot[i].next_free = (uint16_t)a->free;
	a->free = i;
}

/* Puts the question. There must be a free slot. */
static void ask_post(struct ferry_engine *e, struct ask *ask)
{
	struct assist *a = &e->assist;
	uint32_t i = a->free;
	struct assist_slot *slot = &a->slot[i];

	if (!region_write(e, &a->memory, (uint64_t)i * sizeof(ask->what), &ask->what,
			  sizeof(ask->what))) {
		ask_done(e, ask, true);
		return;
	}
	if (ask->atomic) {
		a->locked = true;
		a->holder = ask;
	}
	a->free = slot->next_free;
	slot->busy = true;
	slot->ask = ask;
	slot->unlocks = ask->atomic && ask->what.op == FERRY_ASSIST_AFTER_WRITE;
	ask->slot = (uint16_t)i;
	ask->state = ASK_ASKED;
	eq_raise(e, a->eq, &slot->source, FERRY_EVENT_ASSIST);
}

/* A slot, or the lock, is free. */
static void assist_next(struct ferry_engine *e)
{
	struct assist *a = &e->assist;

	while (a->free < a->slots) {
		struct list *list = !a->locked && !list_empty(&a->atomics) ? &a->atomics : &a->queue;
		struct ask *ask = container_of(list->next, struct ask, link);

		if (list_empty(list))
			return;
		list_del(&ask->link);
		ask_post(e, ask);
	}
}

static void ask_start(struct ferry_engine *e, struct ask *ask, bool atomic)
{
	struct assist *a = &e->assist;

	ask->atomic = atomic;
	ask->state = ASK_QUEUED;
	a->users++;
	timer_arm(e, &ask->timer, ASSIST_WAIT);
	list_add_tail(atomic && a->holder != ask ? &a->atomics : &a->queue, &ask->link);
	assist_next(e);
}

static bool ask_is_about(const struct ask *ask, const struct ferry_assist_slot *what)
{
	return ask->what.op == what->op && ask->what.key == what->key &&
	       ask->what.iova == what->iova && ask->what.length == what->length;
}

enum ask_result assist_ask(struct ferry_engine *e, struct ask *ask,
			   const struct ferry_assist_slot *what, bool atomic)
{
	if (ask_waits(ask))
		return ASK_WAIT;
	if (ask->state == ASK_ANSWERED && ask_is_about(ask, what)) {
		ask->state = ASK_IDLE;
		timer_cancel(e, &ask->timer);
		if (!ask->refused)
			return ASK_GRANTED;
		assist_unlock(e, ask);
		return ASK_REFUSED;
	}
	ask->what = *what;
	ask_start(e, ask, atomic);
	return ASK_WAIT;
}

void assist_unlock(struct ferry_engine *e, struct ask *ask)
{
	struct assist *a = &e->assist;

	if (!a->locked || a->holder != ask)
		return;
	a->locked = false;
	a->holder = NULL;
	assist_next(e);
}

void assist_forget(struct ferry_engine *e, struct ask *ask)
{
	struct assist *a = &e->assist;
	bool posted = ask->state == ASK_ASKED;

	if (ask_waits(ask))
		a->users--;
	timer_cancel(e, &ask->timer);
	list_del(&ask->link);
	ask->state = ASK_IDLE;
	if (posted) {
		/* The driver may still be at it: the lock stays with the slot. */
		a->slot[ask->slot].ask = NULL;
		if (a->locked && a->holder == ask) {
			a->slot[ask->slot].unlocks = true;
			a->holder = NULL;
		}
		return;
	}
	assist_unlock(e, ask);
}

bool assist_ack(struct ferry_engine *e, uint32_t slot)
{
	struct assist *a = &e->assist;
	uint8_t status = 1;
	struct ask *ask;

	if (slot >= a->slots || !a->slot[slot].busy)
		return false;
	ask = a->slot[slot].ask;
	if (ask && !region_read(e, &a->memory, (uint64_t)slot * sizeof(ask->what) +
				offsetof(struct ferry_assist_slot, status), &status, 1))
		status = 1;
	if (a->slot[slot].unlocks) {
		a->locked = false;
		a->holder = NULL;
	}
	event_source_release(e, &a->slot[slot].source);
	slot_free(a, slot);
	if (ask)
		ask_done(e, ask, status);
	assist_next(e);
	return true;
}

/* --------------------------------------------------------------------------- frames */

struct held_frame *assist_hold(struct ferry_engine *e, const uint8_t *frame, size_t len)
{
	struct assist *a = &e->assist;
	struct held_frame *held;

	if (list_empty(&a->frames_free) || len > HELD_LEN)
		return NULL;
	held = container_of(a->frames_free.next, struct held_frame, link);
	list_del(&held->link);
	memcpy(held->data, frame, len);
	held->len = (uint32_t)len;
	a->users++;
	return held;
}

void assist_unhold(struct ferry_engine *e, struct held_frame *held)
{
	list_del(&held->link);
	list_add_tail(&e->assist.frames_free, &held->link);
	e->assist.users--;
}

/* ------------------------------------------------------------------------- SET_ASSIST */

void assist_release(struct ferry_engine *e)
{
	struct assist *a = &e->assist;
	uint32_t i;

	for (i = 0; i < a->slots; i++)
		event_source_release(e, &a->slot[i].source);
	if (a->eq)
		a->eq->users--;
	region_release(e, &a->memory);
	engine_free(e, a->slot);
	engine_free(e, a->frames);
	assist_init(a);
}

static enum ferry_admin_status assist_params(const struct ferry_admin_set_assist *c,
					     struct ferry_admin_cqe *answer)
{
	uint32_t line = le32(c->line_size);

	if (le32(c->slots) > SLOTS_MAX)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_assist, slots));
	if (!c->addr || le64(c->addr) % sizeof(struct ferry_assist_slot))
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_assist, addr));
	if (line < LINE_MIN || line > LINE_MAX || line & (line - 1))
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_assist, line_size));
	return FERRY_ADMIN_OK;
}

static bool assist_alloc(struct ferry_engine *e, uint32_t slots)
{
	struct assist *a = &e->assist;
	uint32_t i;

	a->slot = engine_alloc(e, slots * sizeof(*a->slot));
	a->frames = engine_alloc(e, HELD_FRAMES * sizeof(*a->frames));
	if (!a->slot || !a->frames)
		return false;
	a->slots = slots;
	a->free = slots;
	for (i = slots; i--;) {
		event_source_init(&a->slot[i].source, i);
		slot_free(a, i);
	}
	for (i = 0; i < HELD_FRAMES; i++)
		list_add_tail(&a->frames_free, &a->frames[i].link);
	return true;
}

enum ferry_admin_status admin_set_assist(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_set_assist *c = &cmd->set_assist;
	struct eq *eq = eq_find(e, le32(c->eq));
	struct assist *a = &e->assist;
	enum ferry_admin_status status;

	if (a->users)
		return FERRY_ADMIN_BUSY;
	if (!c->slots) {
		/* An answer that is still to come is void. */
		assist_release(e);
		return FERRY_ADMIN_OK;
	}
	if (!eq)
		return admin_not_found(answer, le32(c->eq));
	status = assist_params(c, answer);
	if (status)
		return status;
	if (a->slots)
		return FERRY_ADMIN_BUSY;
	if (!assist_alloc(e, le32(c->slots))) {
		assist_release(e);
		return FERRY_ADMIN_NO_RESOURCES;
	}
	a->eq = eq;
	eq->users++;
	a->line = le32(c->line_size);
	region_single(e, &a->memory, le64(c->addr),
		      (uint64_t)a->slots * sizeof(struct ferry_assist_slot), true);
	return FERRY_ADMIN_OK;
}
