/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests that report in TAP. Each test is a function that runs in a process of its own: it
 * returns when it has passed, and need() ends it when it has not. So a test needs no way
 * back from an error, and one that crashes or hangs takes nothing with it.
 */
#ifndef TAP_H
#define TAP_H

#include <errno.h>
#include <stddef.h>

struct tap_test {
	const char *name;
	void (*run)(const void *arg);
	const void *arg;
	unsigned int seconds;		/* it may take, times tap_patience(); 0: 120 */
};

/*
 * Runs those of @tests whose name contains @only (NULL: all) and returns the exit status
 * of the program. With @bail the first failure ends the run.
 */
int tap_run(const struct tap_test *tests, size_t count, const char *only, int bail);
void tap_list(const struct tap_test *tests, size_t count);

/* The environment's PATIENCE, by which all limits of time are multiplied: slow kernels. */
unsigned int tap_patience(void);

/* A line of explanation. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

void tap_fail(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

/* An entry of such a table. */
#define TEST(text, function, ...) { .name = text, .run = function, ##__VA_ARGS__ }

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
				 #got, got_, got_, want_, want_);	\
	} while (0)

/* For calls that return 0, an errno value, or -1 and set errno. */
#define need_ok(call)							\
	do {								\
		int err_;						\
									\
		errno = 0;						\
		err_ = (call);						\
		if (err_)						\
			tap_fail(__FILE__, __LINE__, "%s: %s", #call,	\
				 tap_error(err_ > 0 ? err_ : errno));	\
	} while (0)

/* For calls that return a pointer, or NULL and set errno. */
#define need_ptr(call)							\
	({								\
		__typeof__(call) ptr_ = (call);				\
									\
		if (!ptr_)						\
			tap_fail(__FILE__, __LINE__, "%s: %s", #call, tap_error(errno)); \
		ptr_;							\
	})

/* A call that must fail with one error. */
#define need_errno(call, want)						\
	do {								\
		int err_;						\
									\
		errno = 0;						\
		err_ = (call);						\
		if (err_ == -1)						\
			err_ = errno;					\
		if (err_ != (want))					\
			tap_fail(__FILE__, __LINE__, "%s: %s, not %s", #call,	\
				 tap_error(err_), tap_error(want));	\
	} while (0)

const char *tap_error(int err);

#endif
