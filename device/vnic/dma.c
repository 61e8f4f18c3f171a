// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "dma.h"

void dma_init(struct dma_table *table)
{
	memset(table, 0, sizeof(*table));
}

static void unmap_file(struct dma_file *file)
{
	munmap(file->base, file->length);
	memset(file, 0, sizeof(*file));
}

void dma_clear(struct dma_table *table)
{
	unsigned int i;

	for (i = 0; i < DMA_MAX_FILES; i++)
		if (table->file[i].base)
			unmap_file(&table->file[i]);
	free(table->range);
	dma_init(table);
}

/* ------------------------------------------------------------------ memory files */

/* Unmaps files that have no range, those idle longest first, until @keep remain. */
static void drop_idle(struct dma_table *table, unsigned int keep)
{
	for (;;) {
		struct dma_file *oldest = NULL;
		unsigned int idle = 0, i;

		for (i = 0; i < DMA_MAX_FILES; i++) {
			struct dma_file *file = &table->file[i];

			if (!file->base || file->ranges)
				continue;
			idle++;
			if (!oldest || file->idle_since < oldest->idle_since)
				oldest = file;
		}
		if (idle <= keep)
			return;
		unmap_file(oldest);
	}
}

static struct dma_file *free_file(struct dma_table *table)
{
	unsigned int i;

	for (i = 0; i < DMA_MAX_FILES; i++)
		if (!table->file[i].base)
			return &table->file[i];
	return NULL;
}

static struct dma_file *find_file(struct dma_table *table, const struct stat *st, bool writable,
				  uint64_t end)
{
	unsigned int i;

	for (i = 0; i < DMA_MAX_FILES; i++) {
		struct dma_file *file = &table->file[i];

		if (file->base && file->dev == st->st_dev && file->ino == st->st_ino &&
		    file->writable == writable && file->length >= end)
			return file;
	}
	return NULL;
}

/*
 * A file that shrinks later would turn an access into SIGBUS. A memfd is sealed against
 * that here, if its owner has not done so; for files that know no seals server.c has a
 * handler that ends the process with a clear line.
 */
static void seal(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals >= 0 && !(seals & (F_SEAL_SHRINK | F_SEAL_SEAL)))
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
}

/*
 * The mapping of @fd, which must hold @end bytes. What may be written is decided range by
 * range; the mapping allows what the descriptor does, so that a file has but one.
 */
static int get_file(struct dma_table *table, int fd, bool write, uint64_t end,
		    struct dma_file **result)
{
	struct dma_file *file;
	struct stat st;
	bool writable;
	void *base;
	int flags;

	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		return -EINVAL;
	writable = (flags & O_ACCMODE) == O_RDWR;
	if (write && !writable)
		return -EACCES;
	if (st.st_size < 0 || (uint64_t)st.st_size < end)
		return -EINVAL;

	file = find_file(table, &st, writable, end);
	if (!file) {
		if (!free_file(table))
			drop_idle(table, 0);
		file = free_file(table);
		if (!file)
			return -ENOSPC;
		seal(fd);
		base = mmap(NULL, (size_t)st.st_size, PROT_READ | (writable ? PROT_WRITE : 0),
			    MAP_SHARED | MAP_NORESERVE, fd, 0);
		if (base == MAP_FAILED)
			return -errno;
		/* A process that crashes must not write the guest's memory to a core file. */
		madvise(base, (size_t)st.st_size, MADV_DONTDUMP);
		file->dev = st.st_dev;
		file->ino = st.st_ino;
		file->writable = writable;
		file->base = base;
		file->length = (uint64_t)st.st_size;
	}
	*result = file;
	return 0;
}

static void put_file(struct dma_table *table, struct dma_file *file)
{
	if (!file || --file->ranges)
		return;
	file->idle_since = ++table->ticks;
	drop_idle(table, DMA_IDLE_FILES);
}

/* ------------------------------------------------------------------------- ranges */

/* The first range that ends at or after @addr; table->count if there is none. */
static size_t find_from(const struct dma_table *table, uint64_t addr)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->range[middle].last < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert(struct dma_table *table, size_t at, const struct dma_range *range)
{
	if (table->count >= DMA_MAX_RANGES)
		return -ENOSPC;
	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		struct dma_range *bigger = realloc(table->range, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		table->range = bigger;
		table->room = room;
	}
	memmove(&table->range[at + 1], &table->range[at],
		(table->count - at) * sizeof(*table->range));
	table->range[at] = *range;
	table->count++;
	if (range->file)
		range->file->ranges++;
	return 0;
}

int dma_map(struct dma_table *table, uint64_t addr, uint64_t size, unsigned int rights, int fd,
	    uint64_t offset)
{
	struct dma_range range = { .addr = addr, .last = addr + size - 1, .rights = rights };
	size_t at;
	int ret;

	if (!size || range.last < addr || offset > UINT64_MAX - size ||
	    (addr | size | offset) % DMA_PAGE_SIZE)
		return -EINVAL;
	at = find_from(table, addr);
	if (at < table->count && table->range[at].addr <= range.last)
		return -EEXIST;
	if (fd >= 0) {
		ret = get_file(table, fd, rights & DMA_WRITE, offset + size, &range.file);
		if (ret)
			return ret;
		range.host = range.file->base + offset;
	}
	ret = insert(table, at, &range);
	if (ret && range.file && !range.file->ranges)
		unmap_file(range.file);
	return ret;
}

/* Makes @addr the start of a range, if it lies inside one. */
static int split(struct dma_table *table, uint64_t addr)
{
	size_t at = find_from(table, addr);
	struct dma_range upper, *lower;
	int ret;

	if (at == table->count || table->range[at].addr >= addr)
		return 0;
	upper = table->range[at];
	if (upper.host)
		upper.host += addr - upper.addr;
	upper.addr = addr;
	ret = insert(table, at + 1, &upper);
	if (ret)
		return ret;
	lower = &table->range[at];
	lower->last = addr - 1;
	return 0;
}

int64_t dma_unmap(struct dma_table *table, uint64_t addr, uint64_t last)
{
	uint64_t bytes = 0;
	size_t from, to;
	int ret;

	ret = split(table, addr);
	if (!ret && last != UINT64_MAX)
		ret = split(table, last + 1);
	if (ret)
		return ret;
	from = find_from(table, addr);
	for (to = from; to < table->count && table->range[to].addr <= last; to++) {
		bytes += table->range[to].last - table->range[to].addr + 1;
		put_file(table, table->range[to].file);
	}
	if (from == to)
		return 0;
	memmove(&table->range[from], &table->range[to],
		(table->count - to) * sizeof(*table->range));
	table->count -= to - from;
	table->hit = 0;
	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* The range that holds @addr and grants @rights. */
static struct dma_range *find(struct dma_table *table, uint64_t addr, unsigned int rights)
{
	struct dma_range *range;

	if (table->hit >= table->count || addr < table->range[table->hit].addr ||
	    addr > table->range[table->hit].last) {
		size_t at = find_from(table, addr);

		if (at == table->count || table->range[at].addr > addr)
			return NULL;
		table->hit = at;
	}
	range = &table->range[table->hit];
	return range->host && (range->rights & rights) == rights ? range : NULL;
}

void *dma_lookup(struct dma_table *table, uint64_t addr, uint64_t len, unsigned int rights)
{
	struct dma_range *range = find(table, addr, rights), *end, *next;
	char *host;

	if (!range || !len || addr + (len - 1) < addr)
		return NULL;
	host = range->host + (addr - range->addr);
	/* An IOMMU brings page after page: walk on while they stay side by side. */
	end = table->range + table->count;
	while (addr + (len - 1) > range->last) {
		next = range + 1;
		if (next == end || next->addr != range->last + 1 ||
		    next->host != range->host + (next->addr - range->addr) ||
		    (next->rights & rights) != rights)
			return NULL;
		range = next;
	}
	return host;
}

/* ------------------------------------------------------------------------- copying */

/* The host may look at a word at any time: one of 4 or 8 aligned bytes is a single access. */
static void copy_in(void *to, const char *host, size_t len)
{
	if (len == 8 && !((uintptr_t)host % 8)) {
		uint64_t v = atomic_load_explicit((const _Atomic uint64_t *)host,
						  memory_order_acquire);
		memcpy(to, &v, 8);
	} else if (len == 4 && !((uintptr_t)host % 4)) {
		uint32_t v = atomic_load_explicit((const _Atomic uint32_t *)host,
						  memory_order_acquire);
		memcpy(to, &v, 4);
	} else {
		memcpy(to, host, len);
	}
}

/*
 * A word is stored with release, behind all that was written before it: the valid word of
 * a CQE or EQE, whose body the host reads behind its `fence r,r`.
 */
static void copy_out(char *host, const void *from, size_t len)
{
	if (len == 8 && !((uintptr_t)host % 8)) {
		uint64_t v;

		memcpy(&v, from, 8);
		atomic_store_explicit((_Atomic uint64_t *)host, v, memory_order_release);
	} else if (len == 4 && !((uintptr_t)host % 4)) {
		uint32_t v;

		memcpy(&v, from, 4);
		atomic_store_explicit((_Atomic uint32_t *)host, v, memory_order_release);
	} else {
		memcpy(host, from, len);
	}
}

/* The next piece of [addr, addr + len): its place, and its length in @piece. */
static char *next_piece(struct dma_table *table, uint64_t addr, size_t len, unsigned int rights,
			size_t *piece)
{
	struct dma_range *range = find(table, addr, rights);

	if (!range)
		return NULL;
	*piece = range->last - addr < len - 1 ? (size_t)(range->last - addr + 1) : len;
	return range->host + (addr - range->addr);
}

int dma_read(struct dma_table *table, uint64_t addr, void *to, size_t len)
{
	char *at = to;
	size_t piece;

	for (; len; len -= piece, addr += piece, at += piece) {
		const char *host = next_piece(table, addr, len, DMA_READ, &piece);

		if (!host)
			return -EFAULT;
		copy_in(at, host, piece);
	}
	return 0;
}

int dma_write(struct dma_table *table, uint64_t addr, const void *from, size_t len)
{
	const char *at = from;
	size_t piece;

	for (; len; len -= piece, addr += piece, at += piece) {
		char *host = next_piece(table, addr, len, DMA_WRITE, &piece);

		if (!host)
			return -EFAULT;
		copy_out(host, at, piece);
	}
	return 0;
}
