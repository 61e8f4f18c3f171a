/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands of the admin queue. The handler of each stands with the object it is
 * about; admin.c fetches commands, checks their reserved fields and answers.
 */
#ifndef FERRY_ADMIN_CMD_H
#define FERRY_ADMIN_CMD_H

#include "base.h"

struct context;
struct cq;
struct eq;
struct ferry_engine;
struct mr;
struct pd;
struct qp;
struct srq;

/*
 * @cmd is a copy of the host's; @answer is zero but for what its handler fills in. A
 * handler that returns PAGES_MORE is called again, with the same arguments.
 */
typedef enum ferry_admin_status admin_handler(struct ferry_engine *e,
					      const union ferry_admin_sqe *cmd,
					      struct ferry_admin_cqe *answer);

static inline enum ferry_admin_status admin_bad_param(struct ferry_admin_cqe *answer,
						      size_t offset)
{
	answer->detail = le32((uint32_t)offset);
	return FERRY_ADMIN_BAD_PARAM;
}

static inline enum ferry_admin_status admin_not_found(struct ferry_admin_cqe *answer,
						      uint32_t number)
{
	answer->detail = le32(number);
	return FERRY_ADMIN_NOT_FOUND;
}

admin_handler admin_query_device;
admin_handler admin_set_status_page;
admin_handler admin_create_eq, admin_destroy_eq;
admin_handler admin_create_context, admin_destroy_context;
admin_handler admin_add_record_page, admin_remove_record_page;
admin_handler admin_set_context_memory;
admin_handler admin_create_pd, admin_destroy_pd;
admin_handler admin_create_cq, admin_modify_cq, admin_resize_cq, admin_destroy_cq;
admin_handler admin_create_qp, admin_modify_qp, admin_query_qp, admin_destroy_qp;
admin_handler admin_create_srq, admin_modify_srq, admin_query_srq, admin_destroy_srq;
admin_handler admin_create_mr, admin_destroy_mr;
admin_handler admin_set_gid, admin_query_port, admin_set_port;
admin_handler admin_query_counters;
admin_handler admin_set_assist;

/* Release objects whatever refers to them: the engine forgets all. */
void eq_release(struct ferry_engine *e, struct eq *eq);
void context_release(struct ferry_engine *e, struct context *context);
void pd_release(struct ferry_engine *e, struct pd *pd);
void cq_release(struct ferry_engine *e, struct cq *cq);
void qp_release(struct ferry_engine *e, struct qp *qp);
void srq_release(struct ferry_engine *e, struct srq *srq);
void mr_release(struct ferry_engine *e, struct mr *mr);
void mr_abandon(struct ferry_engine *e);

#endif
