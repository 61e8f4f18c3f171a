// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "admin.h"
#include "pages.h"
#include "state.h"

#define ACCESS_WRITES	(FERRY_ACCESS_LOCAL_WRITE | FERRY_ACCESS_REMOTE_WRITE | \
			 FERRY_ACCESS_REMOTE_ATOMIC)
#define ACCESS_REMOTE_WRITES (FERRY_ACCESS_REMOTE_WRITE | FERRY_ACCESS_REMOTE_ATOMIC)

struct mr *mr_check(struct ferry_engine *e, struct pd *pd, uint32_t key, uint64_t addr,
		    uint64_t len, uint8_t access, uint64_t *offset)
{
	struct mr *mr = table_find(&e->mrs, key);

	if (unlikely(!mr || mr->pd != pd || (access & ~mr->access)))
		return NULL;
	if (unlikely(addr < mr->iova || len > mr->length || addr - mr->iova > mr->length - len))
		return NULL;
	*offset = mr->offset + (addr - mr->iova);
	return mr;
}

/* A context's own memory, addressed by offset. */
static bool context_memory_resolve(struct context *context, uint64_t addr, uint32_t len,
				   struct vecs *vecs)
{
	if (len > context->memory_len || addr > context->memory_len - len)
		return false;
	vecs_add(vecs, &context->memory, addr, len);
	return true;
}

bool sge_resolve(struct ferry_engine *e, struct pd *pd, const struct sge *sge, uint32_t skip,
		 uint32_t len, bool write, struct vecs *vecs)
{
	uint64_t addr = sge->addr + skip, offset;
	struct mr *mr;

	if (unlikely(sge->addr > UINT64_MAX - sge->len))
		return false;
	mr = mr_check(e, pd, sge->key, addr, len, write ? FERRY_ACCESS_LOCAL_WRITE : 0, &offset);
	if (likely(mr)) {
		vecs_add(vecs, &mr->region, offset, len);
		return true;
	}
	if (sge->key == FERRY_KEY_CONTEXT)
		return context_memory_resolve(pd->context, addr, len, vecs);
	if (sge->key == FERRY_KEY_LOCAL_DMA && pd->context == &e->kernel) {
		vecs_add(vecs, NULL, addr, len);
		return true;
	}
	return false;
}

bool sges_resolve(struct ferry_engine *e, struct pd *pd, const struct sge *sge, unsigned int count,
		  uint32_t skip, uint32_t len, bool write, struct vecs *vecs)
{
	unsigned int i;

	vecs->count = 0;
	vecs->len = 0;
	for (i = 0; i < count && len; i++) {
		uint32_t n;

		if (skip >= sge[i].len) {
			skip -= sge[i].len;
			continue;
		}
		n = min_u32(sge[i].len - skip, len);
		if (!sge_resolve(e, pd, &sge[i], skip, n, write, vecs))
			return false;
		skip = 0;
		len -= n;
	}
	return true;
}

static enum ferry_admin_status mr_params(const struct ferry_admin_create_mr *c,
					 struct ferry_admin_cqe *answer)
{
	uint64_t length = le64(c->length), offset = le64(c->offset);

	if (c->access & ~FERRY_ACCESS_ALL ||
	    (c->access & ACCESS_REMOTE_WRITES && !(c->access & FERRY_ACCESS_LOCAL_WRITE)))
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_mr, access));
	if (c->flags & ~(FERRY_MR_ASSIST | FERRY_MR_FAST_REG))
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_mr, flags));
	if (c->flags & FERRY_MR_FAST_REG)
		return FERRY_ADMIN_NOT_SUPPORTED;
	if (!length || length > MAX_MR_SIZE)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_mr, length));
	if (le64(c->iova) > UINT64_MAX - length)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_mr, iova));
	if (c->pages.block_shift <= FERRY_BLOCK_SHIFT_MAX && offset >> c->pages.block_shift)
		return admin_bad_param(answer, offsetof(struct ferry_admin_create_mr, offset));
	return FERRY_ADMIN_OK;
}

/* All pages are there: the MR gets its key. */
static enum ferry_admin_status mr_finish(struct ferry_engine *e, struct mr *mr,
					 struct ferry_admin_cqe *answer)
{
	mr->key = table_add(e, &e->mrs, mr);
	if (!mr->key)
		return FERRY_ADMIN_NO_RESOURCES;
	mr->pd->users++;
	e->assist.users += mr->assist;
	answer->number = le32(mr->key);
	return FERRY_ADMIN_OK;
}

/*
 * A list of many pages takes several runs of the engine, and QPs go on meanwhile. No
 * other command is taken, so what this one refers to stays.
 */
static enum ferry_admin_status mr_continue(struct ferry_engine *e, struct ferry_admin_cqe *answer)
{
	struct mr *mr = e->admin.new_mr;
	enum ferry_admin_status status = pages_step(e, &e->admin.pages);

	if (status == PAGES_MORE)
		return status;
	if (status == FERRY_ADMIN_BAD_PARAM)
		admin_bad_param(answer, offsetof(struct ferry_admin_create_mr, pages) +
				e->admin.pages.field);
	if (!status)
		status = mr_finish(e, mr, answer);
	if (status)
		mr_abandon(e);
	e->admin.new_mr = NULL;
	return status;
}

/* Drops the MR that is being made. */
void mr_abandon(struct ferry_engine *e)
{
	struct mr *mr = e->admin.new_mr;

	if (!mr)
		return;
	region_release(e, &mr->region);
	engine_free(e, mr);
	e->admin.new_mr = NULL;
}

enum ferry_admin_status admin_create_mr(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					struct ferry_admin_cqe *answer)
{
	const struct ferry_admin_create_mr *c = &cmd->create_mr;
	enum ferry_admin_status status;
	struct pd *pd;
	struct mr *mr;

	if (e->admin.new_mr)
		return mr_continue(e, answer);
	pd = table_find(&e->pds, le32(c->pd));
	if (!pd)
		return admin_not_found(answer, le32(c->pd));
	status = mr_params(c, answer);
	if (status)
		return status;
	if (c->flags & FERRY_MR_ASSIST && !e->assist.slots)
		return FERRY_ADMIN_BAD_STATE;
	mr = engine_alloc(e, sizeof(*mr));
	if (!mr)
		return FERRY_ADMIN_NO_RESOURCES;
	mr->pd = pd;
	mr->access = c->access;
	mr->assist = c->flags & FERRY_MR_ASSIST;
	mr->iova = le64(c->iova);
	mr->length = le64(c->length);
	mr->offset = le64(c->offset);
	e->admin.new_mr = mr;
	status = pages_begin(e, &e->admin.pages, &mr->region, &c->pages, mr->offset + mr->length,
			     c->access & ACCESS_WRITES);
	if (status == PAGES_MORE)
		return mr_continue(e, answer);
	mr_abandon(e);
	return admin_bad_param(answer, offsetof(struct ferry_admin_create_mr, pages) +
			       e->admin.pages.field);
}

void mr_release(struct ferry_engine *e, struct mr *mr)
{
	mr->pd->users--;
	e->assist.users -= mr->assist;
	table_remove(&e->mrs, mr->key);
	region_release(e, &mr->region);
	engine_free(e, mr);
}

enum ferry_admin_status admin_destroy_mr(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	struct mr *mr = table_find(&e->mrs, le32(cmd->object.number));

	if (!mr)
		return admin_not_found(answer, le32(cmd->object.number));
	mr_release(e, mr);
	return FERRY_ADMIN_OK;
}
