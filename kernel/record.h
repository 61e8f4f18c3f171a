/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contexts as the device knows them, with their doorbell records.
 */
#ifndef FERRY_RECORD_H
#define FERRY_RECORD_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "ferry_hw.h"

struct ferry_dev;
struct ferry_mmap;
struct ferry_slot_map;
struct ferry_ucontext;

/* A context: 0 is the kernel's, the others belong to a process each. */
struct ferry_context {
	struct ferry_dev *dev;
	struct ferry_ucontext *user;	/* NULL: the kernel's */
	u32 number;
	struct mutex lock;		/* groups, num_groups */
	struct list_head groups;	/* struct ferry_record_group */
	unsigned int num_groups;
	atomic_long_t bytes;		/* of its rings, record pages and the like, see mmap.c */
};

/* A record page. */
struct ferry_record_group {
	struct list_head list;
	struct ferry_mmap *map;		/* owns the memory */
	u64 offset;			/* where the process maps it */
	DECLARE_BITMAP(used, FERRY_SLOTS_PER_PAGE);
};

/* One slot of a record page, given to one queue. */
struct ferry_record {
	struct ferry_record_group *group;	/* NULL: none */
	unsigned int slot;
};

void ferry_context_init(struct ferry_context *ctx, struct ferry_dev *dev,
			struct ferry_ucontext *user);
void ferry_context_release(struct ferry_context *ctx);

int ferry_record_get(struct ferry_context *ctx, struct ferry_record *rec);
void ferry_record_put(struct ferry_context *ctx, struct ferry_record *rec);
struct ferry_slot *ferry_record_slot(const struct ferry_record *rec);
__le32 *ferry_record_word(const struct ferry_record *rec);
__le64 ferry_record_addr(const struct ferry_record *rec);
void ferry_record_describe(const struct ferry_record *rec, struct ferry_slot_map *map);

#endif
