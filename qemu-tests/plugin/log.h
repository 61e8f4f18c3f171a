/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was found, said once each, in the words of a person who must mend it. */
#ifndef LOG_H
#define LOG_H

#include "shadow.h"
#include "symbols.h"

/* The file that the reports go to, and one that names what is not to be reported, or NULL. */
bool log_open(const char *path, const char *suppressions);

/*
 * By a CPU, at the place @at. @storer is who stored into the line last, or NULL; @writer
 * what the device left there. What runs on a vCPU only queues it.
 */
void log_cpu(const struct finding *finding, uint64_t addr, unsigned int hart,
	     const struct code *at, const struct code *storer, uint64_t writer);
void log_device(const struct coherence_report *report, const struct code *storer);

/* The text of /proc/kallsyms: names for what is written from now on. */
void log_symbols(const char *kallsyms);

/* The device had more to report than there was room for. */
void log_lost(unsigned int reports);

/* How often each event was found. */
void log_counts(uint64_t counts[COHERENCE_EVENTS]);

/*
 * Writes what is queued, as far as it can be named; what lies in the kernel waits for its
 * symbols, unless @all.
 */
void log_write(bool all);

/* What was written may be written again. */
void log_forget(void);

#endif
