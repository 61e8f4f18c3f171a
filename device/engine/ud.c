// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unreliable datagrams: UD QPs and GSI.
 */
#include "state.h"

#define GRH_LEN		40
#define QKEY_GSI	0x80010000u
#define QKEY_OWN	0x80000000u	/* bit: the QP's own key in place of the WQE's */

static uint32_t ud_qkey(const struct qp *qp)
{
	return qp->type == FERRY_QPT_GSI ? QKEY_GSI : le32(qp->attr.qkey);
}

/* An error of a datagram stops the send queue only. */
static void ud_fail(struct ferry_engine *e, struct qp *qp, enum ferry_wc_status status)
{
	uint32_t index = qp->sq.ci++;

	qp_complete_send(e, qp, index, FERRY_WC_SEND, status, 0, 0);
	if (qp->state != FERRY_QPS_RTS)
		return;
	qp->state = FERRY_QPS_SQE;
	qp_activate(e, qp, QP_WORK_FLUSH);
}

static bool ud_av_ok(const struct ferry_av *av)
{
	return le16(av->vlan) == 0xffff && le16(av->sgid_index) < MAX_GIDS;
}

static enum ferry_wc_status ud_send(struct ferry_engine *e, struct qp *qp, struct send_wqe *wqe,
				    bool *busy)
{
	struct packet packet = {
		.kind = PACKET_SEND,
		.flags = PACKET_ONLY | PACKET_UD,
		.dest_qpn = wqe->dest_qpn,
		.psn = qp->req.psn,
		.count = 1,
		.qkey = wqe->qkey & QKEY_OWN ? ud_qkey(qp) : wqe->qkey,
	};
	struct vecs data;
	enum sent sent;

	if (!ud_av_ok(&wqe->av) || wqe->dest_qpn & ~PSN_MASK)
		return FERRY_WC_LOC_QP_OP_ERR;
	if (wqe->len > port_roce_mtu(e))
		return FERRY_WC_LOC_LEN_ERR;
	if (!wqe_resolve(e, qp, wqe, 0, wqe->len, false, &data))
		return FERRY_WC_LOC_PROT_ERR;
	packet.payload = &data;
	if (wqe->opcode == FERRY_WR_SEND_IMM)
		packet.flags |= PACKET_IMM;
	memcpy(packet.imm, wqe->imm, sizeof(packet.imm));
	if (wqe->flags & FERRY_WQE_SOLICITED)
		packet.flags |= PACKET_SOLICITED;
	sent = packet_send(e, qp, &wqe->av, &packet);
	*busy = sent == SENT_BUSY;
	return sent == SENT_BAD_SOURCE ? FERRY_WC_LOC_PROT_ERR : FERRY_WC_SUCCESS;
}

/* Sends the oldest WQE. False: the link is busy. */
static bool ud_step(struct ferry_engine *e, struct qp *qp)
{
	struct send_wqe *wqe = &qp->req.wqe;
	enum ferry_wc_status status;
	bool busy = false;
	uint32_t index;

	status = wqe_read(e, qp, qp->sq.ci, wqe);
	if (!status)
		status = ud_send(e, qp, wqe, &busy);
	qp_charge(e, qp, wqe->len);
	if (status) {
		ud_fail(e, qp, status);
		return true;
	}
	/* It is a datagram: what the link does not take is lost. */
	if (busy)
		stat_inc(e, tx_errors);
	qp->req.psn = psn_add(qp->req.psn, 1);
	qp->req.max_psn = qp->req.psn;
	index = qp->sq.ci++;
	if (wqe->flags & FERRY_WQE_SIGNALED || qp->flags & FERRY_QP_SIGNAL_ALL)
		qp_complete_send(e, qp, index, FERRY_WC_SEND, FERRY_WC_SUCCESS, wqe->len, 0);
	return true;
}

void ud_run(struct ferry_engine *e, struct qp *qp)
{
	while (qp->state == FERRY_QPS_RTS && qp->sq.ci != qp->sq.pi) {
		if (qp->credit <= 0)
			return;
		ud_step(e, qp);
	}
	qp->work &= (uint8_t)~QP_WORK_SEND;
}

/* A datagram within this port has no header yet: an IPv6 one, or IPv4 in the second half. */
static void ud_make_grh(const struct packet *packet, uint8_t *grh)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t *ipv4 = grh + 20;

	memset(grh, 0, GRH_LEN);
	if (memcmp(packet->sgid, mapped, sizeof(mapped))) {
		grh[0] = 0x60;
		grh[6] = 17;
		memcpy(grh + 8, packet->sgid, 16);
		memcpy(grh + 24, packet->dgid, 16);
		return;
	}
	ipv4[0] = 0x45;
	ipv4[9] = 17;
	memcpy(ipv4 + 12, packet->sgid + 12, 4);
	memcpy(ipv4 + 16, packet->dgid + 12, 4);
}

/* Header and message into the receive in hand. */
static enum copy_result ud_store(struct ferry_engine *e, struct qp *qp, const struct packet *packet)
{
	const struct recv *recv = &qp->resp.recv;
	uint8_t grh[GRH_LEN];
	struct vecs target;

	if (packet->grh)
		memcpy(grh, packet->grh, sizeof(grh));
	else
		ud_make_grh(packet, grh);
	if (!sges_resolve(e, qp_recv_pd(qp), recv->sge, recv->num_sge, 0, GRH_LEN, true, &target) ||
	    !vecs_scatter(e, &target, grh, GRH_LEN))
		return COPY_BAD_TARGET;
	if (!packet_len(packet))
		return COPY_OK;
	if (!sges_resolve(e, qp_recv_pd(qp), recv->sge, recv->num_sge, GRH_LEN,
			  packet_len(packet), true, &target))
		return COPY_BAD_TARGET;
	return vecs_copy(e, &target, packet->payload);
}

static void ud_recv_failed(struct ferry_engine *e, struct qp *qp, enum ferry_wc_status status)
{
	qp_complete_recv_error(e, qp, qp->resp.recv.id, status, 0);
	qp_fail(e, qp, 0);
}

static bool ud_takes(const struct qp *qp, const struct packet *packet)
{
	return (qp->type == FERRY_QPT_UD || qp->type == FERRY_QPT_GSI) &&
	       qp->state >= FERRY_QPS_RTR && qp->state <= FERRY_QPS_SQE &&
	       packet->qkey == ud_qkey(qp);
}

enum sent ud_receive(struct ferry_engine *e, struct qp *qp, const struct packet *packet)
{
	struct recv *recv = &qp->resp.recv;
	struct ferry_cqe cqe = {
		.byte_len = le32(GRH_LEN + packet_len(packet)),
		.src_qpn = le32(packet->src_qpn),
		.flags = FERRY_CQE_GRH,
		.op = FERRY_WC_RECV,
	};
	enum copy_result result;

	if (!ud_takes(qp, packet) || !qp_take_recv(e, qp, recv)) {
		stat_inc(e, rx_discards);
		return SENT;
	}
	if (recv->bad || recv->len < GRH_LEN + packet_len(packet)) {
		ud_recv_failed(e, qp, recv->bad ? FERRY_WC_LOC_QP_OP_ERR : FERRY_WC_LOC_LEN_ERR);
		return SENT;
	}
	result = ud_store(e, qp, packet);
	if (result != COPY_OK) {
		/* The receive is spent either way; the sender's fault is not this QP's. */
		if (result == COPY_BAD_TARGET)
			ud_recv_failed(e, qp, FERRY_WC_LOC_PROT_ERR);
		else
			qp_complete_recv_error(e, qp, recv->id, FERRY_WC_GENERAL_ERR, 0);
		return result == COPY_BAD_SOURCE ? SENT_BAD_SOURCE : SENT;
	}
	cqe.wqe_index = le16(recv->id);
	if (packet->flags & PACKET_IMM) {
		cqe.flags |= FERRY_CQE_IMM;
		memcpy(cqe.imm, packet->imm, sizeof(cqe.imm));
	}
	if (packet->flags & PACKET_SOLICITED)
		cqe.flags |= FERRY_CQE_SOLICITED;
	qp_complete_recv(e, qp, &cqe, packet->flags & PACKET_SOLICITED);
	return SENT;
}
