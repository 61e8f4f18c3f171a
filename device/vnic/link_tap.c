// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "log.h"

#define TUN	"/dev/net/tun"

struct link_tap {
	struct link link;
	int control;		/* any socket, to ask for the interface's flags */
	char name[IFNAMSIZ];
	char rx[LINK_FRAME_MAX];
};

static struct link_tap *tap_of(struct link *link)
{
	return (struct link_tap *)link;
}

static bool tap_send(struct link *link, const void *frame, size_t len)
{
	if (write(link->fd, frame, len) == (ssize_t)len)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS)
		return false;
	if (errno == EIO)		/* the interface is down */
		link->lost = true;
	link->dropped++;
	return true;
}

static unsigned int tap_receive(struct link *link, unsigned int max, link_deliver deliver,
				void *to)
{
	struct link_tap *tap = tap_of(link);
	unsigned int count;

	for (count = 0; count < max; count++) {
		ssize_t len = read(link->fd, tap->rx, sizeof(tap->rx));

		if (len < 0)
			break;
		/* A frame that fills the buffer was cut. */
		if (len < LINK_FRAME_MIN || len == (ssize_t)sizeof(tap->rx))
			link->oversize++;
		else
			deliver(to, tap->rx, (size_t)len);
	}
	return count;
}

static bool tap_probe(struct link *link)
{
	struct link_tap *tap = tap_of(link);
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, tap->name, sizeof(ifr.ifr_name));
	return !ioctl(tap->control, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_UP;
}

static void tap_close(struct link *link)
{
	struct link_tap *tap = tap_of(link);

	if (link->fd >= 0)
		close(link->fd);
	if (tap->control >= 0)
		close(tap->control);
	free(tap);
}

static const struct link_ops tap_ops = {
	.send = tap_send,
	.receive = tap_receive,
	.probe = tap_probe,
	.close = tap_close,
};

struct link *link_open_tap(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	struct link_tap *tap;

	if (!*name || strlen(name) >= IFNAMSIZ) {
		log_error("--link tap:%s: an interface name has 1 to %d characters", name,
			  IFNAMSIZ - 1);
		return NULL;
	}
	tap = calloc(1, sizeof(*tap));
	if (!tap) {
		log_error("--link tap:%s: out of memory", name);
		return NULL;
	}
	tap->link.ops = &tap_ops;
	tap->link.speed_mbps = 10000;
	tap->control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	tap->link.fd = open(TUN, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap->link.fd < 0 || tap->control < 0) {
		log_error("--link tap:%s: cannot open " TUN ": %s; load the module tun", name,
			  strerror(errno));
		goto fail;
	}
	strcpy(ifr.ifr_name, name);
	if (ioctl(tap->link.fd, TUNSETIFF, &ifr)) {
		log_error("--link tap:%s: %s; create it for this user with `ip tuntap add %s mode tap user USER`, or run as root",
			  name, strerror(errno), name);
		goto fail;
	}
	memcpy(tap->name, ifr.ifr_name, sizeof(tap->name));
	return &tap->link;

fail:
	tap_close(&tap->link);
	return NULL;
}
