// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/slab.h>

#include "mmap.h"
#include "verbs.h"

static int ferry_ucontext_share(struct ferry_ucontext *uctx, struct ferry_mmap **map,
				enum ferry_mmap_kind kind, unsigned long pfn, u64 *offset)
{
	struct ferry_mmap *new = ferry_mmap_alloc(uctx->ctx.dev, kind);

	if (!new)
		return -ENOMEM;
	new->pfn = pfn;
	*map = new;
	return ferry_mmap_share(uctx, map, 1, PAGE_SIZE, offset);
}

static int ferry_ucontext_describe(struct ferry_ucontext *uctx,
				   struct ferry_alloc_ucontext_resp *resp)
{
	struct ferry_dev *dev = uctx->ctx.dev;
	int err;

	resp->context = uctx->ctx.number;
	resp->flags = (ferry_has(dev, FERRY_CAP_POLL) ? FERRY_UCTX_POLL : 0) |
		      (dev->cache_line ? FERRY_UCTX_NONCOHERENT : 0);
	resp->cache_line = dev->cache_line;
	resp->caps = dev->limits.caps;
	resp->max_inline = dev->limits.max_inline;

	err = ferry_ucontext_share(uctx, &uctx->doorbell, FERRY_MMAP_DOORBELL,
				   PHYS_PFN(dev->db_base) + uctx->ctx.number,
				   &resp->doorbell_offset);
	if (!err)
		err = ferry_ucontext_share(uctx, &uctx->status, FERRY_MMAP_STATUS,
					   ferry_dma_pfn(&dev->status), &resp->status_offset);
	return err;
}

static void ferry_ucontext_release(struct ferry_ucontext *uctx)
{
	struct ferry_context *ctx = &uctx->ctx;
	unsigned int i;

	ferry_mmap_put(uctx->status);
	ferry_mmap_put(uctx->doorbell);
	ferry_admin_destroy(ctx->dev, FERRY_ADMIN_DESTROY_CONTEXT, ctx->number);
	for (i = 0; i < uctx->memory_count; i++)
		ferry_mmap_put(uctx->memory[i]);
	kfree(uctx->memory);
	ferry_context_release(ctx);
}

int ferry_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata)
{
	struct ferry_ucontext *uctx = to_ferry_uctx(ibuctx);
	struct ferry_dev *dev = to_ferry(ibuctx->device);
	struct ferry_alloc_ucontext_resp resp = {};
	struct ferry_admin_object cmd = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	mutex_init(&uctx->mmap_lock);
	mutex_init(&uctx->memory_lock);
	ferry_context_init(&uctx->ctx, dev, uctx);
	err = ferry_admin_create(dev, FERRY_ADMIN_CREATE_CONTEXT, &cmd, &uctx->ctx.number);
	if (err)
		return err;
	err = ferry_ucontext_describe(uctx, &resp);
	if (!err)
		err = ib_respond_udata(udata, resp);
	if (err)
		ferry_ucontext_release(uctx);
	return err;
}

void ferry_dealloc_ucontext(struct ib_ucontext *ibuctx)
{
	ferry_ucontext_release(to_ferry_uctx(ibuctx));
}

/* That it is there says that we can: the core takes away all mappings by itself. */
void ferry_disassociate_ucontext(struct ib_ucontext *ibuctx)
{
}
