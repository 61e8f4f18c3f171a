// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "wire.h"

#define MIN_FRAME	60

void wire_init(struct wire *wire, uint64_t seed)
{
	memset(wire, 0, sizeof(*wire));
	rng_init(&wire->rng, seed);
	wire->now = 1000;
}

void wire_destroy(struct wire *wire)
{
	while (wire->count)
		free(wire->events[--wire->count].data);
	free(wire->events);
}

/* ---- the heap of frames under way */

static bool earlier(const struct wire_event *a, const struct wire_event *b)
{
	return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

static void swap(struct wire_event *a, struct wire_event *b)
{
	struct wire_event t = *a;

	*a = *b;
	*b = t;
}

static void event_add(struct wire *wire, const struct wire_event *event)
{
	unsigned int i = wire->count;

	if (wire->count == wire->capacity) {
		wire->capacity = wire->capacity * 2 + 64;
		wire->events = realloc(wire->events, wire->capacity * sizeof(*event));
		need(wire->events);
	}
	wire->events[wire->count++] = *event;
	for (; i && earlier(&wire->events[i], &wire->events[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&wire->events[i], &wire->events[(i - 1) / 2]);
}

static struct wire_event event_take(struct wire *wire)
{
	struct wire_event first = wire->events[0];
	unsigned int i = 0, child;

	wire->events[0] = wire->events[--wire->count];
	while ((child = 2 * i + 1) < wire->count) {
		if (child + 1 < wire->count &&
		    earlier(&wire->events[child + 1], &wire->events[child]))
			child++;
		if (!earlier(&wire->events[child], &wire->events[i]))
			break;
		swap(&wire->events[child], &wire->events[i]);
		i = child;
	}
	return first;
}

/* ---- frames */

static unsigned int host_number(const struct wire *wire, const struct host *host)
{
	unsigned int i;

	for (i = 0; i < wire->num_hosts; i++) {
		if (wire->hosts[i] == host)
			return i;
	}
	need_that(false, "no host of this wire");
}

static struct host *host_by_mac(const struct wire *wire, const uint8_t *mac)
{
	unsigned int i;

	for (i = 0; i < wire->num_hosts; i++) {
		if (!memcmp(wire->hosts[i]->mac, mac, 6))
			return wire->hosts[i];
	}
	return NULL;
}

/* One to four bits in one place or in several, or the end cut off. */
static void corrupt(struct wire *wire, uint8_t *data, size_t *len)
{
	unsigned int bits = (unsigned int)rng_range(&wire->rng, 1, 3);

	if (rng_chance(&wire->rng, 15)) {
		*len = rng_below(&wire->rng, *len);
		return;
	}
	while (bits--) {
		uint64_t bit = rng_below(&wire->rng, *len * 8);

		data[bit / 8] ^= 1u << (bit & 7);
	}
}

static void schedule(struct wire *wire, struct host *to, const uint8_t *data, size_t len,
		     unsigned int faults)
{
	uint64_t *last = &wire->last_at[host_number(wire, to)];
	size_t room = len < MIN_FRAME ? MIN_FRAME : len;
	struct wire_event event = {
		.at = wire->now + WIRE_LATENCY + rng_below(&wire->rng, WIRE_LATENCY),
		.sequence = wire->sequence++,
		.to = to,
		.len = rng_chance(&wire->rng, 50) ? room : len,
		.data = calloc(1, room),
	};

	need(event.data);
	memcpy(event.data, data, len);
	if (event.at <= *last)
		event.at = *last + 1;
	if (faults & WIRE_REORDER)
		event.at += rng_below(&wire->rng, WIRE_REORDER_NS);
	else
		*last = event.at;
	if (faults & WIRE_CORRUPT)
		corrupt(wire, event.data, &event.len);
	event_add(wire, &event);
}

static void trace(const struct wire *wire, const struct host *from, const struct host *to,
		  const struct frame *frame, unsigned int faults)
{
	printf("# %llu: %u>%u qp %#x psn %#x %s", (unsigned long long)wire->now, from->index,
	       to->index, frame->dest_qpn, frame->psn, frame_opcode_name(frame->opcode));
	if (frame->opcode == FRAME_ACK)
		printf(" %#x", frame->syndrome);
	printf(" %zu%s%s%s%s%s%s\n", frame->payload_len, frame->ack_request ? " ack-request" : "",
	       faults & WIRE_LOSS ? " LOST" : "", faults & WIRE_DUPLICATE ? " DUPLICATE" : "",
	       faults & WIRE_REORDER ? " REORDER" : "", faults & WIRE_CORRUPT ? " CORRUPT" : "",
	       faults & WIRE_BUSY ? " BUSY" : "");
}

static bool transmit(void *arg, struct host *from, const void *data, size_t len)
{
	struct host *to = host_by_mac(arg, data);
	struct wire *wire = arg;
	unsigned int faults = 0;
	struct frame frame;
	const char *wrong = frame_parse(data, len, &frame);

	need_that(!wrong, "host %u has sent a bad frame: %s", from->index, wrong);
	need_that(to && to != from, "host %u has sent a frame to nobody, or itself", from->index);
	if (wire->judge)
		faults = wire->judge(wire->judge_arg, from, to, data, &frame);
	if (wire->verbose)
		trace(wire, from, to, &frame, faults);
	if (faults & WIRE_BUSY)
		return false;
	wire->frames++;
	if (!(faults & WIRE_LOSS))
		schedule(wire, to, data, len, faults);
	if (faults & WIRE_DUPLICATE)
		schedule(wire, to, data, len, WIRE_REORDER);
	return true;
}

void wire_add(struct wire *wire, struct host *host)
{
	need(wire->num_hosts < WIRE_HOSTS);
	wire->hosts[wire->num_hosts++] = host;
	host->transmit = transmit;
	host->transmit_arg = wire;
	host->now = wire->now;
}

/* ---- time */

void wire_advance(struct wire *wire, uint64_t to)
{
	unsigned int i;

	need(to >= wire->now);
	wire->now = to;
	for (i = 0; i < wire->num_hosts; i++)
		wire->hosts[i]->now = to;
}

/*
 * An embedder may want to sleep at any time: what the host has stored by then and not rung
 * for must be found by the last look.
 */
static bool try_sleep(struct wire *wire, struct host *host)
{
	if (host->asleep || !host->poll || !rng_chance(&wire->rng, wire->sleep_percent))
		return false;
	host->asleep = ferry_engine_sleep(host->engine);
	host->next = host->asleep ? host->deadline : 0;
	return host->asleep;
}

static uint64_t run_host(struct wire *wire, struct host *host)
{
	if (host->next <= wire->now && !try_sleep(wire, host))
		host_run(host);
	if (host->next > wire->now)
		try_sleep(wire, host);
	return host->next;
}

uint64_t wire_turn(struct wire *wire)
{
	uint64_t next = UINT64_MAX, at;
	unsigned int i;

	while (wire->count && wire->events[0].at <= wire->now) {
		struct wire_event event = event_take(wire);

		host_frame(event.to, event.data, event.len);
		free(event.data);
	}
	for (i = 0; i < wire->num_hosts; i++) {
		at = run_host(wire, wire->hosts[i]);
		if (at < next)
			next = at;
	}
	if (wire->count && wire->events[0].at < next)
		next = wire->events[0].at;
	return next < wire->now ? wire->now : next;
}

void wire_run(struct wire *wire, uint64_t ns)
{
	uint64_t end = wire->now + ns, next;

	while (wire->now <= end) {
		next = wire_turn(wire);
		if (next > end) {
			wire_advance(wire, end);
			return;
		}
		wire_advance(wire, next);
	}
}
