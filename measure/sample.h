/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples. A row is one thing measured: the same work, repeated, gives a sample each
 * time. Rows go to stdout, a line each, fields parted by tabs:
 *
 *   row GROUP CASE PARAMETER UNIT OPERATIONS SAMPLE...
 *   none GROUP CASE REASON
 *   fact NAME VALUE
 *
 * PARAMETER is a size, a batch, or 0; OPERATIONS is how many of them a sample is the mean
 * of. ferry_measure.ko prints the same. What becomes of the samples is in stats.awk.
 */
#ifndef MEASURE_SAMPLE_H
#define MEASURE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define MAX_REPEATS	201

struct settings {
	unsigned int repeats;	/* samples of a row */
	uint64_t sample_ns;	/* how long a sample should take, at least */
	int cpu;		/* to run on; -1: any */
	bool quick;		/* fewer sizes */
};
extern struct settings settings;

/* For getopt(): those that set_option() knows. */
#define COMMON_OPTIONS		"r:t:c:q"
#define COMMON_OPTIONS_HELP \
	"  -r N    samples of each row\n" \
	"  -t US   least time of a sample, microseconds\n" \
	"  -c CPU  run on it\n" \
	"  -q      fewer sizes\n"

bool set_option(int option, const char *value);
/* A number from @low to @high, or the program ends with a message about @what. */
long parse_number(const char *text, const char *what, long low, long high);
/* Keeps the calling thread on that CPU; the program ends if that cannot be. */
void pin(int cpu);
/* A CPU that the program may use, other than settings.cpu; -1 if there is none. */
int other_cpu(void);

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

struct samples {
	unsigned int count;
	double value[MAX_REPEATS];
};

static inline void sample_add(struct samples *s, double value)
{
	if (s->count < MAX_REPEATS)
		s->value[s->count++] = value;
}

/* Prints the row and empties @s. */
void print_row(struct samples *s, const char *group, const char *name, uint64_t parameter,
	       const char *unit, uint64_t operations);
void print_none(const char *group, const char *name, const char *reason);

/* Work of which one asks how long @n times of it take. */
struct work {
	void (*run)(void *context, uint64_t n);
	void *context;
};

uint64_t time_work(const struct work *work, uint64_t n);
/* How often to do it for a sample. */
uint64_t iterations_for(const struct work *work);

void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
