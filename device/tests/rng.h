/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random numbers of a test: equal seeds, equal numbers, on every machine.
 */
#ifndef RNG_H
#define RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline void rng_init(struct rng *rng, uint64_t seed)
{
	rng->state = seed * 0x9e3779b97f4a7c15ull + 0xd1b54a32d192ed03ull;
}

/* SplitMix64. */
static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 to @n - 1; 0 if @n is 0. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return n ? rng_next(rng) % n : 0;
}

/* @low to @high, both included. */
static inline uint64_t rng_range(struct rng *rng, uint64_t low, uint64_t high)
{
	return low + rng_below(rng, high - low + 1);
}

/* True in @percent of 100 cases. */
static inline bool rng_chance(struct rng *rng, unsigned int percent)
{
	return rng_below(rng, 100) < percent;
}

static inline void rng_fill(struct rng *rng, void *to, size_t len)
{
	uint8_t *p = to;

	while (len) {
		uint64_t word = rng_next(rng);
		size_t n = len < sizeof(word) ? len : sizeof(word);

		__builtin_memcpy(p, &word, n);
		p += n;
		len -= n;
	}
}

#endif
