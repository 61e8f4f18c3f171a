/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All that the engine needs from outside. Whoever embeds it fills this table: the
 * virtual NIC, the simulation, a fuzzer.
 *
 * Every function is called on the thread that called into the engine. None may call
 * back into the engine.
 */
#ifndef FERRY_PORT_H
#define FERRY_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ferry_log_level { FERRY_LOG_ERROR, FERRY_LOG_INFO, FERRY_LOG_DEBUG };

struct ferry_port {
	void *ctx;		/* first argument of every function below */

	/*
	 * Where the host's DMA address range [addr, addr + len) lies in our address space,
	 * or NULL if it is not mapped whole, not writable though @write, or only reachable
	 * by read and write below. Stays valid until ferry_engine_unmapped() returns.
	 */
	void *(*map)(void *ctx, uint64_t addr, uint64_t len, bool write);

	/*
	 * Copy from or to host memory. 0, or a negative value when any byte of the range
	 * cannot be reached (then some may have been copied). May block. Writes become
	 * visible in the order of the calls, and before any interrupt raised after them.
	 * A write of 8 aligned bytes is one store, after all earlier writes.
	 */
	int (*read)(void *ctx, uint64_t addr, void *to, size_t len);
	int (*write)(void *ctx, uint64_t addr, const void *from, size_t len);

	/* Sends an Ethernet frame without FCS; false if the link did not take it. */
	bool (*transmit)(void *ctx, const void *frame, size_t len);

	/* Raises an MSI-X vector. */
	void (*interrupt)(void *ctx, unsigned int vector);

	/* Zeroed memory, aligned to 64; NULL if there is none. Control path only. */
	void *(*alloc)(void *ctx, size_t size);
	void (*free)(void *ctx, void *mem);

	void (*log)(void *ctx, enum ferry_log_level level, const char *format, ...)
		__attribute__((format(printf, 3, 4)));
};

#endif
