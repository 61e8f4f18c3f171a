// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RoCEv2 frames: Ethernet, IPv4 or IPv6, UDP, BTH and its extensions, payload, ICRC.
 */
#include "state.h"

#define ETHERTYPE_IPV4	0x0800
#define ETHERTYPE_IPV6	0x86dd
#define IP_PROTO_UDP	17
#define UDP_PORT_ROCE	4791
#define RETH_LEN	16
#define AETH_LEN	4
#define IMM_LEN		4
#define IETH_LEN	4
#define DETH_LEN	8
#define ATOMIC_ETH_LEN	28
#define ATOMIC_ACK_LEN	8
#define ICRC_LEN	4
#define PKEY_DEFAULT	0xffff
#define HOP_LIMIT	64

#define OPCODE_UD	0x60	/* upper three bits of the opcode */
#define OPCODE_NONE	0xff

/* Low five bits of the opcode, both ways. */
static const struct {
	uint8_t kind, flags;
} opcodes[32] = {
	[0x00] = { PACKET_SEND, PACKET_FIRST },
	[0x01] = { PACKET_SEND, 0 },
	[0x02] = { PACKET_SEND, PACKET_LAST },
	[0x03] = { PACKET_SEND, PACKET_LAST | PACKET_IMM },
	[0x04] = { PACKET_SEND, PACKET_ONLY },
	[0x05] = { PACKET_SEND, PACKET_ONLY | PACKET_IMM },
	[0x06] = { PACKET_WRITE, PACKET_FIRST },
	[0x07] = { PACKET_WRITE, 0 },
	[0x08] = { PACKET_WRITE, PACKET_LAST },
	[0x09] = { PACKET_WRITE, PACKET_LAST | PACKET_IMM },
	[0x0a] = { PACKET_WRITE, PACKET_ONLY },
	[0x0b] = { PACKET_WRITE, PACKET_ONLY | PACKET_IMM },
	[0x0c] = { PACKET_READ, PACKET_ONLY },
	[0x0d] = { PACKET_READ_RESPONSE, PACKET_FIRST },
	[0x0e] = { PACKET_READ_RESPONSE, 0 },
	[0x0f] = { PACKET_READ_RESPONSE, PACKET_LAST },
	[0x10] = { PACKET_READ_RESPONSE, PACKET_ONLY },
	[0x11] = { PACKET_ACK, PACKET_ONLY },
	[0x12] = { PACKET_ATOMIC_ACK, PACKET_ONLY },
	[0x13] = { PACKET_ATOMIC_CS, PACKET_ONLY },
	[0x14] = { PACKET_ATOMIC_FA, PACKET_ONLY },
	[0x15] = { OPCODE_NONE, 0 },
	[0x16] = { PACKET_SEND, PACKET_LAST | PACKET_INV },
	[0x17] = { PACKET_SEND, PACKET_ONLY | PACKET_INV },
	[0x18 ... 0x1f] = { OPCODE_NONE, 0 },
};

#define OPCODE_FLAGS	(PACKET_FIRST | PACKET_LAST | PACKET_IMM | PACKET_INV)

static uint8_t opcode_of(const struct packet *packet)
{
	uint8_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		if (opcodes[i].kind == packet->kind &&
		    opcodes[i].flags == (packet->flags & OPCODE_FLAGS))
			break;
	}
	return packet->flags & PACKET_UD ? OPCODE_UD | i : i;
}

static bool has_reth(const struct packet *p)
{
	return p->kind == PACKET_READ || (p->kind == PACKET_WRITE && p->flags & PACKET_FIRST);
}

static bool has_atomic_eth(const struct packet *p)
{
	return p->kind == PACKET_ATOMIC_CS || p->kind == PACKET_ATOMIC_FA;
}

static bool has_aeth(const struct packet *p)
{
	return p->kind == PACKET_ACK || p->kind == PACKET_ATOMIC_ACK ||
	       (p->kind == PACKET_READ_RESPONSE && p->flags & PACKET_ONLY);
}

static bool has_payload(const struct packet *p)
{
	return p->kind == PACKET_SEND || p->kind == PACKET_WRITE || p->kind == PACKET_READ_RESPONSE;
}

static uint32_t extension_len(const struct packet *p)
{
	uint32_t len = 0;

	if (p->flags & PACKET_UD)
		len += DETH_LEN;
	if (has_reth(p))
		len += RETH_LEN;
	if (has_atomic_eth(p))
		len += ATOMIC_ETH_LEN;
	if (has_aeth(p))
		len += AETH_LEN;
	if (p->kind == PACKET_ATOMIC_ACK)
		len += ATOMIC_ACK_LEN;
	if (p->flags & PACKET_IMM)
		len += IMM_LEN;
	if (p->flags & PACKET_INV)
		len += IETH_LEN;
	return len;
}

static bool gid_is_ipv4(const uint8_t *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/* ---------------------------------------------------------------------------- sending */

static uint8_t *put_extensions(uint8_t *at, const struct packet *p)
{
	if (p->flags & PACKET_UD) {
		put_be32(at, p->qkey);
		put_be32(at + 4, p->src_qpn);
		at += DETH_LEN;
	}
	if (has_reth(p)) {
		put_be64(at, p->raddr);
		put_be32(at + 8, p->rkey);
		put_be32(at + 12, p->dma_len);
		at += RETH_LEN;
	}
	if (has_atomic_eth(p)) {
		put_be64(at, p->raddr);
		put_be32(at + 8, p->rkey);
		put_be64(at + 12, p->swap_or_add);
		put_be64(at + 20, p->compare);
		at += ATOMIC_ETH_LEN;
	}
	if (has_aeth(p)) {
		put_be32(at, (uint32_t)p->syndrome << 24 | p->msn);
		at += AETH_LEN;
	}
	if (p->kind == PACKET_ATOMIC_ACK) {
		put_be64(at, p->swap_or_add);
		at += ATOMIC_ACK_LEN;
	}
	if (p->flags & PACKET_IMM) {
		memcpy(at, p->imm, IMM_LEN);
		at += IMM_LEN;
	}
	if (p->flags & PACKET_INV) {
		put_be32(at, p->inv_key);
		at += IETH_LEN;
	}
	return at;
}

static void put_bth(uint8_t *at, const struct packet *p, uint32_t pad)
{
	at[0] = opcode_of(p);
	/* Solicited event, no migration state but the usual one, padding, version 0. */
	at[1] = (uint8_t)((p->flags & PACKET_SOLICITED ? 0x80 : 0) | 0x40 | pad << 4);
	put_be16(at + 2, PKEY_DEFAULT);
	put_be32(at + 4, p->dest_qpn);
	put_be32(at + 8, p->psn | (p->flags & PACKET_ACK_REQUEST ? 1u << 31 : 0));
}

static uint16_t ip_checksum(const uint8_t *h)
{
	uint32_t sum = 0, i;

	for (i = 0; i < IPV4_LEN; i += 2)
		sum += get_be16(h + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~((sum & 0xffff) + (sum >> 16));
}

static void put_ipv4(uint8_t *at, const struct ferry_av *av, const struct packet *p, uint32_t len)
{
	at[0] = 0x45;
	at[1] = av->traffic_class;
	put_be16(at + 2, (uint16_t)(IPV4_LEN + len));
	put_be16(at + 4, 0);
	put_be16(at + 6, 0x4000);	/* do not fragment */
	at[8] = av->hop_limit ? av->hop_limit : HOP_LIMIT;
	at[9] = IP_PROTO_UDP;
	put_be16(at + 10, 0);
	memcpy(at + 12, p->sgid + 12, 4);
	memcpy(at + 16, p->dgid + 12, 4);
	put_be16(at + 10, ip_checksum(at));
}

static void put_ipv6(uint8_t *at, const struct ferry_av *av, const struct packet *p, uint32_t len)
{
	put_be32(at, 6u << 28 | (uint32_t)av->traffic_class << 20 |
		 (le32(av->flow_label) & 0xfffff));
	put_be16(at + 4, (uint16_t)len);
	at[6] = IP_PROTO_UDP;
	at[7] = av->hop_limit ? av->hop_limit : HOP_LIMIT;
	memcpy(at + 8, p->sgid, 16);
	memcpy(at + 24, p->dgid, 16);
}

/* One port for a pair of QPs, so that routers keep their packets in order. */
static uint16_t udp_source(const struct qp *qp, const struct ferry_av *av, const struct packet *p)
{
	uint32_t hash = qp_number(qp) * 0x9e3779b1u ^ p->dest_qpn * 0x85ebca6bu;

	return le16(av->udp_sport) ? le16(av->udp_sport) : (uint16_t)(0xc000 | (hash >> 18));
}

enum sent wire_send(struct ferry_engine *e, struct qp *qp, const struct ferry_av *av,
		    const struct packet *p)
{
	uint32_t payload = packet_len(p), pad = -payload & 3, ip_len, udp_len, crc, total;
	uint8_t *ip = e->frame + ETH_HEADER, *udp, *at;
	bool v4 = gid_is_ipv4(p->sgid);

	if (!port_is_up(e) || v4 != gid_is_ipv4(p->dgid)) {
		stat_inc(e, tx_errors);
		return SENT;
	}
	ip_len = v4 ? IPV4_LEN : IPV6_LEN;
	udp_len = UDP_LEN + BTH_LEN + extension_len(p) + payload + pad + ICRC_LEN;
	memcpy(e->frame, av->dmac, 6);
	memcpy(e->frame + 6, e->mac, 6);
	put_be16(e->frame + 12, v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	if (v4)
		put_ipv4(ip, av, p, udp_len);
	else
		put_ipv6(ip, av, p, udp_len);
	udp = ip + ip_len;
	put_be16(udp, udp_source(qp, av, p));
	put_be16(udp + 2, UDP_PORT_ROCE);
	put_be16(udp + 4, (uint16_t)udp_len);
	put_be16(udp + 6, 0);
	put_bth(udp + UDP_LEN, p, pad);
	at = put_extensions(udp + UDP_LEN + BTH_LEN, p);
	if (payload && !vecs_gather(e, p->payload, at))
		return SENT_BAD_SOURCE;
	memset(at + payload, 0, pad);
	at += payload + pad;
	crc = icrc(e, ip, v4, (uint32_t)(at - ip));
	put_le32(at, crc);
	total = (uint32_t)(at - e->frame) + ICRC_LEN;
	if (!e->port.transmit(e->port.ctx, e->frame, total))
		return SENT_BUSY;
	stat_inc(e, tx_packets);
	stat_add(e, tx_bytes, total);
	return SENT;
}

/* -------------------------------------------------------------------------- receiving */

/* A frame that is being taken apart. */
struct wire_frame {
	const uint8_t *ip;
	const uint8_t *transport;	/* BTH */
	uint32_t ip_len;		/* of the IP header */
	uint32_t len;			/* from BTH up to the ICRC, with it */
	uint8_t sgid[16], dgid[16];
};

enum wire_verdict {
	WIRE_OTHER,	/* not RoCE, or not for us: a frame for the raw Ethernet QP */
	WIRE_BAD,	/* RoCE for us, and malformed */
	WIRE_ROCE,
};

static void gid_from_ipv4(uint8_t *gid, const uint8_t *addr)
{
	memset(gid, 0, 10);
	gid[10] = 0xff;
	gid[11] = 0xff;
	memcpy(gid + 12, addr, 4);
}

static enum wire_verdict parse_udp(struct wire_frame *f, const uint8_t *udp, uint32_t len)
{
	f->transport = udp + UDP_LEN;
	f->len = len - UDP_LEN;
	if (get_be16(udp + 4) != len || f->len < BTH_LEN + ICRC_LEN)
		return WIRE_BAD;
	return WIRE_ROCE;
}

static enum wire_verdict parse_ipv4(const struct ferry_engine *e, struct wire_frame *f,
				    const uint8_t *ip, size_t len)
{
	const uint8_t *udp = ip + IPV4_LEN;
	uint32_t total;

	if (len < IPV4_LEN + UDP_LEN || ip[0] != 0x45 || ip[9] != IP_PROTO_UDP ||
	    get_be16(ip + 6) & 0x3fff || get_be16(udp + 2) != UDP_PORT_ROCE)
		return WIRE_OTHER;
	gid_from_ipv4(f->sgid, ip + 12);
	gid_from_ipv4(f->dgid, ip + 16);
	if (!gid_is_ours(e, f->dgid))
		return WIRE_OTHER;
	total = get_be16(ip + 2);
	if (ip_checksum(ip) || total > len || total < IPV4_LEN + UDP_LEN)
		return WIRE_BAD;
	f->ip = ip;
	f->ip_len = IPV4_LEN;
	return parse_udp(f, udp, total - IPV4_LEN);
}

static enum wire_verdict parse_ipv6(const struct ferry_engine *e, struct wire_frame *f,
				    const uint8_t *ip, size_t len)
{
	const uint8_t *udp = ip + IPV6_LEN;
	uint32_t udp_len;

	if (len < IPV6_LEN + UDP_LEN || ip[0] >> 4 != 6 || ip[6] != IP_PROTO_UDP ||
	    get_be16(udp + 2) != UDP_PORT_ROCE)
		return WIRE_OTHER;
	memcpy(f->sgid, ip + 8, 16);
	memcpy(f->dgid, ip + 24, 16);
	if (!gid_is_ours(e, f->dgid))
		return WIRE_OTHER;
	udp_len = get_be16(ip + 4);
	if (udp_len > len - IPV6_LEN || udp_len < UDP_LEN)
		return WIRE_BAD;
	f->ip = ip;
	f->ip_len = IPV6_LEN;
	return parse_udp(f, udp, udp_len);
}

static enum wire_verdict parse_frame(const struct ferry_engine *e, struct wire_frame *f,
				     const uint8_t *frame, size_t len)
{
	uint16_t type;

	if (len < ETH_HEADER || memcmp(frame, e->mac, sizeof(e->mac)))
		return WIRE_OTHER;
	type = get_be16(frame + 12);
	if (type == ETHERTYPE_IPV4)
		return parse_ipv4(e, f, frame + ETH_HEADER, len - ETH_HEADER);
	if (type == ETHERTYPE_IPV6)
		return parse_ipv6(e, f, frame + ETH_HEADER, len - ETH_HEADER);
	return WIRE_OTHER;
}

static const uint8_t *get_extensions(const uint8_t *at, struct packet *p)
{
	if (p->flags & PACKET_UD) {
		p->qkey = get_be32(at);
		p->src_qpn = get_be24(at + 5);
		at += DETH_LEN;
	}
	if (has_reth(p)) {
		p->raddr = get_be64(at);
		p->rkey = get_be32(at + 8);
		p->dma_len = get_be32(at + 12);
		at += RETH_LEN;
	}
	if (has_atomic_eth(p)) {
		p->raddr = get_be64(at);
		p->rkey = get_be32(at + 8);
		p->swap_or_add = get_be64(at + 12);
		p->compare = get_be64(at + 20);
		at += ATOMIC_ETH_LEN;
	}
	if (has_aeth(p)) {
		p->syndrome = at[0];
		p->msn = get_be24(at + 1);
		at += AETH_LEN;
	}
	if (p->kind == PACKET_ATOMIC_ACK) {
		p->swap_or_add = get_be64(at);
		at += ATOMIC_ACK_LEN;
	}
	if (p->flags & PACKET_IMM) {
		memcpy(p->imm, at, IMM_LEN);
		at += IMM_LEN;
	}
	if (p->flags & PACKET_INV) {
		p->inv_key = get_be32(at);
		at += IETH_LEN;
	}
	return at;
}

/* BTH and what follows. False: malformed. */
static bool parse_transport(const struct wire_frame *f, struct packet *p, struct vecs *payload)
{
	const uint8_t *bth = f->transport, *at;
	uint8_t type = bth[0] & 0xe0, i = bth[0] & 0x1f;
	uint32_t pad = bth[1] >> 4 & 3, len = f->len - BTH_LEN - ICRC_LEN, extensions;

	if ((type && type != OPCODE_UD) || opcodes[i].kind == OPCODE_NONE || bth[1] & 0x0f ||
	    (get_be16(bth + 2) & 0x7fff) != (PKEY_DEFAULT & 0x7fff))
		return false;
	p->kind = opcodes[i].kind;
	p->flags = opcodes[i].flags;
	/* Datagrams are single SENDs. */
	if (type == OPCODE_UD) {
		if (p->kind != PACKET_SEND || (p->flags & ~PACKET_IMM) != PACKET_ONLY)
			return false;
		p->flags |= PACKET_UD;
	}
	if (bth[1] & 0x80)
		p->flags |= PACKET_SOLICITED;
	if (bth[8] & 0x80)
		p->flags |= PACKET_ACK_REQUEST;
	p->dest_qpn = get_be24(bth + 5);
	p->psn = get_be24(bth + 9);
	p->count = 1;
	extensions = extension_len(p);
	if (len < extensions + pad || (!has_payload(p) && len != extensions))
		return false;
	at = get_extensions(bth + BTH_LEN, p);
	vecs_flat(payload, at, len - extensions - pad);
	return true;
}

/* The 40 bytes before a datagram: an IPv4 header is their second half. */
static void put_grh(const struct wire_frame *f, uint8_t *grh)
{
	memset(grh, 0, IPV6_LEN);
	memcpy(grh + IPV6_LEN - f->ip_len, f->ip, f->ip_len);
}

bool wire_receive(struct ferry_engine *e, const uint8_t *frame, size_t len)
{
	struct packet p = { .loopback = false };
	enum wire_verdict verdict;
	uint8_t grh[IPV6_LEN];
	struct wire_frame f;
	struct vecs payload;

	verdict = parse_frame(e, &f, frame, len);
	if (verdict == WIRE_OTHER)
		return false;
	if (verdict == WIRE_BAD || !parse_transport(&f, &p, &payload)) {
		stat_inc(e, rx_discards);
		return true;
	}
	if (icrc(e, f.ip, f.ip_len == IPV4_LEN, f.ip_len + UDP_LEN + f.len - ICRC_LEN) !=
	    get_le32(f.transport + f.len - ICRC_LEN)) {
		stat_inc(e, rx_icrc_errors);
		return true;
	}
	stat_inc(e, rx_packets);
	stat_add(e, rx_bytes, len);
	p.sgid = f.sgid;
	p.dgid = f.dgid;
	p.payload = &payload;
	if (p.flags & PACKET_UD) {
		put_grh(&f, grh);
		p.grh = grh;
	}
	if (packet_receive(e, &p) == SENT_BUSY)
		responder_hold(e, qp_find(e, p.dest_qpn), &p, frame, len);
	return true;
}

enum sent wire_replay(struct ferry_engine *e, const uint8_t *frame, size_t len)
{
	struct packet p = { .loopback = false };
	struct wire_frame f;
	struct vecs payload;

	if (parse_frame(e, &f, frame, len) != WIRE_ROCE || !parse_transport(&f, &p, &payload))
		return SENT;
	p.sgid = f.sgid;
	p.dgid = f.dgid;
	p.payload = &payload;
	return packet_receive(e, &p);
}
