// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which QP works next: those with work stand in line; each visit lasts as long as the
 * QP's credit, which it gets by the weight of its service level.
 */
#include "state.h"

#define QUANTUM		32768	/* bytes of credit a visit brings, times the weight */

typedef void send_run(struct ferry_engine *e, struct qp *qp);

static send_run *const sched_send[FERRY_QPT_COUNT] = {
	[FERRY_QPT_RC]	= requester_run,
	[FERRY_QPT_UD]	= ud_run,
	[FERRY_QPT_GSI]	= ud_run,
	[FERRY_QPT_ETH]	= eth_run,
};

static void sched_visit(struct ferry_engine *e, struct qp *qp)
{
	int64_t quantum = (int64_t)QUANTUM * qp->weight;

	/* Credit does not pile up while there is nothing to do; a debt stays. */
	qp->credit += quantum;
	if (qp->credit > quantum)
		qp->credit = quantum;
	if (qp->work & QP_WORK_RESPOND)
		responder_run(e, qp);
	if (qp->work & QP_WORK_SEND)
		sched_send[qp->type](e, qp);
	if (qp->work & QP_WORK_FLUSH) {
		qp->work &= (uint8_t)~QP_WORK_FLUSH;
		qp_flush(e, qp);
	}
}

void sched_run(struct ferry_engine *e, uint64_t budget)
{
	uint64_t end = e->spent + min_u64(budget, INT64_MAX);

	while (!list_empty(&e->active) && !engine_dead(e) && (int64_t)(end - e->spent) > 0) {
		struct qp *qp = container_of(e->active.next, struct qp, active);

		list_del(&qp->active);
		e->worked = true;
		e->visited = qp;
		sched_visit(e, qp);
		e->visited = NULL;
		if (qp->work)
			list_add_tail(&e->active, &qp->active);
		else
			qp->is_active = false;
	}
}
