// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A port with carrier and nobody else on the wire. Traffic between QPs of the port never
 * gets here, the engine turns it round; other frames go nowhere. They must not come back:
 * a host that hears its own neighbour solicitation takes its address for a duplicate.
 */
#include <stdlib.h>

#include "link.h"
#include "log.h"

static bool loopback_send(struct link *link, const void *frame, size_t len)
{
	(void)link;
	(void)frame;
	(void)len;
	return true;
}

static unsigned int loopback_receive(struct link *link, unsigned int max, link_deliver deliver,
				     void *to)
{
	(void)link;
	(void)max;
	(void)deliver;
	(void)to;
	return 0;
}

static void loopback_close(struct link *link)
{
	free(link);
}

static const struct link_ops loopback_ops = {
	.send = loopback_send,
	.receive = loopback_receive,
	.close = loopback_close,
};

struct link *link_open_loopback(void)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link) {
		log_error("--link loopback: out of memory");
		return NULL;
	}
	link->ops = &loopback_ops;
	link->fd = -1;
	link->speed_mbps = 100000;
	return link;
}
