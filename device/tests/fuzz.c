// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rng.h"
#include "tap.h"

#define INPUT_MAX	2048
#define FILE_MAX	(1u << 20)

static int replay(const char *path, int (*test)(const uint8_t *, size_t))
{
	static uint8_t bytes[FILE_MAX];
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file) {
		perror(path);
		return 1;
	}
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	tap_note("%s, %zu bytes", path, len);
	return test(bytes, len);
}

static void run_seed(uint64_t seed, int (*test)(const uint8_t *, size_t))
{
	static uint8_t bytes[INPUT_MAX];
	char context[64];
	struct rng rng;
	size_t len;

	snprintf(context, sizeof(context), "--first %" PRIu64 " --runs 1", seed);
	tap_context(context);
	rng_init(&rng, seed);
	len = rng_range(&rng, 1, rng_range(&rng, 1, INPUT_MAX));
	rng_fill(&rng, bytes, len);
	test(bytes, len);
}

int fuzz_main(int argc, char **argv, unsigned int default_runs,
	      int (*test)(const uint8_t *, size_t))
{
	uint64_t first = 1, runs = default_runs, seed;
	int i, failed = 0;

	tap_abort_on_failure();
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--first") && i + 1 < argc)
			first = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
			runs = strtoull(argv[++i], NULL, 0);
		else if (argv[i][0] == '-')
			return fprintf(stderr, "%s [--first SEED] [--runs N] | FILE...\n", argv[0]);
		else
			failed |= replay(argv[i], test) | 2;
	}
	if (failed)
		return failed & 1;
	for (seed = first; seed < first + runs; seed++) {
		if ((seed - first) % 500 == 499)
			tap_note("%" PRIu64 " inputs", seed - first + 1);
		run_seed(seed, test);
	}
	printf("ok 1 - %" PRIu64 " inputs from seed %" PRIu64 "\n1..1\n", runs, first);
	return 0;
}
