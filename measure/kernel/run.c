// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Repeating a job until there are enough samples of it.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "measure.h"

#define CLOCK_READS	1000

void measure_clock(struct measure *m)
{
	u64 began = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < CLOCK_READS; i++)
		ktime_get_ns();
	m->clock_ps = div_u64((ktime_get_ns() - began) * 1000, CLOCK_READS);
}

struct page *measure_page(struct measure *m, const struct measure_job *job, unsigned int i)
{
	size_t offset = PAGE_ALIGN(job->size) * i;

	return m->pool[offset / MEASURE_CHUNK] + offset % MEASURE_CHUNK / PAGE_SIZE;
}

unsigned int measure_batch(size_t size)
{
	return min_t(size_t, MEASURE_POOL / PAGE_ALIGN(size), MEASURE_BATCH);
}

void measure_none(struct seq_file *s, const char *group, const char *name, const char *reason)
{
	seq_printf(s, "none\t%s\t%s\t%s\n", group, name, reason);
}

/* One sample: rounds until they have taken long enough. */
static int measure_sample(struct measure *m, struct measure_job *job, unsigned int r, u64 *operations)
{
	u64 ns[2] = {}, began = ktime_get_ns(), rounds = 0, clock;
	unsigned int half;
	int err;

	do {
		err = job->round(m, job, ns);
		if (err)
			return err;
		rounds++;
		cond_resched();
		if (signal_pending(current))
			return -EINTR;
		/* A round may consist of preparation for the most part. */
	} while (ns[0] + ns[1] < m->sample_ns && ktime_get_ns() - began < 8 * m->sample_ns);

	*operations = rounds * job->batch;
	clock = rounds * m->clock_ps;
	for (half = 0; half < 2; half++) {
		u64 ps = ns[half] * 1000;

		m->values[half][r] = ps > clock ? div64_u64(ps - clock, *operations) : 0;
	}
	return 0;
}

static void measure_print(struct measure *m, struct seq_file *s, struct measure_job *job,
			  unsigned int half, u64 operations)
{
	unsigned int r;

	seq_printf(s, "row\t%s\t%s\t%llu\tns\t%llu\t", job->group, job->names[half],
		   job->parameter, operations);
	for (r = 0; r < m->repeats; r++) {
		u64 ps = m->values[half][r];
		u32 rest;

		ps = div_u64_rem(ps, 1000, &rest);
		seq_printf(s, "%s%llu.%03u", r ? " " : "", ps, rest);
	}
	seq_putc(s, '\n');
}

int measure_run(struct measure *m, struct seq_file *s, struct measure_job *job)
{
	u64 operations = 0;
	unsigned int half, r;
	char reason[40];
	int err = 0;

	for (r = 0; r < m->repeats && !err; r++)
		err = measure_sample(m, job, r, &operations);
	if (err == -EINTR)
		return err;
	for (half = 0; half < 2 && job->names[half]; half++) {
		if (err) {
			snprintf(reason, sizeof(reason), "it failed: error %d", err);
			measure_none(s, job->group, job->names[half], reason);
		} else {
			measure_print(m, s, job, half, operations);
		}
	}
	return 0;
}
