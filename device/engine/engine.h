/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The NIC itself, without a process around it: registers, admin queue, QPs, transport,
 * keys, completions. See doc/hardware.md for what the host sees and port.h for what the
 * engine needs.
 *
 * One thread calls all of this, except ferry_engine_reg_read(), which any thread may
 * call at any time. Times are nanoseconds of one monotonic clock.
 */
#ifndef FERRY_ENGINE_H
#define FERRY_ENGINE_H

#include "port.h"

struct ferry_engine;

struct ferry_engine_config {
	uint8_t mac[6];
	uint16_t vectors;	/* MSI-X vectors, 1 at least */
	bool poll;		/* FERRY_CAP_POLL: records are read while awake */
	bool link_up;		/* carrier at start */
	uint32_t speed_mbps;	/* what QUERY_PORT says */
	uint32_t seed;		/* of generations and the like: equal seeds, equal runs */
};

/* NULL if @port cannot allocate. @config and @port are copied. */
struct ferry_engine *ferry_engine_create(const struct ferry_engine_config *config,
					 const struct ferry_port *port);
void ferry_engine_destroy(struct ferry_engine *engine);

/* BAR0. @offset is aligned to 4 and below FERRY_REGS_SIZE. */
uint32_t ferry_engine_reg_read(const struct ferry_engine *engine, uint32_t offset);
void ferry_engine_reg_write(struct ferry_engine *engine, uint32_t offset, uint32_t value);

/* A 64-bit store to doorbell page @page of BAR2. */
void ferry_engine_doorbell(struct ferry_engine *engine, uint32_t page, uint64_t value);

/* A frame from the link, without FCS. */
void ferry_engine_frame(struct ferry_engine *engine, const void *frame, size_t len);

/* The carrier has changed. */
void ferry_engine_link(struct ferry_engine *engine, bool up);

/*
 * Does what is due at @now: admin commands, records that changed (while awake), work of
 * QPs, timers; stops after about @budget bytes of payload. Returns when it wants to be
 * called again: 0 for at once (this call did something, or there is work left), UINT64_MAX
 * for not before something happens. The caller measures idleness from the last 0.
 */
uint64_t ferry_engine_run(struct ferry_engine *engine, uint64_t now, size_t budget);

/*
 * The awake protocol of the status page; with config.poll only. ferry_engine_sleep()
 * says "asleep", looks at all records once more, and returns true when there is nothing
 * to do: the caller may then block until a doorbell, a frame, a register write or the
 * deadline, and calls ferry_engine_wake() afterwards. When it returns false the engine
 * is awake again and has work. A new engine is asleep.
 */
bool ferry_engine_sleep(struct ferry_engine *engine);
void ferry_engine_wake(struct ferry_engine *engine);

/* Forgets every object, as FERRY_CTRL_RESET does. No DMA after it returns. */
void ferry_engine_reset(struct ferry_engine *engine);

/*
 * The embedder is about to take [addr, addr + len) away: after this returns the engine
 * holds no pointer into it, and asks port->map again before it touches it.
 */
void ferry_engine_unmapped(struct ferry_engine *engine, uint64_t addr, uint64_t len);

/*
 * For tests: the @nth admin command from now is answered FERRY_ADMIN_REFUSED; 0: none.
 * FERRY_REFUSE_EACH: of those behind a reset the first, until it has met one; behind the
 * next reset the second; and so on.
 */
#define FERRY_REFUSE_EACH	UINT32_MAX
void ferry_engine_refuse(struct ferry_engine *engine, uint32_t nth);

/*
 * For tests: where the host's DMA finds the first byte of an MR (by its key), or of a QP's
 * send queue. False: there is no such thing.
 */
bool ferry_engine_where_mr(struct ferry_engine *engine, uint32_t key, uint64_t *addr);
bool ferry_engine_where_sq(struct ferry_engine *engine, uint32_t qp, uint64_t *addr);

/* What a DMA address belongs to, and which QP is being served: for messages. Slow. */
struct ferry_where {
	const char *what;	/* "MR", "SQ", ... */
	uint32_t number;	/* of that; of an SQ or RQ the QP's */
	uint32_t qp;		/* 0: none */
};

void ferry_engine_where(struct ferry_engine *engine, uint64_t addr, struct ferry_where *where);
/* The QP alone; 0: none. */
uint32_t ferry_engine_serves(const struct ferry_engine *engine);

#endif
