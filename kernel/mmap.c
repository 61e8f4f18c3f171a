// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a process can map. The core counts the mappings and takes them away when the
 * device goes; so nothing but rdma_user_mmap_io() is used to map, and what is mapped is
 * freed in ferry_mmap_free() alone.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "ferry.h"
#include "mmap.h"
#include "verbs.h"

static struct ferry_mmap *to_ferry_mmap(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct ferry_mmap, entry);
}

struct ferry_mmap *ferry_mmap_alloc(struct ferry_dev *dev, enum ferry_mmap_kind kind)
{
	struct ferry_mmap *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);

	if (map) {
		map->dev = dev;
		map->kind = kind;
	}
	return map;
}

static void ferry_mmap_uncharge(struct ferry_context *ctx, size_t size)
{
	if (!ctx)
		return;
	atomic_long_sub(size, &ctx->bytes);
	atomic_long_sub(size, &ctx->dev->bytes);
}

/*
 * A context may have a quarter of the machine and all of a device a half, besides what cgroups
 * allow: until the memory is really free, which mappings can put off.
 */
static int ferry_mmap_charge(struct ferry_context *ctx, size_t size)
{
	unsigned long own, all;

	if (!ctx)
		return 0;
	own = atomic_long_add_return(size, &ctx->bytes) >> PAGE_SHIFT;
	all = atomic_long_add_return(size, &ctx->dev->bytes) >> PAGE_SHIFT;
	if (own <= totalram_pages() / 4 && all <= totalram_pages() / 2)
		return 0;
	ferry_mmap_uncharge(ctx, size);
	return -ENOMEM;
}

/**
 * ferry_mmap_alloc_memory - memory that device and kernel share
 * @dev: the device
 * @ctx: whose limit it counts against, or NULL
 * @size: a power of two, a page or more
 * @gfp: how to allocate
 *
 * A process shares it, too, after ferry_mmap_share().
 *
 * Return: the memory, zeroed, or NULL.
 */
struct ferry_mmap *ferry_mmap_alloc_memory(struct ferry_dev *dev, struct ferry_context *ctx,
					   size_t size, gfp_t gfp)
{
	struct ferry_mmap *map;

	if (ferry_mmap_charge(ctx, size))
		return NULL;
	map = ferry_mmap_alloc(dev, FERRY_MMAP_MEMORY);
	if (!map)
		goto err_charge;
	if (ferry_dma_alloc(dev, &map->buf, size, gfp))
		goto err_map;
	map->ctx = ctx;
	map->pfn = ferry_dma_pfn(&map->buf);
	return map;

err_map:
	kfree(map);
err_charge:
	ferry_mmap_uncharge(ctx, size);
	return NULL;
}

static void ferry_mmap_release(struct ferry_mmap *map)
{
	if (map->kind == FERRY_MMAP_MEMORY || map->kind == FERRY_MMAP_PROGRAM) {
		ferry_mmap_uncharge(map->ctx, map->buf.size);
		ferry_dma_free(map->dev, &map->buf);
		ferry_locked_uncharge(&map->locked);
	}
	kfree(map);
}

void ferry_mmap_free(struct rdma_user_mmap_entry *entry)
{
	ferry_mmap_release(to_ferry_mmap(entry));
}

/*
 * The driver's own hold on @map (which may be NULL) ends, and that of the device, which
 * must have been told before; a process may keep its mapping.
 */
void ferry_mmap_put(struct ferry_mmap *map)
{
	if (!map)
		return;
	if (map->kind == FERRY_MMAP_MEMORY)
		ferry_dma_hide(map->dev, &map->buf);
	if (map->inserted)
		rdma_user_mmap_entry_remove(&map->entry);
	else
		ferry_mmap_release(map);
}

/**
 * ferry_mmap_share - lets a process map things, at offsets that follow each other
 * @uctx: of the process
 * @maps: the things
 * @count: how many
 * @size: of each, in bytes
 * @offset: where the first one is to be found
 *
 * The core finds room for an entry, but not for several in a row. So a placeholder finds
 * it for all of them, and under our lock nobody else can take what it leaves. The process may
 * hold it, as any entry, while it asks for that offset: then the room is not free, and the
 * placeholder lives on for a moment.
 *
 * Return: 0 or -ENOMEM; then some may have been shared: put all of them.
 */
int ferry_mmap_share(struct ferry_ucontext *uctx, struct ferry_mmap **maps, unsigned int count,
		     size_t size, u64 *offset)
{
	struct ferry_mmap *room;
	unsigned long pgoff;
	unsigned int i;
	int err;

	room = ferry_mmap_alloc(uctx->ctx.dev, FERRY_MMAP_PLACEHOLDER);
	if (!room)
		return -ENOMEM;
	mutex_lock(&uctx->mmap_lock);
	err = rdma_user_mmap_entry_insert(&uctx->ibuctx, &room->entry, count * size);
	if (err) {
		kfree(room);
		goto out;
	}
	pgoff = room->entry.start_pgoff;
	rdma_user_mmap_entry_remove(&room->entry);

	for (i = 0; i < count && !err; i++) {
		err = rdma_user_mmap_entry_insert_exact(&uctx->ibuctx, &maps[i]->entry, size,
							pgoff + i * PHYS_PFN(size));
		if (!err)
			maps[i]->inserted = true;
	}
	*offset = (u64)pgoff << PAGE_SHIFT;
out:
	mutex_unlock(&uctx->mmap_lock);
	return err;
}

/* What the process may register, and maps at @offset; to be put. NULL: there is none. */
static struct ferry_mmap *ferry_mmap_get(struct ib_ucontext *ibuctx, u64 offset)
{
	struct rdma_user_mmap_entry *entry;

	if (offset & ~PAGE_MASK)
		return NULL;
	entry = rdma_user_mmap_entry_get_pgoff(ibuctx, offset >> PAGE_SHIFT);
	if (!entry)
		return NULL;
	if (to_ferry_mmap(entry)->kind == FERRY_MMAP_PROGRAM)
		return to_ferry_mmap(entry);
	rdma_user_mmap_entry_put(entry);
	return NULL;
}

/* The size of the chunks that begin at @offset, or 0. */
size_t ferry_mmap_chunk_bytes(struct ib_ucontext *ibuctx, u64 offset)
{
	struct ferry_mmap *map = ferry_mmap_get(ibuctx, offset);
	size_t bytes;

	if (!map)
		return 0;
	bytes = map->buf.size;
	rdma_user_mmap_entry_put(&map->entry);
	return bytes;
}

void ferry_mmap_put_chunks(struct ferry_mmap **chunk, u32 count)
{
	while (count--)
		rdma_user_mmap_entry_put(&chunk[count]->entry);
}

/**
 * ferry_mmap_get_chunks - keeps memory that a process may register
 * @ibuctx: of the process
 * @offset: where it maps the first chunk
 * @chunk_bytes: of each
 * @chunk: the chunks
 * @count: how many
 *
 * Return: 0, then ferry_mmap_put_chunks() is due; or -EINVAL.
 */
int ferry_mmap_get_chunks(struct ib_ucontext *ibuctx, u64 offset, size_t chunk_bytes,
			  struct ferry_mmap **chunk, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		chunk[i] = ferry_mmap_get(ibuctx, offset + (u64)i * chunk_bytes);
		if (chunk[i] && chunk[i]->buf.size == chunk_bytes)
			continue;
		if (chunk[i])
			rdma_user_mmap_entry_put(&chunk[i]->entry);
		ferry_mmap_put_chunks(chunk, i);
		return -EINVAL;
	}
	return 0;
}

static int ferry_mmap_prot(struct ferry_mmap *map, struct vm_area_struct *vma, pgprot_t *prot)
{
	switch (map->kind) {
	case FERRY_MMAP_DOORBELL:
		/* Not write-combining: a doorbell must leave the CPU by itself. */
		*prot = pgprot_noncached(vma->vm_page_prot);
		return 0;
	case FERRY_MMAP_STATUS:
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		vm_flags_clear(vma, VM_MAYWRITE);
		fallthrough;
	case FERRY_MMAP_MEMORY:
	case FERRY_MMAP_PROGRAM:
		*prot = ferry_dma_pgprot(map->dev, vma->vm_page_prot);
		return 0;
	default:
		return -EINVAL;
	}
}

int ferry_mmap(struct ib_ucontext *ibuctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct ferry_mmap *map;
	pgprot_t prot;
	int err;

	/* The device writes there: nothing of it is ever code. */
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYEXEC);

	/* Checks that the mapping is shared and as large as the entry. */
	entry = rdma_user_mmap_entry_get(ibuctx, vma);
	if (!entry)
		return -EINVAL;
	map = to_ferry_mmap(entry);

	err = ferry_mmap_prot(map, vma, &prot);
	if (!err)
		err = rdma_user_mmap_io(ibuctx, vma, map->pfn, entry->npages * PAGE_SIZE, prot,
					entry);
	rdma_user_mmap_entry_put(entry);
	return err;
}
