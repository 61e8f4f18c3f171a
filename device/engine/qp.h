/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs.
 */
#ifndef FERRY_QP_H
#define FERRY_QP_H

#include "assist.h"
#include "cq.h"
#include "packet.h"
#include "wq.h"

#define RD_ATOMIC_LIMIT	16
#define MAX_MESSAGE	(1u << 31)
#define LOOPBACK_BURST	65536	/* bytes of one loopback packet, a multiple of any MTU */
#define WIRE_WINDOW	512	/* PSNs under way */
#define LOOPBACK_WINDOW	(1u << 20)
#define WINDOW_WQES	256	/* WQEs under way */

/* A send WQE, copied and checked for form. */
struct send_wqe {
	uint32_t index;
	bool valid;		/* holds entry @index */
	uint8_t opcode;
	uint8_t flags;
	uint8_t num_sge;
	uint8_t imm[4];
	uint32_t inv_key;
	uint32_t len;		/* of the message */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_or_add, compare;
	uint32_t dest_qpn, qkey;
	struct ferry_av av;
	union {
		struct sge sge[MAX_SGE];
		uint8_t data[MAX_INLINE];
	};
};

/* A WQE under way. */
struct send_entry {
	uint32_t psn;		/* its first */
	uint32_t count;		/* PSNs */
	uint32_t len;
	uint8_t opcode;
	uint8_t flags;
};

/*
 * una <= psn <= max_psn. WQEs [sq.ci, started) have PSNs; una lies in that of sq.ci.
 */
struct requester {
	uint32_t una;		/* oldest PSN without acknowledgement */
	uint32_t psn;		/* next to send */
	uint32_t max_psn;	/* next that was never sent */
	uint32_t started;
	uint32_t next;		/* WQE of psn */
	uint32_t offset;	/* byte of psn in its message */
	uint32_t entries;	/* depth of entry[] */
	struct send_entry *entry;
	uint8_t reads;		/* READs and atomics under way */
	uint8_t retry_left, rnr_left;
	bool retried;		/* went back to una; nothing has come since */
	bool failed;		/* WQE fail_index ends with fail_status once it is the oldest */
	uint8_t fail_status;
	uint8_t fail_vendor;
	uint32_t fail_index;
	struct timer ack_timer;
	struct timer pause;	/* RNR, or a busy link: sends nothing while armed */
	uint64_t rnr_wait;	/* ns of an RNR pause that are left when it ends, and */
	uint64_t rnr_look;	/* how long the next part of it is */
	struct send_wqe wqe;	/* that of psn */
	struct send_wqe wqe_read; /* that of una, where it is another one */
};

/* An answer with data, to be sent. */
struct response {
	uint8_t kind;		/* PACKET_READ or an atomic */
	bool duplicate;
	uint32_t psn;		/* of what is left */
	uint32_t len;		/* left */
	uint64_t raddr;
	uint32_t rkey;
	bool begun;
	bool ready;		/* the driver has been asked, where it wants to be */
	uint64_t value;
};

#define RESPONSES	(2 * RD_ATOMIC_LIMIT)

struct responder {
	uint32_t psn;		/* expected */
	uint32_t msn;
	bool established;
	bool gap;		/* told the peer what is expected, and wait for it */
	bool ack_due;
	bool nak_due;
	bool dying;		/* takes nothing more; the QP fails once the NAK is out */
	uint8_t nak;
	uint8_t event;		/* enum ferry_event, with dying; 0: none */
	uint32_t nak_psn;
	uint8_t message;	/* enum responder_message */
	bool has_recv;
	uint32_t offset;	/* bytes of the message that are done */
	uint64_t raddr;
	uint32_t rkey;
	uint32_t dma_len;
	struct response response[RESPONSES];
	uint32_t head, tail;	/* of response[] */
	uint32_t fresh;		/* responses waiting that are not duplicates */
	struct {
		uint32_t psn;
		uint64_t value;
	} saved[RD_ATOMIC_LIMIT];	/* results of atomics */
	uint32_t saved_count;
	struct timer pause;	/* the link was busy */
	struct recv recv;

	/* MRs with assist. */
	struct ask ask;		/* for the request at the expected PSN */
	struct ask ask_read;	/* for the oldest response */
	bool prepared;		/* the range of the WRITE in hand */
	bool stored;		/* the request's data; the driver has yet to be told */
	uint8_t asked_kind;	/* the request that stored is about */
	uint64_t asked_raddr;
	uint64_t atomic_old;	/* with stored: what an atomic read, */
	uint64_t atomic_new;	/* and what it makes of it */
	struct list held;	/* struct held_frame: what has come since, in order */
	uint32_t held_psn;	/* that comes next there */
	bool held_lost;		/* something did not fit */
	bool replaying;
};

enum responder_message { MESSAGE_NONE, MESSAGE_SEND, MESSAGE_WRITE };

/* What a QP on the list of active ones wants to be visited for. */
#define QP_WORK_SEND	(1u << 0)
#define QP_WORK_RESPOND	(1u << 1)
#define QP_WORK_FLUSH	(1u << 2)

struct qp {
	struct event_source source; /* its number as well */
	struct list active;	/* engine->active */
	bool is_active;		/* on that list, or being visited */
	uint8_t work;		/* QP_WORK_* */
	uint8_t type;
	uint8_t state;
	uint8_t flags;		/* FERRY_QP_* */
	uint8_t mtu_shift;
	uint8_t weight;
	bool draining;		/* SQD, not yet drained */
	bool last_wqe;		/* the event for it was raised */
	int64_t credit;		/* bytes it may still send in this round */
	struct context *context;
	struct pd *pd;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;
	struct list send_cq_link, recv_cq_link;
	struct wq sq, rq;
	struct ferry_qp_attr attr; /* as the host set it; state aside */
	struct requester req;
	struct responder resp;
	struct timer flush_timer; /* looks for receives posted to a failed QP */
	uint64_t flush_delay;
};

static inline uint32_t qp_number(const struct qp *qp)
{
	return qp->source.number;
}

/* How many packets a message of @len bytes is. */
static inline uint32_t psns_of(const struct qp *qp, uint32_t len)
{
	uint32_t n = (uint32_t)(((uint64_t)len + (1u << qp->mtu_shift) - 1) >> qp->mtu_shift);

	return n ? n : 1;
}

/* A producer index of the SQ, from the host. False: it is none. */
bool qp_doorbell(struct ferry_engine *e, struct qp *qp, uint32_t index);

/* Puts the QP where it will be visited for @work. */
void qp_activate(struct ferry_engine *e, struct qp *qp, uint8_t work);

/* To the error state: everything in the queues will be flushed. @event 0: none. */
void qp_fail(struct ferry_engine *e, struct qp *qp, enum ferry_event event);
void qp_fail_all(struct ferry_engine *e, struct cq *cq);

/* A visit in the error state; what is left is done in the next. */
void qp_flush(struct ferry_engine *e, struct qp *qp);

/* CQEs of the two queues. */
void qp_complete_send(struct ferry_engine *e, struct qp *qp, uint32_t index, uint8_t op,
		      enum ferry_wc_status status, uint32_t len, uint8_t vendor);
void qp_complete_recv(struct ferry_engine *e, struct qp *qp, struct ferry_cqe *cqe, bool event);
void qp_complete_recv_error(struct ferry_engine *e, struct qp *qp, uint16_t id,
			    enum ferry_wc_status status, uint8_t vendor);

/* Whether messages may arrive. Elsewhere the record of the RQ may be that of a time before. */
static inline bool qp_receives(const struct qp *qp)
{
	return qp->state == FERRY_QPS_RTR || qp->state == FERRY_QPS_RTS ||
	       qp->state == FERRY_QPS_SQD;
}

/* The PD whose keys a receive may name: an SRQ has its own. */
static inline struct pd *qp_recv_pd(const struct qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

/* Whether there is a receive. Only where qp_receives(). */
bool qp_has_recv(struct ferry_engine *e, struct qp *qp);

/* Takes a receive; false: there is none. */
bool qp_take_recv(struct ferry_engine *e, struct qp *qp, struct recv *recv);

/* wqe.c: copies WQE @index of the SQ and checks its form; the status it fails with. */
enum ferry_wc_status wqe_read(struct ferry_engine *e, struct qp *qp, uint32_t index,
			      struct send_wqe *wqe);
/* Where the bytes [offset, offset + len) of its message lie; false: a key forbids it. */
bool wqe_resolve(struct ferry_engine *e, struct qp *qp, const struct send_wqe *wqe,
		 uint32_t offset, uint32_t len, bool write, struct vecs *vecs);

/* The keys of all its SGEs. */
bool wqe_check_sges(struct ferry_engine *e, struct qp *qp, const struct send_wqe *wqe, bool write);

/* enum ferry_wr to enum ferry_wc */
extern const uint8_t wqe_completion[FERRY_WR_COUNT];

/* requester.c */
void requester_reset(struct ferry_engine *e, struct qp *qp);
void requester_init(struct qp *qp);
void requester_set_psn(struct qp *qp, uint32_t psn);
void requester_run(struct ferry_engine *e, struct qp *qp);
void requester_stop(struct ferry_engine *e, struct qp *qp);
void requester_check_drained(struct ferry_engine *e, struct qp *qp);
enum sent requester_receive(struct ferry_engine *e, struct qp *qp, const struct packet *packet);

/* responder.c */
void responder_reset(struct ferry_engine *e, struct qp *qp);
void responder_init(struct qp *qp);
void responder_run(struct ferry_engine *e, struct qp *qp);
void responder_stop(struct ferry_engine *e, struct qp *qp);
enum sent responder_receive(struct ferry_engine *e, struct qp *qp, const struct packet *packet);

/* responder_assist.c */
/* A packet it could not take yet, with the frame it came in. */
void responder_hold(struct ferry_engine *e, struct qp *qp, const struct packet *packet,
		    const uint8_t *frame, size_t len);

/* ud.c */
void ud_run(struct ferry_engine *e, struct qp *qp);
enum sent ud_receive(struct ferry_engine *e, struct qp *qp, const struct packet *packet);

/* eth.c */
void eth_run(struct ferry_engine *e, struct qp *qp);
void eth_receive(struct ferry_engine *e, const uint8_t *frame, size_t len);

#endif
