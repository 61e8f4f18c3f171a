/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The CPUs' side of the shadow: what each access and cache operation does to a line. */
#ifndef SHADOW_H
#define SHADOW_H

#include "coherence_shadow.h"

/* Makes the file, or makes it anew. False, with errno, if that fails. */
bool shadow_create(struct coherence *c, const char *path, uint64_t ram_base, uint64_t ram_size);

/* What was found wrong with some bytes of a line. */
struct finding {
	enum coherence_event event;
	uint64_t bytes;			/* 0: nothing */
};

/*
 * Bytes [addr, addr + len) of one line, by a CPU. @storer tells where in the program.
 * Accesses to memory that is not RAM find nothing.
 */
struct finding shadow_load(struct coherence *c, uint64_t addr, unsigned int len);
void shadow_store(struct coherence *c, uint64_t addr, unsigned int len, uint64_t storer);
/* A load or store that goes around the caches. */
struct finding shadow_uncached(struct coherence *c, uint64_t addr);

/* Of the line that @addr is in. */
void shadow_clean(struct coherence *c, uint64_t addr);
struct finding shadow_flush(struct coherence *c, uint64_t addr);
struct finding shadow_inval(struct coherence *c, uint64_t addr);

/* What the device has written counts as read anew; what the CPUs have stored stays dirty. */
void shadow_forget(struct coherence *c);

#endif
