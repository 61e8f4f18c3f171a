// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "walk.h"

#include <string.h>

#include "qemu_plugin.h"
#include "registers.h"

#define PAGE_SHIFT	12
#define CACHED_PAGES	4096

#define SATP_MODE(satp)	((satp) >> 60)
#define SATP_TABLE(satp) (((satp) & ((UINT64_C(1) << 44) - 1)) << PAGE_SHIFT)
enum { SATP_SV39 = 8, SATP_SV57 = 10 };

#define PTE_VALID	1
#define PTE_LEAF	0xe		/* readable, writable, executable */
#define PTE_TABLE(pte)	(((pte) >> 10 & ((UINT64_C(1) << 44) - 1)) << PAGE_SHIFT)
#define PTE_PBMT(pte)	((pte) >> 61 & 3)	/* 0 is cached, as the memory itself says */

/* Each touched by its own hart alone. */
static struct hart {
	uint64_t satp;
	uint32_t epoch;
	struct page pages[CACHED_PAGES];
} harts[MAX_VCPUS];

void walk_forget(unsigned int hart)
{
	/* Never the epoch of a page that was never learnt. */
	if (!++harts[hart].epoch)
		harts[hart].epoch = 1;
}

void walk_set_satp(unsigned int hart, uint64_t satp)
{
	harts[hart].satp = satp;
	walk_forget(hart);
}

uint64_t walk_satp(unsigned int hart)
{
	return harts[hart].satp;
}

static bool read_pte(uint64_t addr, uint64_t *pte)
{
	static _Thread_local GByteArray *bytes;

	if (!bytes)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	if (qemu_plugin_read_memory_hwaddr(addr, bytes, 8) || bytes->len != 8)
		return false;
	memcpy(pte, bytes->data, 8);
	return true;
}

/* The leaf of @vaddr; false where there is none. */
static bool find_leaf(uint64_t satp, uint64_t vaddr, uint64_t *pte)
{
	uint64_t mode = SATP_MODE(satp), table = SATP_TABLE(satp);
	int level;

	if (mode < SATP_SV39 || mode > SATP_SV57)
		return false;
	for (level = (int)(mode - SATP_SV39) + 2; level >= 0; level--) {
		uint64_t index = vaddr >> (PAGE_SHIFT + 9 * level) & 511;

		if (!read_pte(table + 8 * index, pte) || !(*pte & PTE_VALID))
			return false;
		if (*pte & PTE_LEAF)
			return true;
		table = PTE_TABLE(*pte);
	}
	return false;
}

const struct page *walk_find(unsigned int number, uint64_t vaddr)
{
	const struct hart *hart = &harts[number];
	uint64_t page = vaddr >> PAGE_SHIFT;
	const struct page *known = &hart->pages[page % CACHED_PAGES];

	return known->number == page && known->epoch == hart->epoch ? known : NULL;
}

const struct page *walk_learn(unsigned int number, uint64_t vaddr, uint64_t paddr)
{
	struct hart *hart = &harts[number];
	uint64_t pte = 0;
	struct page *known = &hart->pages[(vaddr >> PAGE_SHIFT) % CACHED_PAGES];
	bool leaf = find_leaf(hart->satp, vaddr, &pte);

	/* Without a translation, as in firmware, the memory itself says, and RAM is cached. */
	known->number = vaddr >> PAGE_SHIFT;
	known->paddr = paddr >> PAGE_SHIFT << PAGE_SHIFT;
	known->epoch = hart->epoch;
	known->uncached = leaf && PTE_PBMT(pte);
	return known;
}
