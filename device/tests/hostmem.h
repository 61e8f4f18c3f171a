/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of a simulated host, as its device sees it: chunks at scattered DMA
 * addresses, each in an allocation of its own, so that a sanitizer sees who leaves one.
 *
 * The device may touch nothing but windows: byte ranges that the test has opened, for
 * reading, writing or both. Accesses by read and write are held to the byte; a map only
 * to the page, since the device maps whole pages.
 */
#ifndef HOSTMEM_H
#define HOSTMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rng.h"

#define HOSTMEM_PAGE	4096u

#define HOSTMEM_READ	1u	/* by the device */
#define HOSTMEM_WRITE	2u
#define HOSTMEM_MAP(rights) ((rights) << 2) /* may be mapped for them, not touched */

struct hostmem_window {
	uint64_t first, end;	/* offsets in the chunk */
	unsigned int rights;
};

struct hostmem_chunk {
	uint64_t dma;
	size_t len;
	uint8_t *va;
	bool message;		/* never mapped */
	bool gone;		/* out of the device's reach: unmapped by the host */
	unsigned int num_windows;
	unsigned int max_windows;
	struct hostmem_window *windows;
};

struct hostmem {
	struct rng rng;
	bool message;		/* no chunk is mapped */
	bool mixed;		/* some chunks are, some are not */
	bool sealed;		/* the device must touch nothing at all */
	bool lenient;		/* all chunks may be touched: for guests that lie on purpose */
	uint64_t countdown;	/* the access that fails, counted from 1; 0: none */
	uint64_t reads, writes, maps; /* calls so far */
	unsigned int count, capacity;
	struct hostmem_chunk **chunks; /* by DMA address */
	uint64_t last_end;	/* behind the chunk made last */
};

void hostmem_init(struct hostmem *mem, uint64_t seed);
void hostmem_destroy(struct hostmem *mem);

/* @len zeroed bytes, a multiple of a page; the DMA address is a multiple of @align. */
struct hostmem_chunk *hostmem_alloc(struct hostmem *mem, size_t len, uint64_t align);
void hostmem_free(struct hostmem *mem, struct hostmem_chunk *chunk);
struct hostmem_chunk *hostmem_find(struct hostmem *mem, uint64_t dma);

/* Opens a window within a chunk, and closes one that was opened so. */
void hostmem_allow(struct hostmem *mem, uint64_t dma, uint64_t len, unsigned int rights);
void hostmem_deny(struct hostmem *mem, uint64_t dma, uint64_t len, unsigned int rights);

/* The same DMA address, another place behind it. What the device still holds is stale. */
void hostmem_move(struct hostmem_chunk *chunk);

/* For the port: ctx is not the memory, so wrap them. */
void *hostmem_map(struct hostmem *mem, uint64_t addr, uint64_t len, bool write);
int hostmem_read(struct hostmem *mem, uint64_t addr, void *to, size_t len);
int hostmem_write(struct hostmem *mem, uint64_t addr, const void *from, size_t len);

#endif
