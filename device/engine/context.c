// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Contexts, their memory, and protection domains.
 */
#include "admin.h"
#include "pages.h"
#include "state.h"

struct context *context_find(struct ferry_engine *e, uint32_t number)
{
	return number < MAX_CONTEXTS ? e->contexts[number] : NULL;
}

void context_init(struct context *context, uint32_t number)
{
	memset(context, 0, sizeof(*context));
	context->number = number;
	list_init(&context->pages);
	region_init(&context->memory);
}

enum ferry_admin_status admin_create_context(struct ferry_engine *e,
					     const union ferry_admin_sqe *cmd,
					     struct ferry_admin_cqe *answer)
{
	struct context *context;
	uint32_t number;

	(void)cmd;
	for (number = 1; number < MAX_CONTEXTS && e->contexts[number]; number++)
		;
	if (number == MAX_CONTEXTS)
		return FERRY_ADMIN_NO_RESOURCES;
	context = engine_alloc(e, sizeof(*context));
	if (!context)
		return FERRY_ADMIN_NO_RESOURCES;
	context_init(context, number);
	e->contexts[number] = context;
	answer->number = le32(number);
	return FERRY_ADMIN_OK;
}

/* With its record pages and its memory. */
void context_release(struct ferry_engine *e, struct context *context)
{
	while (!list_empty(&context->pages))
		record_page_release(e, container_of(context->pages.next, struct record_page, link));
	region_release(e, &context->memory);
	context->memory_len = 0;
	if (context == &e->kernel)
		return;
	e->contexts[context->number] = NULL;
	engine_free(e, context);
}

enum ferry_admin_status admin_destroy_context(struct ferry_engine *e,
					      const union ferry_admin_sqe *cmd,
					      struct ferry_admin_cqe *answer)
{
	struct context *context = context_find(e, le32(cmd->object.number));

	if (!context || context == &e->kernel)
		return admin_not_found(answer, le32(cmd->object.number));
	if (context->users)
		return FERRY_ADMIN_BUSY;
	context_release(e, context);
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_set_context_memory(struct ferry_engine *e,
						 const union ferry_admin_sqe *cmd,
						 struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_set_context_memory *c = &cmd->set_context_memory;
	struct context *context = context_find(e, le32(c->context));
	enum ferry_admin_status status;
	uint64_t length = le64(c->length);
	struct region memory;
	uint32_t field;

	if (!context)
		return admin_not_found(answer, le32(c->context));
	if (length > MAX_MR_SIZE)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_context_memory,
							length));
	region_init(&memory);
	status = length ? pages_region(e, &memory, &c->pages, length, true, &field) :
			  FERRY_ADMIN_OK;
	if (status == FERRY_ADMIN_BAD_PARAM)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_context_memory,
							pages) + field);
	if (status)
		return status;
	/* The old goes only now: a driver that makes it longer loses nothing when that fails. */
	region_release(e, &context->memory);
	if (length)
		region_move(&context->memory, &memory);
	context->memory_len = length;
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_create_pd(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	struct context *context = context_find(e, le32(cmd->create_pd.context));
	struct pd *pd;

	if (!context)
		return admin_not_found(answer, le32(cmd->create_pd.context));
	pd = engine_alloc(e, sizeof(*pd));
	if (!pd)
		return FERRY_ADMIN_NO_RESOURCES;
	pd->number = table_add(e, &e->pds, pd);
	if (!pd->number) {
		engine_free(e, pd);
		return FERRY_ADMIN_NO_RESOURCES;
	}
	pd->context = context;
	context->users++;
	answer->number = le32(pd->number);
	return FERRY_ADMIN_OK;
}

void pd_release(struct ferry_engine *e, struct pd *pd)
{
	pd->context->users--;
	table_remove(&e->pds, pd->number);
	engine_free(e, pd);
}

enum ferry_admin_status admin_destroy_pd(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	struct pd *pd = table_find(&e->pds, le32(cmd->object.number));

	if (!pd)
		return admin_not_found(answer, le32(cmd->object.number));
	if (pd->users)
		return FERRY_ADMIN_BUSY;
	pd_release(e, pd);
	return FERRY_ADMIN_OK;
}
