/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a device model and the TCG plugin coherence.so share: the state of each cache line
 * of the guest's memory, on a machine whose caches the device does not see. The plugin
 * follows the CPUs' accesses and cache operations, the device model its own accesses; each
 * finds what the other would get wrong. doc/coherence-checker.md says how to use it.
 *
 * This header is the whole interface. A device model, in any process, calls
 *
 *	coherence_open()	once QEMU is there: the plugin makes the file,
 *	coherence_device_reads()	after it has read guest memory,
 *	coherence_device_writes()	before it writes,
 *
 * and announces what it has written (a completion, an interrupt) last. Addresses are
 * guest-physical, so no IOMMU may translate. Needs a 128-bit compare and swap: -mcx16 on
 * x86-64.
 *
 * The file: a struct coherence_header; reports; for each page of RAM a byte, for each line
 * a struct coherence_line, in order of addresses. All in the host's byte order. It is
 * sparse: zero is the state at reset, so that only memory in use takes any.
 */
#ifndef COHERENCE_SHADOW_H
#define COHERENCE_SHADOW_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COHERENCE_MAGIC		UINT64_C(0x31776f6461687343)	/* "Cshadow1" */
#define COHERENCE_LINE		64	/* bytes in a line */
#define COHERENCE_PAGE		4096
#define COHERENCE_REPORTS	1024

/*
 * A bit for each byte. Neither: what caches and memory hold is the same, or no cache holds
 * it. Dirty: a CPU's store is in a cache, memory is older. Stale: the device has written
 * memory, and a cache may hold what was there before. Both: lost, since memory and cache
 * have each something the other does not.
 *
 * dirty and stale change together, in one compare and swap.
 */
struct coherence_line {
	uint64_t dirty;
	uint64_t stale;
	uint64_t storer;	/* the plugin's: who stored last */
	uint64_t writer;	/* the device's: anything that tells what wrote last */
} __attribute__((aligned(16)));

enum coherence_event {
	COHERENCE_READ_DIRTY,	/* the device reads what has not been cleaned */
	COHERENCE_READ_LOST,
	COHERENCE_WRITE_DIRTY,	/* it writes into a line that has not been cleaned */
	COHERENCE_WRITE_ALIAS,	/* the same, in a page that is accessed without caches */
	COHERENCE_LOAD_STALE,	/* a CPU loads what the device has overwritten */
	COHERENCE_LOAD_LOST,
	COHERENCE_FLUSH_LOST,	/* a line goes to memory over what the device wrote */
	COHERENCE_INVAL_DIRTY,	/* stores are thrown away */
	COHERENCE_ACCESS_ALIAS,	/* a CPU accesses memory around a line that is dirty */
	COHERENCE_EVENTS,
};

enum coherence_report_state { COHERENCE_FREE, COHERENCE_FILLING, COHERENCE_READY };

/* From the device to the plugin, which prints it and frees it. */
struct coherence_report {
	uint32_t state;
	uint32_t event;		/* enum coherence_event */
	uint64_t addr;		/* of the line */
	uint64_t bytes;		/* of the line that are wrong, a bit each */
	uint64_t storer;	/* of the line */
	char who[96];		/* the device's words, NUL at the end */
};

struct coherence_header {
	uint64_t magic;
	uint64_t ram_base;	/* guest-physical */
	uint64_t ram_size;
	uint64_t pages_offset;	/* in the file */
	uint64_t lines_offset;
	uint32_t lost;		/* reports that found no room */
	uint32_t epoch;		/* the plugin's: a new one where what was said may be said again */
	struct coherence_report reports[COHERENCE_REPORTS];
};

struct coherence {
	struct coherence_header *header;
	uint8_t *pages;		/* not 0: accessed without caches */
	struct coherence_line *lines;
	size_t size;
	uint64_t said[512];	/* hashes: what need not be reported again */
};

static inline bool coherence_lay_out(struct coherence *c, int fd, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (map == MAP_FAILED)
		return false;
	memset(c, 0, sizeof(*c));
	c->header = map;
	c->size = size;
	return true;
}

static inline void coherence_close(struct coherence *c)
{
	if (c->header)
		munmap(c->header, c->size);
	memset(c, 0, sizeof(*c));
}

/* Maps the file that the plugin has made. False, with errno, if it is not there. */
static inline bool coherence_open(struct coherence *c, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	bool done;

	if (fd < 0)
		return false;
	done = !fstat(fd, &st) && st.st_size >= (off_t)sizeof(struct coherence_header) &&
	       coherence_lay_out(c, fd, (size_t)st.st_size);
	close(fd);
	if (!done)
		return false;
	if (__atomic_load_n(&c->header->magic, __ATOMIC_ACQUIRE) != COHERENCE_MAGIC) {
		coherence_close(c);
		errno = EINVAL;
		return false;
	}
	c->pages = (uint8_t *)c->header + c->header->pages_offset;
	c->lines = (struct coherence_line *)((char *)c->header + c->header->lines_offset);
	return true;
}

/* NULL: no RAM of ours. */
static inline struct coherence_line *coherence_line(struct coherence *c, uint64_t addr)
{
	uint64_t offset = addr - c->header->ram_base;

	return offset < c->header->ram_size ? &c->lines[offset / COHERENCE_LINE] : NULL;
}

static inline uint8_t *coherence_page(struct coherence *c, uint64_t addr)
{
	return &c->pages[(addr - c->header->ram_base) / COHERENCE_PAGE];
}

/* The bits of @len bytes from @addr on, as far as they are in its line. */
static inline uint64_t coherence_bytes(uint64_t addr, uint64_t len)
{
	unsigned int first = addr % COHERENCE_LINE;
	uint64_t bits = len >= COHERENCE_LINE ? UINT64_MAX : (UINT64_C(1) << len) - 1;

	return bits << first;
}

/* The states of a line's bytes, read or changed as one. */
struct coherence_state {
	uint64_t dirty;
	uint64_t stale;
} __attribute__((aligned(16)));

static inline struct coherence_state coherence_state(const struct coherence_line *line)
{
	return (struct coherence_state){
		__atomic_load_n(&line->dirty, __ATOMIC_RELAXED),
		__atomic_load_n(&line->stale, __ATOMIC_RELAXED),
	};
}

/* The same, if the line may be changing: both words are of one moment. */
static inline struct coherence_state coherence_state_exact(struct coherence_line *line)
{
	struct coherence_state state;
	unsigned __int128 both;

	do {
		state = coherence_state(line);
		memcpy(&both, &state, sizeof(both));
	} while (!__sync_bool_compare_and_swap((unsigned __int128 *)&line->dirty, both, both));
	return state;
}

/* False where the line is no longer in state @old. */
static inline bool coherence_change(struct coherence_line *line, struct coherence_state old,
				    struct coherence_state new)
{
	unsigned __int128 from, to;

	if (old.dirty == new.dirty && old.stale == new.stale)
		return true;
	memcpy(&from, &old, sizeof(from));
	memcpy(&to, &new, sizeof(to));
	return __sync_bool_compare_and_swap((unsigned __int128 *)&line->dirty, from, to);
}

static inline uint64_t coherence_hash(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* One report, unless it, or one like it, was made already. */
static inline void coherence_report(struct coherence *c, enum coherence_event event, uint64_t addr,
				    uint64_t bytes, const struct coherence_line *line,
				    const char *who)
{
	uint64_t hash = coherence_hash(coherence_hash(1, event), line->storer);
	struct coherence_report *report;
	unsigned int i;
	const char *at;

	hash = coherence_hash(hash, __atomic_load_n(&c->header->epoch, __ATOMIC_RELAXED));
	for (at = who; *at; at++)
		hash = coherence_hash(hash, (uint8_t)*at);
	if (c->said[hash % 512] == hash)
		return;
	c->said[hash % 512] = hash;
	for (i = 0; i < COHERENCE_REPORTS; i++) {
		uint32_t state = COHERENCE_FREE;

		report = &c->header->reports[i];
		if (!__atomic_compare_exchange_n(&report->state, &state, COHERENCE_FILLING, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		report->event = event;
		report->addr = addr & ~(uint64_t)(COHERENCE_LINE - 1);
		report->bytes = bytes;
		report->storer = line->storer;
		snprintf(report->who, sizeof(report->who), "%s", who);
		__atomic_store_n(&report->state, COHERENCE_READY, __ATOMIC_RELEASE);
		return;
	}
	__atomic_add_fetch(&c->header->lost, 1, __ATOMIC_RELAXED);
}

/* What the device is doing, in words: only called where something is wrong. */
typedef const char *coherence_who(void *arg, uint64_t addr);

/* The device has read [addr, addr + len). */
static inline void coherence_device_reads(struct coherence *c, uint64_t addr, uint64_t len,
					  coherence_who *who, void *arg)
{
	uint64_t end = addr + len;

	for (; addr < end; addr = (addr | (COHERENCE_LINE - 1)) + 1) {
		struct coherence_line *line = coherence_line(c, addr);
		uint64_t bytes = coherence_bytes(addr, end - addr), lost;
		struct coherence_state state;

		if (!line)
			return;
		state = coherence_state(line);
		if (!(bytes & state.dirty))
			continue;
		state = coherence_state_exact(line);
		bytes &= state.dirty;
		lost = bytes & state.stale;
		if (bytes)
			coherence_report(c, lost ? COHERENCE_READ_LOST : COHERENCE_READ_DIRTY, addr,
					 lost ? lost : bytes, line, who(arg, addr));
	}
}

/* The device is about to write [addr, addr + len). @writer is kept with the lines. */
static inline void coherence_device_writes(struct coherence *c, uint64_t addr, uint64_t len,
					   uint64_t writer, coherence_who *who, void *arg)
{
	uint64_t end = addr + len;

	for (; addr < end; addr = (addr | (COHERENCE_LINE - 1)) + 1) {
		struct coherence_line *line = coherence_line(c, addr);
		uint64_t bytes = coherence_bytes(addr, end - addr);
		struct coherence_state old, new;
		bool uncached;

		if (!line)
			return;
		uncached = *coherence_page(c, addr);
		do {
			old = coherence_state(line);
			new = old;
			if (uncached)
				continue;
			new.stale |= bytes;
			if (old.dirty)
				new.dirty |= bytes;
		} while (!coherence_change(line, old, new));
		if (!uncached)
			__atomic_store_n(&line->writer, writer, __ATOMIC_RELAXED);
		if (old.dirty)
			coherence_report(c, uncached ? COHERENCE_WRITE_ALIAS : COHERENCE_WRITE_DIRTY,
					 addr, old.dirty, line, who(arg, addr));
	}
}

#endif
