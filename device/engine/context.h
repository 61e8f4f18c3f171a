/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contexts: what one process, or the kernel, owns; with doorbells and their records.
 */
#ifndef FERRY_CONTEXT_H
#define FERRY_CONTEXT_H

#include "region.h"

#define MAX_CONTEXTS		512
#define MAX_RECORD_PAGES	512	/* of a context */

struct context {
	uint32_t number;	/* and doorbell page */
	uint32_t users;		/* PDs, CQs */
	uint32_t num_pages;
	struct list pages;	/* struct record_page */
	struct region memory;	/* FERRY_KEY_CONTEXT */
	uint64_t memory_len;	/* bytes; 0: none */
};

struct record_page {
	struct list scan;	/* engine->record_pages */
	struct list link;	/* context->pages */
	struct context *context;
	struct region region;
	uint32_t users;		/* queues that have a slot here */
	uint64_t seen[FERRY_SLOTS_PER_PAGE]; /* doorbells as read last */
};

/* A queue's slot. */
struct record_slot {
	struct record_page *page; /* NULL: none */
	unsigned int index;
};

struct pd {
	uint32_t number;
	struct context *context;
	uint32_t users;		/* QPs, SRQs, MRs */
};

struct context *context_find(struct ferry_engine *e, uint32_t number);
void context_init(struct context *context, uint32_t number);

void record_page_release(struct ferry_engine *e, struct record_page *page);

/* False if @addr is no slot of a record page of @context. */
bool record_take(struct context *context, uint64_t addr, struct record_slot *slot);
void record_put(struct record_slot *slot);

/* Makes the device look at the slot's doorbell again, even if it has not changed. */
void record_renew(struct record_slot *slot);

/* The word in a slot: its doorbell, or a CQ's consumer index. */
bool record_load(struct ferry_engine *e, const struct record_slot *slot, uint64_t *word);
bool record_load_ci(struct ferry_engine *e, const struct record_slot *slot, uint64_t *word);

/* Takes up what the host has announced by group words; by slots alone. True: something. */
bool record_scan(struct ferry_engine *e);
bool record_scan_all(struct ferry_engine *e);

/* One doorbell, stored to a page or found in a record of @context. True: it counts. */
bool doorbell_take(struct ferry_engine *e, struct context *context, uint64_t word);

#endif
