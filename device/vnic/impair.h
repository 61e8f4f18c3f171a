/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bad link, for tests: loses, repeats, reorders and corrupts frames. The same seed and
 * the same frames give the same faults.
 */
#ifndef VNIC_IMPAIR_H
#define VNIC_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link.h"

/* Probabilities as parts of 2^32. */
struct impair_config {
	uint64_t loss;
	uint64_t dup;
	uint64_t reorder;
	uint64_t corrupt;
	uint64_t seed;
};

struct impair {
	struct impair_config config;
	uint64_t random;
	size_t held_len;	/* 0: no frame is held back */
	uint64_t held_until;
	uint64_t lost;
	uint64_t repeated;
	uint64_t reordered;
	uint64_t corrupted;
	uint8_t held[LINK_FRAME_MAX];
	uint8_t damaged[LINK_FRAME_MAX];
};

/*
 * Reads "loss=P,dup=P,reorder=P,corrupt=P,seed=N" in any order; P is a fraction, 0.01, or a
 * percentage, 1%. False, after an error line, if it cannot be understood.
 */
bool impair_parse(const char *text, struct impair_config *config);

/* @stream tells the two directions of a link apart. */
void impair_init(struct impair *impair, const struct impair_config *config, unsigned int stream);

/* Passes a frame on: not at all, once, twice, or behind the next one. */
void impair_pass(struct impair *impair, uint64_t now, const void *frame, size_t len,
		 link_deliver deliver, void *to);

/* A frame is held back for the next one to overtake it, but not for ever. */
void impair_flush(struct impair *impair, uint64_t now, link_deliver deliver, void *to);

/* When impair_flush() has something to do; UINT64_MAX for never. */
uint64_t impair_deadline(const struct impair *impair);

#endif
