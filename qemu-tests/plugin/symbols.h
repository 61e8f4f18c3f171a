/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for places in a guest's programs. The kernel's come from its /proc/kallsyms, which
 * a guest program hands over. User programs lie anywhere: their code is looked up in the
 * objects that they are made from.
 */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code around a place, as far as it is in the same page: enough to find it in an object. */
struct code {
	uint64_t pc;
	uint8_t bytes[64];
	unsigned int before;	/* bytes before pc */
	unsigned int len;	/* of all */
};

/* @host is where the instruction at @pc lies in our memory, or NULL. */
void code_take(struct code *code, uint64_t pc, const uint8_t *host);

/* The text of /proc/kallsyms, NUL at the end, which stays the caller's; replaces the one before. */
void symbols_kernel(const char *text);
/* False for a place in the kernel that has no name yet. */
bool symbols_known(uint64_t pc);

/* An ELF file with code; false, after a line on stderr, where it is none. */
bool symbols_object(const char *path);

/* "name+0x10 [object]", or the pc alone. Returns @buf. */
const char *symbols_name(const struct code *code, char *buf, size_t size);

#endif
