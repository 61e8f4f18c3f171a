// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The responder of an RC QP (InfiniBand 9.7): takes requests in the order of their PSNs,
 * carries them out, answers.
 *
 * Answers leave in the order of the requests: data of READs and atomics waits in
 * resp->response[], and an ACK or NAK is not sent before that is empty.
 */
#include "responder.h"

#define BUSY_DELAY	50000ull /* ns until a busy link is tried again */

/* --------------------------------------------------------------------------- answers */

static void responder_ack_later(struct qp *qp)
{
	qp->resp.ack_due = true;
}

void responder_nak_later(struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct responder *resp = &qp->resp;

	resp->nak_due = true;
	resp->nak = syndrome;
	resp->nak_psn = psn;
}

void responder_die(struct qp *qp, uint8_t syndrome, enum ferry_event event)
{
	struct responder *resp = &qp->resp;

	resp->dying = true;
	resp->event = (uint8_t)event;
	responder_nak_later(qp, syndrome, resp->psn);
}

void responder_die_invalid(struct qp *qp)
{
	responder_die(qp, AETH_NAK_INVALID, FERRY_EVENT_QP_REQ_ERR);
}

void responder_die_access(struct ferry_engine *e, struct qp *qp)
{
	stat_inc(e, resp_remote_access_errors);
	responder_die(qp, AETH_NAK_ACCESS, FERRY_EVENT_QP_ACCESS_ERR);
}

static enum sent responder_send(struct ferry_engine *e, struct qp *qp, struct packet *packet)
{
	enum sent sent;

	packet->dest_qpn = le32(qp->attr.dest_qpn);
	packet->msn = qp->resp.msn;
	sent = packet_send(e, qp, &qp->attr.av, packet);
	qp_charge(e, qp, packet_len(packet));
	if (sent == SENT_BUSY)
		timer_arm(e, &qp->resp.pause, BUSY_DELAY);
	return sent;
}

/* Looked up for each packet: the MR may be gone since the request came. */
static bool responder_find_data(struct ferry_engine *e, struct qp *qp, const struct response *r,
				uint32_t len, struct vecs *data)
{
	uint64_t offset;
	struct mr *mr;

	if (!len)
		return true;
	mr = mr_check(e, qp->pd, r->rkey, r->raddr, len, FERRY_ACCESS_REMOTE_READ, &offset);
	if (mr)
		vecs_add(data, &mr->region, offset, len);
	return mr;
}

/* Before the first byte of a READ is fetched, where the MR wants assist. */
static enum ask_result responder_prepare_read(struct ferry_engine *e, struct qp *qp,
					      struct response *r)
{
	const struct ferry_assist_slot what = {
		.op = FERRY_ASSIST_BEFORE_READ,
		.key = le32(r->rkey),
		.iova = le64(r->raddr),
		.length = le64(r->len),
	};
	enum ask_result result = ASK_GRANTED;
	uint64_t offset;
	struct mr *mr;

	if (r->ready || !r->len)
		return ASK_GRANTED;
	mr = mr_check(e, qp->pd, r->rkey, r->raddr, r->len, FERRY_ACCESS_REMOTE_READ, &offset);
	if (!mr)
		return ASK_REFUSED;
	if (unlikely(mr->assist))
		result = assist_ask(e, &qp->resp.ask_read, &what, false);
	r->ready = result == ASK_GRANTED;
	return result;
}

/* A READ that was accepted cannot go on: a NAK in place of the rest, and nothing after. */
static void responder_fail_read(struct qp *qp, const struct response *r, uint8_t syndrome,
				enum ferry_event event)
{
	qp->resp.psn = r->psn;
	qp->resp.head = qp->resp.tail;
	responder_die(qp, syndrome, event);
}

/* One packet of a READ's data. False: not now. */
static bool responder_send_read(struct ferry_engine *e, struct qp *qp, struct response *r)
{
	bool loopback = path_is_loopback(e, &qp->attr.av);
	uint32_t len = min_u32(r->len, loopback ? LOOPBACK_BURST : 1u << qp->mtu_shift);
	struct vecs data = { .count = 0 };
	struct packet packet = {
		.kind = PACKET_READ_RESPONSE,
		.flags = (r->begun ? 0 : PACKET_FIRST) | (len == r->len ? PACKET_LAST : 0),
		.syndrome = AETH_ACK,
		.psn = r->psn,
		.count = psns_of(qp, len),
		.payload = &data,
	};
	enum ask_result prepared = responder_prepare_read(e, qp, r);
	enum sent sent;

	if (prepared == ASK_WAIT)
		return false;
	if (prepared == ASK_REFUSED || !responder_find_data(e, qp, r, len, &data)) {
		stat_inc(e, resp_remote_access_errors);
		responder_fail_read(qp, r, AETH_NAK_ACCESS, FERRY_EVENT_QP_ACCESS_ERR);
		return true;
	}
	sent = responder_send(e, qp, &packet);
	if (sent == SENT_BAD_SOURCE)
		responder_fail_read(qp, r, AETH_NAK_OPERATION, FERRY_EVENT_QP_FATAL);
	if (sent != SENT)
		return sent == SENT_BAD_SOURCE;
	r->begun = true;
	r->psn = psn_add(r->psn, packet.count);
	r->raddr += len;
	r->len -= len;
	if (packet.flags & PACKET_LAST) {
		qp->resp.fresh -= !r->duplicate;
		qp->resp.head++;
	}
	return true;
}

static bool responder_send_atomic(struct ferry_engine *e, struct qp *qp, struct response *r)
{
	struct packet packet = {
		.kind = PACKET_ATOMIC_ACK,
		.flags = PACKET_ONLY,
		.syndrome = AETH_ACK,
		.psn = r->psn,
		.count = 1,
		.swap_or_add = r->value,
	};

	if (responder_send(e, qp, &packet) == SENT_BUSY)
		return false;
	qp->resp.fresh -= !r->duplicate;
	qp->resp.head++;
	return true;
}

static bool responder_send_ack(struct ferry_engine *e, struct qp *qp, uint8_t syndrome,
			       uint32_t psn)
{
	struct packet packet = {
		.kind = PACKET_ACK,
		.flags = PACKET_ONLY,
		.syndrome = syndrome,
		.psn = psn,
		.count = 1,
	};

	return responder_send(e, qp, &packet) != SENT_BUSY;
}

/* The ACK or NAK that is due, once all data has left. */
static void responder_send_last(struct ferry_engine *e, struct qp *qp)
{
	struct responder *resp = &qp->resp;
	bool ack = resp->ack_due && !resp->nak_due, nak = resp->nak_due;

	resp->ack_due = false;
	resp->nak_due = false;
	if (ack && !responder_send_ack(e, qp, AETH_ACK, psn_sub(resp->psn, 1)))
		resp->ack_due = true;
	if (nak && !responder_send_ack(e, qp, resp->nak, resp->nak_psn))
		resp->nak_due = true;
	if (resp->dying && !resp->nak_due)
		qp_fail(e, qp, resp->event);
}

/* Answers as long as credit lasts. */
static void responder_answer(struct ferry_engine *e, struct qp *qp)
{
	struct responder *resp = &qp->resp;

	while (resp->head != resp->tail) {
		struct response *r = &resp->response[resp->head % RESPONSES];

		if (timer_armed(&resp->pause) || !qp_receives(qp))
			return;
		if (qp->credit <= 0) {
			qp_activate(e, qp, QP_WORK_RESPOND);
			return;
		}
		if (r->kind == PACKET_READ ? !responder_send_read(e, qp, r) :
					     !responder_send_atomic(e, qp, r))
			return;
	}
	if ((resp->ack_due || resp->nak_due) && !timer_armed(&resp->pause) && qp_receives(qp))
		responder_send_last(e, qp);
}

void responder_run(struct ferry_engine *e, struct qp *qp)
{
	qp->work &= (uint8_t)~QP_WORK_RESPOND;
	if (unlikely(!list_empty(&qp->resp.held)))
		responder_replay(e, qp);
	responder_answer(e, qp);
}

static void responder_pause_over(struct ferry_engine *e, struct timer *timer)
{
	qp_activate(e, container_of(timer, struct qp, resp.pause), QP_WORK_RESPOND);
}

/* -------------------------------------------------------------------------- receives */

/* The receive in hand ends with an error, and the request with a NAK. */
static void responder_fail_recv(struct ferry_engine *e, struct qp *qp, enum ferry_wc_status status)
{
	struct responder *resp = &qp->resp;
	uint8_t nak = status == FERRY_WC_LOC_LEN_ERR ? AETH_NAK_INVALID : AETH_NAK_OPERATION;

	if (status == FERRY_WC_LOC_LEN_ERR)
		stat_inc(e, resp_local_length_error);
	resp->has_recv = false;
	resp->message = MESSAGE_NONE;
	qp_complete_recv_error(e, qp, resp->recv.id, status, 0);
	responder_die(qp, nak, 0);
}

/* Has a receive in resp->recv. False: there is none that serves, and the peer will be told. */
static bool responder_need_recv(struct ferry_engine *e, struct qp *qp)
{
	struct responder *resp = &qp->resp;

	if (resp->has_recv)
		return true;
	if (qp_take_recv(e, qp, &resp->recv)) {
		resp->has_recv = true;
		if (!resp->recv.bad)
			return true;
		responder_fail_recv(e, qp, FERRY_WC_LOC_QP_OP_ERR);
		return false;
	}
	stat_inc(e, rnr_nak_sent);
	resp->gap = true;
	responder_nak_later(qp, AETH_RNR_NAK | qp->attr.min_rnr_timer, resp->psn);
	return false;
}

static void responder_complete_recv(struct ferry_engine *e, struct qp *qp,
				    const struct packet *packet, uint8_t op, uint32_t len)
{
	struct responder *resp = &qp->resp;
	struct ferry_cqe cqe = {
		.byte_len = le32(len),
		.wqe_index = le16(resp->recv.id),
		.status = FERRY_WC_SUCCESS,
		.op = op,
	};

	resp->has_recv = false;
	if (packet->flags & PACKET_IMM) {
		cqe.flags |= FERRY_CQE_IMM;
		memcpy(cqe.imm, packet->imm, sizeof(cqe.imm));
	} else if (packet->flags & PACKET_INV) {
		cqe.flags |= FERRY_CQE_INV;
		cqe.inv_key = le32(packet->inv_key);
	}
	if (packet->flags & PACKET_SOLICITED)
		cqe.flags |= FERRY_CQE_SOLICITED;
	qp_complete_recv(e, qp, &cqe, packet->flags & PACKET_SOLICITED);
}

/* -------------------------------------------------------------------------- requests */

/* The packet at the expected PSN has been carried out. */
static void responder_done(struct qp *qp, const struct packet *packet, uint32_t count)
{
	struct responder *resp = &qp->resp;

	resp->psn = psn_add(resp->psn, count);
	if (packet->flags & PACKET_LAST)
		resp->msn = psn_add(resp->msn, 1);
	if (packet->flags & PACKET_ACK_REQUEST)
		responder_ack_later(qp);
}

/* Whether packet and message in hand fit: FIRST begins, all have their full length. */
static bool responder_in_sequence(const struct qp *qp, const struct packet *packet,
				  enum responder_message message)
{
	const struct responder *resp = &qp->resp;
	uint32_t len = packet_len(packet), most = packet->count << qp->mtu_shift;

	if (packet->flags & PACKET_FIRST ? resp->message != MESSAGE_NONE :
					   resp->message != message)
		return false;
	if (!(packet->flags & PACKET_LAST))
		return len == most;
	return len <= most && (len || packet->flags & PACKET_FIRST);
}

/* Stores the data of a SEND in the receive in hand. False: the receive has failed. */
static bool responder_store(struct ferry_engine *e, struct qp *qp, const struct packet *packet,
			    enum sent *sent)
{
	struct responder *resp = &qp->resp;
	uint32_t len = packet_len(packet);
	enum copy_result result = COPY_OK;
	struct vecs target;

	if (len > resp->recv.len || resp->offset > resp->recv.len - len) {
		responder_fail_recv(e, qp, FERRY_WC_LOC_LEN_ERR);
		return false;
	}
	if (!sges_resolve(e, qp_recv_pd(qp), resp->recv.sge, resp->recv.num_sge, resp->offset, len,
			  true, &target)) {
		responder_fail_recv(e, qp, FERRY_WC_LOC_PROT_ERR);
		return false;
	}
	if (len)
		result = vecs_copy(e, &target, packet->payload);
	if (result == COPY_BAD_TARGET)
		responder_fail_recv(e, qp, FERRY_WC_LOC_PROT_ERR);
	if (result == COPY_BAD_SOURCE)
		*sent = SENT_BAD_SOURCE;
	return result == COPY_OK;
}

static enum sent responder_send_request(struct ferry_engine *e, struct qp *qp,
					const struct packet *packet)
{
	struct responder *resp = &qp->resp;
	enum sent sent = SENT;

	if (!responder_in_sequence(qp, packet, MESSAGE_SEND)) {
		responder_die_invalid(qp);
		return SENT;
	}
	if (!responder_need_recv(e, qp))
		return SENT;
	/* No key that may be invalidated from afar exists on this device. */
	if (packet->flags & PACKET_INV) {
		responder_die_access(e, qp);
		return SENT;
	}
	if (packet->flags & PACKET_FIRST)
		resp->offset = 0;
	if (!responder_store(e, qp, packet, &sent))
		return sent;
	resp->offset += packet_len(packet);
	resp->message = packet->flags & PACKET_LAST ? MESSAGE_NONE : MESSAGE_SEND;
	responder_done(qp, packet, packet->count);
	if (packet->flags & PACKET_LAST)
		responder_complete_recv(e, qp, packet, FERRY_WC_RECV, resp->offset);
	return SENT;
}

/* The right to the whole range that the first packet names. */
static bool responder_begin_write(struct ferry_engine *e, struct qp *qp,
				  const struct packet *packet)
{
	struct responder *resp = &qp->resp;
	uint64_t offset;

	if (packet->dma_len && !mr_check(e, qp->pd, packet->rkey, packet->raddr, packet->dma_len,
					 FERRY_ACCESS_REMOTE_WRITE, &offset))
		return false;
	if (resp->raddr != packet->raddr || resp->rkey != packet->rkey ||
	    resp->dma_len != packet->dma_len)
		resp->prepared = false;
	resp->raddr = packet->raddr;
	resp->rkey = packet->rkey;
	resp->dma_len = packet->dma_len;
	resp->offset = 0;
	return true;
}

static enum sent responder_write_data(struct ferry_engine *e, struct qp *qp,
				      const struct packet *packet)
{
	struct responder *resp = &qp->resp;
	struct vecs target = { .count = 0 };
	uint32_t len = packet_len(packet);
	enum copy_result result;
	uint64_t offset;
	struct mr *mr;

	if (!len)
		return SENT;
	/* Looked up for each packet: the MR may be gone since the first. */
	mr = mr_check(e, qp->pd, resp->rkey, resp->raddr + resp->offset, len,
		      FERRY_ACCESS_REMOTE_WRITE, &offset);
	if (!mr) {
		responder_die_access(e, qp);
		return SENT;
	}
	if (unlikely(mr->assist))
		return responder_write_assisted(e, qp, packet, mr, offset);
	vecs_add(&target, &mr->region, offset, len);
	result = vecs_copy(e, &target, packet->payload);
	if (result == COPY_BAD_SOURCE)
		return SENT_BAD_SOURCE;
	if (result == COPY_BAD_TARGET)
		responder_die(qp, AETH_NAK_OPERATION, FERRY_EVENT_QP_FATAL);
	return SENT;
}

static enum sent responder_write_request(struct ferry_engine *e, struct qp *qp,
					 const struct packet *packet)
{
	struct responder *resp = &qp->resp;
	uint32_t len = packet_len(packet);
	enum sent sent;

	if (!responder_in_sequence(qp, packet, MESSAGE_WRITE) || packet->dma_len > MAX_MESSAGE ||
	    !(qp->attr.access & FERRY_ACCESS_REMOTE_WRITE)) {
		responder_die_invalid(qp);
		return SENT;
	}
	if (packet->flags & PACKET_FIRST && !responder_begin_write(e, qp, packet)) {
		responder_die_access(e, qp);
		return SENT;
	}
	if (len > resp->dma_len - resp->offset ||
	    (packet->flags & PACKET_LAST && len != resp->dma_len - resp->offset)) {
		responder_die_invalid(qp);
		return SENT;
	}
	if (packet->flags & PACKET_IMM && !responder_need_recv(e, qp))
		return SENT;
	sent = responder_write_data(e, qp, packet);
	if (sent != SENT || resp->dying)
		return sent;
	resp->offset += len;
	resp->message = packet->flags & PACKET_LAST ? MESSAGE_NONE : MESSAGE_WRITE;
	if (packet->flags & PACKET_LAST)
		resp->prepared = false;
	responder_done(qp, packet, packet->count);
	if (packet->flags & PACKET_IMM)
		responder_complete_recv(e, qp, packet, FERRY_WC_RECV_WRITE_IMM, resp->dma_len);
	return SENT;
}

/* A place among the answers with data; NULL: none is left. */
static struct response *responder_new_response(struct qp *qp, const struct packet *packet,
					       bool duplicate)
{
	struct responder *resp = &qp->resp;
	struct response *r;

	if (resp->tail - resp->head == RESPONSES)
		return NULL;
	r = &resp->response[resp->tail++ % RESPONSES];
	*r = (struct response) {
		.kind = packet->kind,
		.duplicate = duplicate,
		.psn = packet->psn,
		.len = packet->dma_len,
		.raddr = packet->raddr,
		.rkey = packet->rkey,
	};
	resp->fresh += !duplicate;
	return r;
}

static bool responder_may_read(struct ferry_engine *e, struct qp *qp, const struct packet *packet)
{
	uint64_t offset;

	return !packet->dma_len || mr_check(e, qp->pd, packet->rkey, packet->raddr,
					    packet->dma_len, FERRY_ACCESS_REMOTE_READ, &offset);
}

static enum sent responder_read_request(struct ferry_engine *e, struct qp *qp,
					const struct packet *packet)
{
	struct responder *resp = &qp->resp;

	if (resp->message != MESSAGE_NONE || packet->dma_len > MAX_MESSAGE ||
	    !(qp->attr.access & FERRY_ACCESS_REMOTE_READ) ||
	    resp->fresh >= qp->attr.max_dest_rd_atomic) {
		responder_die_invalid(qp);
		return SENT;
	}
	if (!responder_may_read(e, qp, packet)) {
		responder_die_access(e, qp);
		return SENT;
	}
	if (!responder_new_response(qp, packet, false))
		return SENT;
	/* The data answers it: no ACK. */
	resp->psn = psn_add(resp->psn, psns_of(qp, packet->dma_len));
	resp->msn = psn_add(resp->msn, 1);
	return SENT;
}

/* By the CPU's own atomics where the memory is mapped: its programs may take part. */
static bool atomic_execute(struct ferry_engine *e, struct region *region, uint64_t offset,
			   const struct packet *packet, uint64_t *old)
{
	struct place p = region_place(e, region, offset, sizeof(uint64_t));
	uint64_t expected = le64(packet->compare), swap = le64(packet->swap_or_add), value;

	if (likely(p.host)) {
		uint64_t *word = (uint64_t *)p.host;

		if (packet->kind == PACKET_ATOMIC_CS) {
			__atomic_compare_exchange_n(word, &expected, swap, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
			*old = le64(expected);
			return true;
		}
		expected = __atomic_load_n(word, __ATOMIC_RELAXED);
		do {
			value = le64(le64(expected) + packet->swap_or_add);
		} while (!__atomic_compare_exchange_n(word, &expected, value, false,
						      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
		*old = le64(expected);
		return true;
	}
	if (!region_load64(e, region, offset, old))
		return false;
	if (packet->kind == PACKET_ATOMIC_FA)
		return region_store64(e, region, offset, *old + packet->swap_or_add);
	return *old != packet->compare ||
	       region_store64(e, region, offset, packet->swap_or_add);
}

static enum sent responder_atomic_request(struct ferry_engine *e, struct qp *qp,
					  const struct packet *packet)
{
	struct responder *resp = &qp->resp;
	struct response *r;
	uint64_t offset, old;
	enum sent sent;
	struct mr *mr;

	if (resp->message != MESSAGE_NONE || packet->raddr & 7 ||
	    !(qp->attr.access & FERRY_ACCESS_REMOTE_ATOMIC) ||
	    resp->fresh >= qp->attr.max_dest_rd_atomic) {
		responder_die_invalid(qp);
		return SENT;
	}
	mr = mr_check(e, qp->pd, packet->rkey, packet->raddr, sizeof(uint64_t),
		      FERRY_ACCESS_REMOTE_ATOMIC, &offset);
	if (!mr) {
		responder_die_access(e, qp);
		return SENT;
	}
	/* Its address is aligned, the MR may still lie askew in memory. */
	if (offset & 7) {
		responder_die_invalid(qp);
		return SENT;
	}
	if (resp->tail - resp->head == RESPONSES)
		return SENT;
	if (unlikely(mr->assist)) {
		if (!responder_atomic_assisted(e, qp, packet, mr, offset, &sent, &old))
			return sent;
	} else if (!atomic_execute(e, &mr->region, offset, packet, &old)) {
		responder_die(qp, AETH_NAK_OPERATION, FERRY_EVENT_QP_FATAL);
		return SENT;
	}
	r = responder_new_response(qp, packet, false);
	r->value = old;
	resp->saved[resp->saved_count % RD_ATOMIC_LIMIT].psn = packet->psn;
	resp->saved[resp->saved_count % RD_ATOMIC_LIMIT].value = old;
	resp->saved_count++;
	resp->psn = psn_add(resp->psn, 1);
	resp->msn = psn_add(resp->msn, 1);
	return SENT;
}

/* ------------------------------------------------------------- out of the expected order */

/* Ahead: something was lost. The peer is told once. */
static void responder_ahead(struct ferry_engine *e, struct qp *qp)
{
	struct responder *resp = &qp->resp;

	stat_inc(e, out_of_sequence);
	if (resp->gap)
		return;
	resp->gap = true;
	responder_nak_later(qp, AETH_NAK_SEQUENCE, resp->psn);
}

static void responder_duplicate_atomic(struct qp *qp, const struct packet *packet)
{
	struct responder *resp = &qp->resp;
	uint32_t i, n = min_u32(resp->saved_count, RD_ATOMIC_LIMIT);
	struct response *r;

	for (i = 0; i < n; i++) {
		if (resp->saved[i].psn != packet->psn)
			continue;
		r = responder_new_response(qp, packet, true);
		if (r)
			r->value = resp->saved[i].value;
		return;
	}
}

/* Seen before: the answer was lost. What changes memory is not carried out again. */
static void responder_duplicate(struct ferry_engine *e, struct qp *qp, const struct packet *packet)
{
	stat_inc(e, duplicate_request);
	switch (packet->kind) {
	case PACKET_READ:
		/* What it may not read it was told the first time. */
		if (qp->attr.access & FERRY_ACCESS_REMOTE_READ &&
		    responder_may_read(e, qp, packet) && packet->dma_len <= MAX_MESSAGE &&
		    psns_of(qp, packet->dma_len) <= psn_sub(qp->resp.psn, packet->psn))
			responder_new_response(qp, packet, true);
		break;
	case PACKET_ATOMIC_CS:
	case PACKET_ATOMIC_FA:
		responder_duplicate_atomic(qp, packet);
		break;
	default:
		responder_ack_later(qp);
	}
}

static enum sent responder_expected(struct ferry_engine *e, struct qp *qp,
				    const struct packet *packet)
{
	static enum sent (*const execute[])(struct ferry_engine *, struct qp *,
					    const struct packet *) = {
		[PACKET_SEND]		= responder_send_request,
		[PACKET_WRITE]		= responder_write_request,
		[PACKET_READ]		= responder_read_request,
		[PACKET_ATOMIC_CS]	= responder_atomic_request,
		[PACKET_ATOMIC_FA]	= responder_atomic_request,
	};
	struct responder *resp = &qp->resp;

	resp->gap = false;
	/* A NAK for what was lost, not yet sent, is void now. */
	resp->nak_due = false;
	return execute[packet->kind](e, qp, packet);
}

enum sent responder_receive(struct ferry_engine *e, struct qp *qp, const struct packet *packet)
{
	struct responder *resp = &qp->resp;
	enum sent sent = SENT;
	int32_t ahead;

	if (!qp_receives(qp) || resp->dying)
		return SENT;
	if (unlikely(!resp->established)) {
		resp->established = true;
		if (qp->state == FERRY_QPS_RTR)
			eq_raise(e, NULL, &qp->source, FERRY_EVENT_COMM_EST);
	}
	ahead = psn_cmp(packet->psn, resp->psn);
	if (unlikely(responder_is_behind(resp)) && ahead >= 0 && !resp->replaying &&
	    (ahead || !list_empty(&resp->held)))
		return SENT_BUSY;
	if (likely(!ahead))
		sent = responder_expected(e, qp, packet);
	else if (ahead > 0)
		responder_ahead(e, qp);
	else
		responder_duplicate(e, qp, packet);
	if (unlikely(sent != SENT))
		return sent;
	/* Frames come in batches: one ACK for all. Within the port there is nothing to wait for. */
	if (packet->loopback)
		responder_answer(e, qp);
	else
		qp_activate(e, qp, QP_WORK_RESPOND);
	return sent;
}

/* --------------------------------------------------------------------------- states */

void responder_init(struct qp *qp)
{
	timer_init(&qp->resp.pause, responder_pause_over);
	responder_init_assist(qp);
}

/* The error state: the receive in hand is the first to be flushed. */
void responder_stop(struct ferry_engine *e, struct qp *qp)
{
	struct responder *resp = &qp->resp;

	timer_cancel(e, &resp->pause);
	responder_forget_assist(e, resp);
	resp->head = resp->tail;
	if (!resp->has_recv)
		return;
	resp->has_recv = false;
	qp_complete_recv_error(e, qp, resp->recv.id, FERRY_WC_WR_FLUSH_ERR, 0);
}

void responder_reset(struct ferry_engine *e, struct qp *qp)
{
	struct responder *resp = &qp->resp;

	timer_cancel(e, &resp->pause);
	responder_forget_assist(e, resp);
	resp->psn = 0;
	resp->msn = 0;
	resp->established = false;
	resp->gap = false;
	resp->ack_due = false;
	resp->nak_due = false;
	resp->dying = false;
	resp->event = 0;
	resp->message = MESSAGE_NONE;
	resp->has_recv = false;
	resp->head = 0;
	resp->tail = 0;
	resp->fresh = 0;
	resp->saved_count = 0;
}
