// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "log.h"

static struct link *open_unix(const char *where)
{
	const char *comma = strchr(where, ',');
	struct link *link;
	char *local;

	if (!comma || comma == where || !comma[1] || strchr(comma + 1, ',')) {
		log_error("--link unix:%s: give two socket paths, unix:LOCAL,REMOTE", where);
		return NULL;
	}
	local = strndup(where, (size_t)(comma - where));
	if (!local) {
		log_error("--link unix:%s: out of memory", where);
		return NULL;
	}
	link = link_open_unix(local, comma + 1);
	free(local);
	return link;
}

struct link *link_open(const char *spec)
{
	if (!strcmp(spec, "loopback"))
		return link_open_loopback();
	if (!strncmp(spec, "unix:", 5))
		return open_unix(spec + 5);
	if (!strncmp(spec, "tap:", 4))
		return link_open_tap(spec + 4);
	log_error("--link %s: not a link; use loopback, unix:LOCAL,REMOTE or tap:NAME", spec);
	return NULL;
}

void link_close(struct link *link)
{
	link->ops->close(link);
}
