/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A transport packet as requester and responder see it: a frame of the wire taken
 * apart, or what goes from one QP of this port to another without becoming a frame.
 */
#ifndef FERRY_PACKET_H
#define FERRY_PACKET_H

#include "region.h"

struct qp;

enum packet_kind {
	PACKET_SEND,
	PACKET_WRITE,
	PACKET_READ,
	PACKET_ATOMIC_CS,
	PACKET_ATOMIC_FA,
	PACKET_READ_RESPONSE,	/* from here on: to the requester */
	PACKET_ACK,
	PACKET_ATOMIC_ACK,
};

#define PACKET_FIRST		(1u << 0)
#define PACKET_LAST		(1u << 1)
#define PACKET_ONLY		(PACKET_FIRST | PACKET_LAST)
#define PACKET_IMM		(1u << 2)
#define PACKET_INV		(1u << 3)
#define PACKET_SOLICITED	(1u << 4)
#define PACKET_ACK_REQUEST	(1u << 5)
#define PACKET_UD		(1u << 6)

/* AETH syndromes. */
#define AETH_ACK		0x1f	/* no end-to-end credits */
#define AETH_RNR_NAK		0x20	/* or timer */
#define AETH_NAK_SEQUENCE	0x60
#define AETH_NAK_INVALID	0x61
#define AETH_NAK_ACCESS		0x62
#define AETH_NAK_OPERATION	0x63

struct packet {
	uint8_t kind;		/* enum packet_kind */
	uint8_t flags;		/* PACKET_* */
	uint8_t syndrome;
	bool loopback;
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t count;		/* PSNs it covers: more than 1 only in loopback */
	uint32_t msn;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t dma_len;
	uint64_t swap_or_add;	/* ATOMIC_ACK: the old value */
	uint64_t compare;
	uint8_t imm[4];
	uint32_t inv_key;
	uint32_t src_qpn;	/* UD, or loopback */
	uint32_t qkey;
	const uint8_t *sgid;	/* who sent it */
	const uint8_t *dgid;
	const uint8_t *grh;	/* UD: the 40 bytes before the message */
	const struct vecs *payload;
};

static inline uint32_t packet_len(const struct packet *p)
{
	return p->payload ? p->payload->len : 0;
}

enum sent {
	SENT,		/* perhaps to be lost on the way */
	SENT_BUSY,	/* the link takes nothing now: try again later */
	SENT_BAD_SOURCE, /* the payload could not be read; nothing was sent */
};

/* Whether @av leads back to this port. */
bool path_is_loopback(const struct ferry_engine *e, const struct ferry_av *av);

/* From @qp to its peer, or, for a UD QP, to where @av leads. */
/* What came for a QP of this port. */
enum sent packet_receive(struct ferry_engine *e, const struct packet *packet);

enum sent packet_send(struct ferry_engine *e, struct qp *qp, const struct ferry_av *av,
		      struct packet *packet);

#endif
