// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "admin.h"
#include "state.h"

#define ADMIN_BUDGET	16	/* commands answered in one run */

/* A stretch of bytes that must be zero. */
struct reserved {
	uint16_t offset, len;
};

#define RESERVED(type, member) \
	{ offsetof(type, member), sizeof(((type *)0)->member) }

struct admin_command {
	admin_handler *run;	/* NULL: not supported */
	uint16_t size;		/* all behind it is reserved */
	struct reserved reserved[4];
};

static enum ferry_admin_status admin_nop(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	(void)e;
	(void)cmd;
	(void)answer;
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_query_counters(struct ferry_engine *e,
					     const union ferry_admin_sqe *cmd,
					     struct ferry_admin_cqe *answer)
{
	unsigned int i;

	(void)cmd;
	for (i = 0; i < FERRY_COUNTER_COUNT; i++)
		answer->counters[i] = le64(e->counters[i]);
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_query_device(struct ferry_engine *e,
					   const union ferry_admin_sqe *cmd,
					   struct ferry_admin_cqe *answer)
{
	(void)cmd;
	answer->device = (struct ferry_device_limits) {
		.max_mr_size = le64(MAX_MR_SIZE),
		.page_sizes = le64((2ull << FERRY_BLOCK_SHIFT_MAX) -
				   (1ull << FERRY_BLOCK_SHIFT_MIN)),
		.max_msg_size = le64(MAX_MESSAGE),
		.caps = le32(ferry_engine_reg_read(e, FERRY_REG_CAPS)),
		.max_contexts = le32(MAX_CONTEXTS),
		.max_pds = le32(MAX_PDS),
		.max_eqs = le32(MAX_EQS),
		.max_cqs = le32(MAX_CQS),
		.max_qps = le32(MAX_QPS),
		.max_srqs = le32(MAX_SRQS),
		.max_mrs = le32(MAX_MRS),
		.max_cqe = le32(1u << MAX_CQ_SHIFT),
		.max_sq_depth = le32(1u << MAX_WQ_SHIFT),
		.max_rq_depth = le32(1u << MAX_WQ_SHIFT),
		.max_srq_depth = le32(1u << MAX_WQ_SHIFT),
		.max_sge = le16(MAX_SGE),
		.max_inline = le16(MAX_INLINE),
		.max_rd_atomic = le16(RD_ATOMIC_LIMIT),
		.gids = le16(MAX_GIDS),
		.max_record_pages = le32(MAX_RECORD_PAGES),
		.max_mtu = le16(MAX_MTU),
		.firmware = "1.0",
	};
	return FERRY_ADMIN_OK;
}

#define OBJECT_COMMAND(handler) { \
	handler, sizeof(struct ferry_admin_object), { \
		RESERVED(struct ferry_admin_object, rsvd), \
	} \
}

static const struct admin_command admin_commands[FERRY_ADMIN_OP_COUNT] = {
	[FERRY_ADMIN_NOP] = { admin_nop, sizeof(struct ferry_admin_head), {} },
	[FERRY_ADMIN_QUERY_DEVICE] = { admin_query_device, sizeof(struct ferry_admin_head), {} },
	[FERRY_ADMIN_SET_STATUS_PAGE] = {
		admin_set_status_page, sizeof(struct ferry_admin_set_page), {
			RESERVED(struct ferry_admin_set_page, context),
			RESERVED(struct ferry_admin_set_page, rsvd),
		}
	},
	[FERRY_ADMIN_CREATE_EQ] = {
		admin_create_eq, sizeof(struct ferry_admin_create_eq), {
			RESERVED(struct ferry_admin_create_eq, rsvd),
		}
	},
	[FERRY_ADMIN_DESTROY_EQ] = OBJECT_COMMAND(admin_destroy_eq),
	[FERRY_ADMIN_CREATE_CONTEXT] = {
		admin_create_context, sizeof(struct ferry_admin_head), {}
	},
	[FERRY_ADMIN_DESTROY_CONTEXT] = OBJECT_COMMAND(admin_destroy_context),
	[FERRY_ADMIN_ADD_RECORD_PAGE] = {
		admin_add_record_page, sizeof(struct ferry_admin_set_page), {
			RESERVED(struct ferry_admin_set_page, rsvd),
		}
	},
	[FERRY_ADMIN_REMOVE_RECORD_PAGE] = {
		admin_remove_record_page, sizeof(struct ferry_admin_set_page), {
			RESERVED(struct ferry_admin_set_page, rsvd),
		}
	},
	[FERRY_ADMIN_SET_CONTEXT_MEMORY] = {
		admin_set_context_memory, sizeof(struct ferry_admin_set_context_memory), {
			RESERVED(struct ferry_admin_set_context_memory, rsvd),
		}
	},
	[FERRY_ADMIN_CREATE_PD] = {
		admin_create_pd, sizeof(struct ferry_admin_create_pd), {
			RESERVED(struct ferry_admin_create_pd, rsvd),
		}
	},
	[FERRY_ADMIN_DESTROY_PD] = OBJECT_COMMAND(admin_destroy_pd),
	[FERRY_ADMIN_CREATE_CQ] = {
		admin_create_cq, sizeof(struct ferry_admin_create_cq), {
			RESERVED(struct ferry_admin_create_cq, cq),
			RESERVED(struct ferry_admin_create_cq, rsvd),
		}
	},
	[FERRY_ADMIN_MODIFY_CQ] = { admin_modify_cq, sizeof(struct ferry_admin_modify_cq), {} },
	[FERRY_ADMIN_RESIZE_CQ] = {
		admin_resize_cq, sizeof(struct ferry_admin_create_cq), {
			RESERVED(struct ferry_admin_create_cq, rsvd),
		}
	},
	[FERRY_ADMIN_DESTROY_CQ] = OBJECT_COMMAND(admin_destroy_cq),
	[FERRY_ADMIN_CREATE_QP] = {
		admin_create_qp, sizeof(struct ferry_admin_create_qp), {
			RESERVED(struct ferry_admin_create_qp, rsvd),
		}
	},
	[FERRY_ADMIN_MODIFY_QP] = {
		admin_modify_qp, sizeof(struct ferry_admin_modify_qp), {
			RESERVED(struct ferry_admin_modify_qp, rsvd),
			RESERVED(struct ferry_admin_modify_qp, attr.rsvd),
			RESERVED(struct ferry_admin_modify_qp, attr.av.rsvd),
		}
	},
	[FERRY_ADMIN_QUERY_QP] = OBJECT_COMMAND(admin_query_qp),
	[FERRY_ADMIN_DESTROY_QP] = OBJECT_COMMAND(admin_destroy_qp),
	[FERRY_ADMIN_CREATE_SRQ] = {
		admin_create_srq, sizeof(struct ferry_admin_create_srq), {
			RESERVED(struct ferry_admin_create_srq, rsvd),
		}
	},
	[FERRY_ADMIN_MODIFY_SRQ] = {
		admin_modify_srq, sizeof(struct ferry_admin_modify_srq), {
			RESERVED(struct ferry_admin_modify_srq, rsvd),
		}
	},
	[FERRY_ADMIN_QUERY_SRQ] = OBJECT_COMMAND(admin_query_srq),
	[FERRY_ADMIN_DESTROY_SRQ] = OBJECT_COMMAND(admin_destroy_srq),
	[FERRY_ADMIN_CREATE_MR] = {
		admin_create_mr, sizeof(struct ferry_admin_create_mr), {
			RESERVED(struct ferry_admin_create_mr, rsvd),
		}
	},
	[FERRY_ADMIN_DESTROY_MR] = OBJECT_COMMAND(admin_destroy_mr),
	[FERRY_ADMIN_SET_ASSIST] = {
		admin_set_assist, sizeof(struct ferry_admin_set_assist), {
			RESERVED(struct ferry_admin_set_assist, rsvd),
		}
	},
	[FERRY_ADMIN_SET_GID] = {
		admin_set_gid, sizeof(struct ferry_admin_set_gid), {
			RESERVED(struct ferry_admin_set_gid, rsvd0),
			RESERVED(struct ferry_admin_set_gid, rsvd1),
		}
	},
	[FERRY_ADMIN_QUERY_PORT] = { admin_query_port, sizeof(struct ferry_admin_head), {} },
	[FERRY_ADMIN_SET_PORT] = {
		admin_set_port, sizeof(struct ferry_admin_set_port), {
			RESERVED(struct ferry_admin_set_port, rsvd0),
			RESERVED(struct ferry_admin_set_port, rsvd1),
		}
	},
	[FERRY_ADMIN_QUERY_COUNTERS] = {
		admin_query_counters, sizeof(struct ferry_admin_head), {}
	},
};

/* The first byte of the range that is not zero, or -1. */
static int nonzero(const union ferry_admin_sqe *cmd, size_t offset, size_t len)
{
	size_t i;

	for (i = offset; i < offset + len; i++) {
		if (cmd->bytes[i])
			return (int)i;
	}
	return -1;
}

static int reserved_set(const struct admin_command *command, const union ferry_admin_sqe *cmd)
{
	int at = nonzero(cmd, offsetof(struct ferry_admin_head, rsvd), sizeof(cmd->head.rsvd));
	size_t i;

	for (i = 0; i < ARRAY_SIZE(command->reserved) && at < 0; i++)
		at = nonzero(cmd, command->reserved[i].offset, command->reserved[i].len);
	if (at < 0)
		at = nonzero(cmd, command->size, FERRY_ADMIN_SQE_SIZE - command->size);
	return at;
}

/* Whether this is the command to be refused. */
static bool admin_refuse(struct ferry_engine *e, uint16_t opcode)
{
	if (!e->admin.refuse || --e->admin.refuse)
		return false;
	if (e->admin.refuse_each)
		e->admin.refuse_each++;
	engine_log(e, FERRY_LOG_INFO, "a command was refused: opcode %u", (unsigned int)opcode);
	return true;
}

/* Whether the command is well-formed: its handler, or what is wrong. */
static enum ferry_admin_status admin_check(struct ferry_engine *e,
					   const union ferry_admin_sqe *cmd,
					   struct ferry_admin_cqe *answer)
{
	const struct admin_command *command;
	uint16_t opcode = le16(cmd->head.opcode);
	int at;

	if (admin_refuse(e, opcode))
		return FERRY_ADMIN_REFUSED;
	if (opcode >= FERRY_ADMIN_OP_COUNT)
		return FERRY_ADMIN_BAD_OPCODE;
	command = &admin_commands[opcode];
	if (!command->run)
		return FERRY_ADMIN_NOT_SUPPORTED;
	at = reserved_set(command, cmd);
	return at < 0 ? FERRY_ADMIN_OK : admin_bad_param(answer, (size_t)at);
}

/* Body first, then the word with the phase: a release, so the driver finds both. */
static bool admin_answer(struct ferry_engine *e, const struct ferry_admin_cqe *answer)
{
	struct admin *a = &e->admin;
	uint64_t at = (uint64_t)(a->ci & ((1u << a->shift) - 1)) * sizeof(*answer), last;
	const size_t body = offsetof(struct ferry_admin_cqe, id);

	memcpy(&last, (const uint8_t *)answer + body, sizeof(last));
	return region_write(e, &a->cq, at, answer, body) &&
	       region_store64(e, &a->cq, at + body, le64(last));
}

/* Fetches the next command and checks it. */
static bool admin_fetch(struct ferry_engine *e, enum ferry_admin_status *status)
{
	struct admin *a = &e->admin;
	uint64_t at = (uint64_t)(a->ci & ((1u << a->shift) - 1)) * sizeof(a->cmd);

	if (!region_read(e, &a->sq, at, &a->cmd, sizeof(a->cmd)))
		return false;
	memset(&a->answer, 0, sizeof(a->answer));
	*status = admin_check(e, &a->cmd, &a->answer);
	return true;
}

/* Works on the next command, or goes on with it. False: the queue cannot be reached. */
static bool admin_one(struct ferry_engine *e)
{
	struct admin *a = &e->admin;
	enum ferry_admin_status status = FERRY_ADMIN_OK;

	if (!a->under_way && !admin_fetch(e, &status))
		return false;
	if (!status)
		status = admin_commands[le16(a->cmd.head.opcode)].run(e, &a->cmd, &a->answer);
	a->under_way = status == PAGES_MORE;
	if (a->under_way || engine_dead(e))
		return true;
	a->answer.status = (uint8_t)status;
	a->answer.id = a->cmd.head.id;
	a->answer.phase = !(a->ci >> a->shift & 1);
	if (!admin_answer(e, &a->answer))
		return false;
	a->ci++;
	return true;
}

bool admin_run(struct ferry_engine *e)
{
	struct admin *a = &e->admin;
	uint32_t first = a->ci;
	unsigned int done = 0;

	if (likely(a->ci == a->pi))
		return false;
	e->worked = true;
	while (a->ci != a->pi && done++ < ADMIN_BUDGET) {
		if (!admin_one(e)) {
			engine_fatal(e, FERRY_FATAL_ADMIN_DMA);
			return false;
		}
		if (engine_dead(e))
			return false;
		/* A long command: QPs have their turn first. */
		if (a->under_way)
			break;
	}
	if (a->ci != first)
		engine_interrupt(e, 0);
	return a->ci != a->pi;
}
