// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The raw Ethernet QP: the frames of the host's network interface.
 */
#include "state.h"

#define ETH_FRAME_MIN	60	/* without FCS */

static bool eth_length_ok(const struct ferry_engine *e, uint32_t len)
{
	/* A tagged frame is 4 bytes longer. */
	return len >= ETH_HEADER && len <= ETH_HEADER + 4u + e->mtu;
}

static enum ferry_wc_status eth_send(struct ferry_engine *e, struct qp *qp,
				     const struct send_wqe *wqe)
{
	uint32_t len = wqe->len;
	struct vecs data;

	if (!eth_length_ok(e, len))
		return FERRY_WC_LOC_LEN_ERR;
	if (!wqe_resolve(e, qp, wqe, 0, len, false, &data) || !vecs_gather(e, &data, e->frame))
		return FERRY_WC_LOC_PROT_ERR;
	if (len < ETH_FRAME_MIN) {
		memset(e->frame + len, 0, ETH_FRAME_MIN - len);
		len = ETH_FRAME_MIN;
	}
	if (port_is_up(e) && e->port.transmit(e->port.ctx, e->frame, len))
		stat_inc(e, eth_tx_frames);
	else
		stat_inc(e, tx_errors);
	return FERRY_WC_SUCCESS;
}

static void eth_step(struct ferry_engine *e, struct qp *qp)
{
	struct send_wqe *wqe = &qp->req.wqe;
	enum ferry_wc_status status;
	uint32_t index = qp->sq.ci;

	status = wqe_read(e, qp, index, wqe);
	if (!status)
		status = eth_send(e, qp, wqe);
	qp_charge(e, qp, wqe->len);
	qp->sq.ci++;
	if (status || wqe->flags & FERRY_WQE_SIGNALED || qp->flags & FERRY_QP_SIGNAL_ALL)
		qp_complete_send(e, qp, index, FERRY_WC_SEND, status, wqe->len, 0);
	if (status)
		qp_fail(e, qp, 0);
}

void eth_run(struct ferry_engine *e, struct qp *qp)
{
	while (qp->state == FERRY_QPS_RTS && qp->sq.ci != qp->sq.pi) {
		if (qp->credit <= 0)
			return;
		eth_step(e, qp);
	}
	qp->work &= (uint8_t)~QP_WORK_SEND;
}

static bool eth_wanted(const struct ferry_engine *e, const uint8_t *frame)
{
	return e->promisc || frame[0] & 1 || !memcmp(frame, e->mac, sizeof(e->mac));
}

static enum ferry_wc_status eth_store(struct ferry_engine *e, struct qp *qp, const uint8_t *frame,
				      uint32_t len)
{
	const struct recv *recv = &qp->resp.recv;
	struct vecs target;

	if (recv->bad)
		return FERRY_WC_LOC_QP_OP_ERR;
	if (len > recv->len)
		return FERRY_WC_LOC_LEN_ERR;
	if (!sges_resolve(e, qp->pd, recv->sge, recv->num_sge, 0, len, true, &target) ||
	    !vecs_scatter(e, &target, frame, len))
		return FERRY_WC_LOC_PROT_ERR;
	return FERRY_WC_SUCCESS;
}

void eth_receive(struct ferry_engine *e, const uint8_t *frame, size_t len)
{
	struct qp *qp = e->eth;
	struct ferry_cqe cqe = { .op = FERRY_WC_RECV };
	enum ferry_wc_status status;

	if (!qp || (qp->state != FERRY_QPS_RTR && qp->state != FERRY_QPS_RTS) || len > MAX_FRAME ||
	    !eth_length_ok(e, (uint32_t)len) || !eth_wanted(e, frame))
		return;
	if (!qp_take_recv(e, qp, &qp->resp.recv)) {
		stat_inc(e, eth_rx_dropped);
		return;
	}
	status = eth_store(e, qp, frame, (uint32_t)len);
	if (status) {
		qp_complete_recv_error(e, qp, qp->resp.recv.id, status, 0);
		qp_fail(e, qp, 0);
		return;
	}
	stat_inc(e, eth_rx_frames);
	cqe.byte_len = le32((uint32_t)len);
	cqe.wqe_index = le16(qp->resp.recv.id);
	qp_complete_recv(e, qp, &cqe, false);
}
