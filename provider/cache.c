// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Cache maintenance: by user mode's own instructions where it has them, else by the
 * driver. Which of the two is decided when a context is opened.
 *
 * cbo.clean and cbo.flush act on all copies of a line, on all harts. For fences they are
 * stores; and a later load of the same line is not taken before them.
 */
#include <stdlib.h>
#include <unistd.h>
#include <infiniband/cmd_ioctl.h>

#include "bounce.h"
#include "cache.h"

#if defined(__riscv)
#include <asm/hwprobe.h>
#include <sys/syscall.h>

/* Not in the headers of older kernels. */
#ifndef RISCV_HWPROBE_EXT_ZICBOM
#define RISCV_HWPROBE_EXT_ZICBOM		(1ull << 55)
#endif
#ifndef RISCV_HWPROBE_KEY_ZICBOM_BLOCK_SIZE
#define RISCV_HWPROBE_KEY_ZICBOM_BLOCK_SIZE	12
#endif

/*
 * Bytes that cbo.* work on, 0 if user mode may not use them. The kernel answers for all
 * CPUs together: a thread may run on any of them, and where one lacks the instructions
 * the kernel enables them on none.
 */
static size_t ferry_user_line(void)
{
	struct riscv_hwprobe probe[] = {
		{ .key = RISCV_HWPROBE_KEY_IMA_EXT_0 },
		{ .key = RISCV_HWPROBE_KEY_ZICBOM_BLOCK_SIZE },
	};

	if (syscall(__NR_riscv_hwprobe, probe, 2, 0, NULL, 0) || probe[0].key < 0 ||
	    probe[1].key < 0 || !(probe[0].value & RISCV_HWPROBE_EXT_ZICBOM))
		return 0;
	return probe[1].value;
}

#define FERRY_CBO(operation, line)						\
	__asm__ volatile(".option push\n\t"					\
			 ".option arch, +zicbom\n\t"				\
			 "cbo." #operation " (%0)\n\t"				\
			 ".option pop" : : "r"(line) : "memory")

static void ferry_clean_lines(uintptr_t from, uintptr_t to, size_t line)
{
	for (; from < to; from += line)
		FERRY_CBO(clean, from);
}

static void ferry_flush_lines(uintptr_t from, uintptr_t to, size_t line)
{
	for (; from < to; from += line)
		FERRY_CBO(flush, from);
}
#else
/* Always by the driver. */
static size_t ferry_user_line(void)
{
	return 0;
}

static void ferry_clean_lines(uintptr_t from, uintptr_t to, size_t line)
{
}

static void ferry_flush_lines(uintptr_t from, uintptr_t to, size_t line)
{
}
#endif

int ferry_cache_init(struct ferry_context *ctx, uint32_t line)
{
	struct ferry_cache *cache;
	unsigned int i;

	if (line < sizeof(uint64_t) || line & (line - 1))
		return EINVAL;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return ENOMEM;
	cache->line = line;
	cache->user = ferry_user_line() == line;
	cache->ends = 1;
	for (i = 0; i <= FERRY_BOUNCE_SHIFT_MAX; i++)
		list_head_init(&cache->blocks[i]);
	list_head_init(&cache->memory);
	ctx->cache = cache;
	return 0;
}

/* No object of the context is left. */
void ferry_cache_free(struct ferry_context *ctx)
{
	struct ferry_cache *cache = ctx->cache;
	unsigned int i;

	if (!cache)
		return;
	ferry_bounce_release(cache);
	for (i = 0; i < FERRY_REGION_LEAVES; i++)
		free(cache->regions[i]);
	free(cache);
}

/* By the driver, in the MR's own addresses. 0 or an errno. */
int ferry_mr_sync(struct ibv_context *ibctx, uint32_t handle, enum ferry_sync op,
		  const struct ferry_range *range)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_MR, FERRY_METHOD_MR_SYNC, 3);

	fill_attr_in_obj(cmd, FERRY_ATTR_MR_SYNC_HANDLE, handle);
	fill_attr_in_uint64(cmd, FERRY_ATTR_MR_SYNC_OP, op);
	fill_attr_in(cmd, FERRY_ATTR_MR_SYNC_RANGES, range, sizeof(*range));
	return execute_ioctl(ibctx, cmd);
}

/*
 * A clean needs a mapping that may be written: where the MR does not promise that, the
 * driver does it.
 */
static bool ferry_cache_by_user(const struct ferry_cache *cache, const struct ferry_region *region)
{
	return cache->user && region->local_write;
}

/*
 * What the CPUs have stored to the range reaches memory, with what else lies in its first
 * and last lines. Before ferry_fence_work_record().
 *
 * Return: 0 or an errno. Posting does not care: a driver that refuses has lost the device, or
 * the region, and no work will come of it.
 */
int ferry_cache_clean(struct ferry_context *ctx, const struct ferry_region *region,
		      uint64_t addr, uint64_t length)
{
	const struct ferry_range range = { .addr = addr, .length = length };
	const uintptr_t va = region->va + (addr - region->iova);
	const size_t line = ctx->cache->line;

	if (!ferry_cache_by_user(ctx->cache, region))
		return ferry_mr_sync(&ctx->ibv_ctx.context, region->handle, FERRY_SYNC_CLEAN, &range);
	ferry_clean_lines(va & ~(uintptr_t)(line - 1), va + length, line);
	return 0;
}

/*
 * The same, and the CPUs hold nothing of the range any more. It must be whole lines.
 * Before ferry_fence_work_record(), or after ferry_fence_valid_flush().
 */
int ferry_cache_flush(struct ferry_context *ctx, const struct ferry_region *region,
		      uint64_t addr, uint64_t length)
{
	const struct ferry_range range = { .addr = addr, .length = length };
	const uintptr_t va = region->va + (addr - region->iova);

	if (!ferry_cache_by_user(ctx->cache, region))
		return ferry_mr_sync(&ctx->ibv_ctx.context, region->handle, FERRY_SYNC_FLUSH, &range);
	ferry_flush_lines(va, va + length, ctx->cache->line);
	return 0;
}
