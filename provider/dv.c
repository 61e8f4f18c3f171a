// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Direct verbs, see ferrydv.h. memory.c has those for memory.
 */
#include <errno.h>

#include "cache.h"
#include "ferrydv.h"

bool ferrydv_is_supported(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &ferry_device_ops;
}

int ferrydv_query_context(struct ibv_context *ibctx, struct ferrydv_context_attr *attr,
			  uint32_t inlen)
{
	const struct ferry_cache *cache;

	if (!ferrydv_is_supported(ibctx->device))
		return EOPNOTSUPP;
	if (inlen < sizeof(*attr))
		return EINVAL;
	cache = to_fctx(ibctx)->cache;
	*attr = (struct ferrydv_context_attr) {};
	if (!cache)
		attr->flags |= FERRYDV_CONTEXT_COHERENT;
	else
		attr->cache_line = cache->line;
	if (cache && cache->user)
		attr->flags |= FERRYDV_CONTEXT_USER_SYNC;
	if (to_fctx(ibctx)->poll)
		attr->flags |= FERRYDV_CONTEXT_POLLS;
	return 0;
}

struct ibv_mr *ferrydv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			      int access, uint32_t flags)
{
	struct ibv_mr *mr;

	if (!ferrydv_is_supported(pd->context->device) || flags & ~FERRYDV_MR_NO_ASSIST) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = ferry_reg_mr_flags(pd, addr, length, iova, access,
				flags & FERRYDV_MR_NO_ASSIST ? FERRY_REG_MR_NO_ASSIST : 0);
	if (mr) {
		mr->context = pd->context;
		mr->pd = pd;
		mr->addr = addr;
		mr->length = length;
	}
	return mr;
}

int ferrydv_sync(struct ibv_mr *mr, void *addr, size_t length, enum ferrydv_sync_op op)
{
	struct ferry_context *ctx = to_fctx(mr->context);
	const size_t offset = addr - mr->addr;
	struct ferry_region region;
	int err;

	if (!ferrydv_is_supported(mr->context->device))
		return EOPNOTSUPP;
	if (offset > mr->length || length > mr->length - offset ||
	    (op != FERRYDV_SYNC_CLEAN && op != FERRYDV_SYNC_FLUSH))
		return EINVAL;
	if (!ctx->cache)
		return 0;
	/* A line that is flushed takes all that is in it along. */
	if (op == FERRYDV_SYNC_FLUSH && ((uintptr_t)addr | length) & (ctx->cache->line - 1))
		return EINVAL;
	if (!ferry_region_get(ctx->cache, mr->lkey, &region))
		return EINVAL;
	if (!region.cached || !length)
		return 0;
	/* After what told the program of it; before what the program tells. */
	ferry_fence_valid_flush();
	if (op == FERRYDV_SYNC_CLEAN)
		err = ferry_cache_clean(ctx, &region, region.iova + offset, length);
	else
		err = ferry_cache_flush(ctx, &region, region.iova + offset, length);
	ferry_fence_work_record();
	return err;
}
