// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * For guests under the coherence checker; riscv64 only.
 *
 * symbols	tells it the kernel's symbols
 * write	when this is done, all that was found is in the log
 * forget	the same, and what is found again is reported again; what a device has
 *		written up to now will not count as stale any more
 * stall USEC	from now on stores take that long which may tell a device something: it acts
 *		before the next instruction then
 * self-test	makes accesses that are right and ones that are wrong, with the checker
 *		itself as the device, and sees whether it tells them apart
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

#define LINE	64
#define SYMBOLS	"/proc/kallsyms"

/* In the order of the checker's enum coherence_event. */
enum event { READ_DIRTY, READ_LOST, WRITE_DIRTY, WRITE_ALIAS, LOAD_STALE, LOAD_LOST, FLUSH_LOST,
	     INVAL_DIRTY, ACCESS_ALIAS, EVENTS, NONE = EVENTS };

/* Marks for the checker: hints, without effect on a CPU. */
#if defined(__riscv)
#define MARK(imm, reg)	__asm__ volatile("slti zero, %0, " #imm : : "r"(reg) : "memory")
/* The extension need not be known to the assembler. */
#define CBO(imm, addr)	\
	__asm__ volatile(".insn i 0x0f, 2, x0, %0, " #imm : : "r"(addr) : "memory")
#else
#define MARK(imm, reg)	((void)(reg))
#define CBO(imm, addr)	((void)(addr))
#endif
#define tell_symbols(where)	MARK(0x7f3, where)
#define get_found(where)	MARK(0x7f4, where)
#define device_reads(addr)	MARK(0x7f5, addr)
#define device_writes(addr)	MARK(0x7f6, addr)
#define write_all()		MARK(0x7f7, 0)
#define forget()		MARK(0x7f8, 0)
#define set_stall(us)		MARK(0x7f9, us)
#define cbo_clean(addr)		CBO(1, addr)
#define cbo_flush(addr)		CBO(2, addr)

static int symbols(void)
{
	size_t room = 1 << 20, len = 0, n;
	FILE *file = fopen(SYMBOLS, "r");
	char *text = malloc(room);
	uint64_t where[2];

	if (!file || !text) {
		perror(SYMBOLS);
		return 1;
	}
	while ((n = fread(text + len, 1, room - len, file))) {
		len += n;
		if (len < room)
			continue;
		room *= 2;
		text = realloc(text, room);
		if (!text) {
			perror(SYMBOLS);
			return 1;
		}
	}
	fclose(file);
	where[0] = (uintptr_t)text;
	where[1] = len;
	tell_symbols(where);
	free(text);
	return 0;
}

/* ------------------------------------------------------------------------ self-test */

static volatile uint64_t *line;		/* 8 words, clean at the start of each case */

static void flushed_store(void) { line[0] = 1; cbo_flush(line); device_reads(line); }
static void cleaned_store(void) { line[0] = 1; cbo_clean(line); device_reads(line); }
static void other_bytes(void) { line[1] = 1; device_reads(line); }
static void forgotten_clean(void) { line[0] = 1; device_reads(line); }
static void late_clean(void) { line[0] = 1; device_reads(line); cbo_clean(line); }
static void early_clean(void) { cbo_clean(line); line[0] = 1; device_reads(line); }

/* The wrong line of two. */
static void wrong_line(void)
{
	line[0] = 1;
	cbo_clean(line + LINE / 8);
	device_reads(line);
}

static void flushed_sink(void)
{
	line[0] = 1;
	cbo_flush(line);
	device_writes(line);
	cbo_flush(line);
	(void)line[0];
}

static void dirty_sink(void) { line[0] = 1; device_writes(line); }
static void dirty_neighbour(void) { line[1] = 1; device_writes(line); }
static void forgotten_flush(void) { device_writes(line); (void)line[0]; }
static void early_flush(void) { cbo_flush(line); device_writes(line); (void)line[0]; }
static void cleaned_sink(void) { device_writes(line); cbo_clean(line); (void)line[0]; }
static void neighbour_read(void) { device_writes(line); (void)line[1]; }

/* The store takes what the device wrote with it. */
static void neighbour_store(void)
{
	device_writes(line);
	line[1] = 1;
	cbo_flush(line);
}

static void neighbour_store_load(void) { device_writes(line); line[1] = 1; (void)line[0]; }
static void neighbour_store_read(void) { device_writes(line); line[1] = 1; device_reads(line); }

/* Whoever writes a line whole has forgotten what was there. */
static void recycled(void)
{
	unsigned int i;

	device_writes(line);
	for (i = 0; i < LINE / 8; i++)
		line[i] = 0;
	cbo_flush(line);
	device_reads(line);
}

static void atomic_store(void)
{
	__atomic_fetch_add(&line[0], 1, __ATOMIC_RELAXED);
	device_reads(line);
}

static void byte_store(void) { ((volatile uint8_t *)line)[7] = 1; device_reads(line); }

/* Half in this line, half in the next. */
static void unaligned_store(void)
{
	*(volatile uint64_t *)((uintptr_t)line + LINE - 4) = 1;
	cbo_clean(line);
	device_reads(line + LINE / 8);
}

struct test_case {
	void (*run)(void);
	enum event want;
};

/* The events that the checker finds. Each case finds one at most, the one it is for. */
static void self_test(const void *arg)
{
	const struct test_case *test = arg;
	uint64_t before[EVENTS] = { 0 }, after[EVENTS] = { 0 };
	unsigned int i;
	void *page;

	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		    -1, 0);
	need(page != MAP_FAILED);
	line = page;
	for (i = 0; i < 8192 / LINE; i++)
		cbo_flush((uint8_t *)page + i * LINE);
	get_found(before);
	test->run();
	get_found(after);
	for (i = 0; i < EVENTS; i++)
		need_that(after[i] - before[i] == (i == test->want),
			  "event %u: found %llu times", i,
			  (unsigned long long)(after[i] - before[i]));
}

#define CASE(text, function, event) \
	TEST(text, self_test, .arg = &(const struct test_case){ function, event })

static const struct tap_test tests[] = {
	CASE("a store, flushed, is read", flushed_store, NONE),
	CASE("a store, cleaned, is read", cleaned_store, NONE),
	CASE("a store to other bytes of the line does not count", other_bytes, NONE),
	CASE("a store without clean", forgotten_clean, READ_DIRTY),
	CASE("a store with a clean too late", late_clean, READ_DIRTY),
	CASE("a store with a clean too early", early_clean, READ_DIRTY),
	CASE("a store with a clean of another line", wrong_line, READ_DIRTY),
	CASE("a store by AMO", atomic_store, READ_DIRTY),
	CASE("a store of one byte", byte_store, READ_DIRTY),
	CASE("a store over the end of a line", unaligned_store, READ_DIRTY),
	CASE("a sink, flushed before and after", flushed_sink, NONE),
	CASE("a sink that is dirty", dirty_sink, WRITE_DIRTY),
	CASE("a sink with a dirty neighbour", dirty_neighbour, WRITE_DIRTY),
	CASE("a sink without flush", forgotten_flush, LOAD_STALE),
	CASE("a sink with a flush too early", early_flush, LOAD_STALE),
	CASE("a sink, cleaned instead", cleaned_sink, LOAD_STALE),
	CASE("a load of a sink's neighbour does not count", neighbour_read, NONE),
	CASE("a store beside what was received", neighbour_store, FLUSH_LOST),
	CASE("and a load of that", neighbour_store_load, LOAD_LOST),
	CASE("and the device reads it", neighbour_store_read, READ_LOST),
	CASE("a line that is written whole is new", recycled, NONE),
};

int main(int argc, char **argv)
{
	const char *order = argc > 1 ? argv[1] : "";

	if (argc == 2 && !strcmp(order, "symbols"))
		return symbols();
	if (argc == 2 && !strcmp(order, "self-test"))
		return tap_run(tests, sizeof(tests) / sizeof(tests[0]), NULL, 0);
	if (argc == 2 && !strcmp(order, "write"))
		write_all();
	else if (argc == 2 && !strcmp(order, "forget"))
		forget();
	else if (argc == 3 && !strcmp(order, "stall"))
		set_stall(strtoul(argv[2], NULL, 0));
	else
		goto usage;
	return 0;

usage:
	fprintf(stderr, "usage: %s symbols|write|forget|stall USEC|self-test\n", argv[0]);
	return 2;
}
