// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The requester of an RC QP (InfiniBand 9.7): sends messages as packets, takes the
 * answers, goes back when something was lost.
 *
 * A packet within this port is answered before packet_send() returns. So the state is
 * brought up to date before a packet goes out, and looked at anew afterwards.
 */
#include "state.h"

#define READ_PIECE	256	/* PSNs that one READ request asks for at most */
#define ACK_INTERVAL	16	/* packets of a message between requests for an ACK */
#define BUSY_DELAY	50000ull /* ns until a busy link is tried again */
#define RNR_LOOK	20000ull /* ns until the receive queue of a peer of this port is looked at */

/* What else the engine saw when a WQE failed here: ferry_cqe.vendor_err. */
enum requester_vendor {
	VENDOR_NONE,
	VENDOR_WQE = 1,		/* the WQE makes no sense, or has changed */
	VENDOR_KEY,		/* a key of its SGEs */
	VENDOR_DMA,		/* its memory could not be reached */
	VENDOR_RESPONSE,	/* the answer does not fit the request */
	/* From 0x20 on: the syndrome of the peer's NAK. */
};

/* ns, by the timer code of an RNR NAK (InfiniBand table 45). */
static const uint64_t rnr_delay[32] = {
	655360000, 10000, 20000, 30000, 40000, 60000, 80000, 120000,
	160000, 240000, 320000, 480000, 640000, 960000, 1280000, 1920000,
	2560000, 3840000, 5120000, 7680000, 10240000, 15360000, 20480000, 30720000,
	40960000, 61440000, 81920000, 122880000, 163840000, 245760000, 327680000, 491520000,
};

static bool opcode_has_response(uint8_t opcode)
{
	return opcode == FERRY_WR_READ || opcode == FERRY_WR_ATOMIC_CS ||
	       opcode == FERRY_WR_ATOMIC_FA;
}

static bool requester_alive(const struct qp *qp)
{
	return qp->state == FERRY_QPS_RTS || qp->state == FERRY_QPS_SQD;
}

static struct send_entry *entry_at(struct qp *qp, uint32_t index)
{
	return &qp->req.entry[index & (qp->req.entries - 1)];
}

/* ------------------------------------------------------------------- completions */

static void requester_complete(struct ferry_engine *e, struct qp *qp)
{
	uint32_t index = qp->sq.ci++;
	const struct send_entry *entry = entry_at(qp, index);

	if (entry->flags & FERRY_WQE_SIGNALED || qp->flags & FERRY_QP_SIGNAL_ALL)
		qp_complete_send(e, qp, index, wqe_completion[entry->opcode], FERRY_WC_SUCCESS,
				 entry->len, VENDOR_NONE);
}

/* The oldest WQE ends with an error, and the QP with it. */
static void requester_fail(struct ferry_engine *e, struct qp *qp, enum ferry_wc_status status,
			   uint8_t vendor)
{
	uint32_t index = qp->sq.ci++;
	uint8_t op = index != qp->req.started ? entry_at(qp, index)->opcode : FERRY_WR_SEND;

	qp_complete_send(e, qp, index, wqe_completion[op], status, 0, vendor);
	qp_fail(e, qp, 0);
}

/* The WQE at the cursor is wrong. It ends when all before it have. */
static void requester_fail_next(struct ferry_engine *e, struct qp *qp, enum ferry_wc_status status,
				uint8_t vendor)
{
	struct requester *req = &qp->req;

	req->wqe.valid = false;
	req->failed = true;
	req->fail_index = req->next;
	req->fail_status = (uint8_t)status;
	req->fail_vendor = vendor;
	if (qp->sq.ci == req->fail_index)
		requester_fail(e, qp, status, vendor);
}

void requester_check_drained(struct ferry_engine *e, struct qp *qp)
{
	/* A datagram is done with when it has left. */
	bool under_way = qp->type == FERRY_QPT_RC && qp->sq.ci != qp->req.started;

	if (qp->state != FERRY_QPS_SQD || !qp->draining || under_way)
		return;
	qp->draining = false;
	if (qp->attr.sqd_notify)
		eq_raise(e, NULL, &qp->source, FERRY_EVENT_SQ_DRAINED);
}

/* ------------------------------------------------------------------- going back */

/* The cursor to the oldest PSN that is not acknowledged. */
static void requester_rewind(struct qp *qp)
{
	struct requester *req = &qp->req;

	req->psn = req->una;
	req->next = qp->sq.ci;
	req->offset = 0;
	req->reads = 0;
	if (qp->sq.ci != req->started)
		req->offset = psn_sub(req->una, entry_at(qp, qp->sq.ci)->psn) << qp->mtu_shift;
}

static void requester_retry(struct ferry_engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;

	timer_cancel(e, &req->ack_timer);
	if (!req->retry_left) {
		requester_fail(e, qp, FERRY_WC_RETRY_EXC_ERR, VENDOR_NONE);
		return;
	}
	req->retry_left--;
	req->retried = true;
	requester_rewind(qp);
	qp_activate(e, qp, QP_WORK_SEND);
}

/* An answer shows that an earlier one was lost: as good as a NAK, once. */
static void requester_implied_nak(struct ferry_engine *e, struct qp *qp)
{
	if (qp->req.retried)
		return;
	stat_inc(e, implied_nak_seq_err);
	requester_retry(e, qp);
}

static void requester_timeout(struct ferry_engine *e, struct timer *timer)
{
	struct qp *qp = container_of(timer, struct qp, req.ack_timer);

	if (!requester_alive(qp) || qp->req.una == qp->req.psn)
		return;
	stat_inc(e, local_ack_timeout_err);
	requester_retry(e, qp);
}

/*
 * The peer wants to be left alone for as long as it says, which is how it waits for its host. One
 * of this port can be seen to have a receive before that. Looks are ever further apart, so
 * that one that never has costs little.
 */
static void requester_wait_rnr(struct ferry_engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t slice = req->rnr_wait;

	if (path_is_loopback(e, &qp->attr.av))
		slice = min_u64(slice, req->rnr_look);
	req->rnr_look *= 2;
	req->rnr_wait -= slice;
	timer_arm(e, &req->pause, slice);
}

static void requester_pause_over(struct ferry_engine *e, struct timer *timer)
{
	struct qp *qp = container_of(timer, struct qp, req.pause), *peer;

	if (qp->req.rnr_wait) {
		peer = qp_find(e, qp->attr.dest_qpn);
		if (peer && qp_receives(peer) && !qp_has_recv(e, peer)) {
			requester_wait_rnr(e, qp);
			return;
		}
	}
	qp->req.rnr_wait = 0;
	qp_activate(e, qp, QP_WORK_SEND);
}

static void requester_watch(struct ferry_engine *e, struct qp *qp)
{
	if (qp->attr.timeout)
		timer_arm(e, &qp->req.ack_timer, 4096ull << qp->attr.timeout);
}

/* ------------------------------------------------------------------- acknowledgement */

/* The oldest unacknowledged PSN has moved on to @una. */
static void requester_progress(struct qp *qp, uint32_t una)
{
	struct requester *req = &qp->req;

	req->una = una;
	req->retry_left = qp->attr.retry_cnt;
	req->rnr_left = qp->attr.rnr_retry;
	req->retried = false;
}

/* After progress and completions: the cursor is not behind, the timer fits. */
static void requester_settle(struct ferry_engine *e, struct qp *qp, bool progress)
{
	struct requester *req = &qp->req;

	if (!requester_alive(qp))
		return;
	if (psn_cmp(req->una, req->psn) > 0)
		requester_rewind(qp);
	if (req->una == req->psn)
		timer_cancel(e, &req->ack_timer);
	else if (progress || !timer_armed(&req->ack_timer))
		requester_watch(e, qp);
	if (unlikely(req->failed && qp->sq.ci == req->fail_index)) {
		requester_fail(e, qp, req->fail_status, req->fail_vendor);
		return;
	}
	requester_check_drained(e, qp);
	if (req->next != qp->sq.pi)
		qp_activate(e, qp, QP_WORK_SEND);
}

/*
 * All before @psn is acknowledged. False where a READ or an atomic is in the way: their
 * answers are missing.
 */
static bool requester_ack(struct ferry_engine *e, struct qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;
	uint32_t n = psn_sub(psn, req->una);

	while (n && requester_alive(qp)) {
		const struct send_entry *entry = entry_at(qp, qp->sq.ci);
		uint32_t left = psn_sub(psn_add(entry->psn, entry->count), req->una);

		if (opcode_has_response(entry->opcode))
			return false;
		left = min_u32(left, n);
		requester_progress(qp, psn_add(req->una, left));
		n -= left;
		if (req->una == psn_add(entry->psn, entry->count))
			requester_complete(e, qp);
	}
	return true;
}

static void requester_rnr(struct ferry_engine *e, struct qp *qp, uint8_t syndrome)
{
	struct requester *req = &qp->req;

	/* Not what was sent since it last went back: told before. */
	if (req->psn == req->una)
		return;
	stat_inc(e, rnr_nak_retry_err);
	if (qp->attr.rnr_retry != 7 && !req->rnr_left) {
		requester_fail(e, qp, FERRY_WC_RNR_RETRY_EXC_ERR, syndrome);
		return;
	}
	if (qp->attr.rnr_retry != 7)
		req->rnr_left--;
	requester_rewind(qp);
	timer_cancel(e, &req->ack_timer);
	req->rnr_wait = rnr_delay[syndrome & 31];
	req->rnr_look = RNR_LOOK;
	requester_wait_rnr(e, qp);
}

static void requester_nak(struct ferry_engine *e, struct qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_SEQUENCE:
		if (qp->req.psn == qp->req.una)
			return;
		stat_inc(e, packet_seq_err);
		requester_retry(e, qp);
		return;
	case AETH_NAK_INVALID:
		requester_fail(e, qp, FERRY_WC_REM_INV_REQ_ERR, syndrome);
		return;
	case AETH_NAK_ACCESS:
		requester_fail(e, qp, FERRY_WC_REM_ACCESS_ERR, syndrome);
		return;
	case AETH_NAK_OPERATION:
		requester_fail(e, qp, FERRY_WC_REM_OP_ERR, syndrome);
		return;
	default:
		stat_inc(e, rx_discards);
	}
}

static enum sent requester_receive_ack(struct ferry_engine *e, struct qp *qp,
				       const struct packet *packet)
{
	uint8_t type = packet->syndrome >> 5;

	if (!requester_ack(e, qp, type ? packet->psn : psn_add(packet->psn, 1))) {
		requester_implied_nak(e, qp);
		return SENT;
	}
	if (!requester_alive(qp))
		return SENT;
	if (type == AETH_RNR_NAK >> 5)
		requester_rnr(e, qp, packet->syndrome);
	else if (type)
		requester_nak(e, qp, packet->syndrome);
	return SENT;
}

/* The WQE of the oldest PSN, as it was when it was sent; NULL if the host has changed it. */
static const struct send_wqe *requester_oldest(struct ferry_engine *e, struct qp *qp)
{
	const struct send_entry *entry = entry_at(qp, qp->sq.ci);
	struct send_wqe *wqe = &qp->req.wqe;

	if (wqe->valid && wqe->index == qp->sq.ci)
		return wqe;
	wqe = &qp->req.wqe_read;
	if (wqe->valid && wqe->index == qp->sq.ci)
		return wqe;
	if (wqe_read(e, qp, qp->sq.ci, wqe) || wqe->opcode != entry->opcode ||
	    wqe->len != entry->len) {
		wqe->valid = false;
		return NULL;
	}
	return wqe;
}

/* Data for the oldest WQE, from @offset of its message on. False: it has failed. */
static bool requester_take_data(struct ferry_engine *e, struct qp *qp, uint32_t offset,
				const struct vecs *data, enum copy_result *result)
{
	const struct send_wqe *wqe = requester_oldest(e, qp);
	struct vecs sink;

	*result = COPY_OK;
	if (!wqe) {
		requester_fail(e, qp, FERRY_WC_LOC_QP_OP_ERR, VENDOR_WQE);
		return false;
	}
	if (!wqe_resolve(e, qp, wqe, offset, data->len, true, &sink)) {
		requester_fail(e, qp, FERRY_WC_LOC_PROT_ERR, VENDOR_KEY);
		return false;
	}
	*result = vecs_copy(e, &sink, data);
	if (*result == COPY_BAD_TARGET)
		requester_fail(e, qp, FERRY_WC_LOC_PROT_ERR, VENDOR_DMA);
	return *result == COPY_OK;
}

/* @n PSNs of a READ or an atomic are answered. */
static void requester_answered(struct ferry_engine *e, struct qp *qp, uint32_t n)
{
	struct requester *req = &qp->req;
	const struct send_entry *entry = entry_at(qp, qp->sq.ci);
	uint32_t done = psn_sub(req->una, entry->psn) + n;

	if (req->reads && (done == entry->count || !(done & (READ_PIECE - 1))))
		req->reads--;
	requester_progress(qp, psn_add(req->una, n));
	if (done == entry->count)
		requester_complete(e, qp);
}

static enum sent requester_receive_read(struct ferry_engine *e, struct qp *qp,
					const struct packet *packet)
{
	uint32_t offset, len = packet_len(packet), most;
	const struct send_entry *entry;
	enum copy_result result;

	if (!requester_ack(e, qp, packet->psn)) {
		requester_implied_nak(e, qp);
		return SENT;
	}
	entry = entry_at(qp, qp->sq.ci);
	if (!requester_alive(qp) || qp->sq.ci == qp->req.started ||
	    entry->opcode != FERRY_WR_READ) {
		stat_inc(e, rx_discards);
		return SENT;
	}
	offset = psn_sub(packet->psn, entry->psn) << qp->mtu_shift;
	most = (uint32_t)min_u64((uint64_t)packet->count << qp->mtu_shift, entry->len - offset);
	if (packet->count > psn_sub(psn_add(entry->psn, entry->count), packet->psn) ||
	    packet->count > psn_sub(qp->req.max_psn, packet->psn) || len != most) {
		requester_fail(e, qp, FERRY_WC_BAD_RESP_ERR, VENDOR_RESPONSE);
		return SENT;
	}
	if (len && !requester_take_data(e, qp, offset, packet->payload, &result))
		return result == COPY_BAD_SOURCE ? SENT_BAD_SOURCE : SENT;
	requester_answered(e, qp, packet->count);
	return SENT;
}

static enum sent requester_receive_atomic(struct ferry_engine *e, struct qp *qp,
					  const struct packet *packet)
{
	uint64_t value = le64(packet->swap_or_add);
	enum copy_result result;
	struct vecs data;
	uint8_t opcode;

	if (!requester_ack(e, qp, packet->psn)) {
		requester_implied_nak(e, qp);
		return SENT;
	}
	opcode = entry_at(qp, qp->sq.ci)->opcode;
	if (!requester_alive(qp) || qp->sq.ci == qp->req.started ||
	    !opcode_has_response(opcode) || opcode == FERRY_WR_READ) {
		stat_inc(e, rx_discards);
		return SENT;
	}
	vecs_flat(&data, &value, sizeof(value));
	if (requester_take_data(e, qp, 0, &data, &result))
		requester_answered(e, qp, 1);
	return SENT;
}

enum sent requester_receive(struct ferry_engine *e, struct qp *qp, const struct packet *packet)
{
	const struct requester *req = &qp->req;
	uint32_t una = req->una;
	enum sent sent;

	if (qp->type != FERRY_QPT_RC || !requester_alive(qp))
		return SENT;
	/* For nothing that is under way: a duplicate, or forged. */
	if (psn_sub(packet->psn, req->una) >= psn_sub(req->max_psn, req->una))
		return SENT;
	if (packet->kind == PACKET_READ_RESPONSE)
		sent = requester_receive_read(e, qp, packet);
	else if (packet->kind == PACKET_ATOMIC_ACK)
		sent = requester_receive_atomic(e, qp, packet);
	else
		sent = requester_receive_ack(e, qp, packet);
	requester_settle(e, qp, req->una != una);
	return sent;
}

/* --------------------------------------------------------------------------- sending */

/* What can be known to be wrong before the first packet leaves. */
static enum ferry_wc_status requester_check(struct ferry_engine *e, struct qp *qp,
					    const struct send_wqe *wqe, uint8_t *vendor)
{
	bool response = opcode_has_response(wqe->opcode);

	*vendor = VENDOR_WQE;
	if (response && !qp->attr.max_rd_atomic)
		return FERRY_WC_LOC_QP_OP_ERR;
	*vendor = VENDOR_KEY;
	if (!wqe_check_sges(e, qp, wqe, response))
		return FERRY_WC_LOC_PROT_ERR;
	return FERRY_WC_SUCCESS;
}

/* The WQE at the cursor into req->wqe. False: it is wrong. */
static bool requester_load(struct ferry_engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;
	uint8_t vendor = VENDOR_WQE;
	enum ferry_wc_status status;

	if (req->wqe.valid && req->wqe.index == req->next)
		return true;
	status = wqe_read(e, qp, req->next, &req->wqe);
	if (!status)
		status = requester_check(e, qp, &req->wqe, &vendor);
	if (!status && req->next != req->started) {
		const struct send_entry *entry = entry_at(qp, req->next);

		if (entry->opcode != req->wqe.opcode || entry->len != req->wqe.len)
			status = FERRY_WC_LOC_QP_OP_ERR;
	}
	if (unlikely(status))
		requester_fail_next(e, qp, status, vendor);
	return !status;
}

/* Gives the WQE at the cursor its PSNs. False: not now. */
static bool requester_start(struct qp *qp)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = &req->wqe;

	if (wqe->flags & FERRY_WQE_FENCE && req->reads)
		return false;
	if (opcode_has_response(wqe->opcode) && req->reads >= qp->attr.max_rd_atomic)
		return false;
	*entry_at(qp, req->next) = (struct send_entry) {
		.psn = req->max_psn,
		.count = opcode_has_response(wqe->opcode) && wqe->opcode != FERRY_WR_READ ?
			 1 : psns_of(qp, wqe->len),
		.len = wqe->len,
		.opcode = wqe->opcode,
		.flags = wqe->flags,
	};
	req->started++;
	return true;
}

/* Flags of the packets of SENDs and WRITEs, by opcode. */
static const struct {
	uint8_t kind;
	uint8_t last_flags;
} request_packets[FERRY_WR_COUNT] = {
	[FERRY_WR_SEND]		= { PACKET_SEND, 0 },
	[FERRY_WR_SEND_IMM]	= { PACKET_SEND, PACKET_IMM },
	[FERRY_WR_SEND_INV]	= { PACKET_SEND, PACKET_INV },
	[FERRY_WR_WRITE]	= { PACKET_WRITE, 0 },
	[FERRY_WR_WRITE_IMM]	= { PACKET_WRITE, PACKET_IMM },
	[FERRY_WR_READ]		= { PACKET_READ, 0 },
	[FERRY_WR_ATOMIC_CS]	= { PACKET_ATOMIC_CS, 0 },
	[FERRY_WR_ATOMIC_FA]	= { PACKET_ATOMIC_FA, 0 },
};

/* Where the cursor is before a packet goes out. */
struct requester_mark {
	uint32_t psn, max_psn, next, offset;
	uint8_t reads;
};

/* Moves the cursor over @n PSNs and @len bytes of the WQE it stands on. */
static void requester_advance(struct qp *qp, uint32_t n, uint32_t len)
{
	struct requester *req = &qp->req;
	const struct send_entry *entry = entry_at(qp, req->next);

	req->psn = psn_add(req->psn, n);
	req->offset += len;
	if (psn_sub(req->psn, req->una) > psn_sub(req->max_psn, req->una))
		req->max_psn = req->psn;
	if (req->psn == psn_add(entry->psn, entry->count)) {
		req->next++;
		req->offset = 0;
	}
}

/* Sends what covers @n PSNs and @len bytes. True: it went out. */
static bool requester_emit(struct ferry_engine *e, struct qp *qp, struct packet *packet,
			   uint32_t len)
{
	struct requester *req = &qp->req;
	const struct requester_mark mark = {
		req->psn, req->max_psn, req->next, req->offset, req->reads
	};
	enum sent sent;

	if (req->psn != req->max_psn)
		stat_inc(e, retransmits);
	if (packet->kind >= PACKET_READ)
		req->reads++;
	packet->psn = req->psn;
	packet->dest_qpn = le32(qp->attr.dest_qpn);
	requester_advance(qp, packet->count, len);
	sent = packet_send(e, qp, &qp->attr.av, packet);
	qp_charge(e, qp, packet_len(packet));
	if (unlikely(sent != SENT)) {
		/* Nobody has seen it, so nothing has answered it. */
		req->psn = mark.psn;
		req->max_psn = mark.max_psn;
		req->next = mark.next;
		req->offset = mark.offset;
		req->reads = mark.reads;
		if (sent == SENT_BUSY)
			timer_arm(e, &req->pause, BUSY_DELAY);
		else
			requester_fail_next(e, qp, FERRY_WC_LOC_PROT_ERR, VENDOR_DMA);
		return false;
	}
	if (requester_alive(qp) && req->una != req->psn && !timer_armed(&req->ack_timer))
		requester_watch(e, qp);
	return true;
}

static bool requester_send_read(struct ferry_engine *e, struct qp *qp, uint32_t room)
{
	struct requester *req = &qp->req;
	const struct send_entry *entry = entry_at(qp, req->next);
	uint32_t done = psn_sub(req->psn, entry->psn), len;
	struct packet packet = {
		.kind = request_packets[entry->opcode].kind,
		.flags = PACKET_ONLY | PACKET_ACK_REQUEST,
		.raddr = req->wqe.raddr + req->offset,
		.rkey = req->wqe.rkey,
		.swap_or_add = req->wqe.swap_or_add,
		.compare = req->wqe.compare,
	};

	if (req->reads >= qp->attr.max_rd_atomic)
		return false;
	packet.count = min_u32(entry->count - done, READ_PIECE - (done & (READ_PIECE - 1)));
	if (packet.count > room)
		return false;
	len = (uint32_t)min_u64(entry->len - req->offset,
				(uint64_t)packet.count << qp->mtu_shift);
	packet.dma_len = len;
	return requester_emit(e, qp, &packet, len);
}

static bool requester_send_data(struct ferry_engine *e, struct qp *qp, uint32_t room,
				bool loopback)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = &req->wqe;
	const struct send_entry *entry = entry_at(qp, req->next);
	uint32_t len = min_u32(entry->len - req->offset,
			       loopback ? LOOPBACK_BURST : 1u << qp->mtu_shift);
	struct packet packet = {
		.kind = request_packets[wqe->opcode].kind,
		.count = psns_of(qp, len),
	};
	struct vecs data;

	if (packet.count > room)
		return false;
	if (!wqe_resolve(e, qp, wqe, req->offset, len, false, &data)) {
		requester_fail_next(e, qp, FERRY_WC_LOC_PROT_ERR, VENDOR_KEY);
		return false;
	}
	packet.payload = &data;
	if (!req->offset)
		packet.flags |= PACKET_FIRST;
	packet.raddr = wqe->raddr;
	packet.rkey = wqe->rkey;
	packet.dma_len = wqe->len;
	if (req->offset + len == entry->len) {
		packet.flags |= PACKET_LAST | PACKET_ACK_REQUEST |
				request_packets[wqe->opcode].last_flags;
		if (wqe->flags & FERRY_WQE_SOLICITED)
			packet.flags |= PACKET_SOLICITED;
		memcpy(packet.imm, wqe->imm, sizeof(packet.imm));
		packet.inv_key = wqe->inv_key;
	} else if (loopback || !(req->psn & (ACK_INTERVAL - 1))) {
		packet.flags |= PACKET_ACK_REQUEST;
	}
	return requester_emit(e, qp, &packet, len);
}

/* The next packet. False: there is none that may go now. */
static bool requester_step(struct ferry_engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;
	bool fresh = req->next == req->started, loopback;
	uint32_t room, used;

	if (req->next == qp->sq.pi || (req->failed && req->next == req->fail_index))
		return false;
	if (fresh && (qp->state != FERRY_QPS_RTS || req->started - qp->sq.ci >= req->entries))
		return false;
	if (timer_armed(&req->pause) || !requester_load(e, qp))
		return false;
	if (fresh && !requester_start(qp))
		return false;
	loopback = path_is_loopback(e, &qp->attr.av);
	used = psn_sub(req->psn, req->una);
	room = loopback ? LOOPBACK_WINDOW : WIRE_WINDOW;
	room = room > used ? room - used : 0;
	if (opcode_has_response(req->wqe.opcode))
		return requester_send_read(e, qp, room);
	return requester_send_data(e, qp, room, loopback);
}

void requester_run(struct ferry_engine *e, struct qp *qp)
{
	while (requester_alive(qp)) {
		if (qp->credit <= 0)
			return;
		if (!requester_step(e, qp))
			break;
	}
	qp->work &= (uint8_t)~QP_WORK_SEND;
}

/* --------------------------------------------------------------------------- states */

void requester_init(struct qp *qp)
{
	timer_init(&qp->req.ack_timer, requester_timeout);
	timer_init(&qp->req.pause, requester_pause_over);
}

void requester_set_psn(struct qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;

	req->una = psn;
	req->psn = psn;
	req->max_psn = psn;
	req->started = qp->sq.ci;
	req->next = qp->sq.ci;
	req->offset = 0;
}

/* The error state: what was under way will be flushed. */
void requester_stop(struct ferry_engine *e, struct qp *qp)
{
	timer_cancel(e, &qp->req.ack_timer);
	timer_cancel(e, &qp->req.pause);
	qp->req.rnr_wait = 0;
	qp->req.failed = false;
}

void requester_reset(struct ferry_engine *e, struct qp *qp)
{
	struct requester *req = &qp->req;

	requester_stop(e, qp);
	req->una = 0;
	req->psn = 0;
	req->max_psn = 0;
	req->started = 0;
	req->next = 0;
	req->offset = 0;
	req->reads = 0;
	req->retried = false;
	req->wqe.valid = false;
	req->wqe_read.valid = false;
}
