// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#define SECONDS_PER_TEST	60

static const char *context;
static bool abort_on_failure;

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

void tap_context(const char *text)
{
	context = text;
}

void tap_abort_on_failure(void)
{
	abort_on_failure = true;
}

void tap_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("# %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	if (context)
		printf(" (%s)", context);
	putchar('\n');
	fflush(stdout);
	if (abort_on_failure)
		abort();
	_exit(1);
}

static int run_one(const struct tap_test *test, unsigned int number)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(SECONDS_PER_TEST);
		test->run();
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tap_note("no process");
	else if (WIFSIGNALED(status))
		tap_note("ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	printf("%sok %u - %s\n", status ? "not " : "", number, test->name);
	return status ? 1 : 0;
}

int tap_main(int argc, char **argv, const struct tap_test *tests, size_t count)
{
	const char *only = argc > 1 ? argv[1] : "";
	unsigned int number = 0, failed = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (strstr(tests[i].name, only))
			failed += run_one(&tests[i], ++number);
	}
	printf("1..%u\n", number);
	return failed || !number ? 1 : 0;
}
