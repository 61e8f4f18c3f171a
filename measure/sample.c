// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

struct settings settings = {
	.repeats = 31,
	.sample_ns = 2000000,
	.cpu = -1,
};

void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

long parse_number(const char *text, const char *what, long low, long high)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < low || value > high)
		die("%s must be a number from %ld to %ld, not '%s'", what, low, high, text);
	return value;
}

bool set_option(int option, const char *value)
{
	switch (option) {
	case 'r':
		settings.repeats = parse_number(value, "-r", 3, MAX_REPEATS);
		return true;
	case 't':
		settings.sample_ns = 1000 * parse_number(value, "-t", 1, 10000000);
		return true;
	case 'c':
		settings.cpu = parse_number(value, "-c", 0, CPU_SETSIZE - 1);
		pin(settings.cpu);
		return true;
	case 'q':
		settings.quick = true;
		return true;
	default:
		return false;
	}
}

/* What the program was allowed before it chose. */
static cpu_set_t allowed;

__attribute__((constructor)) static void note_allowed(void)
{
	sched_getaffinity(0, sizeof(allowed), &allowed);
}

void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot run on CPU %d: %s", cpu, strerror(errno));
}

int other_cpu(void)
{
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (cpu != settings.cpu && CPU_ISSET(cpu, &allowed))
			return cpu;
	return -1;
}

void print_row(struct samples *s, const char *group, const char *name, uint64_t parameter,
	       const char *unit, uint64_t operations)
{
	unsigned int i;

	printf("row\t%s\t%s\t%llu\t%s\t%llu\t", group, name, (unsigned long long)parameter,
	       unit, (unsigned long long)operations);
	for (i = 0; i < s->count; i++)
		printf("%s%.3f", i ? " " : "", s->value[i]);
	putchar('\n');
	fflush(stdout);
	s->count = 0;
}

void print_none(const char *group, const char *name, const char *reason)
{
	printf("none\t%s\t%s\t%s\n", group, name, reason);
	fflush(stdout);
}

uint64_t time_work(const struct work *work, uint64_t n)
{
	uint64_t began = now_ns();

	work->run(work->context, n);
	return now_ns() - began;
}

uint64_t iterations_for(const struct work *work)
{
	uint64_t n = 1, took;

	for (;;) {
		took = time_work(work, n);
		if (took >= settings.sample_ns || n >= 1ull << 40)
			return n;
		/* Straight to it once the clock has said enough, in steps before. */
		if (took > settings.sample_ns / 16)
			n = n * settings.sample_ns / took + 1;
		else
			n *= 4;
	}
}
