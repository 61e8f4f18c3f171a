// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <endian.h>
#include <string.h>

#include "host.h"
#include "tap.h"

static void *ring_entry(const struct host_ring *ring, uint32_t index)
{
	uint64_t mask = (1ull << ring->shift) - 1;

	return host_blocks_at(&ring->blocks, (index & mask) << ring->stride_shift);
}

static void put_sges(struct ferry_sge *to, const struct host_sge *from, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		to[i].addr = htole64(from[i].addr);
		to[i].length = htole32(from[i].length);
		to[i].lkey = htole32(from[i].key);
	}
}

static void put_data(void *to, const struct host_wr *wr)
{
	if (wr->flags & FERRY_WQE_INLINE)
		memcpy(to, wr->inline_data, wr->inline_len);
	else
		put_sges(to, wr->sge, wr->num_sge);
}

static void put_head(struct ferry_wqe_head *head, const struct host_wr *wr)
{
	memset(head, 0, sizeof(*head));
	head->opcode = wr->opcode;
	head->flags = wr->flags;
	if (wr->flags & FERRY_WQE_INLINE)
		head->inline_len = htole16(wr->inline_len);
	else
		head->num_sge = (uint8_t)wr->num_sge;
	if (wr->opcode == FERRY_WR_SEND_INV || wr->opcode == FERRY_WR_LOCAL_INV)
		head->inv_key = htole32(wr->inv_key);
	else
		memcpy(head->imm, wr->imm, sizeof(head->imm));
}

/* The caller keeps the data within the stride. */
uint32_t host_post_send(struct host_qp *qp, const struct host_wr *wr)
{
	void *entry = ring_entry(&qp->sq, qp->sq.pi);
	struct ferry_wqe_rdma *rdma = entry;
	struct ferry_wqe_atomic *atomic = entry;

	put_head(&rdma->head, wr);
	rdma->raddr = htole64(wr->raddr);
	rdma->rkey = htole32(wr->rkey);
	rdma->rsvd = 0;
	if (wr->opcode == FERRY_WR_ATOMIC_CS || wr->opcode == FERRY_WR_ATOMIC_FA) {
		atomic->swap_or_add = htole64(wr->swap_or_add);
		atomic->compare = htole64(wr->compare);
		put_data(atomic->sge, wr);
	} else {
		put_data(rdma->sge, wr);
	}
	return qp->sq.pi++;
}

uint32_t host_post_recv(struct host_qp *qp, const struct host_sge *sge, unsigned int num_sge,
			uint16_t id)
{
	struct ferry_rqe *rqe = ring_entry(&qp->rq, qp->rq.pi);

	memset(rqe, 0, sizeof(*rqe));
	rqe->num_sge = htole16((uint16_t)num_sge);
	rqe->id = htole16(id);
	put_sges(rqe->sge, sge, num_sge);
	return qp->rq.pi++;
}

/* SQ and arm records: word, status page, and the doorbell page where those say so. */
void host_announce(struct host_slot *slot, uint64_t word)
{
	struct ferry_record_page *page = (struct ferry_record_page *)slot->page->va;
	struct host *host = slot->context->host;
	const struct ferry_status_page *status;

	__atomic_store_n(&host_slot_at(slot)->db, htole64(word), __ATOMIC_RELEASE);
	if (host->poll) {
		/* group-word, doorbell-sleep: the record before the look at word and status. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&page->word, __ATOMIC_RELAXED))
			__atomic_store_n(&page->word, htole32(1), __ATOMIC_RELAXED);
		status = (const struct ferry_status_page *)host->status->va;
		if (__atomic_load_n(&status->awake, __ATOMIC_RELAXED)) {
			host->next = 0;
			return;
		}
	}
	host_doorbell(host, slot->context->number, word);
}

void host_ring_send(struct host_qp *qp)
{
	host_announce(&qp->sq.slot, FERRY_DB(FERRY_DB_SQ, qp->number, qp->sq.pi));
}

/* Read by the device when a message finds the queue empty; nobody rings for it. */
void host_ring_recv(struct host_qp *qp)
{
	uint64_t word = FERRY_DB(FERRY_DB_RQ, qp->number, qp->rq.pi);

	__atomic_store_n(&host_slot_at(&qp->rq.slot)->db, htole64(word), __ATOMIC_RELEASE);
}

/* ci-body-rw: the entry is read before its index lets the device write it anew. */
static void publish_ci(struct host_cq *cq)
{
	uint64_t word = FERRY_DB(FERRY_DB_CQ_CI, cq->number, cq->ci);

	__atomic_store_n(&host_slot_at(&cq->slot)->ci, htole64(word), __ATOMIC_RELEASE);
}

bool host_peek(const struct host_cq *cq, uint32_t ahead, struct host_wc *wc)
{
	uint32_t index = cq->ci + ahead, mask = (1u << cq->shift) - 1;
	const struct ferry_cqe *cqe = host_blocks_at(&cq->ring,
						     (uint64_t)(index & mask) * sizeof(*cqe));
	uint8_t phase = (index >> cq->shift) & 1 ? 0 : FERRY_CQE_PHASE;
	struct ferry_cqe copy;

	if ((__atomic_load_n(&cqe->op, __ATOMIC_ACQUIRE) & FERRY_CQE_PHASE) != phase)
		return false;
	copy = *cqe;
	*wc = (struct host_wc) {
		.qpn = le32toh(copy.qpn),
		.wqe_index = le16toh(copy.wqe_index),
		.status = copy.status,
		.op = FERRY_CQE_OP(copy.op),
		.byte_len = le32toh(copy.byte_len),
		.inv_key = le32toh(copy.inv_key),
		.flags = copy.flags,
		.vendor_err = copy.vendor_err,
	};
	memcpy(wc->imm, copy.imm, sizeof(wc->imm));
	return true;
}

bool host_poll(struct host_cq *cq, struct host_wc *wc)
{
	if (!host_peek(cq, 0, wc))
		return false;
	cq->ci++;
	publish_ci(cq);
	return true;
}

void host_arm(struct host_cq *cq, bool solicited)
{
	unsigned int type = solicited ? FERRY_DB_CQ_ARM_SOLICITED : FERRY_DB_CQ_ARM;

	cq->arm_seq = (cq->arm_seq + 1) & 0xf;
	host_announce(&cq->slot, FERRY_DB_ARM(type, cq->number, cq->ci, cq->arm_seq));
}
