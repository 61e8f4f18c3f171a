// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_model.h"
#include "tap.h"

#define PSN_MASK	0xffffffu
#define CELLS		8	/* of a side, 8 bytes each; cell 0 of the area is for all */

static const struct {
	const char *name;
	uint8_t wr, wc;
	uint8_t weight;
	bool sends;		/* carries data of ours */
	bool consumes;		/* a receive of the peer */
} kinds[SIM_KINDS] = {
	[SIM_SEND] = { "SEND", FERRY_WR_SEND, FERRY_WC_SEND, 24, true, true },
	[SIM_SEND_IMM] = { "SEND_IMM", FERRY_WR_SEND_IMM, FERRY_WC_SEND, 10, true, true },
	[SIM_SEND_INV] = { "SEND_INV", FERRY_WR_SEND_INV, FERRY_WC_SEND, 0, true, true },
	[SIM_WRITE] = { "WRITE", FERRY_WR_WRITE, FERRY_WC_WRITE, 22, true, false },
	[SIM_WRITE_IMM] = { "WRITE_IMM", FERRY_WR_WRITE_IMM, FERRY_WC_WRITE, 10, true, true },
	[SIM_READ] = { "READ", FERRY_WR_READ, FERRY_WC_READ, 18, false, false },
	[SIM_ATOMIC_CS] = { "ATOMIC_CS", FERRY_WR_ATOMIC_CS, FERRY_WC_ATOMIC_CS, 8, false, false },
	[SIM_ATOMIC_FA] = { "ATOMIC_FA", FERRY_WR_ATOMIC_FA, FERRY_WC_ATOMIC_FA, 8, false, false },
};

static const char *const columns[SIM_COLUMNS] = {
	"none", "loss", "duplicate", "reorder", "corrupt", "busy", "rnr", "local", "message", "ipv6",
};

static const char *const endings[SIM_ENDINGS] = {
	"lkey", "rkey", "range", "too-long", "invalidate", "cut",
};

/* ---- the table */

void sim_table_add(struct sim_table *to, const struct sim_table *from)
{
	uint64_t *sum = (uint64_t *)to;
	const uint64_t *add = (const uint64_t *)from;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		sum[i] += add[i];
}

void sim_table_print(const struct sim_table *table)
{
	unsigned int k, c, e;

	printf("# %-10s", "");
	for (c = 0; c < SIM_COLUMNS; c++)
		printf(" %9s", columns[c]);
	putchar('\n');
	for (k = 0; k < SIM_KINDS; k++) {
		printf("# %-10s", kinds[k].name);
		for (c = 0; c < SIM_COLUMNS; c++)
			printf(" %9llu", (unsigned long long)table->cell[k][c]);
		putchar('\n');
	}
	printf("# broken by:");
	for (e = 0; e < SIM_ENDINGS; e++)
		printf(" %s %llu", endings[e], (unsigned long long)table->ending[e]);
	printf("\n# %llu operations, %llu frames, %llu bytes\n",
	       (unsigned long long)table->operations, (unsigned long long)table->frames,
	       (unsigned long long)table->bytes);
}

bool sim_table_complete(const struct sim_table *table)
{
	unsigned int k, c, e;

	for (k = 0; k < SIM_KINDS; k++) {
		for (c = 0; c < SIM_COLUMNS; c++) {
			if (!table->cell[k][c])
				return false;
		}
	}
	for (e = 0; e < SIM_ENDINGS; e++) {
		if (!table->ending[e])
			return false;
	}
	return true;
}

/* ---- choices */

static uint32_t mtu_bytes(const struct sim_side *side)
{
	return 128u << side->path->mtu;
}

/* Sizes around what matters: nothing, a word, the MTU and its multiples. */
static uint32_t pick_length(struct sim_side *side, uint32_t max)
{
	struct rng *rng = &side->sim->rng;
	uint32_t mtu = mtu_bytes(side), len = 0;

	switch (rng_below(rng, 6)) {
	case 0:
		len = (uint32_t)rng_below(rng, 3) * (uint32_t)rng_below(rng, 9);
		break;
	case 1:
		len = (uint32_t)rng_below(rng, 200);
		break;
	case 2:
		len = (uint32_t)rng_below(rng, mtu + 1);
		break;
	case 3:
		len = mtu * (uint32_t)rng_range(rng, 1, 3) + (uint32_t)rng_below(rng, 3) - 1;
		break;
	case 4:
		len = (uint32_t)rng_below(rng, 4 * mtu);
		break;
	default:
		len = (uint32_t)rng_below(rng, max + 1);
	}
	return len < max ? len : max;
}

/* How much receive number @i takes: both sides know. */
static uint32_t recv_capacity(const struct sim_side *side, uint32_t i)
{
	struct rng rng;
	uint64_t r;

	rng_init(&rng, side->recv_seed + i);
	r = rng_next(&rng);
	return r % 4 ? side->max_message : (uint32_t)((r >> 8) % (side->max_message + 1));
}

static enum sim_kind pick_kind(struct rng *rng)
{
	unsigned int roll = (unsigned int)rng_below(rng, 100), k;

	for (k = 0; roll >= kinds[k].weight; k++)
		roll -= kinds[k].weight;
	return (enum sim_kind)k;
}

static bool pick_signaled(struct sim_side *side)
{
	bool signaled = side->closing || side->unsignaled + 2 >= side->sq_depth / 2 ||
			rng_chance(&side->sim->rng, 60);

	side->unsignaled = signaled ? 0 : side->unsignaled + 1;
	return signaled;
}

/* ---- operations. Each takes what it needs, or returns false and has taken nothing. */

static uint32_t packets(const struct sim_side *side, uint32_t len)
{
	uint32_t mtu = mtu_bytes(side);

	return len ? (len + mtu - 1) / mtu : 1;
}

static struct sim_op *last_op(struct sim_side *side)
{
	uint32_t n = sim_queue_count(&side->ops);

	return n ? sim_queue_at(&side->ops, n - 1) : NULL;
}

static uint8_t *random_bytes(struct sim *sim, uint32_t len)
{
	uint8_t *data = malloc(len ? len : 1);

	need(data);
	rng_fill(&sim->rng, data, len);
	return data;
}

static void wr_sges(struct host_wr *wr, const struct sim_sges *sges)
{
	wr->num_sge = sges->count;
	memcpy(wr->sge, sges->sge, sizeof(wr->sge));
}

static void put_pieces(struct sim_area *area, const struct sim_sges *sges, const uint8_t *data)
{
	unsigned int i;

	for (i = 0; i < sges->count; i++) {
		sim_put(area, sges->pos[i], data, sges->sge[i].length);
		data += sges->sge[i].length;
	}
}

/* Foresees @len bytes of @data in the pieces, and holds the memory against that. */
static bool pieces_hold(struct sim_area *area, const struct sim_sges *sges, const uint8_t *data,
			uint32_t len)
{
	unsigned int i;

	for (i = 0; i < sges->count; i++) {
		uint32_t n = sges->sge[i].length < len ? sges->sge[i].length : len;

		sim_foresee(area, sges->pos[i], data, n);
		if (!sim_holds(area, sges->pos[i], n))
			return false;
		data += n;
		len -= n;
	}
	return true;
}

static bool pick_inline(struct sim_side *side, const struct host_wr *wr, uint32_t len)
{
	uint32_t room = (1u << side->qp->sq.stride_shift) - sizeof(struct ferry_wqe_rdma);

	(void)wr;
	return len <= room && len <= 128 && rng_chance(&side->sim->rng, 40);
}

/* Data of a SEND or WRITE: inline, or from a piece of the source area. */
static bool take_source(struct sim_side *side, struct sim_op *op, struct host_wr *wr,
			uint8_t *data, uint32_t len)
{
	if (pick_inline(side, wr, len)) {
		wr->flags |= FERRY_WQE_INLINE;
		wr->inline_data = data;
		wr->inline_len = (uint16_t)len;
		return true;
	}
	if (!sim_take(side->sim, &side->area[SIM_SOURCE], len, side->max_sge_send, &op->sges,
		      &op->source_end))
		return false;
	put_pieces(&side->area[SIM_SOURCE], &op->sges, data);
	wr_sges(wr, &op->sges);
	return true;
}

/*
 * A fenced operation may send on what the READ before it brings. The READ's sink is then
 * free only when this one is done.
 */
static bool take_read_sink(struct sim_side *side, struct sim_op *op, struct host_wr *wr,
			   uint8_t **data, uint32_t *len, uint32_t max)
{
	struct sim_op *read = last_op(side);

	if (!read || read->kind != SIM_READ || !read->len || read->len > max || !read->sink_end ||
	    read->sges.count > side->max_sge_send || !rng_chance(&side->sim->rng, 50))
		return false;
	*len = read->len;
	*data = malloc(*len);
	need(*data);
	memcpy(*data, read->data, *len);
	op->sges = read->sges;
	op->sink_end = read->sink_end;
	read->sink_end = 0;
	wr_sges(wr, &op->sges);
	wr->flags |= FERRY_WQE_FENCE;
	return true;
}

/* What failed may have been carried out in part: its pieces hold what they hold. */
static void pieces_accept(struct sim_area *area, const struct sim_sges *sges)
{
	uint8_t byte;
	unsigned int i;
	uint32_t k;

	for (i = 0; i < sges->count; i++) {
		for (k = 0; k < sges->sge[i].length; k++) {
			host_mr_read(area->mr->mr, area->base + sges->pos[i] + k, &byte, 1);
			sim_foresee(area, sges->pos[i] + k, &byte, 1);
		}
	}
}

static void expect_recv(struct sim_side *side, const struct sim_op *op, const struct host_wr *wr,
			uint8_t *data)
{
	struct sim_expect *expect = sim_queue_add(&side->peer->expects);

	expect->kind = op->kind;
	expect->len = op->len;
	expect->solicited = wr->flags & FERRY_WQE_SOLICITED;
	memcpy(expect->imm, wr->imm, sizeof(expect->imm));
	expect->data = data;
}

static bool prepare_send(struct sim_side *side, struct sim_op *op, struct host_wr *wr)
{
	uint32_t max = recv_capacity(side->peer, side->sends_posted);
	uint8_t *data = NULL;

	if (sim_queue_count(&side->peer->expects) == side->peer->expects.capacity)
		return false;
	if (!take_read_sink(side, op, wr, &data, &op->len, max)) {
		op->len = pick_length(side, max);
		data = random_bytes(side->sim, op->len);
		if (!take_source(side, op, wr, data, op->len)) {
			free(data);
			return false;
		}
	}
	rng_fill(&side->sim->rng, wr->imm, sizeof(wr->imm));
	op->recv = side->sends_posted++;
	expect_recv(side, op, wr, data);
	return true;
}

/* A WRITE behind a READ of the same bytes must wait for it. */
static bool overlaps_read(struct sim_side *side, uint64_t pos, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < sim_queue_count(&side->ops); i++) {
		const struct sim_op *op = sim_queue_at(&side->ops, i);

		if (op->kind == SIM_READ && op->from_target && op->remote_pos < pos + len &&
		    pos < op->remote_pos + op->len)
			return true;
	}
	return false;
}

static bool prepare_write(struct sim_side *side, struct sim_op *op, struct host_wr *wr)
{
	struct sim_area *target = &side->peer->area[SIM_TARGET];
	bool imm = op->kind == SIM_WRITE_IMM;
	uint8_t *data = NULL;

	if (imm && sim_queue_count(&side->peer->expects) == side->peer->expects.capacity)
		return false;
	if (!take_read_sink(side, op, wr, &data, &op->len, side->sim->big_message)) {
		op->len = pick_length(side, side->sim->big_message);
		data = random_bytes(side->sim, op->len);
		if (!take_source(side, op, wr, data, op->len)) {
			free(data);
			return false;
		}
	}
	op->remote_pos = rng_below(&side->sim->rng, target->len - op->len + 1);
	if (overlaps_read(side, op->remote_pos, op->len))
		wr->flags |= FERRY_WQE_FENCE;
	wr->raddr = sim_addr(target, op->remote_pos);
	wr->rkey = target->mr->mr->key;
	sim_foresee(target, op->remote_pos, data, op->len);
	if (imm) {
		rng_fill(&side->sim->rng, wr->imm, sizeof(wr->imm));
		op->recv = side->sends_posted++;
		expect_recv(side, op, wr, NULL);
	}
	if (!(wr->flags & FERRY_WQE_INLINE)) {
		free(data);
		data = NULL;
	}
	op->data = data;	/* inline data lives until it is posted */
	return true;
}

static bool prepare_read(struct sim_side *side, struct sim_op *op, struct host_wr *wr)
{
	bool from_target = rng_chance(&side->sim->rng, 40);
	struct sim_area *source = &side->peer->area[from_target ? SIM_TARGET : SIM_LIBRARY];

	op->len = pick_length(side, side->sim->big_message);
	if (!sim_take(side->sim, &side->area[SIM_SINK], op->len, side->max_sge_send, &op->sges,
		      &op->sink_end))
		return false;
	op->from_target = from_target;
	op->remote_pos = rng_below(&side->sim->rng, source->len - op->len + 1);
	op->data = malloc(op->len ? op->len : 1);
	need(op->data);
	sim_recall(source, op->remote_pos, op->data, op->len);
	wr_sges(wr, &op->sges);
	wr->raddr = sim_addr(source, op->remote_pos);
	wr->rkey = source->mr->mr->key;
	return true;
}

/* Cell 0 of the first area of an MR is for everybody: its sum alone is known. */
static bool prepare_atomic(struct sim_side *side, struct sim_op *op, struct host_wr *wr)
{
	struct sim_area *cells = &side->peer->area[SIM_CELLS];
	struct sim_area shared = { .mr = cells->mr, .len = 8 };
	struct rng *rng = &side->sim->rng;
	uint64_t old, value;

	op->len = 8;
	if (!sim_take(side->sim, &side->area[SIM_SINK], 8, 1, &op->sges, &op->sink_end))
		return false;
	op->unknown = op->kind == SIM_ATOMIC_FA && rng_chance(rng, 30);
	if (op->unknown)
		cells = &shared;
	op->remote_pos = op->unknown ? 0 : 8 * rng_below(rng, CELLS);
	sim_recall(cells, op->remote_pos, &old, 8);
	op->data = malloc(8);
	need(op->data);
	memcpy(op->data, &old, 8);
	wr->swap_or_add = rng_next(rng);
	wr->compare = rng_chance(rng, 60) ? old : rng_next(rng);
	if (op->kind == SIM_ATOMIC_FA)
		value = old + wr->swap_or_add;
	else
		value = wr->compare == old ? wr->swap_or_add : old;
	sim_foresee(cells, op->remote_pos, &value, 8);
	wr_sges(wr, &op->sges);
	wr->raddr = sim_addr(cells, op->remote_pos);
	wr->rkey = cells->mr->mr->key;
	return true;
}

static void start(struct sim_side *side, struct sim_op *op, struct host_wr *wr)
{
	struct rng *rng = &side->sim->rng;

	op->signaled = pick_signaled(side);
	if (op->signaled)
		wr->flags |= FERRY_WQE_SIGNALED;
	if (rng_chance(rng, 8))
		wr->flags |= FERRY_WQE_FENCE;
	op->index = host_post_send(side->qp, wr);
	op->num_psns = packets(side, op->len);
	op->psn = side->next_psn;
	side->next_psn = (side->next_psn + op->num_psns) & PSN_MASK;
	side->unrung = true;
	*(struct sim_op *)sim_queue_add(&side->ops) = *op;
	if (side->sim->verbose)
		printf("# %llu: host %u qp %#x posts %u: %s %u bytes in %u, psn %#x, flags %#x\n",
		       (unsigned long long)side->sim->wire.now, side->host->host->index,
		       side->qp->number, op->index, kinds[op->kind].name, op->len, wr->num_sge,
		       op->psn, wr->flags);
}

bool sim_post(struct sim_side *side)
{
	struct sim_op op = { .kind = pick_kind(&side->sim->rng) };
	struct host_wr wr = { .opcode = kinds[op.kind].wr };
	bool ready;

	if (sim_queue_count(&side->ops) == side->sq_depth)
		return false;
	if (kinds[op.kind].consumes && rng_chance(&side->sim->rng, 50))
		wr.flags |= FERRY_WQE_SOLICITED;
	switch (op.kind) {
	case SIM_WRITE:
	case SIM_WRITE_IMM:
		ready = prepare_write(side, &op, &wr);
		break;
	case SIM_READ:
		ready = prepare_read(side, &op, &wr);
		break;
	case SIM_ATOMIC_CS:
	case SIM_ATOMIC_FA:
		ready = prepare_atomic(side, &op, &wr);
		break;
	default:
		ready = prepare_send(side, &op, &wr);
	}
	if (!ready)
		return false;
	start(side, &op, &wr);
	if (kinds[op.kind].sends && op.data) {
		struct sim_op *posted = last_op(side);

		free(posted->data);
		posted->data = NULL;
	}
	return true;
}

bool sim_post_receive(struct sim_side *side)
{
	uint32_t len = recv_capacity(side, side->recvs_posted);
	struct sim_recv recv = { .id = (uint16_t)(side->recvs_posted * 7 + 3) };

	if (sim_queue_count(&side->recvs) == side->rq_depth)
		return false;
	if (!sim_take(side->sim, &side->area[SIM_RECV], len, side->max_sge_recv, &recv.sges,
		      &recv.end))
		return false;
	host_post_recv(side->qp, recv.sges.sge, recv.sges.count, recv.id);
	*(struct sim_recv *)sim_queue_add(&side->recvs) = recv;
	side->recvs_posted++;
	return true;
}

void sim_ring(struct sim_side *side)
{
	if (side->unrung)
		host_ring_send(side->qp);
	side->unrung = false;
}

/* ---- completions */

struct sim_op *sim_op_by_psn(struct sim_side *side, uint32_t psn)
{
	uint32_t i;

	for (i = 0; i < sim_queue_count(&side->ops); i++) {
		struct sim_op *op = sim_queue_at(&side->ops, i);

		if (((psn - op->psn) & PSN_MASK) < op->num_psns)
			return op;
	}
	return NULL;
}

static void count(struct sim_side *side, const struct sim_op *op)
{
	const struct sim_conn *conn = &side->sim->conns[0];
	struct sim_table *table = side->sim->table;
	unsigned int faults = op->faults, c;

	while (side != &conn->side[0] && side != &conn->side[1])
		conn++;
	if (conn->local)
		faults |= 1u << SIM_LOCAL;
	else if (!faults)
		faults |= 1u << SIM_NONE;
	if (conn->path.ipv6)
		faults |= 1u << SIM_IPV6;
	if (side->host->host->mem.message || side->peer->host->host->mem.message)
		faults |= 1u << SIM_MESSAGE;
	for (c = 0; c < SIM_COLUMNS; c++)
		table->cell[op->kind][c] += faults >> c & 1;
	table->operations++;
	table->bytes += op->len;
}

/* How many receives of @side are complete, taken or not. */
static uint32_t recvs_visible(const struct sim_side *side)
{
	uint32_t done = side->recvs_done, ahead;
	struct host_wc wc;

	for (ahead = 0; host_peek(side->recv_cq->cq, ahead, &wc); ahead++)
		done += wc.qpn == side->qp->number && wc.op >= FERRY_WC_RECV;
	return done;
}

static void check_done(struct sim_side *side, struct sim_op *op)
{
	struct sim_area *sink = &side->area[SIM_SINK];

	if (op->unknown) {
		uint64_t value;

		host_mr_read(sink->mr->mr, sink->base + op->sges.pos[0], &value, 8);
		sim_foresee(sink, op->sges.pos[0], &value, 8);
	} else if (op->data) {
		need_that(pieces_hold(sink, &op->sges, op->data, op->len),
			  "%s %u of qp %#x has brought wrong data", kinds[op->kind].name, op->index,
			  side->qp->number);
	}
	if (kinds[op->kind].consumes)
		need_that((int32_t)(recvs_visible(side->peer) - op->recv) > 0,
			  "%s %u of qp %#x is complete, its receive is not", kinds[op->kind].name,
			  op->index, side->qp->number);
	count(side, op);
}

/* The oldest operation is over. */
static void retire(struct sim_side *side)
{
	struct sim_op *op = sim_queue_at(&side->ops, 0);

	if (op->source_end)
		sim_release(&side->area[SIM_SOURCE], op->source_end);
	if (op->sink_end)
		sim_release(&side->area[SIM_SINK], op->sink_end);
	free(op->data);
	sim_queue_drop(&side->ops);
}

/*
 * If the NAK of an operation that fails is lost, the peer is silent from then on, and the
 * retries run out.
 */
static bool status_fits(const struct sim_op *op, uint8_t status)
{
	if (op->expect && status == FERRY_WC_RETRY_EXC_ERR &&
	    op->faults & (1u << SIM_LOSS | 1u << SIM_CORRUPT))
		return true;
	return status == op->expect;
}

/*
 * The next completion must be that of the oldest operation that has one: signalled, or
 * not successful. It completes what stands before it.
 */
static void send_completed(struct sim_side *side, const struct host_wc *wc)
{
	struct sim_op *op;

	do {
		need_that(sim_queue_count(&side->ops), "qp %#x completes %u, which was not posted",
			  side->qp->number, wc->wqe_index);
		op = sim_queue_at(&side->ops, 0);
		if (!op->signaled && !op->expect) {
			check_done(side, op);
			retire(side);
		}
	} while (!op->signaled && !op->expect);
	need_that((uint16_t)op->index == wc->wqe_index && status_fits(op, wc->status),
		  "qp %#x completes %u with status %u, not %s %u with status %u",
		  side->qp->number, wc->wqe_index, wc->status, kinds[op->kind].name, op->index,
		  op->expect);
	if (!op->expect) {
		need_eq(wc->op, kinds[op->kind].wc);
		if (op->data)
			need_eq(wc->byte_len, op->len);
		check_done(side, op);
	} else if (op->kind == SIM_READ) {
		pieces_accept(&side->area[SIM_SINK], &op->sges);
	} else if (op->kind == SIM_SEND_INV) {
		count(side, op);
	}
	retire(side);
}

static void recv_check(struct sim_side *side, const struct sim_recv *recv,
		       struct sim_expect *expect, const struct host_wc *wc)
{
	bool imm = expect->kind == SIM_SEND_IMM || expect->kind == SIM_WRITE_IMM;
	bool write = expect->kind == SIM_WRITE_IMM;

	need_eq(wc->op, write ? FERRY_WC_RECV_WRITE_IMM : FERRY_WC_RECV);
	need_eq(wc->byte_len, expect->len);
	need_eq(!!(wc->flags & FERRY_CQE_IMM), imm);
	need(!(wc->flags & FERRY_CQE_INV));
	need_eq(!!(wc->flags & FERRY_CQE_SOLICITED), expect->solicited);
	if (imm)
		need(!memcmp(wc->imm, expect->imm, sizeof(wc->imm)));
	if (!write)
		need_that(pieces_hold(&side->area[SIM_RECV], &recv->sges, expect->data,
				      expect->len),
			  "receive %u of qp %#x has wrong data", side->recvs_done,
			  side->qp->number);
}

static void recv_completed(struct sim_side *side, const struct host_wc *wc)
{
	struct sim_expect *expect;
	struct sim_recv *recv;

	need_that(sim_queue_count(&side->recvs), "qp %#x completes a receive that was not posted",
		  side->qp->number);
	recv = sim_queue_at(&side->recvs, 0);
	need_eq(wc->wqe_index, recv->id);
	if (side->broken && !sim_queue_count(&side->expects)) {
		need_eq(wc->status, FERRY_WC_WR_FLUSH_ERR);
	} else {
		need_that(sim_queue_count(&side->expects),
			  "qp %#x has received what nobody has sent (status %u)",
			  side->qp->number, wc->status);
		expect = sim_queue_at(&side->expects, 0);
		need_eq(wc->status, expect->status);
		if (!wc->status)
			recv_check(side, recv, expect, wc);
		free(expect->data);
		sim_queue_drop(&side->expects);
	}
	if (wc->status)
		pieces_accept(&side->area[SIM_RECV], &recv->sges);
	sim_release(&side->area[SIM_RECV], recv->end);
	sim_queue_drop(&side->recvs);
	side->recvs_done++;
}

static struct sim_side *side_by_qpn(struct sim *sim, struct sim_host *host, uint32_t qpn)
{
	unsigned int i;

	for (i = 0; i < 2 * sim->num_conns; i++) {
		struct sim_side *side = &sim->conns[i / 2].side[i & 1];

		if (side->host == host && side->qp->number == qpn)
			return side;
	}
	need_that(false, "a completion of qp %#x, which does not exist", qpn);
}

bool sim_poll(struct sim *sim, struct sim_host *host, struct sim_cq *cq, unsigned int most)
{
	bool found = false;
	struct host_wc wc;

	while (most-- && host_poll(cq->cq, &wc)) {
		struct sim_side *side = side_by_qpn(sim, host, wc.qpn);

		if (sim->verbose)
			printf("# %llu: host %u qp %#x completes %u: op %u status %u\n",
			       (unsigned long long)sim->wire.now, host->host->index, wc.qpn,
			       wc.wqe_index, wc.op, wc.status);
		if (wc.op >= FERRY_WC_RECV) {
			need(side->recv_cq == cq);
			recv_completed(side, &wc);
		} else {
			need(side->send_cq == cq);
			send_completed(side, &wc);
		}
		found = true;
	}
	return found;
}

/* ---- the end of a connection */

static void start_doomed(struct sim_side *side, struct sim_op *op, struct host_wr *wr,
			 uint8_t expect)
{
	op->expect = expect;
	op->index = host_post_send(side->qp, wr);
	op->num_psns = packets(side, op->len);
	op->psn = side->next_psn;
	side->unrung = true;
	*(struct sim_op *)sim_queue_add(&side->ops) = *op;
}

bool sim_post_doomed(struct sim_side *side, uint8_t expect)
{
	struct sim_op op = { .kind = SIM_SEND, .len = 8 };
	struct host_wr wr = {
		.opcode = FERRY_WR_SEND,
		.flags = rng_chance(&side->sim->rng, 50) ? FERRY_WQE_SIGNALED : 0,
	};

	if (sim_queue_count(&side->ops) == side->sq_depth ||
	    !sim_take(side->sim, &side->area[SIM_SOURCE], op.len, 1, &op.sges, &op.source_end))
		return false;
	wr_sges(&wr, &op.sges);
	start_doomed(side, &op, &wr, expect);
	return true;
}

/* A SEND that is longer than the receive that it finds. */
static uint32_t too_long(struct sim_side *side, struct sim_op *op)
{
	struct sim_expect *expect = sim_queue_add(&side->peer->expects);

	op->kind = SIM_SEND;
	op->recv = side->sends_posted++;
	expect->kind = SIM_SEND;
	expect->status = FERRY_WC_LOC_LEN_ERR;
	return recv_capacity(side->peer, op->recv) + 1;
}

/* A key that its owner alone may take back. The receive that it finds is flushed. */
static uint32_t invalidate(struct sim_side *side, struct sim_op *op, struct host_wr *wr)
{
	op->kind = SIM_SEND_INV;
	op->recv = side->sends_posted;
	wr->inv_key = side->peer->area[SIM_LIBRARY].mr->mr->key;
	return pick_length(side, recv_capacity(side->peer, op->recv));
}

/*
 * A key that is none, or that of another PD, whose MR would even have the addresses if it
 * were the right one: those are alike in all sets.
 */
static uint32_t wrong_key(struct sim_side *side, enum sim_use use)
{
	const struct host_mr *other = side->host->mrs[!side->set][use].mr;

	if (other && rng_chance(&side->sim->rng, 50))
		return other->key;
	return side->area[use].mr->mr->key ^ 1u << rng_below(&side->sim->rng, 8);
}

bool sim_post_ending(struct sim_side *side, enum sim_ending ending)
{
	static const uint8_t status[SIM_ENDINGS] = {
		[SIM_END_LKEY] = FERRY_WC_LOC_PROT_ERR,
		[SIM_END_RKEY] = FERRY_WC_REM_ACCESS_ERR,
		[SIM_END_RANGE] = FERRY_WC_REM_ACCESS_ERR,
		[SIM_END_TOO_LONG] = FERRY_WC_REM_INV_REQ_ERR,
		[SIM_END_INVALIDATE] = FERRY_WC_REM_ACCESS_ERR,
		[SIM_END_CUT] = FERRY_WC_RETRY_EXC_ERR,
	};
	struct sim_area *target = &side->peer->area[SIM_TARGET];
	bool read = rng_chance(&side->sim->rng, 50);
	struct sim_op op = { .kind = read ? SIM_READ : SIM_WRITE };
	struct host_wr wr = { .rkey = target->mr->mr->key };

	if (sim_queue_count(&side->ops) == side->sq_depth)
		return false;
	if (ending == SIM_END_TOO_LONG)
		op.len = too_long(side, &op);
	else if (ending == SIM_END_INVALIDATE)
		op.len = invalidate(side, &op, &wr);
	else
		op.len = (uint32_t)rng_range(&side->sim->rng, 1, side->sim->big_message);
	need(sim_take(side->sim, &side->area[op.kind == SIM_READ ? SIM_SINK : SIM_SOURCE], op.len,
		      1, &op.sges, op.kind == SIM_READ ? &op.sink_end : &op.source_end));
	wr_sges(&wr, &op.sges);
	wr.opcode = kinds[op.kind].wr;
	wr.raddr = sim_addr(target, 0);
	if (ending == SIM_END_LKEY)
		wr.sge[0].key = wrong_key(side, op.kind == SIM_READ ? SIM_SINK : SIM_SOURCE);
	if (ending == SIM_END_RKEY)
		wr.rkey = wrong_key(side->peer, SIM_TARGET);
	if (ending == SIM_END_RANGE)
		wr.raddr = target->mr->mr->spec.iova + target->mr->mr->spec.length - op.len + 1;
	start_doomed(side, &op, &wr, status[ending]);
	return true;
}
