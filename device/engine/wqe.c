// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Send WQEs: from the host's ring into a copy of ours.
 */
#include "state.h"

const uint8_t wqe_completion[FERRY_WR_COUNT] = {
	[FERRY_WR_SEND]		= FERRY_WC_SEND,
	[FERRY_WR_SEND_IMM]	= FERRY_WC_SEND,
	[FERRY_WR_SEND_INV]	= FERRY_WC_SEND,
	[FERRY_WR_WRITE]	= FERRY_WC_WRITE,
	[FERRY_WR_WRITE_IMM]	= FERRY_WC_WRITE,
	[FERRY_WR_READ]		= FERRY_WC_READ,
	[FERRY_WR_ATOMIC_CS]	= FERRY_WC_ATOMIC_CS,
	[FERRY_WR_ATOMIC_FA]	= FERRY_WC_ATOMIC_FA,
	[FERRY_WR_LOCAL_INV]	= FERRY_WC_LOCAL_INV,
	[FERRY_WR_REG_MR]	= FERRY_WC_REG_MR,
	[FERRY_WR_BIND_MW]	= FERRY_WC_BIND_MW,
};

#define WR(name) (1u << FERRY_WR_##name)

#define WR_INLINE (WR(SEND) | WR(SEND_IMM) | WR(SEND_INV) | WR(WRITE) | WR(WRITE_IMM))
#define WR_ATOMIC (WR(ATOMIC_CS) | WR(ATOMIC_FA))

/* What each type of QP can send. */
static const uint32_t wqe_opcodes[FERRY_QPT_COUNT] = {
	[FERRY_QPT_RC]	= WR_INLINE | WR(READ) | WR_ATOMIC,
	[FERRY_QPT_UD]	= WR(SEND) | WR(SEND_IMM),
	[FERRY_QPT_GSI]	= WR(SEND),
	[FERRY_QPT_ETH]	= WR(SEND),
};

/* Copies the part of the WQE before its data; the offset of the data. */
static uint32_t wqe_read_body(const struct qp *qp, const uint8_t *entry, struct send_wqe *wqe)
{
	struct ferry_wqe_atomic atomic;
	struct ferry_wqe_rdma rdma;
	struct ferry_wqe_ud ud;

	if (qp->type == FERRY_QPT_UD || qp->type == FERRY_QPT_GSI) {
		copy_once(&ud, entry, sizeof(ud));
		wqe->av = ud.av;
		wqe->dest_qpn = le32(ud.dest_qpn);
		wqe->qkey = le32(ud.qkey);
		return sizeof(ud);
	}
	if (1u << wqe->opcode & WR_ATOMIC) {
		copy_once(&atomic, entry, sizeof(atomic));
		wqe->raddr = le64(atomic.raddr);
		wqe->rkey = le32(atomic.rkey);
		wqe->swap_or_add = le64(atomic.swap_or_add);
		wqe->compare = le64(atomic.compare);
		return sizeof(atomic);
	}
	copy_once(&rdma, entry, sizeof(rdma));
	wqe->raddr = le64(rdma.raddr);
	wqe->rkey = le32(rdma.rkey);
	return sizeof(rdma);
}

static enum ferry_wc_status wqe_read_inline(const uint8_t *data, uint32_t room,
					    const struct ferry_wqe_head *head,
					    struct send_wqe *wqe)
{
	wqe->len = le16(head->inline_len);
	if (wqe->num_sge || !(1u << wqe->opcode & WR_INLINE))
		return FERRY_WC_LOC_QP_OP_ERR;
	if (wqe->len > MAX_INLINE || wqe->len > room)
		return FERRY_WC_LOC_LEN_ERR;
	copy_once(wqe->data, data, wqe->len);
	return FERRY_WC_SUCCESS;
}

static enum ferry_wc_status wqe_read_sges(const uint8_t *data, uint32_t room, struct send_wqe *wqe)
{
	uint64_t len = 0;
	unsigned int i;

	if (wqe->num_sge > MAX_SGE || wqe->num_sge * sizeof(struct ferry_sge) > room)
		return FERRY_WC_LOC_QP_OP_ERR;
	for (i = 0; i < wqe->num_sge; i++) {
		struct ferry_sge sge;

		copy_once(&sge, data + i * sizeof(sge), sizeof(sge));
		wqe->sge[i] = (struct sge) { le64(sge.addr), le32(sge.length), le32(sge.lkey) };
		len += wqe->sge[i].len;
	}
	if (len > MAX_MESSAGE)
		return FERRY_WC_LOC_LEN_ERR;
	wqe->len = (uint32_t)len;
	if (1u << wqe->opcode & WR_ATOMIC && (wqe->num_sge != 1 || wqe->len != 8))
		return FERRY_WC_LOC_LEN_ERR;
	return FERRY_WC_SUCCESS;
}

enum ferry_wc_status wqe_read(struct ferry_engine *e, struct qp *qp, uint32_t index,
			      struct send_wqe *wqe)
{
	const uint8_t *entry = wq_entry(e, &qp->sq, index);
	struct ferry_wqe_head head;
	uint32_t skip, room;

	wqe->index = index;
	wqe->valid = false;
	wqe->opcode = FERRY_WR_SEND;
	wqe->flags = 0;
	wqe->len = 0;
	if (unlikely(!entry))
		return FERRY_WC_LOC_QP_OP_ERR;
	copy_once(&head, entry, sizeof(head));
	wqe->opcode = head.opcode;
	wqe->flags = head.flags;
	wqe->num_sge = head.num_sge;
	memcpy(wqe->imm, head.imm, sizeof(wqe->imm));
	wqe->inv_key = get_le32(head.imm);
	if (unlikely(head.opcode >= FERRY_WR_COUNT)) {
		wqe->opcode = FERRY_WR_SEND;
		return FERRY_WC_LOC_QP_OP_ERR;
	}
	if (unlikely(!(wqe_opcodes[qp->type] & 1u << head.opcode)))
		return FERRY_WC_LOC_QP_OP_ERR;
	skip = wqe_read_body(qp, entry, wqe);
	room = (1u << qp->sq.shift) - skip;
	wqe->valid = true;
	if (head.flags & FERRY_WQE_INLINE)
		return wqe_read_inline(entry + skip, room, &head, wqe);
	return wqe_read_sges(entry + skip, room, wqe);
}

bool wqe_resolve(struct ferry_engine *e, struct qp *qp, const struct send_wqe *wqe,
		 uint32_t offset, uint32_t len, bool write, struct vecs *vecs)
{
	if (wqe->flags & FERRY_WQE_INLINE) {
		vecs_flat(vecs, wqe->data + offset, len);
		return true;
	}
	return sges_resolve(e, qp->pd, wqe->sge, wqe->num_sge, offset, len, write, vecs);
}

bool wqe_check_sges(struct ferry_engine *e, struct qp *qp, const struct send_wqe *wqe, bool write)
{
	struct vecs vecs;

	return wqe_resolve(e, qp, wqe, 0, wqe->len, write, &vecs);
}
