// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Simulated NICs under random traffic, one run a seed:
 *
 *	test-sim [--seeds N] [--first N] [--jobs N]	many seeds, in that many processes
 *	test-sim --seed N [--verbose]			one, again
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"
#include "tap.h"

#define DEFAULT_SEEDS	1000
#define DEFAULT_JOBS	2
#define MAX_JOBS	64
#define SEED_SECONDS	60

/* What a worker shares with the process that waits for it. */
struct worker {
	pid_t pid;
	uint64_t seed;		/* in work */
	uint64_t done;
	struct sim_table table;
};

struct options {
	uint64_t first, seeds;
	unsigned int jobs;
	bool single, verbose;
};

static void work(const struct options *o, unsigned int number, struct worker *worker)
{
	uint64_t seed;

	for (seed = o->first + number; seed < o->first + o->seeds; seed += o->jobs) {
		worker->seed = seed;
		alarm(SEED_SECONDS);
		sim_run(seed, o->verbose, &worker->table);
		worker->done++;
		if (!number && !(worker->done % 100))
			tap_note("%" PRIu64 " seeds", worker->done * o->jobs);
	}
}

static void start(const struct options *o, unsigned int number, struct worker *worker)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		work(o, number, worker);
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0)
		tap_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	worker->pid = pid;
}

/* The first failure ends the others. */
static bool wait_all(struct worker *workers, unsigned int jobs)
{
	bool good = true;
	unsigned int i, left = jobs;
	int status;
	pid_t pid;

	while (left) {
		pid = wait(&status);
		if (pid < 0)
			break;
		left--;
		for (i = 0; i < jobs && workers[i].pid != pid; i++)
			;
		if (!status || i == jobs || !good)
			continue;
		good = false;
		if (WIFSIGNALED(status))
			tap_note("ended by signal %d (%s)", WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
		tap_note("seed %" PRIu64 " failed; again: test-sim --seed %" PRIu64 " --verbose",
			 workers[i].seed, workers[i].seed);
		for (i = 0; i < jobs; i++) {
			if (workers[i].pid != pid)
				kill(workers[i].pid, SIGTERM);
		}
	}
	return good;
}

static int run_many(const struct options *o)
{
	struct worker *workers = mmap(NULL, MAX_JOBS * sizeof(*workers), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sim_table table = { 0 };
	bool good, complete;
	unsigned int i;

	need(workers != MAP_FAILED);
	for (i = 0; i < o->jobs; i++)
		start(o, i, &workers[i]);
	good = wait_all(workers, o->jobs);
	for (i = 0; i < o->jobs; i++)
		sim_table_add(&table, &workers[i].table);
	sim_table_print(&table);
	complete = sim_table_complete(&table);
	printf("%sok 1 - %" PRIu64 " seeds from %" PRIu64 "\n", good ? "" : "not ", o->seeds,
	       o->first);
	printf("%sok 2 - every operation has met every fault\n", complete ? "" : "not ");
	printf("1..2\n");
	return !good || !complete;
}

static int run_single(const struct options *o)
{
	struct sim_table table = { 0 };

	sim_run(o->first, o->verbose, &table);
	sim_table_print(&table);
	printf("ok 1 - seed %" PRIu64 "\n1..1\n", o->first);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seeds", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "verbose", no_argument, NULL, 'v' },
		{ 0 }
	};
	struct options o = { .first = 1, .seeds = DEFAULT_SEEDS, .jobs = DEFAULT_JOBS };
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			o.single = true;
			/* fall through */
		case 'f':
			o.first = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			o.seeds = strtoull(optarg, NULL, 0);
			break;
		case 'j':
			o.jobs = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'v':
			o.verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (!o.jobs || o.jobs > MAX_JOBS) {
		fprintf(stderr, "test-sim: --jobs is 1 to %d\n", MAX_JOBS);
		return 2;
	}
	return o.single ? run_single(&o) : run_many(&o);
}
