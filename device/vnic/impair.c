// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "impair.h"
#include "log.h"

#define HOLD	NSEC_PER_MSEC

static bool parse_chance(const char *text, uint64_t *chance)
{
	char *end;
	double p;

	errno = 0;
	p = strtod(text, &end);
	if (errno || end == text)
		return false;
	if (*end == '%') {
		p /= 100;
		end++;
	}
	if (*end || !(p >= 0 && p <= 1))
		return false;
	*chance = (uint64_t)(p * 4294967296.0);
	return true;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
	char *end;

	errno = 0;
	*seed = strtoull(text, &end, 0);
	return !errno && end != text && !*end && *text != '-';
}

static bool parse_item(char *item, struct impair_config *config)
{
	const struct {
		const char *name;
		bool (*parse)(const char *text, uint64_t *value);
		uint64_t *value;
	} known[] = {
		{ "loss", parse_chance, &config->loss },
		{ "dup", parse_chance, &config->dup },
		{ "reorder", parse_chance, &config->reorder },
		{ "corrupt", parse_chance, &config->corrupt },
		{ "seed", parse_seed, &config->seed },
	};
	char *value = strchr(item, '=');
	size_t i;

	if (!value) {
		log_error("--impair: %s has no value; write %s=0.01", item, item);
		return false;
	}
	*value++ = '\0';
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, item))
			continue;
		if (known[i].parse(value, known[i].value))
			return true;
		log_error("--impair: %s=%s: %s", item, value, known[i].parse == parse_seed ?
			  "not a number" : "not a probability; write 0.01 or 1%");
		return false;
	}
	log_error("--impair: %s is not known; use loss, dup, reorder, corrupt, seed", item);
	return false;
}

bool impair_parse(const char *text, struct impair_config *config)
{
	char *copy = strdup(text), *at, *item;
	bool good = copy && *copy;

	memset(config, 0, sizeof(*config));
	if (!good)
		log_error("--impair: empty; write for instance loss=0.01,seed=7");
	for (item = copy; good && (item = strtok_r(item, ",", &at)); item = NULL)
		good = parse_item(item, config);
	free(copy);
	return good;
}

void impair_init(struct impair *impair, const struct impair_config *config, unsigned int stream)
{
	memset(impair, 0, sizeof(*impair));
	impair->config = *config;
	impair->random = config->seed ^ (uint64_t)stream << 63;
}

/* splitmix64 */
static uint64_t next_random(struct impair *impair)
{
	uint64_t z = impair->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* A number is drawn each time, so that one probability does not shift the others' faults. */
static bool happens(struct impair *impair, uint64_t chance)
{
	return (next_random(impair) >> 32) < chance;
}

static void release(struct impair *impair, link_deliver deliver, void *to)
{
	size_t len = impair->held_len;

	if (!len)
		return;
	impair->held_len = 0;
	deliver(to, impair->held, len);
}

void impair_pass(struct impair *impair, uint64_t now, const void *frame, size_t len,
		 link_deliver deliver, void *to)
{
	bool lose = happens(impair, impair->config.loss);
	bool twice = happens(impair, impair->config.dup);
	bool later = happens(impair, impair->config.reorder);
	bool damage = happens(impair, impair->config.corrupt);
	uint64_t bit = next_random(impair);

	if (len > LINK_FRAME_MAX || !len)
		return;
	if (lose) {
		impair->lost++;
		return;
	}
	if (damage) {
		impair->corrupted++;
		memcpy(impair->damaged, frame, len);
		bit %= 8 * len;
		impair->damaged[bit / 8] ^= (uint8_t)(1u << bit % 8);
		frame = impair->damaged;
	}
	if (later && !impair->held_len) {
		impair->reordered++;
		memcpy(impair->held, frame, len);
		impair->held_len = len;
		impair->held_until = now + HOLD;
		return;
	}
	deliver(to, frame, len);
	if (twice) {
		impair->repeated++;
		deliver(to, frame, len);
	}
	release(impair, deliver, to);
}

void impair_flush(struct impair *impair, uint64_t now, link_deliver deliver, void *to)
{
	if (impair->held_len && now >= impair->held_until)
		release(impair, deliver, to);
}

uint64_t impair_deadline(const struct impair *impair)
{
	return impair->held_len ? impair->held_until : UINT64_MAX;
}
