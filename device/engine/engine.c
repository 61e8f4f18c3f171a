// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine as a whole: life and death, registers, the run.
 */
#include "admin.h"
#include "state.h"

#define EVENT_RETRY	100000ull	/* ns until events that wait for room are tried again */

#define QP_INDEX_BITS	15
#define TABLE_24(limit_) { \
	.index_shift = 0, .index_bits = QP_INDEX_BITS, \
	.gen_shift = QP_INDEX_BITS, .gen_bits = 24 - QP_INDEX_BITS, \
	.first = 2, .limit = (limit_) \
}

/* Doorbells and the wire have 24 bits for a number. 0 and 1 are reserved as QPNs. */
static const struct table_layout layout_qp = TABLE_24(MAX_QPS);
static const struct table_layout layout_cq = TABLE_24(MAX_CQS);
static const struct table_layout layout_srq = TABLE_24(MAX_SRQS);
static const struct table_layout layout_pd = TABLE_24(MAX_PDS);
static const struct table_layout layout_mr = {
	.index_shift = 8, .index_bits = 24, .gen_shift = 0, .gen_bits = 8,
	.first = 1, .limit = MAX_MRS,
};

/* --------------------------------------------------------------------- life and death */

static void engine_init(struct ferry_engine *e)
{
	uint32_t salt = e->config.seed;

	list_init(&e->active);
	list_init(&e->record_pages);
	list_init(&e->staged);
	list_init(&e->regions);
	list_init(&e->eqs);
	wheel_init(&e->wheel);
	region_init(&e->admin.sq);
	region_init(&e->admin.cq);
	region_init(&e->status_page);
	assist_init(&e->assist);
	table_init(&e->pds, &layout_pd, salt);
	table_init(&e->cqs, &layout_cq, salt * 3);
	table_init(&e->qps, &layout_qp, salt * 5);
	table_init(&e->srqs, &layout_srq, salt * 7);
	table_init(&e->mrs, &layout_mr, salt * 11);
	context_init(&e->kernel, 0);
	e->contexts[0] = &e->kernel;
	e->admin.pi = 0;
	e->admin.ci = 0;
	e->admin.under_way = false;
	memset(e->admin.asq, 0, sizeof(e->admin.asq));
	memset(e->admin.acq, 0, sizeof(e->admin.acq));
	e->admin.shift = 0;
	if (e->admin.refuse_each)
		e->admin.refuse = e->admin.refuse_each;
	memset(e->counters, 0, sizeof(e->counters));
	port_reset(e);
}

struct ferry_engine *ferry_engine_create(const struct ferry_engine_config *config,
					 const struct ferry_port *port)
{
	struct ferry_engine *e = port->alloc(port->ctx, sizeof(*e));

	if (!e)
		return NULL;
	e->port = *port;
	e->config = *config;
	e->link = config->link_up;
	e->status = e->link ? FERRY_STATUS_LINK : 0;
	icrc_init(e);
	engine_init(e);
	return e;
}

/* Children before parents. */
static void engine_forget(struct ferry_engine *e)
{
	void *object;
	uint32_t i;

	for (i = 0; (object = table_next(&e->qps, &i));)
		qp_release(e, object);
	if (e->gsi)
		qp_release(e, e->gsi);
	for (i = 0; (object = table_next(&e->srqs, &i));)
		srq_release(e, object);
	for (i = 0; (object = table_next(&e->cqs, &i));)
		cq_release(e, object);
	mr_abandon(e);
	for (i = 0; (object = table_next(&e->mrs, &i));)
		mr_release(e, object);
	for (i = 0; (object = table_next(&e->pds, &i));)
		pd_release(e, object);
	for (i = 0; i < MAX_CONTEXTS; i++) {
		if (e->contexts[i])
			context_release(e, e->contexts[i]);
	}
	assist_release(e);
	while (!list_empty(&e->eqs))
		eq_release(e, container_of(e->eqs.next, struct eq, link));
	region_release(e, &e->admin.sq);
	region_release(e, &e->admin.cq);
	region_release(e, &e->status_page);
	table_release(e, &e->qps);
	table_release(e, &e->srqs);
	table_release(e, &e->cqs);
	table_release(e, &e->mrs);
	table_release(e, &e->pds);
}

void ferry_engine_reset(struct ferry_engine *e)
{
	engine_forget(e);
	engine_init(e);
	__atomic_store_n(&e->status, e->link ? FERRY_STATUS_LINK : 0, __ATOMIC_RELEASE);
	__atomic_store_n(&e->ctrl, 0, __ATOMIC_RELEASE);
}

void ferry_engine_destroy(struct ferry_engine *e)
{
	if (!e)
		return;
	engine_forget(e);
	e->port.free(e->port.ctx, e);
}

bool engine_dead(const struct ferry_engine *e)
{
	return __atomic_load_n(&e->status, __ATOMIC_RELAXED) & FERRY_STATUS_FATAL;
}

void engine_fatal(struct ferry_engine *e, enum ferry_fatal cause)
{
	uint32_t status = __atomic_load_n(&e->status, __ATOMIC_RELAXED);

	if (status & FERRY_STATUS_FATAL)
		return;
	engine_log(e, FERRY_LOG_ERROR, "device stopped, cause %u", (unsigned int)cause);
	status = (status & ~FERRY_STATUS_READY) | FERRY_STATUS_FATAL | (uint32_t)cause << 8;
	__atomic_store_n(&e->status, status, __ATOMIC_RELEASE);
}

static bool engine_ready(const struct ferry_engine *e)
{
	return __atomic_load_n(&e->status, __ATOMIC_RELAXED) & FERRY_STATUS_READY;
}

/* ------------------------------------------------------------------------- registers */

static uint32_t reg_caps(const struct ferry_engine *e)
{
	return FERRY_CAP_ETH | FERRY_CAP_UD | FERRY_CAP_SRQ | FERRY_CAP_ATOMIC |
	       FERRY_CAP_RESIZE_CQ | FERRY_CAP_ASSIST | (e->config.poll ? FERRY_CAP_POLL : 0);
}

static uint32_t *reg_writable(struct ferry_engine *e, uint32_t offset)
{
	switch (offset) {
	case FERRY_REG_ASQ_LO:
		return &e->admin.asq[0];
	case FERRY_REG_ASQ_HI:
		return &e->admin.asq[1];
	case FERRY_REG_ACQ_LO:
		return &e->admin.acq[0];
	case FERRY_REG_ACQ_HI:
		return &e->admin.acq[1];
	case FERRY_REG_ADMIN_SHIFT:
		return &e->admin.shift;
	default:
		return NULL;
	}
}

uint32_t ferry_engine_reg_read(const struct ferry_engine *e, uint32_t offset)
{
	const uint8_t *mac = e->config.mac;
	const uint32_t *reg;

	switch (offset) {
	case FERRY_REG_MAGIC:
		return FERRY_MAGIC;
	case FERRY_REG_VERSION:
		return FERRY_VERSION;
	case FERRY_REG_CAPS:
		return reg_caps(e);
	case FERRY_REG_STATUS:
		return __atomic_load_n(&e->status, __ATOMIC_ACQUIRE);
	case FERRY_REG_CTRL:
		return __atomic_load_n(&e->ctrl, __ATOMIC_ACQUIRE);
	case FERRY_REG_MAC_LO:
		return get_le32(mac);
	case FERRY_REG_MAC_HI:
		return (uint32_t)mac[5] << 8 | mac[4];
	case FERRY_REG_VECTORS:
		return e->config.vectors;
	default:
		reg = reg_writable((struct ferry_engine *)(uintptr_t)e, offset);
		return reg ? __atomic_load_n(reg, __ATOMIC_RELAXED) : 0;
	}
}

static void engine_enable(struct ferry_engine *e)
{
	struct admin *a = &e->admin;
	uint64_t sq = (uint64_t)a->asq[1] << 32 | a->asq[0];
	uint64_t cq = (uint64_t)a->acq[1] << 32 | a->acq[0];
	const uint64_t mask = FERRY_PAGE_SIZE - 1;

	__atomic_store_n(&e->ctrl, FERRY_CTRL_ENABLE, __ATOMIC_RELEASE);
	if (!sq || !cq || sq & mask || cq & mask || a->shift < 1 || a->shift > 8) {
		engine_fatal(e, FERRY_FATAL_ADMIN_DMA);
		return;
	}
	region_single(e, &a->sq, sq, (uint64_t)sizeof(union ferry_admin_sqe) << a->shift, false);
	region_single(e, &a->cq, cq, (uint64_t)sizeof(struct ferry_admin_cqe) << a->shift, true);
	__atomic_store_n(&e->status, __atomic_load_n(&e->status, __ATOMIC_RELAXED) |
			 FERRY_STATUS_READY, __ATOMIC_RELEASE);
}

static void reg_write_ctrl(struct ferry_engine *e, uint32_t value)
{
	if (value & FERRY_CTRL_RESET)
		ferry_engine_reset(e);
	else if (value & FERRY_CTRL_ENABLE && !(e->ctrl & FERRY_CTRL_ENABLE))
		engine_enable(e);
}

void ferry_engine_reg_write(struct ferry_engine *e, uint32_t offset, uint32_t value)
{
	uint32_t *reg;

	switch (offset) {
	case FERRY_REG_CTRL:
		reg_write_ctrl(e, value);
		return;
	case FERRY_REG_ADMIN_DB:
		/* More than a ring ahead is no index. */
		if (engine_ready(e) && value - e->admin.ci <= 1u << e->admin.shift)
			e->admin.pi = value;
		return;
	default:
		reg = reg_writable(e, offset);
		if (reg && !(e->ctrl & FERRY_CTRL_ENABLE))
			__atomic_store_n(reg, value, __ATOMIC_RELAXED);
	}
}

void ferry_engine_refuse(struct ferry_engine *e, uint32_t nth)
{
	const bool each = nth == FERRY_REFUSE_EACH;

	e->admin.refuse_each = each;
	e->admin.refuse = each ? 1 : nth;
}

bool ferry_engine_where_mr(struct ferry_engine *e, uint32_t key, uint64_t *addr)
{
	struct mr *mr = table_find(&e->mrs, key);

	if (mr)
		*addr = region_place(e, &mr->region, mr->offset, 1).addr;
	return mr;
}

bool ferry_engine_where_sq(struct ferry_engine *e, uint32_t number, uint64_t *addr)
{
	struct qp *qp = qp_find(e, number);

	if (qp)
		*addr = region_place(e, &qp->sq.ring, 0, 1).addr;
	return qp;
}

/* ---------------------------------------------------------------------- from outside */

void ferry_engine_doorbell(struct ferry_engine *e, uint32_t page, uint64_t value)
{
	struct context *context = context_find(e, page);

	stat_inc(e, doorbells);
	e->worked = true;
	if (context && engine_ready(e))
		doorbell_take(e, context, value);
}

void ferry_engine_frame(struct ferry_engine *e, const void *frame, size_t len)
{
	if (!engine_ready(e) || !port_is_up(e))
		return;
	e->worked = true;
	if (!wire_receive(e, frame, len))
		eth_receive(e, frame, len);
}

void ferry_engine_unmapped(struct ferry_engine *e, uint64_t addr, uint64_t len)
{
	struct list *pos;

	list_for_each(pos, &e->regions)
		region_forget(container_of(pos, struct region, link), addr, len);
}

/* ---------------------------------------------------------------------------- the run */

uint64_t ferry_engine_run(struct ferry_engine *e, uint64_t now, size_t budget)
{
	bool more, worked;

	if (now > e->now)
		e->now = now;
	if (!engine_ready(e))
		return UINT64_MAX;
	e->running = true;
	more = admin_run(e);
	if (e->awake && record_scan(e))
		e->worked = true;
	wheel_advance(e);
	sched_run(e, budget);
	if (!engine_dead(e)) {
		cq_flush_all(e);
		eq_retry(e);
	}
	e->running = false;
	worked = e->worked;
	e->worked = false;
	if (!engine_ready(e))
		return UINT64_MAX;
	if (more || worked || !list_empty(&e->active))
		return 0;
	return min_u64(wheel_next(&e->wheel), e->events_waiting ? e->now + EVENT_RETRY : UINT64_MAX);
}

static bool engine_idle(const struct ferry_engine *e)
{
	return list_empty(&e->active) && list_empty(&e->staged) && list_empty(&e->wheel.late) &&
	       e->admin.ci == e->admin.pi;
}

/* ----------------------------------------------------------------------- awake, asleep */

static void status_publish(struct ferry_engine *e)
{
	if (!list_empty(&e->status_page.link))
		region_store32(e, &e->status_page, offsetof(struct ferry_status_page, awake),
			       e->awake);
}

enum ferry_admin_status admin_set_status_page(struct ferry_engine *e,
					      const union ferry_admin_sqe *cmd,
					      struct ferry_admin_cqe *answer)
{
	uint64_t addr = le64(cmd->set_page.addr);

	if (addr & (FERRY_PAGE_SIZE - 1))
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_page, addr));
	region_release(e, &e->status_page);
	if (!addr)
		return FERRY_ADMIN_OK;
	region_single(e, &e->status_page, addr, FERRY_PAGE_SIZE, true);
	status_publish(e);
	return FERRY_ADMIN_OK;
}

void ferry_engine_wake(struct ferry_engine *e)
{
	if (!e->config.poll || e->awake)
		return;
	e->awake = true;
	if (engine_ready(e))
		status_publish(e);
}

bool ferry_engine_sleep(struct ferry_engine *e)
{
	e->awake = false;
	if (!engine_ready(e))
		return true;
	if (!e->config.poll)
		return engine_idle(e);
	status_publish(e);
	/*
	 * "Asleep", then a last look at the records themselves, not at the words: the host
	 * stores its record, fences once, and looks at word and status page. Sequentially
	 * consistent on both sides (litmus doorbell-sleep, grp3-recs; with the words alone
	 * it would fail: grp3-word-1fence).
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!record_scan_all(e) && engine_idle(e))
		return true;
	ferry_engine_wake(e);
	return false;
}
