// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The invariant CRC of RoCEv2 (annex A17.3.3): Ethernet's CRC-32 over eight bytes of
 * ones in place of InfiniBand's local header, then IP, UDP and all behind it, with the
 * fields that routers change taken as ones.
 */
#include "state.h"

#define CRC_POLYNOMIAL	0xedb88320u
#define BTH_LEN		12
#define UDP_LEN		8

/* Eight bytes a step, by tables. */
void icrc_init(struct ferry_engine *e)
{
	uint32_t i, k, crc;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
		e->crc[0][i] = crc;
	}
	for (k = 1; k < 8; k++) {
		for (i = 0; i < 256; i++)
			e->crc[k][i] = e->crc[k - 1][i] >> 8 ^ e->crc[0][e->crc[k - 1][i] & 0xff];
	}
}

static uint32_t crc_update(const struct ferry_engine *e, uint32_t crc, const uint8_t *p,
			   size_t len)
{
	const uint32_t (*t)[256] = e->crc;

	for (; len >= 8; len -= 8, p += 8) {
		uint32_t a = get_le32(p) ^ crc, b = get_le32(p + 4);

		crc = t[7][a & 0xff] ^ t[6][a >> 8 & 0xff] ^ t[5][a >> 16 & 0xff] ^ t[4][a >> 24] ^
		      t[3][b & 0xff] ^ t[2][b >> 8 & 0xff] ^ t[1][b >> 16 & 0xff] ^ t[0][b >> 24];
	}
	for (; len; len--)
		crc = crc >> 8 ^ t[0][(crc ^ *p++) & 0xff];
	return crc;
}

/* The header as it counts: @ip_len bytes of IP, then UDP and BTH. */
static void icrc_mask(uint8_t *h, uint32_t ip_len)
{
	uint8_t *udp = h + ip_len, *bth = udp + UDP_LEN;

	if (ip_len == 20) {
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
uint32_t icrc(const struct ferry_engine *e, const uint8_t *frame, uint32_t ip_len, uint32_t len)
{
	const uint32_t masked = ip_len + UDP_LEN + BTH_LEN;
	uint8_t head[8 + 40 + UDP_LEN + BTH_LEN];
	uint32_t crc;

	memset(head, 0xff, 8);
	memcpy(head + 8, frame, masked);
	icrc_mask(head + 8, ip_len);
	crc = crc_update(e, 0xffffffff, head, 8 + masked);
	return ~crc_update(e, crc, frame + masked, len - masked);
}
