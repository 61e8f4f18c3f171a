/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VNIC_OPTIONS_H
#define VNIC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "impair.h"

struct options {
	const char *socket;
	const char *link;
	const char *pcap;		/* or NULL */
	const char *shadow;		/* likewise */
	bool message;
	bool impaired;
	bool verbose;
	uint8_t mac[6];
	unsigned int vectors;
	uint32_t refuse;		/* as ferry_engine_refuse() takes it */
	const char *raw;		/* or NULL */
	struct impair_config impair;
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_BAD };

/* DONE: help or version was asked for and printed. BAD: after an error line. */
enum options_result options_parse(int argc, char **argv, struct options *options);

#endif
