// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Doorbells and doorbell records.
 */
#include "admin.h"
#include "state.h"

static uint64_t slot_offset(unsigned int index)
{
	return (uint64_t)index * FERRY_SLOT_SIZE;
}

static void record_failed(struct ferry_engine *e, const struct record_page *page)
{
	engine_log(e, FERRY_LOG_ERROR, "record page of context %u cannot be reached",
		   page->context->number);
}

/* ------------------------------------------------------------------------- pages */

static struct record_page *record_page_at(struct context *context, uint64_t addr)
{
	struct list *pos;

	list_for_each(pos, &context->pages) {
		struct record_page *page = container_of(pos, struct record_page, link);

		if (page->region.one.addr == addr)
			return page;
	}
	return NULL;
}

enum ferry_admin_status admin_add_record_page(struct ferry_engine *e,
					      const union ferry_admin_sqe *cmd,
					      struct ferry_admin_cqe *answer)
{
	struct context *context = context_find(e, le32(cmd->set_page.context));
	uint64_t addr = le64(cmd->set_page.addr);
	struct record_page *page;

	if (!context)
		return admin_not_found(answer, le32(cmd->set_page.context));
	if (!addr || addr & (FERRY_PAGE_SIZE - 1) || record_page_at(context, addr))
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_page, addr));
	if (context->num_pages >= MAX_RECORD_PAGES)
		return FERRY_ADMIN_NO_RESOURCES;
	page = engine_alloc(e, sizeof(*page));
	if (!page)
		return FERRY_ADMIN_NO_RESOURCES;
	page->context = context;
	region_single(e, &page->region, addr, FERRY_PAGE_SIZE, true);
	list_add_tail(&context->pages, &page->link);
	list_add_tail(&e->record_pages, &page->scan);
	context->num_pages++;
	return FERRY_ADMIN_OK;
}

void record_page_release(struct ferry_engine *e, struct record_page *page)
{
	list_del(&page->link);
	list_del(&page->scan);
	page->context->num_pages--;
	region_release(e, &page->region);
	engine_free(e, page);
}

enum ferry_admin_status admin_remove_record_page(struct ferry_engine *e,
						 const union ferry_admin_sqe *cmd,
						 struct ferry_admin_cqe *answer)
{
	struct context *context = context_find(e, le32(cmd->set_page.context));
	struct record_page *page;

	if (!context)
		return admin_not_found(answer, le32(cmd->set_page.context));
	page = record_page_at(context, le64(cmd->set_page.addr));
	if (!page)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_page, addr));
	if (page->users)
		return FERRY_ADMIN_BUSY;
	record_page_release(e, page);
	return FERRY_ADMIN_OK;
}

/* ------------------------------------------------------------------------- slots */

bool record_take(struct context *context, uint64_t addr, struct record_slot *slot)
{
	struct record_page *page = record_page_at(context, addr & ~(uint64_t)(FERRY_PAGE_SIZE - 1));
	uint64_t offset = addr & (FERRY_PAGE_SIZE - 1);

	if (!page || offset % FERRY_SLOT_SIZE || offset / FERRY_SLOT_SIZE >= FERRY_SLOTS_PER_PAGE)
		return false;
	slot->page = page;
	slot->index = (unsigned int)(offset / FERRY_SLOT_SIZE);
	page->users++;
	record_renew(slot);
	return true;
}

void record_put(struct record_slot *slot)
{
	if (slot->page)
		slot->page->users--;
	slot->page = NULL;
}

void record_renew(struct record_slot *slot)
{
	if (slot->page)
		slot->page->seen[slot->index] = 0;
}

bool record_load(struct ferry_engine *e, const struct record_slot *slot, uint64_t *word)
{
	return region_load64(e, &slot->page->region,
			     slot_offset(slot->index) + offsetof(struct ferry_slot, db), word);
}

bool record_load_ci(struct ferry_engine *e, const struct record_slot *slot, uint64_t *word)
{
	return region_load64(e, &slot->page->region,
			     slot_offset(slot->index) + offsetof(struct ferry_slot, ci), word);
}

/* --------------------------------------------------------------------- doorbells */

static bool doorbell_sq(struct ferry_engine *e, struct context *context, uint64_t word)
{
	struct qp *qp = qp_find(e, FERRY_DB_NUMBER(word));

	return qp && qp->context == context && qp_doorbell(e, qp, FERRY_DB_INDEX(word));
}

static bool doorbell_assist(struct ferry_engine *e, struct context *context, uint64_t word)
{
	return context == &e->kernel && assist_ack(e, FERRY_DB_INDEX(word));
}

static bool doorbell_arm(struct ferry_engine *e, struct context *context, uint64_t word)
{
	struct cq *cq = table_find(&e->cqs, FERRY_DB_NUMBER(word));

	if (!cq || cq->context != context)
		return false;
	cq_arm(e, cq, FERRY_DB_TYPE(word) == FERRY_DB_CQ_ARM_SOLICITED, FERRY_DB_INDEX(word),
	       FERRY_DB_SEQ(word));
	return true;
}

bool doorbell_take(struct ferry_engine *e, struct context *context, uint64_t word)
{
	static bool (*const take[16])(struct ferry_engine *, struct context *, uint64_t) = {
		[FERRY_DB_SQ] = doorbell_sq,
		[FERRY_DB_CQ_ARM] = doorbell_arm,
		[FERRY_DB_CQ_ARM_SOLICITED] = doorbell_arm,
		[FERRY_DB_ASSIST_ACK] = doorbell_assist,
	};

	return take[FERRY_DB_TYPE(word)] && take[FERRY_DB_TYPE(word)](e, context, word);
}

/* -------------------------------------------------------------------------- scan */

static bool record_scan_page(struct ferry_engine *e, struct record_page *page)
{
	bool found = false;
	unsigned int i;
	uint64_t word;

	for (i = 0; i < FERRY_SLOTS_PER_PAGE; i++) {
		if (!region_load64(e, &page->region, slot_offset(i), &word)) {
			record_failed(e, page);
			return found;
		}
		if (word == page->seen[i])
			continue;
		page->seen[i] = word;
		found |= doorbell_take(e, page->context, word);
	}
	return found;
}

bool record_scan(struct ferry_engine *e)
{
	const uint64_t at = offsetof(struct ferry_record_page, word);
	struct list *pos;
	bool found = false;
	uint32_t word;

	list_for_each(pos, &e->record_pages) {
		struct record_page *page = container_of(pos, struct record_page, scan);

		if (!region_load32(e, &page->region, at, &word) || likely(!word))
			continue;
		/*
		 * Clear, then scan: sequentially consistent (litmus group-word). A host that
		 * stores its record after our look finds the word clear and sets it again.
		 */
		if (!region_store32(e, &page->region, at, 0))
			continue;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		found |= record_scan_page(e, page);
	}
	return found;
}

bool record_scan_all(struct ferry_engine *e)
{
	struct list *pos;
	bool found = false;

	list_for_each(pos, &e->record_pages)
		found |= record_scan_page(e, container_of(pos, struct record_page, scan));
	return found;
}
