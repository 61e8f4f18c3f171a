// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From QP to QP: within this port at once, else by the wire.
 */
#include "state.h"

bool path_is_loopback(const struct ferry_engine *e, const struct ferry_av *av)
{
	return !memcmp(av->dmac, e->mac, sizeof(e->mac));
}

/* Whether the packet took the path that the QP is connected by. */
static bool packet_from_peer(const struct ferry_engine *e, const struct qp *qp,
			     const struct packet *packet)
{
	const struct gid *gid = &e->gids[le16(qp->attr.av.sgid_index)];

	/* The wire does not name the QP that sent it; within the port it is known. */
	if (packet->loopback && packet->src_qpn != le32(qp->attr.dest_qpn))
		return false;
	return !memcmp(packet->sgid, qp->attr.av.dgid, 16) && !memcmp(packet->dgid, gid->raw, 16);
}

enum sent packet_receive(struct ferry_engine *e, const struct packet *packet)
{
	struct qp *qp = qp_find(e, packet->dest_qpn);

	if (qp && packet->flags & PACKET_UD)
		return ud_receive(e, qp, packet);
	if (!qp || qp->type != FERRY_QPT_RC || packet->flags & PACKET_UD ||
	    !packet_from_peer(e, qp, packet)) {
		stat_inc(e, rx_discards);
		return SENT;
	}
	return packet->kind >= PACKET_READ_RESPONSE ? requester_receive(e, qp, packet) :
						      responder_receive(e, qp, packet);
}

enum sent packet_send(struct ferry_engine *e, struct qp *qp, const struct ferry_av *av,
		      struct packet *packet)
{
	const struct gid *gid = &e->gids[le16(av->sgid_index)];

	if (unlikely(!gid->valid)) {
		stat_inc(e, tx_errors);
		return SENT;
	}
	packet->src_qpn = qp_number(qp);
	packet->sgid = gid->raw;
	packet->dgid = av->dgid;
	packet->loopback = path_is_loopback(e, av);
	if (!packet->loopback)
		return wire_send(e, qp, av, packet);
	stat_add(e, loopback_packets, packet->count);
	stat_add(e, loopback_bytes, packet_len(packet));
	return packet_receive(e, packet);
}
