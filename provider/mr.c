// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory regions. The driver does all of it; the provider remembers what it needs to keep
 * caches right.
 */
#include <errno.h>
#include <stdlib.h>

#include "cache.h"
#include "memory.h"

static int ferry_remember_mr(const struct ibv_mr *mr, uint64_t iova, int access, uint32_t flags)
{
	const struct ferry_region region = {
		.key = mr->lkey,
		.handle = mr->handle,
		.pd = mr->pd->handle,
		.cached = flags & FERRY_MR_CACHED,
		.local_write = access & IBV_ACCESS_LOCAL_WRITE,
		.iova = iova,
		.length = mr->length,
		.va = (uintptr_t)mr->addr,
	};

	return ferry_region_add(to_fctx(mr->context), &region);
}

/* @flags: FERRY_REG_MR_NO_ASSIST or 0. NULL with errno set on failure. */
struct ibv_mr *ferry_reg_mr_flags(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  int access, uint32_t flags)
{
	struct ferry_context *ctx = to_fctx(pd->context);
	struct ferry_reg_mr_command cmd = { .ferry.flags = flags };
	struct ferry_reg_mr_answer resp = {};
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ferry_find_memory(ctx, addr, length, &cmd.ferry);
	err = ibv_cmd_reg_mr(pd, addr, length, iova, access, vmr, &cmd.core, sizeof(cmd),
			     &resp.core, sizeof(resp));
	if (err)
		goto err_free;
	if (ctx->cache) {
		/* The core fills these in after us. */
		vmr->ibv_mr.pd = pd;
		vmr->ibv_mr.addr = addr;
		vmr->ibv_mr.length = length;
		err = ferry_remember_mr(&vmr->ibv_mr, iova, access, resp.ferry.flags);
		if (err)
			goto err_dereg;
	}
	return &vmr->ibv_mr;

err_dereg:
	ibv_cmd_dereg_mr(vmr);
err_free:
	free(vmr);
	errno = err;
	return NULL;
}

struct ibv_mr *ferry_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ferry_reg_mr_flags(pd, addr, length, iova, access, 0);
}

int ferry_dereg_mr(struct verbs_mr *vmr)
{
	struct ferry_context *ctx = to_fctx(vmr->ibv_mr.context);
	struct ferry_region region;
	bool known = ctx->cache && ferry_region_get(ctx->cache, vmr->ibv_mr.lkey, &region);
	int err;

	if (known)
		ferry_region_remove(ctx, region.key);
	err = ibv_cmd_dereg_mr(vmr);
	if (err) {
		if (known)
			ferry_region_add(ctx, &region);
		return err;
	}
	free(vmr);
	return 0;
}
