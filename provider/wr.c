// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Posting by ibv_wr_start(), ibv_wr_*(), ibv_wr_complete().
 *
 * The lock of the SQ is held from start to complete or abort. Once a request has failed,
 * wr_err is set and everything up to complete is ignored.
 */
#include <errno.h>

#include "noncoherent.h"
#include "sink.h"

static inline struct ferry_qp *to_fqp_ex(struct ibv_qp_ex *ibqp)
{
	return container_of(ibqp, struct ferry_qp, vqp.qp_ex);
}

static void ferry_wr_start(struct ibv_qp_ex *ibqp)
{
	struct ferry_qp *qp = to_fqp_ex(ibqp);

	ferry_lock(&qp->sq.lock);
	qp->wr_pi = qp->sq.pi;
	qp->wr_err = 0;
}

static int ferry_wr_complete(struct ibv_qp_ex *ibqp)
{
	struct ferry_qp *qp = to_fqp_ex(ibqp);
	struct ferry_wq *sq = &qp->sq;
	int err = qp->wr_err;

	if (unlikely(err || qp->wr_pi == sq->pi)) {
		ferry_unlock(&sq->lock);
		return err;
	}
	ferry_publish_send(sq, qp->wr_pi);
	ferry_unlock_fenced(&sq->lock);
	return 0;
}

static void ferry_wr_abort(struct ibv_qp_ex *ibqp)
{
	ferry_unlock(&to_fqp_ex(ibqp)->sq.lock);
}

/* Begins the next request: its head, or NULL when something has failed. */
static inline struct ferry_wqe_head *ferry_wr_begin(struct ibv_qp_ex *ibqp,
						    enum ibv_wr_opcode opcode)
{
	struct ferry_qp *qp = to_fqp_ex(ibqp);
	const struct ferry_send_op *op = &qp->ops[opcode];
	struct ferry_wq *sq = &qp->sq;
	struct ferry_wqe_head *head;
	struct ferry_place *at;

	if (unlikely(qp->wr_err))
		return NULL;
	if (unlikely(!op->what || ibqp->wr_flags & op->refused)) {
		qp->wr_err = EINVAL;
		return NULL;
	}
	if (unlikely(ferry_wq_full(sq, qp->wr_pi))) {
		qp->wr_err = ENOMEM;
		return NULL;
	}
	at = &sq->places[qp->wr_pi & sq->mask];
	head = at->entry;
	head->opcode = ferry_send_opcode(op->what);
	/* Whether data are inline is known when they come. */
	head->flags = ibqp->wr_flags & ~FERRY_WQE_INLINE;
	head->num_sge = 0;
	head->inline_len = 0;
	at->wr_id = ibqp->wr_id;
	if (unlikely(sq->sinks))
		ferry_sink_none(sq->sinks, qp->wr_pi & sq->mask);
	qp->wr_head = head;
	qp->wr_data = (void *)head + qp->type->data;
	qp->wr_max_sge = sq->max_sge;
	qp->wr_max_inline = op->refused & IBV_SEND_INLINE ? 0 : sq->max_inline;
	qp->wr_pi++;
	return head;
}

static void ferry_wr_send(struct ibv_qp_ex *ibqp)
{
	ferry_wr_begin(ibqp, IBV_WR_SEND);
}

static void ferry_wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm)
{
	struct ferry_wqe_head *head = ferry_wr_begin(ibqp, IBV_WR_SEND_WITH_IMM);

	if (likely(head))
		memcpy(head->imm, &imm, sizeof(head->imm));
}

static void ferry_wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct ferry_wqe_head *head = ferry_wr_begin(ibqp, IBV_WR_SEND_WITH_INV);

	if (likely(head))
		head->inv_key = htole32(rkey);
}

static inline struct ferry_wqe_head *ferry_wr_rdma(struct ibv_qp_ex *ibqp,
						   enum ibv_wr_opcode opcode,
						   uint32_t rkey, uint64_t raddr)
{
	struct ferry_wqe_head *head = ferry_wr_begin(ibqp, opcode);
	struct ferry_wqe_rdma *wqe = container_of(head, struct ferry_wqe_rdma, head);

	if (likely(head)) {
		wqe->raddr = htole64(raddr);
		wqe->rkey = htole32(rkey);
	}
	return head;
}

static void ferry_wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr)
{
	ferry_wr_rdma(ibqp, IBV_WR_RDMA_WRITE, rkey, raddr);
}

static void ferry_wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr,
				    __be32 imm)
{
	struct ferry_wqe_head *head = ferry_wr_rdma(ibqp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, raddr);

	if (likely(head))
		memcpy(head->imm, &imm, sizeof(head->imm));
}

static void ferry_wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr)
{
	ferry_wr_rdma(ibqp, IBV_WR_RDMA_READ, rkey, raddr);
}

static inline void ferry_wr_atomic(struct ibv_qp_ex *ibqp, enum ibv_wr_opcode opcode, uint32_t rkey,
				   uint64_t raddr, uint64_t swap_or_add, uint64_t compare)
{
	struct ferry_qp *qp = to_fqp_ex(ibqp);
	struct ferry_wqe_head *head = ferry_wr_begin(ibqp, opcode);
	struct ferry_wqe_atomic *wqe = container_of(head, struct ferry_wqe_atomic, head);

	if (unlikely(!head))
		return;
	wqe->raddr = htole64(raddr);
	wqe->rkey = htole32(rkey);
	wqe->swap_or_add = htole64(swap_or_add);
	wqe->compare = htole64(compare);
	qp->wr_data = wqe->sge;
	qp->wr_max_sge = 1;
}

static void ferry_wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr,
				    uint64_t compare, uint64_t swap)
{
	ferry_wr_atomic(ibqp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, raddr, swap, compare);
}

static void ferry_wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr,
				      uint64_t add)
{
	ferry_wr_atomic(ibqp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, raddr, add, 0);
}

static void ferry_wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah, uint32_t qpn,
				 uint32_t qkey)
{
	struct ferry_qp *qp = to_fqp_ex(ibqp);
	struct ferry_wqe_ud *wqe = container_of(qp->wr_head, struct ferry_wqe_ud, head);

	if (unlikely(qp->wr_err))
		return;
	wqe->av = to_fah(ah)->av;
	wqe->dest_qpn = htole32(qpn);
	wqe->qkey = htole32(qkey);
}

static void ferry_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num, const struct ibv_sge *list)
{
	struct ferry_qp *qp = to_fqp_ex(ibqp);

	if (unlikely(qp->wr_err))
		return;
	if (unlikely(num > qp->wr_max_sge)) {
		qp->wr_err = EINVAL;
		return;
	}
	ferry_put_sges(qp->wr_data, list, num);
	qp->wr_head->num_sge = num;
}

static void ferry_wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	ferry_wr_set_sge_list(ibqp, 1, &sge);
}

static void ferry_wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num,
					  const struct ibv_data_buf *list)
{
	struct ferry_qp *qp = to_fqp_ex(ibqp);
	void *to = qp->wr_data;
	size_t i, done = 0;

	if (unlikely(qp->wr_err))
		return;
	for (i = 0; i < num; i++) {
		if (unlikely(list[i].length > qp->wr_max_inline - done)) {
			qp->wr_err = EINVAL;
			return;
		}
		ferry_put_bytes(to + done, list[i].addr, list[i].length);
		done += list[i].length;
	}
	qp->wr_head->flags |= FERRY_WQE_INLINE;
	qp->wr_head->inline_len = htole16(done);
}

static void ferry_wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	ferry_wr_set_inline_data_list(ibqp, 1, &buf);
}

#define FERRY_UD_WR_OPS		(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define FERRY_RC_WR_OPS									\
	(FERRY_UD_WR_OPS | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |	\
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |		\
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/* 0 or an errno. The extended interface is there once the core knows: see create_qp. */
int ferry_set_wr_ops(struct ferry_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	const bool ud = attr->qp_type == IBV_QPT_UD;
	struct ibv_qp_ex *ibqp = &qp->vqp.qp_ex;

	if (attr->send_ops_flags & ~(uint64_t)(ud ? FERRY_UD_WR_OPS : FERRY_RC_WR_OPS))
		return EOPNOTSUPP;
	ibqp->wr_start = ferry_wr_start;
	ibqp->wr_complete = ferry_wr_complete;
	ibqp->wr_abort = ferry_wr_abort;
	ibqp->wr_send = ferry_wr_send;
	ibqp->wr_send_imm = ferry_wr_send_imm;
	ibqp->wr_send_inv = ferry_wr_send_inv;
	ibqp->wr_rdma_write = ferry_wr_rdma_write;
	ibqp->wr_rdma_write_imm = ferry_wr_rdma_write_imm;
	ibqp->wr_rdma_read = ferry_wr_rdma_read;
	ibqp->wr_atomic_cmp_swp = ferry_wr_atomic_cmp_swp;
	ibqp->wr_atomic_fetch_add = ferry_wr_atomic_fetch_add;
	ibqp->wr_set_ud_addr = ferry_wr_set_ud_addr;
	ibqp->wr_set_sge = ferry_wr_set_sge;
	ibqp->wr_set_sge_list = ferry_wr_set_sge_list;
	ibqp->wr_set_inline_data = ferry_wr_set_inline_data;
	ibqp->wr_set_inline_data_list = ferry_wr_set_inline_data_list;
	if (to_fctx(attr->pd->context)->cache)
		ferry_noncoherent_wr_ops(ibqp);
	return 0;
}
