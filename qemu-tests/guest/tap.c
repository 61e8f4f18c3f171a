// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#define DEFAULT_SECONDS	120

void tap_note(const char *format, ...)
{
	va_list args;

	fputs("# ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void tap_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("# %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

/* strerrorname_np() says EINVAL where strerror() says "Invalid argument". */
const char *tap_error(int err)
{
	const char *name = err ? strerrorname_np(err) : "success";

	return name ? name : "no errno value";
}

unsigned int tap_patience(void)
{
	const char *text = getenv("PATIENCE");
	int patience = text ? atoi(text) : 1;

	return patience > 0 ? patience : 1;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void explain(int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		tap_note("did not end in time");
	else if (WIFSIGNALED(status))
		tap_note("ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

static int run_one(const struct tap_test *test, unsigned int number)
{
	long start = now_ms();
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm((test->seconds ? test->seconds : DEFAULT_SECONDS) * tap_patience());
		test->run(test->arg);
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tap_note("no process: %s", strerror(errno));
	else
		explain(status);
	printf("%sok %u - %s # %ld ms\n", status ? "not " : "", number, test->name,
	       now_ms() - start);
	fflush(stdout);
	return status ? 1 : 0;
}

static int wanted(const struct tap_test *test, const char *only)
{
	return !only || strstr(test->name, only);
}

int tap_run(const struct tap_test *tests, size_t count, const char *only, int bail)
{
	unsigned int planned = 0, number = 0, failed = 0;
	size_t i;

	for (i = 0; i < count; i++)
		planned += wanted(&tests[i], only);
	printf("1..%u\n", planned);
	for (i = 0; i < count; i++) {
		if (!wanted(&tests[i], only))
			continue;
		failed += run_one(&tests[i], ++number);
		if (failed && bail) {
			printf("Bail out! The peer cannot go on without this one.\n");
			break;
		}
	}
	tap_note("%u passed, %u failed", number - failed, failed);
	return failed || !planned ? 1 : 0;
}

void tap_list(const struct tap_test *tests, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		puts(tests[i].name);
}
