// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "state.h"
#include "timer.h"

void wheel_init(struct wheel *wheel)
{
	int level, slot;

	memset(wheel, 0, sizeof(*wheel));
	list_init(&wheel->late);
	for (level = 0; level < WHEEL_LEVELS; level++) {
		for (slot = 0; slot < WHEEL_SLOTS; slot++)
			list_init(&wheel->slot[level][slot]);
	}
}

/* A timer lies at the lowest level that reaches its tick from here. */
static void wheel_insert(struct wheel *wheel, struct timer *timer)
{
	uint64_t tick = timer->deadline >> WHEEL_TICK_SHIFT;
	unsigned int level = 0;

	/* Never early: the tick in which it is due has to be over. */
	tick++;
	if (tick <= wheel->tick)
		tick = wheel->tick + 1;
	while (level < WHEEL_LEVELS - 1 &&
	       tick >> (6 * level) >= (wheel->tick >> (6 * level)) + WHEEL_SLOTS)
		level++;
	if (tick >> (6 * level) >= (wheel->tick >> (6 * level)) + WHEEL_SLOTS)
		tick = ((wheel->tick >> (6 * level)) + WHEEL_SLOTS - 1) << (6 * level);
	timer->level = (uint8_t)level;
	timer->slot = (tick >> (6 * level)) & (WHEEL_SLOTS - 1);
	timer->late = false;
	list_add_tail(&wheel->slot[level][timer->slot], &timer->link);
	wheel->filled[level] |= 1ull << timer->slot;
}

void timer_cancel(struct ferry_engine *e, struct timer *timer)
{
	struct wheel *wheel = &e->wheel;

	if (!timer_armed(timer))
		return;
	list_del(&timer->link);
	if (!timer->late && list_empty(&wheel->slot[timer->level][timer->slot]))
		wheel->filled[timer->level] &= ~(1ull << timer->slot);
}

void timer_arm(struct ferry_engine *e, struct timer *timer, uint64_t delay)
{
	/* Outside a run the clock may have stood for long. */
	if (!e->running) {
		timer_cancel(e, timer);
		timer->late = true;
		timer->deadline = delay;
		list_add_tail(&e->wheel.late, &timer->link);
		return;
	}
	/* A deadline that moves away is looked at when the old one comes: see wheel_expire(). */
	if (timer_armed(timer) && !timer->late && e->now + delay >= timer->deadline) {
		timer->deadline = e->now + delay;
		return;
	}
	timer_cancel(e, timer);
	timer->deadline = e->now + delay;
	wheel_insert(&e->wheel, timer);
}

static void wheel_take_late(struct ferry_engine *e)
{
	while (!list_empty(&e->wheel.late)) {
		struct timer *timer = container_of(e->wheel.late.next, struct timer, link);

		list_del(&timer->link);
		timer->deadline += e->now;
		wheel_insert(&e->wheel, timer);
	}
}

/* Empties a list: what is due runs, the rest finds a place nearer to its time. */
static void wheel_expire(struct ferry_engine *e, unsigned int level, unsigned int slot)
{
	struct wheel *wheel = &e->wheel;
	struct list *from = &wheel->slot[level][slot], due;

	if (!(wheel->filled[level] & 1ull << slot))
		return;
	wheel->filled[level] &= ~(1ull << slot);
	list_init(&due);
	due.next = from->next;
	due.prev = from->prev;
	due.next->prev = &due;
	due.prev->next = &due;
	list_init(from);

	while (!list_empty(&due)) {
		struct timer *timer = container_of(due.next, struct timer, link);

		list_del(&timer->link);
		if (timer->deadline > e->now) {
			wheel_insert(wheel, timer);
		} else {
			e->worked = true;
			timer->expired(e, timer);
		}
	}
}

/* The next tick after wheel->tick at which some list must be looked at. */
static uint64_t wheel_next_tick(const struct wheel *wheel)
{
	uint64_t next = UINT64_MAX;
	unsigned int level;

	for (level = 0; level < WHEEL_LEVELS; level++) {
		unsigned int shift = 6 * level;
		uint64_t at = wheel->tick >> shift, bits = wheel->filled[level], tick;
		unsigned int turn = (at + 1) & (WHEEL_SLOTS - 1);

		if (!bits)
			continue;
		if (turn)
			bits = bits >> turn | bits << (WHEEL_SLOTS - turn);
		tick = (at + 1 + (unsigned int)__builtin_ctzll(bits)) << shift;
		if (tick < next)
			next = tick;
	}
	return next;
}

void wheel_advance(struct ferry_engine *e)
{
	struct wheel *wheel = &e->wheel;
	uint64_t now = e->now >> WHEEL_TICK_SHIFT, next;
	unsigned int level;

	while ((next = wheel_next_tick(wheel)) <= now) {
		wheel->tick = next;
		for (level = WHEEL_LEVELS; level-- > 0;) {
			if (next & ((1ull << (6 * level)) - 1))
				continue;
			wheel_expire(e, level, (next >> (6 * level)) & (WHEEL_SLOTS - 1));
		}
	}
	if (wheel->tick < now)
		wheel->tick = now;
	wheel_take_late(e);
}

uint64_t wheel_next(const struct wheel *wheel)
{
	uint64_t next = wheel_next_tick(wheel);

	if (!list_empty(&wheel->late))
		return 0;
	return next >> (64 - WHEEL_TICK_SHIFT) ? UINT64_MAX : next << WHEEL_TICK_SHIFT;
}
