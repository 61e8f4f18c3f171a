// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory of the driver for a program's own use. The kernel does not find its pages behind
 * an address of the process, so whoever registers it is told apart here.
 */
#include <errno.h>
#include <stdlib.h>
#include <infiniband/cmd_ioctl.h>

#include "ferrydv.h"
#include "memory.h"

struct ferry_memory {
	struct ferrydv_memory dv;
	struct ferry_context *ctx;
	struct list_node entry;		/* of struct ferry_context.memory */
	struct ferry_ring ring;
	uint64_t offset;		/* which names it to the driver */
	uint32_t handle;
};

static int ferry_ask_for_object(struct ferry_memory *memory, uint64_t length,
				struct ferry_ring_map *map)
{
	struct ibv_context *ibctx = &memory->ctx->ibv_ctx.context;
	struct ib_uverbs_attr *handle;
	int err;

	DECLARE_COMMAND_BUFFER(cmd, FERRY_OBJECT_MEMORY, FERRY_METHOD_MEMORY_ALLOC, 3);

	handle = fill_attr_out_obj(cmd, FERRY_ATTR_MEMORY_ALLOC_HANDLE);
	fill_attr_in_uint64(cmd, FERRY_ATTR_MEMORY_ALLOC_LENGTH, length);
	fill_attr_out(cmd, FERRY_ATTR_MEMORY_ALLOC_MAP, map, sizeof(*map));
	err = execute_ioctl(ibctx, cmd);
	if (!err)
		memory->handle = read_attr_obj(FERRY_ATTR_MEMORY_ALLOC_HANDLE, handle);
	return err;
}

static int ferry_end_object(struct ferry_memory *memory)
{
	DECLARE_COMMAND_BUFFER(cmd, FERRY_OBJECT_MEMORY, FERRY_METHOD_MEMORY_FREE, 1);

	fill_attr_in_obj(cmd, FERRY_ATTR_MEMORY_FREE_HANDLE, memory->handle);
	return execute_ioctl(&memory->ctx->ibv_ctx.context, cmd);
}

struct ferrydv_memory *ferrydv_alloc_memory(struct ibv_context *ibctx, size_t length)
{
	struct ferry_ring_map map = {};
	struct ferry_memory *memory;
	int err;

	if (!ferrydv_is_supported(ibctx->device)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return NULL;
	memory->ctx = to_fctx(ibctx);
	err = ferry_ask_for_object(memory, length, &map);
	if (err)
		goto err_free;
	if (ferry_map_ring(memory->ctx, &memory->ring, &map)) {
		err = errno;
		goto err_object;
	}
	memory->offset = map.offset;
	memory->dv.addr = memory->ring.mem;
	memory->dv.length = length;
	pthread_mutex_lock(&memory->ctx->lock);
	list_add(&memory->ctx->memory, &memory->entry);
	pthread_mutex_unlock(&memory->ctx->lock);
	return &memory->dv;

err_object:
	ferry_end_object(memory);
err_free:
	free(memory);
	errno = err;
	return NULL;
}

int ferrydv_free_memory(struct ferrydv_memory *dv)
{
	struct ferry_memory *memory = container_of(dv, struct ferry_memory, dv);
	struct ferry_context *ctx = memory->ctx;
	int err = ferry_end_object(memory);

	/* Of a lost device the kernel has ended everything. */
	if (err && err != EIO)
		return err;
	pthread_mutex_lock(&ctx->lock);
	list_del(&memory->entry);
	pthread_mutex_unlock(&ctx->lock);
	ferry_unmap_ring(&memory->ring);
	free(memory);
	return 0;
}

/* Says in @req which of it a range is, if it is. */
void ferry_find_memory(struct ferry_context *ctx, const void *addr, size_t length,
		       struct ferry_reg_mr_req *req)
{
	struct ferry_memory *memory;

	pthread_mutex_lock(&ctx->lock);
	list_for_each(&ctx->memory, memory, entry) {
		const size_t skip = addr - memory->dv.addr;

		if (addr < memory->dv.addr || length > memory->dv.length ||
		    skip > memory->dv.length - length)
			continue;
		req->flags |= FERRY_REG_MR_MEMORY;
		req->memory = memory->offset;
		req->skip = skip;
		break;
	}
	pthread_mutex_unlock(&ctx->lock);
}

/* What a program has left behind, with its context. The kernel ends the objects. */
void ferry_free_memory(struct ferry_context *ctx)
{
	struct ferry_memory *memory, *next;

	list_for_each_safe(&ctx->memory, memory, next, entry) {
		ferry_unmap_ring(&memory->ring);
		free(memory);
	}
}
