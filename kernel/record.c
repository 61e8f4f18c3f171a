// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Contexts and their doorbell records: pages of 63 slots and a group word, added when
 * slots run out, kept as long as the context.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "ferry.h"
#include "mmap.h"
#include "verbs.h"

static_assert(sizeof(struct ferry_record_page) == PAGE_SIZE);

void ferry_context_init(struct ferry_context *ctx, struct ferry_dev *dev,
			struct ferry_ucontext *user)
{
	ctx->dev = dev;
	ctx->user = user;
	mutex_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->groups);
}

/* The device must have been told before. */
void ferry_context_release(struct ferry_context *ctx)
{
	struct ferry_record_group *group, *next;

	list_for_each_entry_safe(group, next, &ctx->groups, list) {
		ferry_mmap_put(group->map);
		kfree(group);
	}
}

static int ferry_record_tell(struct ferry_context *ctx, struct ferry_record_group *group)
{
	struct ferry_admin_set_page cmd = {
		.context = cpu_to_le32(ctx->number),
		.addr = cpu_to_le64(group->map->buf.dma),
	};

	return ferry_admin_exec(ctx->dev, FERRY_ADMIN_ADD_RECORD_PAGE, &cmd);
}

static struct ferry_record_group *ferry_record_group_add(struct ferry_context *ctx)
{
	struct ferry_record_group *group;
	int err = -ENOMEM;

	if (ctx->num_groups >= ctx->dev->limits.max_record_pages)
		return ERR_PTR(-ENOMEM);
	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->map = ferry_mmap_alloc_memory(ctx->dev, ctx, PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!group->map)
		goto err_group;
	if (ctx->user) {
		err = ferry_mmap_share(ctx->user, &group->map, 1, PAGE_SIZE, &group->offset);
		if (err)
			goto err_map;
	}
	err = ferry_record_tell(ctx, group);
	if (err)
		goto err_map;
	list_add(&group->list, &ctx->groups);
	ctx->num_groups++;
	return group;

err_map:
	ferry_mmap_put(group->map);
err_group:
	kfree(group);
	return ERR_PTR(err);
}

static struct ferry_record_group *ferry_record_group_find(struct ferry_context *ctx)
{
	struct ferry_record_group *group;

	list_for_each_entry(group, &ctx->groups, list)
		if (!bitmap_full(group->used, FERRY_SLOTS_PER_PAGE))
			return group;
	return ferry_record_group_add(ctx);
}

/* An empty slot for a new queue. */
int ferry_record_get(struct ferry_context *ctx, struct ferry_record *rec)
{
	struct ferry_record_group *group;

	mutex_lock(&ctx->lock);
	group = ferry_record_group_find(ctx);
	if (!IS_ERR(group)) {
		rec->group = group;
		rec->slot = find_first_zero_bit(group->used, FERRY_SLOTS_PER_PAGE);
		__set_bit(rec->slot, group->used);
		/* What its last user left would name a queue that is gone. */
		WRITE_ONCE(ferry_record_slot(rec)->db, 0);
		WRITE_ONCE(ferry_record_slot(rec)->ci, 0);
	}
	mutex_unlock(&ctx->lock);
	return PTR_ERR_OR_ZERO(group);
}

/* The queue must be gone. */
void ferry_record_put(struct ferry_context *ctx, struct ferry_record *rec)
{
	if (!rec->group)
		return;
	mutex_lock(&ctx->lock);
	__clear_bit(rec->slot, rec->group->used);
	mutex_unlock(&ctx->lock);
	rec->group = NULL;
}

struct ferry_slot *ferry_record_slot(const struct ferry_record *rec)
{
	struct ferry_record_page *page = rec->group->map->buf.cpu;

	return &page->slot[rec->slot];
}

__le32 *ferry_record_word(const struct ferry_record *rec)
{
	struct ferry_record_page *page = rec->group->map->buf.cpu;

	return &page->word;
}

/* As the device calls it. */
__le64 ferry_record_addr(const struct ferry_record *rec)
{
	return cpu_to_le64(rec->group->map->buf.dma + rec->slot * FERRY_SLOT_SIZE);
}

/* As the process finds it. */
void ferry_record_describe(const struct ferry_record *rec, struct ferry_slot_map *map)
{
	map->page_offset = rec->group->offset;
	map->slot = rec->slot;
}
