/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCEv2 frames, read and built without the engine's help, so that the two check each
 * other. Numbers are in host order.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host.h"

#define FRAME_MAX	9100

enum frame_opcode {		/* BTH, RC */
	FRAME_SEND_FIRST,
	FRAME_SEND_MIDDLE,
	FRAME_SEND_LAST,
	FRAME_SEND_LAST_IMM,
	FRAME_SEND_ONLY,
	FRAME_SEND_ONLY_IMM,
	FRAME_WRITE_FIRST,
	FRAME_WRITE_MIDDLE,
	FRAME_WRITE_LAST,
	FRAME_WRITE_LAST_IMM,
	FRAME_WRITE_ONLY,
	FRAME_WRITE_ONLY_IMM,
	FRAME_READ_REQUEST,
	FRAME_READ_FIRST,
	FRAME_READ_MIDDLE,
	FRAME_READ_LAST,
	FRAME_READ_ONLY,
	FRAME_ACK,
	FRAME_ATOMIC_ACK,
	FRAME_CMP_SWAP,
	FRAME_FETCH_ADD,
	FRAME_SEND_LAST_INV = 0x16,
	FRAME_SEND_ONLY_INV,
	FRAME_OPCODE_COUNT
};

#define FRAME_SYNDROME_ACK	0x1f	/* credits unlimited */
#define FRAME_SYNDROME_RNR	0x20	/* and the timer code */
#define FRAME_SYNDROME_NAK	0x60	/* and the code */
#define FRAME_IS_RNR(syndrome)	(((syndrome) & 0xe0) == FRAME_SYNDROME_RNR)
#define FRAME_IS_NAK(syndrome)	(((syndrome) & 0xe0) == FRAME_SYNDROME_NAK)

struct frame {
	bool ipv6;
	bool from_requester;
	uint8_t opcode;
	bool solicited;
	bool ack_request;
	unsigned int pad;
	uint32_t dest_qpn;
	uint32_t psn;
	uint64_t raddr;		/* RETH, AtomicETH */
	uint32_t rkey;
	uint32_t dma_len;	/* RETH */
	uint64_t swap_or_add, compare;
	uint8_t syndrome;	/* AETH */
	uint32_t msn;
	uint64_t original;	/* AtomicAckETH */
	uint8_t imm[4];
	uint32_t inv_key;
	size_t payload_at;	/* in the frame */
	size_t payload_len;	/* without the pad */
	size_t icrc_at;
};

/*
 * Takes a frame apart. NULL if it is a right RoCEv2 RC frame in every field that the
 * specification fixes, else what is wrong with it.
 */
const char *frame_parse(const uint8_t *data, size_t len, struct frame *frame);

/*
 * Builds one from @from to @to; the headers that belong to the opcode come from @frame.
 * Returns its length; @data has room for FRAME_MAX.
 */
size_t frame_build(uint8_t *data, const struct host *from, const struct host *to,
		   const struct frame *frame, const void *payload, size_t payload_len);

/* Makes lengths, checksums and ICRC right again after a change. Any bytes will do. */
void frame_finish(uint8_t *data, size_t len);

const char *frame_opcode_name(uint8_t opcode);

#endif
