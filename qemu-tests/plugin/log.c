// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

static const struct {
	const char *name;	/* in the list of suppressions too */
	const char *text;
} events[COHERENCE_EVENTS] = {
	[COHERENCE_READ_DIRTY]	 = { "read-dirty", "the device reads bytes that were not cleaned" },
	[COHERENCE_READ_LOST]	 = { "read-lost", "the device reads bytes that it and a CPU wrote" },
	[COHERENCE_WRITE_DIRTY]	 = { "write-dirty", "the device writes into a line with stores not cleaned" },
	[COHERENCE_WRITE_ALIAS]	 = { "write-alias", "the device writes into uncached memory with cached stores" },
	[COHERENCE_LOAD_STALE]	 = { "load-stale", "a CPU loads bytes that the device has overwritten, without a flush" },
	[COHERENCE_LOAD_LOST]	 = { "load-lost", "a CPU loads bytes that it and the device wrote" },
	[COHERENCE_FLUSH_LOST]	 = { "flush-lost", "a flush writes over bytes of the device" },
	[COHERENCE_INVAL_DIRTY]	 = { "inval-dirty", "an invalidate throws stores away" },
	[COHERENCE_ACCESS_ALIAS] = { "access-alias", "a CPU accesses uncached a line with cached stores" },
};

struct entry {
	enum coherence_event event;
	uint64_t addr;
	uint64_t bytes;
	unsigned int hart;
	bool by_device;
	bool stored;			/* storer is known */
	struct code at;
	struct code storer;
	uint64_t writer;
	char who[96];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GArray *queue;			/* struct entry */
static GHashTable *said;
static GPtrArray *suppressed;		/* "event symbol" */
static uint64_t counts[COHERENCE_EVENTS];
static FILE *out;

/* Lines "EVENT SYMBOL"; # begins a comment. */
static bool read_suppressions(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256], event[64], symbol[128];

	if (!file) {
		perror(path);
		return false;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %127s", event, symbol) == 2 && event[0] != '#')
			g_ptr_array_add(suppressed, g_strdup_printf("%s %s", event, symbol));
	}
	fclose(file);
	return true;
}

bool log_open(const char *path, const char *suppressions)
{
	queue = g_array_new(FALSE, FALSE, sizeof(struct entry));
	said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	suppressed = g_ptr_array_new();
	out = fopen(path, "ae");
	if (!out) {
		perror(path);
		return false;
	}
	setlinebuf(out);
	return !suppressions || read_suppressions(suppressions);
}

static void add(const struct entry *entry)
{
	pthread_mutex_lock(&lock);
	counts[entry->event]++;
	g_array_append_vals(queue, entry, 1);
	pthread_mutex_unlock(&lock);
}

void log_cpu(const struct finding *finding, uint64_t addr, unsigned int hart,
	     const struct code *at, const struct code *storer, uint64_t writer)
{
	struct entry entry = {
		.event = finding->event,
		.addr = addr & ~(uint64_t)(COHERENCE_LINE - 1),
		.bytes = finding->bytes,
		.hart = hart,
		.at = *at,
		.stored = storer,
		.writer = writer,
	};

	if (storer)
		entry.storer = *storer;
	add(&entry);
}

void log_device(const struct coherence_report *report, const struct code *storer)
{
	struct entry entry = {
		.event = report->event < COHERENCE_EVENTS ? report->event : COHERENCE_READ_DIRTY,
		.addr = report->addr,
		.bytes = report->bytes,
		.by_device = true,
		.stored = storer,
	};

	memcpy(entry.who, report->who, sizeof(entry.who));
	entry.who[sizeof(entry.who) - 1] = 0;
	if (storer)
		entry.storer = *storer;
	add(&entry);
}

void log_symbols(const char *kallsyms)
{
	pthread_mutex_lock(&lock);
	symbols_kernel(kallsyms);
	pthread_mutex_unlock(&lock);
}

void log_counts(uint64_t to[COHERENCE_EVENTS])
{
	pthread_mutex_lock(&lock);
	memcpy(to, counts, sizeof(counts));
	pthread_mutex_unlock(&lock);
}

static bool is_suppressed(enum coherence_event event, const char *place)
{
	char key[256];
	unsigned int i;

	snprintf(key, sizeof(key), "%s %s", events[event].name, place);
	key[strcspn(key, "+")] = 0;
	for (i = 0; i < suppressed->len; i++)
		if (!strcmp(key, g_ptr_array_index(suppressed, i)))
			return true;
	return false;
}

/* Two reports of one event in one function say the same; so do numbers of objects. */
static char *key_of(const struct entry *entry, const char *at, const char *storer)
{
	char *key, *from, *to;

	if (!entry->by_device)
		return g_strdup_printf("%d %.*s", entry->event, (int)strcspn(at, "+"), at);
	key = g_strdup_printf("%d %s", entry->event, entry->who);
	for (from = to = key; *from; from++)
		if (!strchr("0123456789abcdefx", *from))
			*to++ = *from;
	*to = 0;
	to = g_strdup_printf("%d %s %.*s", entry->event, key, (int)strcspn(storer, "+"), storer);
	g_free(key);
	return to;
}

static void write_entry(const struct entry *entry)
{
	unsigned int first = (unsigned int)__builtin_ctzll(entry->bytes);
	unsigned int last = 63 - (unsigned int)__builtin_clzll(entry->bytes);
	char at[192] = "", storer[192] = "";
	char *key;

	if (!entry->by_device)
		symbols_name(&entry->at, at, sizeof(at));
	if (entry->stored)
		symbols_name(&entry->storer, storer, sizeof(storer));
	if (is_suppressed(entry->event, entry->by_device ? storer : at))
		return;
	key = key_of(entry, at, storer);
	if (!g_hash_table_add(said, key))
		return;
	fprintf(out, "coherence: %s: %s: line 0x%" PRIx64 " bytes %u to %u",
		events[entry->event].name, events[entry->event].text, entry->addr, first, last);
	if (entry->by_device)
		fprintf(out, "; by %s", entry->who);
	else
		fprintf(out, "; by hart %u at 0x%" PRIx64 " %s", entry->hart, entry->at.pc, at);
	if (entry->stored)
		fprintf(out, "; stored last by 0x%" PRIx64 " %s", entry->storer.pc, storer);
	if (!entry->by_device && entry->writer)
		fprintf(out, "; the device's note 0x%" PRIx64, entry->writer);
	fputc('\n', out);
}

static bool is_known(const struct entry *entry)
{
	return (entry->by_device || symbols_known(entry->at.pc)) &&
	       (!entry->stored || symbols_known(entry->storer.pc));
}

void log_write(bool all)
{
	GArray *taken;
	unsigned int i;

	pthread_mutex_lock(&lock);
	taken = queue;
	queue = g_array_new(FALSE, FALSE, sizeof(struct entry));
	for (i = 0; i < taken->len; i++) {
		const struct entry *entry = &g_array_index(taken, struct entry, i);

		if (all || is_known(entry))
			write_entry(entry);
		else
			g_array_append_vals(queue, entry, 1);
	}
	g_array_free(taken, TRUE);
	pthread_mutex_unlock(&lock);
}

void log_lost(unsigned int reports)
{
	pthread_mutex_lock(&lock);
	fprintf(out, "coherence: %u reports of the device found no room\n", reports);
	pthread_mutex_unlock(&lock);
}

void log_forget(void)
{
	pthread_mutex_lock(&lock);
	g_hash_table_remove_all(said);
	pthread_mutex_unlock(&lock);
}
