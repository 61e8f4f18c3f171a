/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the NIC's port is plugged into. The shard's thread calls all of this, after
 * link_open().
 */
#ifndef VNIC_LINK_H
#define VNIC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A payload of 9,000 bytes, Ethernet header and VLAN tag, and some room. */
#define LINK_FRAME_MAX		9216
#define LINK_FRAME_MIN		14

struct link;

typedef void (*link_deliver)(void *to, const void *frame, size_t len);

struct link_ops {
	/* False: no room now. A frame that was taken is sent, or dropped and counted. */
	bool (*send)(struct link *link, const void *frame, size_t len);
	/* Pushes out what send has taken; true if some of it has to wait. NULL: nothing to do. */
	bool (*flush)(struct link *link, uint64_t now);
	/* Hands up to @max frames to @deliver and returns how many. */
	unsigned int (*receive)(struct link *link, unsigned int max, link_deliver deliver,
				void *to);
	/* Is there somebody at the other end? Called about once a second. NULL: always. */
	bool (*probe)(struct link *link);
	void (*close)(struct link *link);
};

struct link {
	const struct link_ops *ops;
	int fd;			/* readable when a frame is there; -1: none ever comes */
	bool lost;		/* set by the link when it finds that the other end is gone */
	uint32_t speed_mbps;
	uint64_t dropped;	/* frames taken and not sent */
	uint64_t oversize;	/* frames that came and were too long or too short */
};

/*
 * @spec is the argument of --link. NULL, after an error line that says what to do, if it
 * cannot be opened.
 */
struct link *link_open(const char *spec);
void link_close(struct link *link);

struct link *link_open_loopback(void);
struct link *link_open_unix(const char *local, const char *remote);
struct link *link_open_tap(const char *name);

#endif
