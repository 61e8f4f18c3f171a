/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests that report in TAP. Each is a function in a process of its own: it returns when it
 * has passed, and need() ends it when it has not.
 */
#ifndef TAP_H
#define TAP_H

#include <stddef.h>

struct tap_test {
	const char *name;
	void (*run)(void);
};

#define TAP_TEST(function, text)	{ .name = text, .run = function }

/*
 * Runs those whose name contains argv[1] (all without it), prints results and plan.
 * Returns the exit status of the program.
 */
int tap_main(int argc, char **argv, const struct tap_test *tests, size_t count);

/* A line of explanation. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Printed with every failure from now on; NULL: nothing. The text is not copied. */
void tap_context(const char *text);

/* Failures abort(), as fuzzers want it. */
void tap_abort_on_failure(void);

void tap_fail(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

#define need(cond)							\
	do {								\
		if (!(cond))						\
			tap_fail(__FILE__, __LINE__, "not true: %s", #cond); \
	} while (0)

#define need_that(cond, ...)						\
	do {								\
		if (!(cond))						\
			tap_fail(__FILE__, __LINE__, __VA_ARGS__);	\
	} while (0)

#define need_eq(got, want)						\
	do {								\
		long long got_ = (long long)(got), want_ = (long long)(want); \
									\
		if (got_ != want_)					\
			tap_fail(__FILE__, __LINE__, "%s is %lld (%#llx), not %lld (%#llx)", \
				 #got, got_, (unsigned long long)got_, want_, \
				 (unsigned long long)want_);		\
	} while (0)

#endif
