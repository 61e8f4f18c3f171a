/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between engine and link: the impairments, the capture file, the carrier, the counts.
 * The shard's thread calls all of this, after ether_init().
 */
#ifndef VNIC_ETHER_H
#define VNIC_ETHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "impair.h"
#include "link.h"
#include "pcap.h"

struct ether {
	struct link *link;
	struct pcap *pcap;		/* or NULL */
	bool impaired;
	bool carrier;
	bool waiting;			/* the link has frames that it could not send yet */
	uint64_t waiting_since;
	bool refused;			/* during ether_transmit(): the link had no room */
	uint64_t now;			/* of the last ether_poll() */
	uint64_t next_probe;
	link_deliver deliver;
	void *to;
	uint64_t tx_frames, tx_bytes, tx_refused;
	uint64_t rx_frames, rx_bytes;
	struct impair tx, rx;
};

/* Takes over @link and @pcap. @impair may be NULL. Frames that come go to @deliver. */
void ether_init(struct ether *ether, struct link *link, struct pcap *pcap,
	       const struct impair_config *impair, link_deliver deliver, void *to);
void ether_close(struct ether *ether);

/* False if the link has no room. */
bool ether_transmit(struct ether *ether, const void *frame, size_t len);

/*
 * Sends what waits, receives up to @max frames, looks after held frames and the carrier.
 * Returns how many frames came from the link.
 */
unsigned int ether_poll(struct ether *ether, uint64_t now, unsigned int max);

/* Sends what ether_transmit() has taken since. */
void ether_flush(struct ether *ether, uint64_t now);

/*
 * The link is behind, but not for long: who sends more now only fills its queue. A link
 * that stays behind must not hold up what does not need it.
 */
bool ether_behind(const struct ether *ether, uint64_t now);

/* When ether_poll() has something to do, though no frame comes; UINT64_MAX for never. */
uint64_t ether_deadline(const struct ether *ether, uint64_t now);

#endif
