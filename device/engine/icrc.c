// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The invariant CRC of RoCEv2 (annex A17.3.3): Ethernet's CRC-32 over eight bytes of
 * ones in place of InfiniBand's local header, then IP, UDP and all behind it, with the
 * fields that routers change taken as ones.
 */
#include "state.h"

#define CRC_POLYNOMIAL	0xedb88320u

/* Sixteen bytes a step: table k is for a byte with k more behind it. */
void icrc_init(struct ferry_engine *e)
{
	uint32_t i, k, crc;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
		e->crc[0][i] = crc;
	}
	for (k = 1; k < CRC_TABLES; k++) {
		for (i = 0; i < 256; i++)
			e->crc[k][i] = e->crc[k - 1][i] >> 8 ^ e->crc[0][e->crc[k - 1][i] & 0xff];
	}
}

/* Four bytes of a step; @behind: how many follow them in it. */
static inline uint32_t crc_word(const uint32_t (*t)[256], uint32_t word, unsigned int behind)
{
	return t[behind + 3][word & 0xff] ^ t[behind + 2][word >> 8 & 0xff] ^
	       t[behind + 1][word >> 16 & 0xff] ^ t[behind][word >> 24];
}

static uint32_t crc_update(const struct ferry_engine *e, uint32_t crc, const uint8_t *p,
			   size_t len)
{
	const uint32_t (*t)[256] = e->crc;

	for (; len >= CRC_TABLES; len -= CRC_TABLES, p += CRC_TABLES)
		crc = crc_word(t, get_le32(p) ^ crc, 12) ^ crc_word(t, get_le32(p + 4), 8) ^
		      crc_word(t, get_le32(p + 8), 4) ^ crc_word(t, get_le32(p + 12), 0);
	for (; len; len--)
		crc = crc >> 8 ^ t[0][(crc ^ *p++) & 0xff];
	return crc;
}

/* The header as it counts: IP, then UDP and BTH. */
static void icrc_mask(uint8_t *h, bool v4)
{
	uint8_t *udp = h + (v4 ? IPV4_LEN : IPV6_LEN), *bth = udp + UDP_LEN;

	if (v4) {
		h[1] = 0xff;		/* type of service */
		h[8] = 0xff;		/* time to live */
		h[10] = 0xff;		/* checksum */
		h[11] = 0xff;
	} else {
		h[0] |= 0x0f;		/* traffic class, flow label */
		h[1] = 0xff;
		h[2] = 0xff;
		h[3] = 0xff;
		h[7] = 0xff;		/* hop limit */
	}
	udp[6] = 0xff;			/* checksum */
	udp[7] = 0xff;
	bth[4] = 0xff;			/* FECN, BECN, reserved */
}

/* @frame from its IP header on; @len bytes up to the ICRC. The value as it is sent. */
uint32_t icrc(const struct ferry_engine *e, const uint8_t *frame, bool v4, uint32_t len)
{
	const uint32_t masked = (v4 ? IPV4_LEN : IPV6_LEN) + UDP_LEN + BTH_LEN;
	uint8_t head[8 + IPV6_LEN + UDP_LEN + BTH_LEN];
	uint32_t crc;

	memset(head, 0xff, 8);
	memcpy(head + 8, frame, masked);
	icrc_mask(head + 8, v4);
	crc = crc_update(e, 0xffffffff, head, 8 + masked);
	return ~crc_update(e, crc, frame + masked, len - masked);
}
