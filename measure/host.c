// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "sample.h"

static const struct part {
	const char *name;
	void (*measure)(void);
} parts[] = {
	{ "facts", print_facts },
	{ "barriers", measure_barriers },
	{ "cache", measure_cache },
};

static void usage(FILE *to)
{
	size_t i;

	fputs("measure-host [OPTION...] PART...\nparts:", to);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		fprintf(to, " %s", parts[i].name);
	fputs("\n" COMMON_OPTIONS_HELP, to);
}

static const struct part *find_part(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].name, name))
			return &parts[i];
	die("no part '%s'; -h lists them", name);
}

int main(int argc, char **argv)
{
	int option, i;

	while ((option = getopt(argc, argv, COMMON_OPTIONS "h")) != -1) {
		if (option == 'h') {
			usage(stdout);
			return 0;
		}
		if (!set_option(option, optarg)) {
			usage(stderr);
			return 1;
		}
	}
	if (optind == argc) {
		usage(stderr);
		return 1;
	}
	for (i = optind; i < argc; i++)
		find_part(argv[i]);
	for (i = optind; i < argc; i++)
		find_part(argv[i])->measure();
	return 0;
}
