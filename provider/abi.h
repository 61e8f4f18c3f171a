/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The answers of uverbs with what our driver adds to them.
 *
 * rdma-core builds such structures by a script from the kernel headers it carries; a
 * provider whose header is not among them writes them out.
 */
#ifndef FERRY_PROVIDER_ABI_H
#define FERRY_PROVIDER_ABI_H

#include <config.h>
#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>
#include <ferry-abi.h>

#define FERRY_ANSWER(verb, core_resp)							\
	struct ferry_##verb##_answer {							\
		struct core_resp core;							\
		struct ferry_##verb##_resp ferry;					\
	};										\
	static_assert(sizeof(struct ferry_##verb##_answer) ==				\
		      sizeof(struct core_resp) + sizeof(struct ferry_##verb##_resp),	\
		      "padding in ferry_" #verb "_answer")

FERRY_ANSWER(alloc_ucontext, ib_uverbs_get_context_resp);
FERRY_ANSWER(alloc_pd, ib_uverbs_alloc_pd_resp);
FERRY_ANSWER(create_cq, ib_uverbs_create_cq_resp);
FERRY_ANSWER(resize_cq, ib_uverbs_resize_cq_resp);
FERRY_ANSWER(create_qp, ib_uverbs_create_qp_resp);
FERRY_ANSWER(create_srq, ib_uverbs_create_srq_resp);
FERRY_ANSWER(create_ah, ib_uverbs_create_ah_resp);
FERRY_ANSWER(reg_mr, ib_uverbs_reg_mr_resp);

struct ferry_reg_mr_command {
	struct ibv_reg_mr core;
	struct ferry_reg_mr_req ferry;
};
static_assert(sizeof(struct ferry_reg_mr_command) ==
	      sizeof(struct ibv_reg_mr) + sizeof(struct ferry_reg_mr_req),
	      "padding in ferry_reg_mr_command");

struct ferry_resize_cq_command {
	struct ibv_resize_cq core;
	struct ferry_resize_cq_req ferry;
};
static_assert(sizeof(struct ferry_resize_cq_command) ==
	      sizeof(struct ibv_resize_cq) + sizeof(struct ferry_resize_cq_req),
	      "padding in ferry_resize_cq_command");

/* Since rdma-core 57 it can be told to report on another event file. */
#if IBVERBS_PABI_VERSION < 57
#define ferry_get_context(ctx, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)
#else
#define ferry_get_context(ctx, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_get_context(ctx, cmd, cmd_size, NULL, resp, resp_size)
#endif

#endif
