// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "clock.h"
#include "ether.h"

#define PROBE_PERIOD	NSEC_PER_SEC

/* A link that is behind is tried again often while it may be a matter of microseconds. */
#define BEHIND		(2 * NSEC_PER_MSEC)
#define RETRY_SOON	(20 * NSEC_PER_USEC)
#define RETRY_LATER	NSEC_PER_MSEC

static bool probe(struct ether *ether)
{
	ether->link->lost = false;
	return !ether->link->ops->probe || ether->link->ops->probe(ether->link);
}

void ether_init(struct ether *ether, struct link *link, struct pcap *pcap,
	       const struct impair_config *impair, link_deliver deliver, void *to)
{
	memset(ether, 0, sizeof(*ether));
	ether->link = link;
	ether->pcap = pcap;
	ether->deliver = deliver;
	ether->to = to;
	if (impair) {
		ether->impaired = true;
		impair_init(&ether->tx, impair, 0);
		impair_init(&ether->rx, impair, 1);
	}
	ether->carrier = probe(ether);
	ether->next_probe = link->ops->probe ? 0 : UINT64_MAX;
}

void ether_close(struct ether *ether)
{
	if (ether->pcap)
		pcap_close(ether->pcap);
	link_close(ether->link);
}

/* --------------------------------------------------------------------------- leaving */

static void to_link(void *to, const void *frame, size_t len)
{
	struct ether *ether = to;

	if (!ether->link->ops->send(ether->link, frame, len)) {
		ether->tx_refused++;
		ether->refused = true;
		return;
	}
	ether->tx_frames++;
	ether->tx_bytes += len;
	if (ether->pcap)
		pcap_frame(ether->pcap, frame, len);
}

bool ether_transmit(struct ether *ether, const void *frame, size_t len)
{
	ether->refused = false;
	if (ether->impaired)
		impair_pass(&ether->tx, ether->now, frame, len, to_link, ether);
	else
		to_link(ether, frame, len);
	return !ether->refused;
}

void ether_flush(struct ether *ether, uint64_t now)
{
	bool waited = ether->waiting;

	if (!ether->link->ops->flush)
		return;
	ether->waiting = ether->link->ops->flush(ether->link, now);
	if (ether->waiting && !waited)
		ether->waiting_since = now;
}

bool ether_behind(const struct ether *ether, uint64_t now)
{
	return ether->waiting && now - ether->waiting_since < BEHIND;
}

/* --------------------------------------------------------------------------- arriving */

static void to_engine(void *to, const void *frame, size_t len)
{
	struct ether *ether = to;

	ether->deliver(ether->to, frame, len);
}

static void from_link(void *to, const void *frame, size_t len)
{
	struct ether *ether = to;

	ether->rx_frames++;
	ether->rx_bytes += len;
	if (ether->pcap)
		pcap_frame(ether->pcap, frame, len);
	/* Who talks to us is there: do not wait for the next probe to say so. */
	if (!ether->carrier)
		ether->next_probe = 0;
	if (ether->impaired)
		impair_pass(&ether->rx, ether->now, frame, len, to_engine, ether);
	else
		to_engine(ether, frame, len);
}

static void watch_carrier(struct ether *ether)
{
	if (ether->link->lost) {
		ether->link->lost = false;
		ether->carrier = false;
	}
	if (ether->now < ether->next_probe)
		return;
	ether->next_probe = ether->now + PROBE_PERIOD;
	ether->carrier = probe(ether);
}

unsigned int ether_poll(struct ether *ether, uint64_t now, unsigned int max)
{
	unsigned int count = 0;

	ether->now = now;
	ether_flush(ether, now);
	if (ether->link->fd >= 0)
		count = ether->link->ops->receive(ether->link, max, from_link, ether);
	if (ether->impaired) {
		impair_flush(&ether->tx, now, to_link, ether);
		impair_flush(&ether->rx, now, to_engine, ether);
	}
	if (ether->link->ops->probe)
		watch_carrier(ether);
	return count;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t ether_deadline(const struct ether *ether, uint64_t now)
{
	uint64_t deadline = ether->next_probe;

	if (ether->waiting)
		deadline = earlier(deadline, now + (ether_behind(ether, now) ? RETRY_SOON :
									       RETRY_LATER));
	if (ether->impaired) {
		deadline = earlier(deadline, impair_deadline(&ether->tx));
		deadline = earlier(deadline, impair_deadline(&ether->rx));
	}
	return deadline;
}
