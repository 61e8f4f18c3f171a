// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <unistd.h>

#include "log.h"

static bool verbose;
static bool quiet;

void log_verbose(bool on)
{
	verbose = on;
}

void log_quiet(bool on)
{
	quiet = on;
}

void log_vline(enum log_kind kind, const char *format, va_list args)
{
	char line[512];
	size_t used;
	int n;

	if (quiet || (kind == LOG_DEBUG && !verbose))
		return;
	used = (size_t)snprintf(line, sizeof(line), "ferry-vnic: %s",
				kind == LOG_ERROR ? "error: " : "");
	n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	if (n < 0)
		return;
	used += (size_t)n;
	if (used > sizeof(line) - 2)
		used = sizeof(line) - 2;
	line[used++] = '\n';
	/* Nobody to tell when standard error itself fails. */
	if (write(STDERR_FILENO, line, used) < 0)
		return;
}

void log_line(enum log_kind kind, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_vline(kind, format, args);
	va_end(args);
}
