// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The responder where an MR wants assist: requests that wait for the driver, and those
 * that wait behind them.
 */
#include "responder.h"

/* ------------------------------------------------------------------------- questions */

/* The request that waits for the driver must be the one that is offered again. */
static bool responder_is_stored(const struct responder *resp, const struct packet *packet,
				uint64_t raddr)
{
	return resp->asked_kind == packet->kind && resp->asked_raddr == raddr;
}

/*
 * The bytes of a WRITE that the device writes by itself: whole cache lines, and never the
 * last one. The driver stores what is left, after it has flushed the others, so programs
 * that poll on the last byte find all of them.
 */
static void responder_split_write(uint32_t line, uint64_t offset, uint32_t len,
				  struct ferry_assist_slot *what)
{
	uint32_t head = min_u32((uint32_t)-offset & (line - 1), len), left = len - head;

	what->head_len = (uint8_t)head;
	what->tail_len = (uint8_t)(left ? ((left - 1) & (line - 1)) + 1 : 0);
}

static enum copy_result responder_copy_lines(struct ferry_engine *e, struct mr *mr,
					     uint64_t offset, const struct vecs *payload,
					     struct ferry_assist_slot *what)
{
	uint32_t body = payload->len - what->head_len - what->tail_len;
	struct vecs part, target = { .count = 0 };

	vecs_part(payload, 0, what->head_len, &part);
	if (!vecs_gather(e, &part, what->head))
		return COPY_BAD_SOURCE;
	vecs_part(payload, what->head_len + body, what->tail_len, &part);
	if (!vecs_gather(e, &part, what->tail))
		return COPY_BAD_SOURCE;
	if (!body)
		return COPY_OK;
	vecs_part(payload, what->head_len, body, &part);
	vecs_add(&target, &mr->region, offset + what->head_len, body);
	return vecs_copy(e, &target, &part);
}

/* Asks for the request in hand. True: granted; else @sent and the state of the QP say more. */
static bool responder_ask(struct ferry_engine *e, struct qp *qp,
			  const struct ferry_assist_slot *what, bool atomic, enum sent *sent)
{
	enum ask_result result = assist_ask(e, &qp->resp.ask, what, atomic);

	*sent = result == ASK_WAIT ? SENT_BUSY : SENT;
	if (result == ASK_REFUSED)
		responder_die_access(e, qp);
	return result == ASK_GRANTED;
}

enum sent responder_write_assisted(struct ferry_engine *e, struct qp *qp,
				   const struct packet *packet, struct mr *mr, uint64_t offset)
{
	struct responder *resp = &qp->resp;
	uint64_t raddr = resp->raddr + resp->offset;
	struct ferry_assist_slot before = {
		.op = FERRY_ASSIST_BEFORE_WRITE,
		.key = le32(resp->rkey),
		.iova = le64(resp->raddr),
		.length = le64(resp->dma_len),
	};
	struct ferry_assist_slot after = {
		.op = FERRY_ASSIST_AFTER_WRITE,
		.key = le32(resp->rkey),
		.iova = le64(raddr),
		.length = le64(packet_len(packet)),
	};
	enum copy_result result;
	enum sent sent;

	if (!resp->prepared && !responder_ask(e, qp, &before, false, &sent))
		return sent;
	resp->prepared = true;
	if (!resp->stored) {
		responder_split_write(e->assist.line, offset, packet_len(packet), &after);
		result = responder_copy_lines(e, mr, offset, packet->payload, &after);
		if (result == COPY_BAD_SOURCE)
			return SENT_BAD_SOURCE;
		if (result == COPY_BAD_TARGET) {
			responder_die(qp, AETH_NAK_OPERATION, FERRY_EVENT_QP_FATAL);
			return SENT;
		}
		resp->stored = true;
		resp->asked_kind = packet->kind;
		resp->asked_raddr = raddr;
	}
	if (!responder_is_stored(resp, packet, raddr)) {
		responder_die_invalid(qp);
		return SENT;
	}
	if (!responder_ask(e, qp, &after, false, &sent))
		return sent;
	resp->stored = false;
	return SENT;
}

/* What an atomic makes of the old value. */
static uint64_t atomic_value(const struct packet *packet, uint64_t old)
{
	if (packet->kind == PACKET_ATOMIC_FA)
		return old + packet->swap_or_add;
	return old == packet->compare ? packet->swap_or_add : old;
}

bool responder_atomic_assisted(struct ferry_engine *e, struct qp *qp, const struct packet *packet,
			       struct mr *mr, uint64_t offset, enum sent *sent, uint64_t *old)
{
	struct responder *resp = &qp->resp;
	struct ferry_assist_slot what = {
		.op = FERRY_ASSIST_BEFORE_READ,
		.key = le32(packet->rkey),
		.iova = le64(packet->raddr),
		.length = le64(sizeof(*old)),
	};
	uint64_t value;

	*sent = SENT;
	if (!resp->stored) {
		if (!responder_ask(e, qp, &what, true, sent))
			return false;
		if (!region_load64(e, &mr->region, offset, old)) {
			assist_unlock(e, &resp->ask);
			responder_die(qp, AETH_NAK_OPERATION, FERRY_EVENT_QP_FATAL);
			return false;
		}
		value = atomic_value(packet, *old);
		if (value == *old) {
			assist_unlock(e, &resp->ask);
			return true;
		}
		resp->stored = true;
		resp->asked_kind = packet->kind;
		resp->asked_raddr = packet->raddr;
		resp->atomic_old = *old;
		resp->atomic_new = le64(value);
	}
	if (!responder_is_stored(resp, packet, packet->raddr)) {
		responder_die_invalid(qp);
		return false;
	}
	what.op = FERRY_ASSIST_AFTER_WRITE;
	what.head_len = sizeof(value);
	memcpy(what.head, &resp->atomic_new, sizeof(value));
	if (!responder_ask(e, qp, &what, true, sent))
		return false;
	resp->stored = false;
	*old = resp->atomic_old;
	return true;
}

/* --------------------------------------------------------------- those that wait behind */

void responder_hold(struct ferry_engine *e, struct qp *qp, const struct packet *packet,
		    const uint8_t *frame, size_t len)
{
	struct responder *resp = &qp->resp;
	struct held_frame *held;
	int32_t ahead;

	if (list_empty(&resp->held))
		resp->held_psn = resp->psn;
	/* In order and without a gap, or not at all: it is as if the wire had lost it. */
	ahead = psn_cmp(packet->psn, resp->held_psn);
	held = ahead ? NULL : assist_hold(e, frame, len);
	if (!held) {
		resp->held_lost |= ahead >= 0;
		return;
	}
	list_add_tail(&resp->held, &held->link);
	resp->held_psn = psn_add(resp->held_psn, packet->kind == PACKET_READ ?
				 psns_of(qp, packet->dma_len) : 1);
}

static void responder_drop_held(struct ferry_engine *e, struct responder *resp)
{
	while (!list_empty(&resp->held))
		assist_unhold(e, container_of(resp->held.next, struct held_frame, link));
	resp->held_lost = false;
}

void responder_replay(struct ferry_engine *e, struct qp *qp)
{
	struct responder *resp = &qp->resp;
	bool busy = false;

	resp->replaying = true;
	while (!busy && !list_empty(&resp->held) && qp->credit > 0) {
		struct held_frame *held = container_of(resp->held.next, struct held_frame, link);

		/* The QP may fail meanwhile, and drop all that is on the list. */
		list_del(&held->link);
		qp_charge(e, qp, held->len);
		busy = wire_replay(e, held->data, held->len) == SENT_BUSY;
		if (busy)
			list_add_head(&resp->held, &held->link);
		else
			assist_unhold(e, held);
	}
	resp->replaying = false;
	if (!list_empty(&resp->held)) {
		if (!busy)
			qp_activate(e, qp, QP_WORK_RESPOND);
		return;
	}
	if (resp->held_lost && !resp->dying && !resp->gap) {
		resp->gap = true;
		responder_nak_later(qp, AETH_NAK_SEQUENCE, resp->psn);
	}
	resp->held_lost = false;
}

static void responder_answered(struct ferry_engine *e, struct ask *ask)
{
	qp_activate(e, container_of(ask, struct qp, resp.ask), QP_WORK_RESPOND);
}

static void responder_read_answered(struct ferry_engine *e, struct ask *ask)
{
	qp_activate(e, container_of(ask, struct qp, resp.ask_read), QP_WORK_RESPOND);
}

void responder_forget_assist(struct ferry_engine *e, struct responder *resp)
{
	assist_forget(e, &resp->ask);
	assist_forget(e, &resp->ask_read);
	responder_drop_held(e, resp);
	resp->prepared = false;
	resp->stored = false;
}

void responder_init_assist(struct qp *qp)
{
	ask_init(&qp->resp.ask, responder_answered);
	ask_init(&qp->resp.ask_read, responder_read_answered);
	list_init(&qp->resp.held);
}
