// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "frame.h"

#define ETH_LEN		14
#define IPV4_LEN	20
#define IPV6_LEN	40
#define UDP_LEN		8
#define BTH_LEN		12
#define ICRC_LEN	4
#define ROCE_PORT	4791

#define HAS_RETH	(1u << 0)
#define HAS_AETH	(1u << 1)
#define HAS_ATOMIC	(1u << 2)
#define HAS_ATOMIC_ACK	(1u << 3)
#define HAS_IMM		(1u << 4)
#define HAS_INV		(1u << 5)
#define HAS_PAYLOAD	(1u << 6)
#define NOT_LAST	(1u << 7)	/* more packets follow: no pad */
#define RESPONSE	(1u << 8)
#define KNOWN		(1u << 9)

static const struct {
	const char *name;
	unsigned int has;
} opcodes[FRAME_OPCODE_COUNT] = {
	[FRAME_SEND_FIRST] = { "SEND_FIRST", KNOWN | HAS_PAYLOAD | NOT_LAST },
	[FRAME_SEND_MIDDLE] = { "SEND_MIDDLE", KNOWN | HAS_PAYLOAD | NOT_LAST },
	[FRAME_SEND_LAST] = { "SEND_LAST", KNOWN | HAS_PAYLOAD },
	[FRAME_SEND_LAST_IMM] = { "SEND_LAST_IMM", KNOWN | HAS_PAYLOAD | HAS_IMM },
	[FRAME_SEND_ONLY] = { "SEND_ONLY", KNOWN | HAS_PAYLOAD },
	[FRAME_SEND_ONLY_IMM] = { "SEND_ONLY_IMM", KNOWN | HAS_PAYLOAD | HAS_IMM },
	[FRAME_WRITE_FIRST] = { "WRITE_FIRST", KNOWN | HAS_RETH | HAS_PAYLOAD | NOT_LAST },
	[FRAME_WRITE_MIDDLE] = { "WRITE_MIDDLE", KNOWN | HAS_PAYLOAD | NOT_LAST },
	[FRAME_WRITE_LAST] = { "WRITE_LAST", KNOWN | HAS_PAYLOAD },
	[FRAME_WRITE_LAST_IMM] = { "WRITE_LAST_IMM", KNOWN | HAS_PAYLOAD | HAS_IMM },
	[FRAME_WRITE_ONLY] = { "WRITE_ONLY", KNOWN | HAS_RETH | HAS_PAYLOAD },
	[FRAME_WRITE_ONLY_IMM] = { "WRITE_ONLY_IMM", KNOWN | HAS_RETH | HAS_IMM | HAS_PAYLOAD },
	[FRAME_READ_REQUEST] = { "READ_REQUEST", KNOWN | HAS_RETH },
	[FRAME_READ_FIRST] = { "READ_FIRST", KNOWN | RESPONSE | HAS_AETH | HAS_PAYLOAD | NOT_LAST },
	[FRAME_READ_MIDDLE] = { "READ_MIDDLE", KNOWN | RESPONSE | HAS_PAYLOAD | NOT_LAST },
	[FRAME_READ_LAST] = { "READ_LAST", KNOWN | RESPONSE | HAS_AETH | HAS_PAYLOAD },
	[FRAME_READ_ONLY] = { "READ_ONLY", KNOWN | RESPONSE | HAS_AETH | HAS_PAYLOAD },
	[FRAME_ACK] = { "ACK", KNOWN | RESPONSE | HAS_AETH },
	[FRAME_ATOMIC_ACK] = { "ATOMIC_ACK", KNOWN | RESPONSE | HAS_AETH | HAS_ATOMIC_ACK },
	[FRAME_CMP_SWAP] = { "CMP_SWAP", KNOWN | HAS_ATOMIC },
	[FRAME_FETCH_ADD] = { "FETCH_ADD", KNOWN | HAS_ATOMIC },
	[FRAME_SEND_LAST_INV] = { "SEND_LAST_INV", KNOWN | HAS_PAYLOAD | HAS_INV },
	[FRAME_SEND_ONLY_INV] = { "SEND_ONLY_INV", KNOWN | HAS_PAYLOAD | HAS_INV },
};

const char *frame_opcode_name(uint8_t opcode)
{
	if (opcode >= FRAME_OPCODE_COUNT || !opcodes[opcode].name)
		return "?";
	return opcodes[opcode].name;
}

static uint64_t get(const uint8_t *p, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *p++;
	return value;
}

static void put(uint8_t *p, unsigned int bytes, uint64_t value)
{
	while (bytes--) {
		p[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

/* CRC-32 of Ethernet, on a running value. */
static uint32_t crc_bytes(uint32_t crc, const uint8_t *p, size_t len)
{
	static uint32_t table[256];
	unsigned int i, bit;

	if (!table[1]) {
		for (i = 0; i < 256; i++) {
			uint32_t c = i;

			for (bit = 0; bit < 8; bit++)
				c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
			table[i] = c;
		}
	}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

/* Over the packet with all that routers may change set to ones; @end is where the ICRC begins. */
static uint32_t icrc(const uint8_t *data, bool ipv6, size_t end)
{
	static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	size_t ip_len = ipv6 ? IPV6_LEN : IPV4_LEN;
	uint8_t head[IPV6_LEN + UDP_LEN + BTH_LEN];
	size_t head_len = ip_len + UDP_LEN + BTH_LEN;
	uint32_t crc = crc_bytes(0xffffffff, ones, sizeof(ones));

	memcpy(head, data + ETH_LEN, head_len);
	if (ipv6) {
		head[0] |= 0x0f;	/* traffic class, flow label */
		memset(head + 1, 0xff, 3);
		head[7] = 0xff;		/* hop limit */
	} else {
		head[1] = 0xff;		/* type of service */
		head[8] = 0xff;		/* time to live */
		memset(head + 10, 0xff, 2);
	}
	memset(head + ip_len + 6, 0xff, 2);	/* UDP checksum */
	head[ip_len + UDP_LEN + 4] = 0xff;	/* resv8a */
	crc = crc_bytes(crc, head, head_len);
	return ~crc_bytes(crc, data + ETH_LEN + head_len, end - ETH_LEN - head_len);
}

static uint16_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;
	unsigned int i;

	for (i = 0; i < IPV4_LEN; i += 2)
		sum += i == 10 ? 0 : (uint32_t)get(ip + i, 2);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Ethernet, IP and UDP. */
static const char *parse_outer(const uint8_t *data, size_t len, struct frame *frame)
{
	const uint8_t *ip = data + ETH_LEN;
	size_t udp_at, udp_len;

	if (len < ETH_LEN + IPV4_LEN)
		return "shorter than an IP header";
	frame->ipv6 = get(data + 12, 2) == 0x86dd;
	if (!frame->ipv6 && get(data + 12, 2) != 0x0800)
		return "not IP";
	udp_at = ETH_LEN + (frame->ipv6 ? IPV6_LEN : IPV4_LEN);
	if (len < udp_at + UDP_LEN + BTH_LEN + ICRC_LEN)
		return "shorter than its headers";
	udp_len = get(data + udp_at + 4, 2);
	if (frame->ipv6) {
		if (ip[0] >> 4 != 6 || ip[6] != 17 || get(ip + 4, 2) != udp_len)
			return "IPv6 header";
	} else {
		if (ip[0] != 0x45 || ip[9] != 17 || get(ip + 2, 2) != udp_len + IPV4_LEN)
			return "IPv4 header";
		if (get(ip + 10, 2) != ipv4_checksum(ip))
			return "IPv4 checksum";
		if (get(ip + 6, 2) & 0x3fff)
			return "a fragment";
	}
	if (get(data + udp_at + 2, 2) != ROCE_PORT)
		return "not RoCEv2";
	if (udp_at + udp_len > len)
		return "UDP length";
	frame->icrc_at = udp_at + udp_len - ICRC_LEN;
	frame->payload_at = udp_at + UDP_LEN + BTH_LEN;
	return NULL;
}

static const char *parse_bth(const uint8_t *bth, struct frame *frame)
{
	if (bth[0] >= FRAME_OPCODE_COUNT || !(opcodes[bth[0]].has & KNOWN))
		return "opcode";
	frame->opcode = bth[0];
	frame->solicited = bth[1] >> 7;
	frame->pad = bth[1] >> 4 & 3;
	if (bth[1] & 0xf)
		return "header version";
	if (get(bth + 2, 2) != 0xffff)
		return "partition key";
	frame->dest_qpn = (uint32_t)get(bth + 5, 3);
	frame->ack_request = bth[8] >> 7;
	if (bth[8] & 0x7f)
		return "reserved bits of the BTH";
	frame->psn = (uint32_t)get(bth + 9, 3);
	return NULL;
}

static const char *parse_extensions(const uint8_t *data, struct frame *frame)
{
	unsigned int has = opcodes[frame->opcode].has;
	const uint8_t *p = data + frame->payload_at;
	const uint8_t *end = data + frame->icrc_at;

	frame->from_requester = !(has & RESPONSE);
	if (end - p < (has & HAS_RETH ? 16 : 0) + (has & HAS_ATOMIC ? 28 : 0) +
		      (has & HAS_AETH ? 4 : 0) + (has & HAS_ATOMIC_ACK ? 8 : 0) +
		      (has & (HAS_IMM | HAS_INV) ? 4 : 0))
		return "extended headers cut off";
	if (has & (HAS_RETH | HAS_ATOMIC)) {
		frame->raddr = get(p, 8);
		frame->rkey = (uint32_t)get(p + 8, 4);
		p += 12;
	}
	if (has & HAS_RETH) {
		frame->dma_len = (uint32_t)get(p, 4);
		p += 4;
	}
	if (has & HAS_ATOMIC) {
		frame->swap_or_add = get(p, 8);
		frame->compare = get(p + 8, 8);
		p += 16;
	}
	if (has & HAS_AETH) {
		frame->syndrome = p[0];
		frame->msn = (uint32_t)get(p + 1, 3);
		p += 4;
	}
	if (has & HAS_ATOMIC_ACK) {
		frame->original = get(p, 8);
		p += 8;
	}
	if (has & HAS_IMM) {
		memcpy(frame->imm, p, 4);
		p += 4;
	}
	if (has & HAS_INV) {
		frame->inv_key = (uint32_t)get(p, 4);
		p += 4;
	}
	frame->payload_at = (size_t)(p - data);
	return NULL;
}

static const char *parse_payload(struct frame *frame)
{
	unsigned int has = opcodes[frame->opcode].has;
	size_t len = frame->icrc_at - frame->payload_at;

	if (len & 3 || len < frame->pad)
		return "pad";
	frame->payload_len = len - frame->pad;
	if (!(has & HAS_PAYLOAD) && len)
		return "payload where there is none";
	if (has & NOT_LAST && (!len || frame->pad || frame->payload_len & (frame->payload_len - 1)))
		return "a packet in the middle that is not of the path MTU";
	return NULL;
}

const char *frame_parse(const uint8_t *data, size_t len, struct frame *frame)
{
	const char *wrong;

	memset(frame, 0, sizeof(*frame));
	wrong = parse_outer(data, len, frame);
	if (!wrong)
		wrong = parse_bth(data + frame->payload_at - BTH_LEN, frame);
	if (!wrong)
		wrong = parse_extensions(data, frame);
	if (!wrong)
		wrong = parse_payload(frame);
	if (wrong)
		return wrong;
	if (get(data + frame->icrc_at, 4) !=
	    __builtin_bswap32(icrc(data, frame->ipv6, frame->icrc_at)))
		return "ICRC";
	return NULL;
}

void frame_finish(uint8_t *data, size_t len)
{
	uint8_t *ip = data + ETH_LEN;
	bool ipv6 = len > ETH_LEN && get(data + 12, 2) == 0x86dd;
	size_t udp_at = ETH_LEN + (ipv6 ? IPV6_LEN : IPV4_LEN);
	uint32_t crc;

	if (len < udp_at + UDP_LEN + BTH_LEN + ICRC_LEN)
		return;
	put(data + udp_at + 4, 2, len - udp_at);
	if (ipv6) {
		put(ip + 4, 2, len - udp_at);
	} else {
		put(ip + 2, 2, len - ETH_LEN);
		put(ip + 10, 2, ipv4_checksum(ip));
	}
	crc = icrc(data, ipv6, len - ICRC_LEN);
	put(data + len - ICRC_LEN, 4, __builtin_bswap32(crc));
}

static void build_outer(uint8_t *data, const struct host *from, const struct host *to, bool ipv6)
{
	uint8_t source[16], target[16];
	uint8_t *ip = data + ETH_LEN;

	host_gid(from, ipv6, source);
	host_gid(to, ipv6, target);
	memcpy(data, to->mac, 6);
	memcpy(data + 6, from->mac, 6);
	put(data + 12, 2, ipv6 ? 0x86dd : 0x0800);
	if (ipv6) {
		ip[0] = 0x60;
		ip[6] = 17;
		ip[7] = 64;
		memcpy(ip + 8, source, 16);
		memcpy(ip + 24, target, 16);
		ip += IPV6_LEN;
	} else {
		ip[0] = 0x45;
		put(ip + 6, 2, 0x4000);
		ip[8] = 64;
		ip[9] = 17;
		memcpy(ip + 12, source + 12, 4);
		memcpy(ip + 16, target + 12, 4);
		ip += IPV4_LEN;
	}
	put(ip, 2, 0xc000);
	put(ip + 2, 2, ROCE_PORT);
}

static uint8_t *build_extensions(uint8_t *p, const struct frame *frame)
{
	unsigned int has = opcodes[frame->opcode].has;

	if (has & (HAS_RETH | HAS_ATOMIC)) {
		put(p, 8, frame->raddr);
		put(p + 8, 4, frame->rkey);
		p += 12;
	}
	if (has & HAS_RETH) {
		put(p, 4, frame->dma_len);
		p += 4;
	}
	if (has & HAS_ATOMIC) {
		put(p, 8, frame->swap_or_add);
		put(p + 8, 8, frame->compare);
		p += 16;
	}
	if (has & HAS_AETH) {
		p[0] = frame->syndrome;
		put(p + 1, 3, frame->msn);
		p += 4;
	}
	if (has & HAS_ATOMIC_ACK) {
		put(p, 8, frame->original);
		p += 8;
	}
	if (has & HAS_IMM) {
		memcpy(p, frame->imm, 4);
		p += 4;
	}
	if (has & HAS_INV) {
		put(p, 4, frame->inv_key);
		p += 4;
	}
	return p;
}

size_t frame_build(uint8_t *data, const struct host *from, const struct host *to,
		   const struct frame *frame, const void *payload, size_t payload_len)
{
	unsigned int pad = -payload_len & 3;
	uint8_t *bth, *p;
	size_t len;

	memset(data, 0, FRAME_MAX);
	build_outer(data, from, to, frame->ipv6);
	bth = data + ETH_LEN + (frame->ipv6 ? IPV6_LEN : IPV4_LEN) + UDP_LEN;
	bth[0] = frame->opcode;
	bth[1] = (uint8_t)(frame->solicited << 7 | pad << 4);
	put(bth + 2, 2, 0xffff);
	put(bth + 5, 3, frame->dest_qpn);
	bth[8] = (uint8_t)(frame->ack_request << 7);
	put(bth + 9, 3, frame->psn);
	p = build_extensions(bth + BTH_LEN, frame);
	if (payload_len)
		memcpy(p, payload, payload_len);
	len = (size_t)(p - data) + payload_len + pad + ICRC_LEN;
	frame_finish(data, len);
	return len;
}
