// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Polling a CQ, by ibv_poll_cq() and by the calls of an extended CQ.
 *
 * Entries are taken in runs. A run is what lies ready at the front and belongs to one
 * work queue: it costs one look-up and two fences, however long it is.
 *
 * Most polls find one entry, of the work queue that the last one was of: that is ferry_poll_cq()
 * itself. It and ferry_poll_batch() call nothing but what they end with, so they save few
 * registers or none.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <ccan/array_size.h>

#include "cqe.h"
#include "noncoherent.h"

static const uint8_t ferry_wc_status[FERRY_WC_STATUS_COUNT] = {
	[FERRY_WC_SUCCESS]		= IBV_WC_SUCCESS,
	[FERRY_WC_LOC_LEN_ERR]		= IBV_WC_LOC_LEN_ERR,
	[FERRY_WC_LOC_QP_OP_ERR]	= IBV_WC_LOC_QP_OP_ERR,
	[FERRY_WC_LOC_PROT_ERR]		= IBV_WC_LOC_PROT_ERR,
	[FERRY_WC_WR_FLUSH_ERR]		= IBV_WC_WR_FLUSH_ERR,
	[FERRY_WC_MW_BIND_ERR]		= IBV_WC_MW_BIND_ERR,
	[FERRY_WC_BAD_RESP_ERR]		= IBV_WC_BAD_RESP_ERR,
	[FERRY_WC_LOC_ACCESS_ERR]	= IBV_WC_LOC_ACCESS_ERR,
	[FERRY_WC_REM_INV_REQ_ERR]	= IBV_WC_REM_INV_REQ_ERR,
	[FERRY_WC_REM_ACCESS_ERR]	= IBV_WC_REM_ACCESS_ERR,
	[FERRY_WC_REM_OP_ERR]		= IBV_WC_REM_OP_ERR,
	[FERRY_WC_RETRY_EXC_ERR]	= IBV_WC_RETRY_EXC_ERR,
	[FERRY_WC_RNR_RETRY_EXC_ERR]	= IBV_WC_RNR_RETRY_EXC_ERR,
	[FERRY_WC_REM_ABORT_ERR]	= IBV_WC_REM_ABORT_ERR,
	[FERRY_WC_FATAL_ERR]		= IBV_WC_FATAL_ERR,
	[FERRY_WC_GENERAL_ERR]		= IBV_WC_GENERAL_ERR,
};

/* By FERRY_CQE_IMM | FERRY_CQE_INV | FERRY_CQE_GRH. */
static const uint8_t ferry_wc_flags[8] = {
	[FERRY_CQE_IMM]			= IBV_WC_WITH_IMM,
	[FERRY_CQE_INV]			= IBV_WC_WITH_INV,
	[FERRY_CQE_GRH]			= IBV_WC_GRH,
	[FERRY_CQE_GRH | FERRY_CQE_IMM]	= IBV_WC_GRH | IBV_WC_WITH_IMM,
	[FERRY_CQE_GRH | FERRY_CQE_INV]	= IBV_WC_GRH | IBV_WC_WITH_INV,
};

/* Operations of the send queue have verbs' numbers; those of the receive queue, up to this. */
#define FERRY_RECV_OPCODE	(IBV_WC_RECV - FERRY_WC_RECV)
#define FERRY_SENT_AS(op, ibv_op) \
	static_assert((int)FERRY_WC_##op == (int)IBV_WC_##ibv_op, #op " is not verbs' " #ibv_op)
FERRY_SENT_AS(SEND, SEND);
FERRY_SENT_AS(WRITE, RDMA_WRITE);
FERRY_SENT_AS(READ, RDMA_READ);
FERRY_SENT_AS(ATOMIC_CS, COMP_SWAP);
FERRY_SENT_AS(ATOMIC_FA, FETCH_ADD);
FERRY_SENT_AS(BIND_MW, BIND_MW);
FERRY_SENT_AS(LOCAL_INV, LOCAL_INV);
static_assert(FERRY_WC_RECV_WRITE_IMM - FERRY_WC_RECV == IBV_WC_RECV_RDMA_WITH_IMM - IBV_WC_RECV,
	      "operations of the receive queue are not verbs' in order");
static_assert(FERRY_WC_RECV == 8 && FERRY_WC_COUNT <= 16, "bit 3 does not tell the receive queue");

static inline void ferry_fill_status(const struct ferry_cqe *cqe, struct ibv_wc *wc)
{
	wc->status = IBV_WC_SUCCESS;
	if (likely(!cqe->status))
		return;
	wc->vendor_err = cqe->vendor_err;
	wc->status = cqe->status < FERRY_WC_STATUS_COUNT ? ferry_wc_status[cqe->status] :
							    IBV_WC_GENERAL_ERR;
}

/* Both but for wr_id and qp_num. Verbs leaves the rest of @wc undefined for what was sent. */
static inline void ferry_fill_sent(const struct ferry_cqe *cqe, struct ibv_wc *wc)
{
	ferry_fill_status(cqe, wc);
	wc->opcode = FERRY_CQE_OP(cqe->op);
	wc->byte_len = le32toh(cqe->byte_len);
	wc->wc_flags = 0;
}

static inline void ferry_fill_received(const struct ferry_cqe *cqe, struct ibv_wc *wc)
{
	ferry_fill_status(cqe, wc);
	wc->opcode = FERRY_CQE_OP(cqe->op) + FERRY_RECV_OPCODE;
	wc->byte_len = le32toh(cqe->byte_len);
	if (cqe->flags & FERRY_CQE_INV)
		wc->invalidated_rkey = le32toh(cqe->inv_key);
	else
		wc->imm_data = (__force __be32)cqe->inv_key;
	wc->src_qp = le32toh(cqe->src_qpn);
	wc->wc_flags = ferry_wc_flags[cqe->flags % ARRAY_SIZE(ferry_wc_flags)];
	wc->pkey_index = le16toh(cqe->pkey_index);
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
}

/* What lies at the front. */
struct ferry_run {
	uint64_t ci;			/* of the first entry */
	const struct ferry_cqe *cqe;	/* that entry */
	uint64_t last;			/* and its last word */
	int n;				/* entries of the same work queue */
};

static inline struct ferry_run ferry_front(const struct ferry_cq *cq)
{
	struct ferry_run run = { .ci = cq->ci, .n = 1 };

	run.cqe = ferry_cqe_at(&cq->cqes, run.ci);
	run.last = ferry_cqe_last(run.cqe);
	return run;
}

/*
 * Takes a run. The index in an entry is the low bits of a WQE's, and all WQEs before that one
 * are complete as well. Should the device be lost meanwhile, what was read is worth nothing,
 * and nothing is taken.
 */
static inline int ferry_take_run(struct ferry_cq *cq, struct ferry_wq *wq,
				 const struct ferry_run *run, struct ibv_wc *wc,
				 void (*fill)(const struct ferry_cqe *, struct ibv_wc *))
{
	const uint64_t end = run->ci + run->n;
	const struct ferry_cqe *cqe = run->cqe;
	uint64_t ci = run->ci;
	uint16_t done;

	for (;;) {
		done = le16toh(cqe->wqe_index);
		wc->wr_id = wq->places[done & wq->mask].wr_id;
		wc->qp_num = ferry_last_qpn(run->last);
		fill(cqe, wc);
		if (likely(++ci == end))
			break;
		cqe = ferry_cqe_at(&cq->cqes, ci);
		wc++;
	}
	if (unlikely(!ferry_alive(&cq->bell)))
		return 0;
	ferry_fence_body_index();
	ferry_wq_complete_to(wq, done);
	ferry_cq_release(cq, ci);
	return run->n;
}

/* The same of an SRQ, whose entries name ids: these end once it is sure that they are true. */
static int ferry_take_srq_run(struct ferry_cq *cq, struct ferry_srq *srq, int n,
			      struct ibv_wc *wc)
{
	const struct ferry_cqe *cqe;
	int i;

	for (i = 0; i < n; i++) {
		cqe = ferry_cqe_at(&cq->cqes, cq->ci + i);
		wc[i].wr_id = le16toh(cqe->wqe_index);
		wc[i].qp_num = le32toh(cqe->qpn);
		ferry_fill_received(cqe, &wc[i]);
	}
	if (unlikely(!ferry_alive(&cq->bell)))
		return 0;
	ferry_fence_body_index();
	for (i = 0; i < n; i++)
		wc[i].wr_id = ferry_srq_complete(srq, wc[i].wr_id);
	ferry_cq_release(cq, cq->ci + n);
	return n;
}

/* Only a broken device completes for a QP that is not there, or a lost one reads so. */
static int ferry_skip_run(struct ferry_cq *cq, int n)
{
	if (ferry_alive(&cq->bell))
		ferry_cq_release(cq, cq->ci + n);
	return 0;
}

/* Fills up to @max of @wc from one run. */
static int ferry_poll_run(struct ferry_cq *cq, int max, struct ibv_wc *wc)
{
	struct ferry_run run = ferry_front(cq);
	struct ferry_qp *qp;

	run.n = ferry_cq_run(cq, max, run.last);
	if (!run.n)
		return 0;
	ferry_fence_valid_body();
	qp = ferry_cqe_qp(cq, run.last);
	if (!qp)
		return ferry_skip_run(cq, run.n);
	if (!ferry_last_is_recv(run.last))
		return ferry_take_run(cq, &qp->sq, &run, wc, ferry_fill_sent);
	if (qp->srq)
		return ferry_take_srq_run(cq, qp->srq, run.n, wc);
	return ferry_take_run(cq, &qp->rq, &run, wc, ferry_fill_received);
}

/*
 * A queue without a lock has nothing that orders wr_id before pi for another thread. Nor shall
 * each post pay for the one poll that finds the device lost: that one makes every thread of
 * the process pass a barrier.
 */
static FERRY_COLD void ferry_order_poster(const struct ferry_wq *wq)
{
	if (!wq->lock.none)
		return;
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/*
 * The device is lost and will write nothing more: all that is outstanding completes here,
 * so that a program that only polls learns of it.
 */
static int ferry_flush(struct ferry_cq *cq, int max, struct ibv_wc *wc)
{
	struct ferry_wq *wq;
	uint64_t pi, ci;
	int n = 0;

	list_for_each(&cq->wqs, wq, cq_entry) {
		ferry_lock(&wq->lock);
		pi = wq->pi;
		ferry_unlock(&wq->lock);
		if (n < max && ferry_wq_ci(wq, pi) != pi)
			ferry_order_poster(wq);
		for (ci = ferry_wq_ci(wq, pi); n < max && ci != pi; n++, ci++)
			wc[n] = (struct ibv_wc) {
				.wr_id = wq->places[ci & wq->mask].wr_id,
				.status = IBV_WC_WR_FLUSH_ERR,
				.qp_num = wq->qp->vqp.qp.qp_num,
			};
		/* Whoever finds the places free may overwrite what has been read. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		ferry_wq_complete(wq, ci);
	}
	return n;
}

/* The same; on a host that is not coherent, once it has made the data visible. */
static int ferry_poll_visible(struct ferry_cq *cq, int max, struct ibv_wc *wc)
{
	if (unlikely(cq->next))
		ferry_cq_follow(cq);
	if (unlikely(to_fctx(cq->vcq.cq.context)->cache)) {
		max = ferry_arrive_run(cq, max);
		if (!max)
			return 0;
	}
	return ferry_poll_run(cq, max, wc);
}

/* All that the fast way leaves, after @n entries: it is called with the lock and releases it. */
static FERRY_APART int ferry_poll_slowly(struct ferry_cq *cq, int count, struct ibv_wc *wc, int n)
{
	int got;

	while (n < count) {
		got = ferry_poll_visible(cq, count - n, wc + n);
		if (!got)
			break;
		n += got;
	}
	if (!n && !ferry_alive(&cq->bell))
		n = ferry_flush(cq, count, wc);
	ferry_unlock(&cq->lock);
	return n;
}

/* One run, of the QP that the last one was of and ready. Called as the slow one is. */
static FERRY_APART int ferry_poll_batch(struct ferry_cq *cq, int count, struct ibv_wc *wc)
{
	struct ferry_run run = ferry_front(cq);
	struct ferry_qp *qp = cq->last_qp;
	int n;

	run.n = ferry_cq_run(cq, count, run.last);
	ferry_fence_valid_body();
	if (!ferry_last_is_recv(run.last))
		n = ferry_take_run(cq, &qp->sq, &run, wc, ferry_fill_sent);
	else
		n = ferry_take_run(cq, &qp->rq, &run, wc, ferry_fill_received);
	if (n < count && (!n || ferry_cqe_ready(&cq->cqes, cq->ci)))
		return ferry_poll_slowly(cq, count, wc, n);
	ferry_unlock(&cq->lock);
	return n;
}

static FERRY_COLD int ferry_poll_later(struct ferry_cq *cq, int count, struct ibv_wc *wc)
{
	ferry_lock_wait(&cq->lock);
	return ferry_poll_slowly(cq, count, wc, 0);
}

int ferry_poll_cq(struct ibv_cq *ibcq, int count, struct ibv_wc *wc)
{
	struct ferry_cq *cq = to_fcq(ibcq);
	struct ferry_run run;
	struct ferry_qp *qp;
	int n;

	if (unlikely(!ferry_lock_at_once(&cq->lock)))
		return ferry_poll_later(cq, count, wc);
	run = ferry_front(cq);
	if (unlikely(!ferry_cqe_valid(&cq->cqes, run.last, run.ci) ||
		     ferry_last_key(run.last) != cq->last_key))
		return ferry_poll_slowly(cq, count, wc, 0);
	qp = cq->last_qp;
	if (unlikely(ferry_last_is_recv(run.last) && qp->srq))
		return ferry_poll_slowly(cq, count, wc, 0);
	if (unlikely(count != 1)) {
		if (count < 1)
			return ferry_poll_slowly(cq, count, wc, 0);
		if (ferry_cqe_ready(&cq->cqes, run.ci + 1))
			return ferry_poll_batch(cq, count, wc);
	}
	ferry_fence_valid_body();
	if (likely(!ferry_last_is_recv(run.last)))
		n = ferry_take_run(cq, &qp->sq, &run, wc, ferry_fill_sent);
	else
		n = ferry_take_run(cq, &qp->rq, &run, wc, ferry_fill_received);
	if (unlikely(!n))
		return ferry_poll_slowly(cq, count, wc, 0);
	ferry_unlock(&cq->lock);
	return n;
}

/* On a host that is not coherent there is no fast way. */
int ferry_poll_cq_noncoherent(struct ibv_cq *ibcq, int count, struct ibv_wc *wc)
{
	struct ferry_cq *cq = to_fcq(ibcq);

	if (count <= 0)
		return 0;
	ferry_lock(&cq->lock);
	return ferry_poll_slowly(cq, count, wc, 0);
}

/* ------------------------------------------------------------- extended CQs */

/* The entry at the front, into what the readers below look at. The lock is held. */
static int ferry_take_one(struct ferry_cq *cq)
{
	const struct ferry_cqe *cqe;

	if (unlikely(cq->next))
		ferry_cq_follow(cq);
	cqe = ferry_cqe_at(&cq->cqes, cq->ci);
	if (cq->timestamps && ferry_cqe_ready(&cq->cqes, cq->ci)) {
		/* Before its place is given back. */
		ferry_fence_valid_body();
		cq->timestamp = le64toh(cqe->timestamp);
	}
	if (!ferry_poll_visible(cq, 1, &cq->wc) &&
	    (ferry_alive(&cq->bell) || !ferry_flush(cq, 1, &cq->wc)))
		return ENOENT;
	cq->vcq.cq_ex.wr_id = cq->wc.wr_id;
	cq->vcq.cq_ex.status = cq->wc.status;
	return 0;
}

static int ferry_start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct ferry_cq *cq = to_fcq(ibv_cq_ex_to_cq(ibcq));
	int err;

	if (attr->comp_mask)
		return EINVAL;
	ferry_lock(&cq->lock);
	err = ferry_take_one(cq);
	if (err)
		ferry_unlock(&cq->lock);
	return err;
}

static int ferry_next_poll(struct ibv_cq_ex *ibcq)
{
	return ferry_take_one(to_fcq(ibv_cq_ex_to_cq(ibcq)));
}

static void ferry_end_poll(struct ibv_cq_ex *ibcq)
{
	ferry_unlock(&to_fcq(ibv_cq_ex_to_cq(ibcq))->lock);
}

#define FERRY_READ(type, name, value)							\
	static type ferry_read_##name(struct ibv_cq_ex *ibcq)				\
	{										\
		return to_fcq(ibv_cq_ex_to_cq(ibcq))->value;				\
	}

FERRY_READ(enum ibv_wc_opcode, opcode, wc.opcode)
FERRY_READ(uint32_t, vendor_err, wc.vendor_err)
FERRY_READ(uint32_t, byte_len, wc.byte_len)
FERRY_READ(__be32, imm_data, wc.imm_data)
FERRY_READ(uint32_t, qp_num, wc.qp_num)
FERRY_READ(uint32_t, src_qp, wc.src_qp)
FERRY_READ(unsigned int, wc_flags, wc.wc_flags)
FERRY_READ(uint32_t, slid, wc.slid)
FERRY_READ(uint8_t, sl, wc.sl)
FERRY_READ(uint8_t, dlid_path_bits, wc.dlid_path_bits)
FERRY_READ(uint64_t, completion_ts, timestamp)

void ferry_set_poll_ops(struct ferry_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ibcq = &cq->vcq.cq_ex;

	cq->timestamps = wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	ibcq->start_poll = ferry_start_poll;
	ibcq->next_poll = ferry_next_poll;
	ibcq->end_poll = ferry_end_poll;
	ibcq->read_opcode = ferry_read_opcode;
	ibcq->read_vendor_err = ferry_read_vendor_err;
	ibcq->read_wc_flags = ferry_read_wc_flags;
	ibcq->read_byte_len = ferry_read_byte_len;
	ibcq->read_imm_data = ferry_read_imm_data;
	ibcq->read_qp_num = ferry_read_qp_num;
	ibcq->read_src_qp = ferry_read_src_qp;
	ibcq->read_slid = ferry_read_slid;
	ibcq->read_sl = ferry_read_sl;
	ibcq->read_dlid_path_bits = ferry_read_dlid_path_bits;
	ibcq->read_completion_ts = ferry_read_completion_ts;
}
