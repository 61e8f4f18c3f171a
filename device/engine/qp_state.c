// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "admin.h"
#include "qp_state.h"
#include "state.h"

#define A(name) FERRY_QP_ATTR_##name

/* InfiniBand table 91: what a transition must bring and what it may. */
struct transition {
	bool valid;
	uint32_t needs_rc, may_rc;
	uint32_t needs_ud, may_ud;	/* UD, GSI */
};

#define TO_RESET_OR_ERR \
	[FERRY_QPS_RESET] = { .valid = true }, \
	[FERRY_QPS_ERR] = { .valid = true }

static const struct transition transitions[FERRY_QPS_COUNT][FERRY_QPS_COUNT] = {
	[FERRY_QPS_RESET] = {
		[FERRY_QPS_RESET] = { .valid = true },
		[FERRY_QPS_INIT] = {
			.valid = true,
			.needs_rc = A(PKEY_INDEX) | A(ACCESS),
			.needs_ud = A(PKEY_INDEX) | A(QKEY),
		},
	},
	[FERRY_QPS_INIT] = {
		TO_RESET_OR_ERR,
		[FERRY_QPS_INIT] = {
			.valid = true,
			.may_rc = A(PKEY_INDEX) | A(ACCESS),
			.may_ud = A(PKEY_INDEX) | A(QKEY),
		},
		[FERRY_QPS_RTR] = {
			.valid = true,
			.needs_rc = A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) |
				    A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
			.may_rc = A(PKEY_INDEX) | A(ACCESS),
			.may_ud = A(PKEY_INDEX) | A(QKEY),
		},
	},
	[FERRY_QPS_RTR] = {
		TO_RESET_OR_ERR,
		[FERRY_QPS_RTS] = {
			.valid = true,
			.needs_rc = A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) |
				    A(MAX_RD_ATOMIC),
			.may_rc = A(ACCESS) | A(MIN_RNR_TIMER),
			.needs_ud = A(SQ_PSN),
			.may_ud = A(QKEY),
		},
	},
	[FERRY_QPS_RTS] = {
		TO_RESET_OR_ERR,
		[FERRY_QPS_RTS] = {
			.valid = true,
			.may_rc = A(ACCESS) | A(MIN_RNR_TIMER),
			.may_ud = A(QKEY),
		},
		[FERRY_QPS_SQD] = {
			.valid = true,
			.may_rc = A(SQD_NOTIFY),
			.may_ud = A(SQD_NOTIFY),
		},
	},
	[FERRY_QPS_SQD] = {
		TO_RESET_OR_ERR,
		[FERRY_QPS_RTS] = {
			.valid = true,
			.may_rc = A(ACCESS) | A(MIN_RNR_TIMER),
			.may_ud = A(QKEY),
		},
		[FERRY_QPS_SQD] = {
			.valid = true,
			.may_rc = A(PKEY_INDEX) | A(ACCESS) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) |
				  A(RNR_RETRY) | A(MAX_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) |
				  A(MIN_RNR_TIMER) | A(SQD_NOTIFY),
			.may_ud = A(PKEY_INDEX) | A(QKEY) | A(SQD_NOTIFY),
		},
	},
	[FERRY_QPS_SQE] = {
		TO_RESET_OR_ERR,
		[FERRY_QPS_RTS] = { .valid = true, .may_ud = A(QKEY) },
	},
	[FERRY_QPS_ERR] = {
		TO_RESET_OR_ERR,
	},
};

/* The highest value an attribute of one byte may have. */
static const struct {
	uint32_t attr;
	uint8_t offset;
	uint8_t lowest, highest;
} byte_limits[] = {
	{ A(PATH_MTU), offsetof(struct ferry_qp_attr, path_mtu), 1, 5 },
	{ A(ACCESS), offsetof(struct ferry_qp_attr, access), 0, FERRY_ACCESS_ALL },
	{ A(MAX_RD_ATOMIC), offsetof(struct ferry_qp_attr, max_rd_atomic), 0, RD_ATOMIC_LIMIT },
	{ A(MAX_DEST_RD_ATOMIC), offsetof(struct ferry_qp_attr, max_dest_rd_atomic), 0,
	  RD_ATOMIC_LIMIT },
	{ A(TIMEOUT), offsetof(struct ferry_qp_attr, timeout), 0, 31 },
	{ A(RETRY_CNT), offsetof(struct ferry_qp_attr, retry_cnt), 0, 7 },
	{ A(RNR_RETRY), offsetof(struct ferry_qp_attr, rnr_retry), 0, 7 },
	{ A(MIN_RNR_TIMER), offsetof(struct ferry_qp_attr, min_rnr_timer), 0, 31 },
	{ A(SQD_NOTIFY), offsetof(struct ferry_qp_attr, sqd_notify), 0, 1 },
};

static const struct {
	uint32_t attr;
	uint8_t offset;
} psn_limits[] = {
	{ A(RQ_PSN), offsetof(struct ferry_qp_attr, rq_psn) },
	{ A(SQ_PSN), offsetof(struct ferry_qp_attr, sq_psn) },
	{ A(DEST_QPN), offsetof(struct ferry_qp_attr, dest_qpn) },
};

/* The offset of a value that is out of its range, or -1. */
static int attr_bad_av(const struct ferry_av *av)
{
	if (le16(av->vlan) != 0xffff)
		return offsetof(struct ferry_av, vlan);
	if (le32(av->flow_label) >> 20)
		return offsetof(struct ferry_av, flow_label);
	if (le16(av->sgid_index) >= MAX_GIDS)
		return offsetof(struct ferry_av, sgid_index);
	if (av->sl > 7)
		return offsetof(struct ferry_av, sl);
	return -1;
}

static int attr_bad_value(const struct ferry_qp_attr *attr, uint32_t mask)
{
	const uint8_t *base = (const uint8_t *)attr;
	uint32_t word;
	unsigned int i;
	int at;

	for (i = 0; i < ARRAY_SIZE(byte_limits); i++) {
		uint8_t value = base[byte_limits[i].offset];

		if (mask & byte_limits[i].attr &&
		    (value < byte_limits[i].lowest || value > byte_limits[i].highest))
			return byte_limits[i].offset;
	}
	for (i = 0; i < ARRAY_SIZE(psn_limits); i++) {
		memcpy(&word, base + psn_limits[i].offset, sizeof(word));
		if (mask & psn_limits[i].attr && le32(word) & ~PSN_MASK)
			return psn_limits[i].offset;
	}
	if (mask & A(PKEY_INDEX) && attr->pkey_index)
		return offsetof(struct ferry_qp_attr, pkey_index);
	if (!(mask & A(AV)))
		return -1;
	at = attr_bad_av(&attr->av);
	return at < 0 ? -1 : at + (int)offsetof(struct ferry_qp_attr, av);
}

static enum ferry_admin_status attr_bad(struct ferry_admin_cqe *answer, size_t offset)
{
	return admin_bad_param(answer, offsetof(struct ferry_admin_modify_qp, attr) + offset);
}

enum ferry_admin_status qp_attr_check(const struct qp *qp, const struct ferry_qp_attr *attr,
				      enum ferry_qp_state *to, struct ferry_admin_cqe *answer)
{
	uint32_t mask = le32(attr->mask), needs, may;
	const struct transition *t;
	int at;

	if (mask & ~FERRY_QP_ATTR_ALL)
		return attr_bad(answer, offsetof(struct ferry_qp_attr, mask));
	if (mask & A(CUR_STATE) && attr->cur_state != qp->state)
		return FERRY_ADMIN_BAD_STATE;
	*to = mask & A(STATE) ? attr->state : qp->state;
	if (*to >= FERRY_QPS_COUNT)
		return attr_bad(answer, offsetof(struct ferry_qp_attr, state));
	t = &transitions[qp->state][*to];
	if (!t->valid)
		return FERRY_ADMIN_BAD_STATE;
	if (qp->type == FERRY_QPT_RC) {
		needs = t->needs_rc;
		may = t->may_rc;
	} else {
		needs = t->needs_ud;
		may = t->may_ud;
	}
	may |= needs | A(STATE) | A(CUR_STATE);
	/* A raw Ethernet QP has none of these attributes. */
	if (qp->type == FERRY_QPT_ETH)
		needs = 0;
	if ((mask & needs) != needs || mask & ~may)
		return attr_bad(answer, offsetof(struct ferry_qp_attr, mask));
	at = attr_bad_value(attr, mask);
	return at < 0 ? FERRY_ADMIN_OK : attr_bad(answer, (size_t)at);
}

/* How each attribute moves from one attribute block to another. */
static const struct {
	uint32_t attr;
	uint8_t offset, len;
} attr_fields[] = {
#define FIELD(bit, member) \
	{ A(bit), offsetof(struct ferry_qp_attr, member), \
	  sizeof(((struct ferry_qp_attr *)0)->member) }
	FIELD(ACCESS, access),
	FIELD(PKEY_INDEX, pkey_index),
	FIELD(QKEY, qkey),
	FIELD(AV, av),
	FIELD(PATH_MTU, path_mtu),
	FIELD(TIMEOUT, timeout),
	FIELD(RETRY_CNT, retry_cnt),
	FIELD(RNR_RETRY, rnr_retry),
	FIELD(RQ_PSN, rq_psn),
	FIELD(SQ_PSN, sq_psn),
	FIELD(MAX_RD_ATOMIC, max_rd_atomic),
	FIELD(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
	FIELD(MIN_RNR_TIMER, min_rnr_timer),
	FIELD(DEST_QPN, dest_qpn),
	FIELD(SQD_NOTIFY, sqd_notify),
};

void qp_attr_set(struct qp *qp, const struct ferry_qp_attr *attr)
{
	uint32_t mask = le32(attr->mask);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(attr_fields); i++) {
		if (mask & attr_fields[i].attr)
			memcpy((uint8_t *)&qp->attr + attr_fields[i].offset,
			       (const uint8_t *)attr + attr_fields[i].offset, attr_fields[i].len);
	}
	if (mask & A(AV))
		qp->weight = (uint8_t)(1 + qp->attr.av.sl);
	if (mask & A(PATH_MTU))
		qp->mtu_shift = (uint8_t)(7 + qp->attr.path_mtu);
	if (mask & A(RQ_PSN))
		qp->resp.psn = le32(qp->attr.rq_psn);
	if (mask & A(SQ_PSN))
		requester_set_psn(qp, le32(qp->attr.sq_psn));
	if (mask & A(RETRY_CNT))
		qp->req.retry_left = qp->attr.retry_cnt;
	if (mask & A(RNR_RETRY))
		qp->req.rnr_left = qp->attr.rnr_retry;
}
