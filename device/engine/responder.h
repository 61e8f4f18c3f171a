/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the two files of the responder have in common.
 */
#ifndef FERRY_RESPONDER_H
#define FERRY_RESPONDER_H

#include "state.h"

/* A NAK, to be sent once all data before it has left. */
void responder_nak_later(struct qp *qp, uint8_t syndrome, uint32_t psn);

/* The request at the expected PSN is wrong: the last answer is a NAK, then the QP fails. */
void responder_die(struct qp *qp, uint8_t syndrome, enum ferry_event event);
void responder_die_invalid(struct qp *qp);
void responder_die_access(struct ferry_engine *e, struct qp *qp);

/*
 * A WRITE to an MR with assist: before the first byte of the message the driver makes the
 * range ready, after each packet it makes the bytes visible. Offered again until done.
 */
enum sent responder_write_assisted(struct ferry_engine *e, struct qp *qp,
				   const struct packet *packet, struct mr *mr, uint64_t offset);

/*
 * An atomic on an MR with assist: the driver cleans the line, the device reads, the driver
 * stores. Atomic among peers, as the asker has the lock from the first question to the
 * last answer; not with the host's CPUs. True: done.
 */
bool responder_atomic_assisted(struct ferry_engine *e, struct qp *qp, const struct packet *packet,
			       struct mr *mr, uint64_t offset, enum sent *sent, uint64_t *old);

/* Requests have to wait for one before them. */
static inline bool responder_is_behind(const struct responder *resp)
{
	return ask_waits(&resp->ask) || !list_empty(&resp->held);
}

/* Takes what was held, as long as credit lasts and none has to wait again. */
void responder_replay(struct ferry_engine *e, struct qp *qp);

void responder_init_assist(struct qp *qp);

/* The driver's answers, and requests that wait for them, are of no use any more. */
void responder_forget_assist(struct ferry_engine *e, struct responder *resp);

#endif
