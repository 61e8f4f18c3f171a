// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a DMA address belongs to: for messages, never for work.
 */
#include "state.h"

static bool region_holds(const struct region *r, uint64_t addr)
{
	uint32_t i;

	for (i = 0; i < r->count; i++) {
		uint64_t end = i + 1 < r->count ? r->extent[i + 1].offset : r->size;

		if (addr - r->extent[i].addr < end - r->extent[i].offset)
			return true;
	}
	return false;
}

static void where_qps(struct ferry_engine *e, uint64_t addr, struct ferry_where *where)
{
	uint32_t i = 0;
	struct qp *qp;

	while ((qp = table_next(&e->qps, &i))) {
		if (region_holds(&qp->sq.ring, addr))
			where->what = "SQ";
		else if (region_holds(&qp->rq.ring, addr))
			where->what = "RQ";
		else
			continue;
		where->number = qp_number(qp);
		return;
	}
}

static void where_queues(struct ferry_engine *e, uint64_t addr, struct ferry_where *where)
{
	struct list *link;
	struct srq *srq;
	uint32_t i;
	struct cq *cq;

	for (i = 0; (srq = table_next(&e->srqs, &i));) {
		if (region_holds(&srq->wq.ring, addr))
			*where = (struct ferry_where) { "SRQ", srq->source.number, where->qp };
	}
	for (i = 0; (cq = table_next(&e->cqs, &i));) {
		if (region_holds(&cq->ring, addr))
			*where = (struct ferry_where) { "CQ", cq->source.number, where->qp };
	}
	for (link = e->eqs.next; link != &e->eqs; link = link->next) {
		struct eq *eq = container_of(link, struct eq, link);

		if (region_holds(&eq->ring, addr) || region_holds(&eq->index, addr))
			*where = (struct ferry_where) { "EQ", eq->number, where->qp };
	}
}

static void where_mrs(struct ferry_engine *e, uint64_t addr, struct ferry_where *where)
{
	uint32_t i = 0;
	struct mr *mr;

	while ((mr = table_next(&e->mrs, &i))) {
		if (region_holds(&mr->region, addr))
			*where = (struct ferry_where) { "MR", mr->key, where->qp };
	}
}

static void where_contexts(struct ferry_engine *e, uint64_t addr, struct ferry_where *where)
{
	struct list *link;
	uint32_t i;

	for (i = 0; i < MAX_CONTEXTS; i++) {
		if (e->contexts[i] && region_holds(&e->contexts[i]->memory, addr))
			*where = (struct ferry_where) { "context memory", i, where->qp };
	}
	for (link = e->record_pages.next; link != &e->record_pages; link = link->next) {
		struct record_page *page = container_of(link, struct record_page, scan);

		if (region_holds(&page->region, addr))
			*where = (struct ferry_where) { "record page of context",
							page->context->number, where->qp };
	}
}

uint32_t ferry_engine_serves(const struct ferry_engine *e)
{
	return e->visited ? qp_number(e->visited) : 0;
}

void ferry_engine_where(struct ferry_engine *e, uint64_t addr, struct ferry_where *where)
{
	*where = (struct ferry_where) { .what = "memory of the driver" };
	where->qp = ferry_engine_serves(e);
	if (region_holds(&e->admin.sq, addr) || region_holds(&e->admin.cq, addr))
		where->what = "admin queue";
	if (region_holds(&e->status_page, addr))
		where->what = "status page";
	where_mrs(e, addr, where);
	where_contexts(e, addr, where);
	where_queues(e, addr, where);
	where_qps(e, addr, where);
}
