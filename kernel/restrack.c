// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What `rdma resource show -dd` says about our objects besides what the core knows.
 */
#include <rdma/rdma_netlink.h>

#include "verbs.h"

struct ferry_detail {
	const char *name;
	u32 value;
};

static int ferry_fill_details(struct sk_buff *msg, const struct ferry_detail *detail, int count)
{
	struct nlattr *table;
	int i;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < count; i++) {
		if (rdma_nl_put_driver_u32(msg, detail[i].name, detail[i].value)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

int ferry_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	const struct ferry_cq *cq = to_ferry_cq(ibcq);
	const struct ferry_detail details[] = {
		{ "cqn", cq->obj.number },
		{ "depth", 1u << cq->queue.depth_shift },
		{ "eqn", cq->eq->number },
		{ "irq", cq->eq->irq },
	};

	return ferry_fill_details(msg, details, ARRAY_SIZE(details));
}

int ferry_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct ferry_qp *qp = to_ferry_qp(ibqp);
	const struct ferry_detail details[] = {
		{ "sq_depth", 1u << qp->sq.depth_shift },
		{ "sq_stride", 1u << qp->sq.stride_shift },
		{ "rq_depth", qp->cap.max_recv_wr },
		{ "rq_stride", qp->rq.ring ? 1u << qp->rq.stride_shift : 0 },
	};

	return ferry_fill_details(msg, details, ARRAY_SIZE(details));
}

int ferry_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct ferry_mr *mr = to_ferry_mr(ibmr);
	const struct ferry_detail details[] = {
		{ "block_shift", mr->mem.block_shift },
		{ "blocks", mr->mem.blocks },
	};

	return ferry_fill_details(msg, details, ARRAY_SIZE(details));
}
