// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What Ferry has beyond verbs: memory without cache maintenance, for programs and for the
 * provider, and cache maintenance where user mode cannot do it.
 */
#include <linux/overflow.h>
#include <linux/slab.h>

#include "mmap.h"
#include "pagelist.h"
#include "ring.h"
#include "verbs.h"

#define UVERBS_MODULE_NAME ferry
#include <rdma/uverbs_named_ioctl.h>

#define FERRY_CONTEXT_MEMORY_MAX	4096	/* additions */
#define FERRY_SYNC_RANGES_MAX		1024

/* ------------------------------------------------------------------ memory for programs */

static int ferry_memory_cleanup(struct ib_uobject *uobj, enum rdma_remove_reason why,
				struct uverbs_attr_bundle *attrs)
{
	ferry_ring_free(uobj->object);
	return 0;
}

static struct ferry_ring *ferry_memory_create(struct ferry_ucontext *uctx, u64 length)
{
	struct ferry_context *ctx = &uctx->ctx;
	struct ferry_locked locked = {};
	struct ferry_ring *ring;
	unsigned int i;
	int err;

	/* What it becomes must fit struct ferry_ring_map. */
	if (!length || length > round_down(U32_MAX, SZ_1M))
		return ERR_PTR(-EINVAL);
	length = length < SZ_1M ? roundup_pow_of_two(length) : round_up(length, SZ_1M);
	length = max(length, PAGE_SIZE);
	err = ferry_locked_charge(&locked, PHYS_PFN(length));
	if (err)
		return ERR_PTR(err);
	ring = ferry_ring_alloc(ctx->dev, ctx, length);
	/* A chunk may live longer than the others: as long as it is mapped. */
	for (i = 0; ring && i < ring->chunks; i++) {
		ring->chunk[i]->kind = FERRY_MMAP_PROGRAM;
		ferry_locked_split(&locked, &ring->chunk[i]->locked,
				   PHYS_PFN(1ul << ring->chunk_shift));
	}
	ferry_locked_uncharge(&locked);
	return ring ?: ERR_PTR(-ENOMEM);
}

static int UVERBS_HANDLER(FERRY_METHOD_MEMORY_ALLOC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, FERRY_ATTR_MEMORY_ALLOC_HANDLE);
	struct ib_ucontext *ibuctx = ib_uverbs_get_ucontext(attrs);
	struct ferry_ring_map map = {};
	struct ferry_ring *ring;
	u64 length;
	int err;

	if (IS_ERR(ibuctx))
		return PTR_ERR(ibuctx);
	err = uverbs_copy_from(&length, attrs, FERRY_ATTR_MEMORY_ALLOC_LENGTH);
	if (err)
		return err;
	ring = ferry_memory_create(to_ferry_uctx(ibuctx), length);
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	err = ferry_ring_share(ring, &map);
	if (err) {
		ferry_ring_free(ring);
		return err;
	}
	uobj->object = ring;
	uverbs_finalize_uobj_create(attrs, FERRY_ATTR_MEMORY_ALLOC_HANDLE);
	return uverbs_copy_to(attrs, FERRY_ATTR_MEMORY_ALLOC_MAP, &map, sizeof(map));
}

DECLARE_UVERBS_NAMED_METHOD(
	FERRY_METHOD_MEMORY_ALLOC,
	UVERBS_ATTR_IDR(FERRY_ATTR_MEMORY_ALLOC_HANDLE, FERRY_OBJECT_MEMORY, UVERBS_ACCESS_NEW,
			UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(FERRY_ATTR_MEMORY_ALLOC_LENGTH, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(FERRY_ATTR_MEMORY_ALLOC_MAP, UVERBS_ATTR_TYPE(struct ferry_ring_map),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	FERRY_METHOD_MEMORY_FREE,
	UVERBS_ATTR_IDR(FERRY_ATTR_MEMORY_FREE_HANDLE, FERRY_OBJECT_MEMORY, UVERBS_ACCESS_DESTROY,
			UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(
	FERRY_OBJECT_MEMORY,
	UVERBS_TYPE_ALLOC_IDR(ferry_memory_cleanup),
	&UVERBS_METHOD(FERRY_METHOD_MEMORY_ALLOC),
	&UVERBS_METHOD(FERRY_METHOD_MEMORY_FREE));

/* ---------------------------------------------------------------- memory for the provider */

/* Tells the device all of it anew: what was there keeps its place. */
static int ferry_context_memory_tell(struct ferry_ucontext *uctx)
{
	struct ferry_dev *dev = uctx->ctx.dev;
	struct ferry_admin_set_context_memory cmd = {
		.context = cpu_to_le32(uctx->ctx.number),
		.length = cpu_to_le64(uctx->memory_bytes),
	};
	unsigned int i, shift = uctx->memory_shift;
	struct ferry_pages pages;
	u32 entry = 0;
	size_t at;
	int err;

	err = ferry_pages_alloc(dev, &pages, &cmd.pages, uctx->memory_bytes >> shift, shift);
	if (err)
		goto out;
	for (i = 0; i < uctx->memory_count; i++) {
		const struct ferry_buf *buf = &uctx->memory[i]->buf;

		for (at = 0; at < buf->size; at += 1ul << shift)
			ferry_pages_set(&pages, &cmd.pages, entry++, buf->dma + at);
	}
	err = ferry_admin_exec(dev, FERRY_ADMIN_SET_CONTEXT_MEMORY, &cmd);
out:
	ferry_pages_free(dev, &pages);
	return err;
}

static int ferry_context_memory_add(struct ferry_ucontext *uctx, size_t bytes, u64 *offset)
{
	unsigned int shift = ilog2(bytes), old_shift = uctx->memory_shift;
	struct ferry_mmap **memory, *map;
	int err;

	if (uctx->memory_count == FERRY_CONTEXT_MEMORY_MAX)
		return -ENOMEM;
	memory = krealloc_array(uctx->memory, uctx->memory_count + 1, sizeof(*memory),
				GFP_KERNEL_ACCOUNT);
	if (!memory)
		return -ENOMEM;
	uctx->memory = memory;
	map = ferry_mmap_alloc_memory(uctx->ctx.dev, &uctx->ctx, bytes,
				      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!map)
		return -ENOMEM;
	err = ferry_locked_charge(&map->locked, PHYS_PFN(bytes));
	if (err)
		goto err_map;
	err = ferry_mmap_share(uctx, &map, 1, bytes, offset);
	if (err)
		goto err_map;
	uctx->memory[uctx->memory_count++] = map;
	uctx->memory_bytes += bytes;
	uctx->memory_shift = old_shift ? min(old_shift, shift) : shift;
	err = ferry_context_memory_tell(uctx);
	if (err)
		goto err_memory;
	return 0;

err_memory:
	uctx->memory_count--;
	uctx->memory_bytes -= bytes;
	uctx->memory_shift = old_shift;
err_map:
	ferry_mmap_put(map);
	return err;
}

static int UVERBS_HANDLER(FERRY_METHOD_CONTEXT_MEMORY_ADD)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuctx = ib_uverbs_get_ucontext(attrs);
	struct ferry_ucontext *uctx;
	u64 length, offset, base;
	int err;

	if (IS_ERR(ibuctx))
		return PTR_ERR(ibuctx);
	uctx = to_ferry_uctx(ibuctx);
	err = uverbs_copy_from(&length, attrs, FERRY_ATTR_CONTEXT_MEMORY_ADD_LENGTH);
	if (err)
		return err;
	if (length < PAGE_SIZE || length > SZ_1M || !is_power_of_2(length))
		return -EINVAL;
	mutex_lock(&uctx->memory_lock);
	base = uctx->memory_bytes;
	err = ferry_context_memory_add(uctx, length, &offset);
	mutex_unlock(&uctx->memory_lock);
	if (!err)
		err = uverbs_copy_to(attrs, FERRY_ATTR_CONTEXT_MEMORY_ADD_OFFSET, &offset,
				     sizeof(offset));
	if (!err)
		err = uverbs_copy_to(attrs, FERRY_ATTR_CONTEXT_MEMORY_ADD_BASE, &base,
				     sizeof(base));
	return err;
}

DECLARE_UVERBS_NAMED_METHOD(
	FERRY_METHOD_CONTEXT_MEMORY_ADD,
	UVERBS_ATTR_PTR_IN(FERRY_ATTR_CONTEXT_MEMORY_ADD_LENGTH, UVERBS_ATTR_TYPE(u64),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(FERRY_ATTR_CONTEXT_MEMORY_ADD_OFFSET, UVERBS_ATTR_TYPE(u64),
			    UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(FERRY_ATTR_CONTEXT_MEMORY_ADD_BASE, UVERBS_ATTR_TYPE(u64),
			    UA_MANDATORY));

ADD_UVERBS_METHODS(ferry_device_methods, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(FERRY_METHOD_CONTEXT_MEMORY_ADD));

/* ------------------------------------------------------------------- cache maintenance */

static int UVERBS_HANDLER(FERRY_METHOD_MR_SYNC)(struct uverbs_attr_bundle *attrs)
{
	static void (*const sync[])(struct ferry_dev *, const struct ferry_umem *, u64, u64) = {
		[FERRY_SYNC_CLEAN] = ferry_umem_clean,
		[FERRY_SYNC_FLUSH] = ferry_umem_flush,
	};
	struct ib_mr *ibmr = uverbs_attr_get_obj(attrs, FERRY_ATTR_MR_SYNC_HANDLE);
	struct ferry_dev *dev = to_ferry(ibmr->device);
	struct ferry_mr *mr = to_ferry_mr(ibmr);
	const struct ferry_range *range;
	int count, i, err;
	u64 op, total = 0;

	err = uverbs_get_const(&op, attrs, FERRY_ATTR_MR_SYNC_OP);
	if (err)
		return err;
	count = uverbs_attr_ptr_get_array_size(attrs, FERRY_ATTR_MR_SYNC_RANGES, sizeof(*range));
	if (count < 0)
		return count;
	if (op >= ARRAY_SIZE(sync) || !sync[op] || count > FERRY_SYNC_RANGES_MAX)
		return -EINVAL;
	range = uverbs_attr_get_alloced_ptr(attrs, FERRY_ATTR_MR_SYNC_RANGES);
	/* No call lasts longer than one over the whole MR. */
	for (i = 0; i < count; i++)
		if (!ferry_umem_has(&mr->mem, range[i].addr, range[i].length) ||
		    check_add_overflow(total, range[i].length, &total))
			return -EINVAL;
	if (total > mr->mem.length)
		return -EINVAL;
	for (i = 0; i < count; i++)
		sync[op](dev, &mr->mem, range[i].addr, range[i].length);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	FERRY_METHOD_MR_SYNC,
	UVERBS_ATTR_IDR(FERRY_ATTR_MR_SYNC_HANDLE, UVERBS_OBJECT_MR, UVERBS_ACCESS_READ,
			UA_MANDATORY),
	UVERBS_ATTR_CONST_IN(FERRY_ATTR_MR_SYNC_OP, enum ferry_sync, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(FERRY_ATTR_MR_SYNC_RANGES,
			   UVERBS_ATTR_MIN_SIZE(sizeof(struct ferry_range)), UA_MANDATORY,
			   UA_ALLOC_AND_COPY));

ADD_UVERBS_METHODS(ferry_mr_methods, UVERBS_OBJECT_MR, &UVERBS_METHOD(FERRY_METHOD_MR_SYNC));

const struct uapi_definition ferry_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(FERRY_OBJECT_MEMORY),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &ferry_device_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &ferry_mr_methods),
	{},
};
