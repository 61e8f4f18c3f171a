/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What fuzzers share. Each defines LLVMFuzzerTestOneInput(), so that it can be built for
 * libFuzzer (-fsanitize=fuzzer -DFUZZER); without that fuzz_main() is its main: it makes
 * inputs up from seeds, or replays files.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* PROGRAM [--first SEED] [--runs N], or PROGRAM FILE... */
int fuzz_main(int argc, char **argv, unsigned int default_runs,
	      int (*test)(const uint8_t *data, size_t size));

/* An input, read from front to back; zeros behind its end. */
struct fuzz_tape {
	const uint8_t *data;
	size_t size, at;
};

static inline bool fuzz_left(const struct fuzz_tape *tape)
{
	return tape->at < tape->size;
}

static inline uint64_t fuzz_take(struct fuzz_tape *tape, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | (fuzz_left(tape) ? tape->data[tape->at++] : 0);
	return value;
}

/* 0 to @n - 1. */
static inline uint32_t fuzz_below(struct fuzz_tape *tape, uint32_t n)
{
	return (uint32_t)fuzz_take(tape, n > 256 ? 4 : 1) % n;
}

#endif
