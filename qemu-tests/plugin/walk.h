/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of a RISC-V guest's mappings are not cached: Svpbmt's bits of the leaf entry, found
 * by a walk of the page tables, and kept for each hart until it fences its translations.
 * Knows Sv39, Sv48 and Sv57; no hypervisor.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stdint.h>

/* The hart writes satp, or executes sfence.vma or one of the sinval instructions. */
void walk_set_satp(unsigned int hart, uint64_t satp);
uint64_t walk_satp(unsigned int hart);
void walk_forget(unsigned int hart);

/* How a hart sees a page of its address space. */
struct page {
	uint64_t number;	/* virtual */
	uint64_t paddr;
	uint32_t epoch;		/* valid in that one */
	bool uncached;
};

/* The page of @vaddr, if it is known; else walk_learn(), when an access has told @paddr. */
const struct page *walk_find(unsigned int hart, uint64_t vaddr);
const struct page *walk_learn(unsigned int hart, uint64_t vaddr, uint64_t paddr);

#endif
