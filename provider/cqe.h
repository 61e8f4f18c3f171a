/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring of a CQ. The caller holds the CQ's lock.
 */
#ifndef FERRY_CQE_H
#define FERRY_CQE_H

#include "ferry.h"

/* The 64 bits of a CQE that the device writes last, in host order. */
static inline uint64_t ferry_cqe_last(const struct ferry_cqe *cqe)
{
	return ferry_load64((const __le64 *)&cqe->qpn);
}

static inline uint32_t ferry_last_qpn(uint64_t last)
{
	return last;
}

/* The same, to be compared with what the last entry had. */
static inline uint64_t ferry_last_key(uint64_t last)
{
	return last << 32;
}

/* No entry has it. */
#define FERRY_NO_KEY	1

/* Bit 3 of op. */
static inline bool ferry_last_is_recv(uint64_t last)
{
	return (int64_t)(last << 4) < 0;
}

static inline struct ferry_cqe *ferry_cqe_at(const struct ferry_cqes *cqes, uint64_t index)
{
	return (struct ferry_cqe *)cqes->ring.mem + (index & cqes->mask);
}

/* The phase is bit 63; it is valid when it differs from the lowest bit of the lap. */
static inline bool ferry_cqe_valid(const struct ferry_cqes *cqes, uint64_t last, uint64_t index)
{
	return (int64_t)(last ^ (index << cqes->lap_shift)) < 0;
}

static inline bool ferry_cqe_ready(const struct ferry_cqes *cqes, uint64_t index)
{
	return ferry_cqe_valid(cqes, ferry_cqe_last(ferry_cqe_at(cqes, index)), index);
}

/* What entries of one work queue have in common in their last words. */
#define FERRY_LAST_QUEUE	((uint64_t)FERRY_WC_RECV << 56 | UINT32_MAX)

/*
 * How many entries of one work queue lie ready at the front, @max at most, which is not 0.
 * @last is the last word of the first.
 */
static inline int ferry_cq_run(const struct ferry_cq *cq, int max, uint64_t last)
{
	uint64_t next;
	int n;

	if (!ferry_cqe_valid(&cq->cqes, last, cq->ci))
		return 0;
	for (n = 1; n < max; n++) {
		next = ferry_cqe_last(ferry_cqe_at(&cq->cqes, cq->ci + n));
		if (!ferry_cqe_valid(&cq->cqes, next, cq->ci + n) || (next ^ last) & FERRY_LAST_QUEUE)
			break;
	}
	return n;
}

/*
 * The QP of an entry; NULL if there is none. In the ring of a lost device the entries of a QP
 * stay when the QP goes (ferry_cq_clean()), so it must not be looked for any more.
 */
static inline struct ferry_qp *ferry_cqe_qp(struct ferry_cq *cq, uint64_t last)
{
	struct ferry_qp *qp;

	if (likely(cq->last_key == ferry_last_key(last)))
		return cq->last_qp;
	qp = ferry_alive(&cq->bell) ?
		ferry_find_qp(to_fctx(cq->vcq.cq.context), ferry_last_qpn(last)) : NULL;
	cq->last_qp = qp;
	cq->last_key = qp ? ferry_last_key(last) : FERRY_NO_KEY;
	return qp;
}

/* Gives the places of entries up to @ci back to the device. */
static inline void ferry_cq_release(struct ferry_cq *cq, uint64_t ci)
{
	cq->ci = ci;
	ferry_store_index(&cq->bell.slot->ci, ci);
}

#endif
