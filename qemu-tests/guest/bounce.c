// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long a cache line takes from one CPU to another and back, in nanoseconds: what two
 * threads that spin on each other's stores see. All that polls moves with it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define TRIES	5
#define ROUNDS	20000

static _Alignas(128) uint32_t turn;

static void play(uint32_t mine)
{
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 2 * i + mine)
			;
		__atomic_store_n(&turn, 2 * i + mine + 1, __ATOMIC_RELEASE);
	}
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* With one CPU only there is nothing to measure, and the program says so. */
	sched_setaffinity(0, sizeof(set), &set);
}

static void *partner(void *unused)
{
	(void)unused;
	stay_on(1);
	play(1);
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

int main(void)
{
	uint64_t start, took, best = UINT64_MAX;
	pthread_t thread;
	cpu_set_t set;
	int i;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2) {
		puts("one CPU");
		return 0;
	}
	stay_on(0);
	for (i = 0; i < TRIES; i++) {
		turn = 0;
		if (pthread_create(&thread, NULL, partner, NULL))
			return 1;
		start = now_ns();
		play(0);
		pthread_join(thread, NULL);
		took = (now_ns() - start) / ROUNDS;
		if (took < best)
			best = took;
	}
	printf("%llu\n", (unsigned long long)best);
	return 0;
}
