/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines for the operator, on standard error. Any thread may call these; a line is one
 * write, so lines of two threads never mix.
 */
#ifndef VNIC_LOG_H
#define VNIC_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

enum log_kind { LOG_ERROR, LOG_INFO, LOG_DEBUG };

void log_line(enum log_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_vline(enum log_kind kind, const char *format, va_list args);

/* Shows LOG_DEBUG lines; before any other thread is started. */
void log_verbose(bool on);

/* Says nothing at all, for fuzzers; likewise. */
void log_quiet(bool on);

#define log_error(...)	log_line(LOG_ERROR, __VA_ARGS__)
#define log_info(...)	log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)	log_line(LOG_DEBUG, __VA_ARGS__)

/*
 * For what a guest or a peer can cause at will: each place in the code speaks a few
 * times, then never again, so that nobody can fill the operator's disk.
 */
#define LOG_FEW		8
#define log_few(...)								\
	do {									\
		static atomic_uint said;					\
		unsigned int n_ = atomic_fetch_add_explicit(&said, 1,		\
							    memory_order_relaxed); \
		if (n_ < LOG_FEW)						\
			log_info(__VA_ARGS__);					\
		else if (n_ == LOG_FEW)						\
			log_info("(the last message will not be repeated)");	\
		else								\
			atomic_store_explicit(&said, LOG_FEW + 1, memory_order_relaxed); \
	} while (0)

#endif
