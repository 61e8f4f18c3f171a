// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Data arrives, all of it, where it belongs, and nowhere else.
 *
 * Two sides have memory and QPs that are connected with each other: both sides in this
 * process, or one here and one with the peer. A batch of operations is laid out so that
 * no two touch the same bytes; then what both memories must be afterwards is known, and
 * every byte is compared, those between the operations too. Everything follows from the
 * seed, so two processes come to the same batches without telling each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "rig.h"

#define MAX_SGE		16
#define MAX_QPS		16
#define MAX_OPS		256		/* of a batch */
#define MAX_INLINE	128u
#define MAX_LAG_US	(30 * 1000 * 1000ull)
#define RECV		(1ull << 32)	/* in a wr_id: a receive; else a send */
#define PAGE		4096u

/* ------------------------------------------------------------------------------ model */

enum kind { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, SWAP, ADD, KINDS };

struct kind_info {
	const char *name;
	enum ibv_wr_opcode op;
	enum ibv_wc_opcode wc;
	bool receives;			/* takes a receive at the target */
	bool scatters;			/* into that receive's SGEs */
	bool imm;
	bool answers;			/* data flows to the initiator */
	bool atomic;
};

static const struct kind_info kinds[KINDS] = {
	[SEND] = { "send", IBV_WR_SEND, IBV_WC_SEND, .receives = true, .scatters = true },
	[SEND_IMM] = { "send with immediate", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND,
		       .receives = true, .scatters = true, .imm = true },
	[WRITE] = { "write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE },
	[WRITE_IMM] = { "write with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
			.receives = true, .imm = true },
	[READ] = { "read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, .answers = true },
	[SWAP] = { "compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP,
		   .answers = true, .atomic = true },
	[ADD] = { "fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD,
		  .answers = true, .atomic = true },
};

struct piece {
	uint32_t offset;
	uint32_t len;
};

struct op {
	enum kind kind;
	int from;			/* side */
	unsigned int qp;
	unsigned int flags;		/* IBV_SEND_* */
	uint32_t len;
	uint32_t imm;			/* network order */
	int locals;			/* pieces at the initiator */
	int remotes;			/* ... and at the target, of len bytes or more in all */
	struct piece local[MAX_SGE];
	struct piece remote[MAX_SGE];
	bool matches;			/* the swap finds what it compares with */
	uint64_t compare;		/* known once the model has run */
	uint64_t operand;
	bool list;			/* posted together with the next */
};

struct side {
	bool here;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[MAX_QPS];
	struct region mem;
	uint8_t *image;			/* what mem must be */
	uint64_t remote_addr;		/* of mem, for the other side */
	uint32_t rkey;
	size_t used;			/* bytes of mem that this batch lays claim to */
	unsigned int expected;		/* completions */
	int last_send[MAX_QPS];		/* op that was completed last */
	int last_recv[MAX_QPS];
};

/* One run: QPs of one make, and batches over them. */
struct run {
	struct rig_attr attr;
	unsigned int qps;
	bool atomics;
	bool late_receives;		/* posted behind the sends, which meet RNR */
	struct side side[2];
	struct op op[MAX_OPS];
	unsigned int ops;
	uint64_t batch;
	uint64_t rng;
};

static uint64_t next_random(struct run *run)
{
	run->rng += 0x9e3779b97f4a7c15ull;
	return mix64(run->rng);
}

static uint32_t below(struct run *run, uint32_t n)
{
	return n ? next_random(run) % n : 0;
}

static bool one_in(struct run *run, uint32_t n)
{
	return !below(run, n);
}

/* Whether a peer as plain as Soft-RoCE survives it without data. */
static bool may_be_empty(enum kind kind)
{
	return !options.plain || kinds[kind].scatters;
}

/* ------------------------------------------------------------------- setting up a run */

/* What each side must know of the other. Both have the same byte order. */
struct card {
	uint64_t addr;
	uint32_t rkey;
	uint32_t atomics;
	union ibv_gid gid;
	uint32_t mtu;
	struct {
		uint32_t qpn;
		uint32_t psn;
	} qp[MAX_QPS];
};

/* Half of the PSNs are such that they wrap within a run. */
static uint32_t start_psn(struct run *run)
{
	uint32_t psn = next_random(run) & 0xffffff;

	return psn & 1 ? psn : 0xfffff0 | (psn & 0xf);
}

static void side_create(struct run *run, struct side *side, struct card *card)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	unsigned int i;
	int access = ACCESS_ALL;

	side->ctx = open_device();
	need_ok(ibv_query_device(side->ctx, &device));
	need_ok(ibv_query_port(side->ctx, 1, &port));
	card->atomics = device.atomic_cap != IBV_ATOMIC_NONE;
	card->mtu = port.active_mtu;
	if (card->atomics) {
		access |= IBV_ACCESS_REMOTE_ATOMIC;
		run->attr.qp_access |= IBV_ACCESS_REMOTE_ATOMIC;
	}
	side->pd = need_ptr(ibv_alloc_pd(side->ctx));
	side->cq = need_ptr(ibv_create_cq(side->ctx, run->attr.cqe, NULL, NULL, 0));
	region_create(&side->mem, side->pd, options.memory, access);
	for (i = 0; i < run->qps; i++) {
		side->qp[i] = qp_create(side->pd, side->cq, &run->attr);
		card->qp[i].qpn = side->qp[i]->qp_num;
		card->qp[i].psn = start_psn(run);
	}
	find_gid(side->ctx, &card->gid);
	card->addr = (uintptr_t)side->mem.addr;
	card->rkey = side->mem.mr->rkey;
}

static void side_connect(struct run *run, struct side *side, const struct card *mine,
			 const struct card *theirs)
{
	struct remote_qp remote = { .gid = theirs->gid };
	unsigned int i;

	for (i = 0; i < run->qps; i++) {
		remote.qpn = theirs->qp[i].qpn;
		remote.psn = theirs->qp[i].psn;
		qp_to_init(side->qp[i], &run->attr);
		qp_to_rtr(side->qp[i], &run->attr, &remote);
		qp_to_rts(side->qp[i], &run->attr, mine->qp[i].psn);
	}
}

static void run_create(struct run *run)
{
	struct card card[2] = {};
	int i;

	for (i = 0; i < 2; i++) {
		run->side[i].here = !peer_present() || i == !!options.peer;
		run->side[i].image = need_ptr(malloc(options.memory));
		if (run->side[i].here)
			side_create(run, &run->side[i], &card[i]);
	}
	if (peer_present()) {
		i = !!options.peer;
		peer_exchange(&card[i], &card[!i], sizeof(card[i]));
	}
	if (run->attr.mtu > card[0].mtu)
		run->attr.mtu = card[0].mtu;
	if (run->attr.mtu > card[1].mtu)
		run->attr.mtu = card[1].mtu;
	run->atomics = card[0].atomics && card[1].atomics;
	for (i = 0; i < 2; i++) {
		run->side[i].remote_addr = card[i].addr;
		run->side[i].rkey = card[i].rkey;
		if (run->side[i].here)
			side_connect(run, &run->side[i], &card[i], &card[!i]);
	}
	peer_barrier(0xc0ffee);
}

static void run_destroy(struct run *run)
{
	struct side *side;
	unsigned int i;

	/* Not before the peer has its last acknowledgement. */
	peer_barrier(0xdead);
	for (side = run->side; side < run->side + 2; side++) {
		free(side->image);
		if (!side->here)
			continue;
		for (i = 0; i < run->qps; i++)
			qp_destroy(&side->qp[i]);
		need_ok(ibv_destroy_cq(side->cq));
		region_destroy(&side->mem);
		need_ok(ibv_dealloc_pd(side->pd));
		need_ok(ibv_close_device(side->ctx));
	}
}

/* ------------------------------------------------------------------- laying out a batch */

static struct side *initiator(struct run *run, const struct op *op)
{
	return &run->side[op->from];
}

static struct side *target(struct run *run, const struct op *op)
{
	return &run->side[!op->from];
}

/* Places @len bytes behind what is used, @gap bytes further, at a multiple of @align. */
static bool place(struct side *side, struct piece *piece, uint32_t len, uint32_t gap,
		  uint32_t align)
{
	size_t offset = (side->used + gap + align - 1) / align * align;

	if (offset + len > options.memory)
		return false;
	*piece = (struct piece) { .offset = offset, .len = len };
	side->used = offset + len;
	return true;
}

/* Cuts @len bytes into @count pieces of random length, some of them empty. */
static bool scatter(struct run *run, struct side *side, struct piece *pieces, int count,
		    uint32_t len)
{
	uint32_t part, max = 2 * (len / count) + 1;
	int i;

	for (i = 0; i < count; i++) {
		part = i == count - 1 ? len : below(run, max + 1);
		if (part > len)
			part = len;
		if (!place(side, &pieces[i], part, one_in(run, 4) ? 0 : below(run, 100), 1))
			return false;
		len -= part;
	}
	return true;
}

/* At a given offset within a page. */
static bool place_at(struct side *side, struct piece *piece, uint32_t len, uint32_t in_page)
{
	if (!place(side, piece, 0, 0, PAGE))
		return false;
	return place(side, piece, len, in_page, 1);
}

/* ----------------------------------------------------------------------------- the model */

static void gather_image(const struct side *side, const struct piece *pieces, int count,
			 uint8_t *to)
{
	int i;

	for (i = 0; i < count; to += pieces[i].len, i++)
		memcpy(to, side->image + pieces[i].offset, pieces[i].len);
}

static void scatter_image(struct side *side, const struct piece *pieces, int count,
			  const uint8_t *from, uint32_t len)
{
	uint32_t part;
	int i;

	for (i = 0; i < count && len; i++) {
		part = pieces[i].len < len ? pieces[i].len : len;
		memcpy(side->image + pieces[i].offset, from, part);
		from += part;
		len -= part;
	}
}

static void model_atomic(struct run *run, struct op *op)
{
	uint8_t *at = target(run, op)->image + op->remote[0].offset;
	uint64_t old, new;

	memcpy(&old, at, 8);
	op->compare = op->matches ? old : ~old;
	if (op->kind == ADD)
		new = old + op->operand;
	else
		new = op->matches ? op->operand : old;
	memcpy(at, &new, 8);
	scatter_image(initiator(run, op), op->local, op->locals, (const uint8_t *)&old, 8);
}

static void model_apply(struct run *run, struct op *op, uint8_t *buffer)
{
	if (kinds[op->kind].atomic) {
		model_atomic(run, op);
	} else if (kinds[op->kind].answers) {
		gather_image(target(run, op), op->remote, op->remotes, buffer);
		scatter_image(initiator(run, op), op->local, op->locals, buffer, op->len);
	} else {
		gather_image(initiator(run, op), op->local, op->locals, buffer);
		scatter_image(target(run, op), op->remote, op->remotes, buffer, op->len);
	}
}

/* Inline data has been copied when the post returns: the program may do with it as it likes. */
static void scribble(struct run *run, const struct op *op)
{
	struct side *side = initiator(run, op);
	int i;

	for (i = 0; i < op->locals; i++) {
		memset(side->image + op->local[i].offset, 0xee, op->local[i].len);
		if (side->here)
			memset(side->mem.addr + op->local[i].offset, 0xee, op->local[i].len);
	}
}

/* -------------------------------------------------------------------------------- posting */

static int sges(const struct side *side, const struct piece *pieces, int count,
		struct ibv_sge *sge)
{
	int i;

	for (i = 0; i < count; i++)
		sge[i] = region_sge(&side->mem, pieces[i].offset, pieces[i].len);
	return count;
}

static void post_receives(struct run *run)
{
	struct ibv_sge sge[MAX_SGE];
	const struct op *op;
	unsigned int i;
	int count;

	for (i = 0; i < run->ops; i++) {
		op = &run->op[i];
		if (!kinds[op->kind].receives || !target(run, op)->here)
			continue;
		count = kinds[op->kind].scatters ?
			sges(target(run, op), op->remote, op->remotes, sge) : 0;
		post_recv(target(run, op)->qp[op->qp], i | RECV, sge, count);
		target(run, op)->expected++;
	}
}

static void build_wr(struct run *run, unsigned int i, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	const struct op *op = &run->op[i];
	struct side *there = target(run, op);
	uint64_t addr = there->remote_addr + op->remote[0].offset;

	*wr = send_wr(i, kinds[op->kind].op, sge, sges(initiator(run, op), op->local, op->locals,
						      sge));
	wr->send_flags = op->flags;
	wr->imm_data = op->imm;
	if (kinds[op->kind].atomic) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = there->rkey;
		wr->wr.atomic.compare_add = op->kind == ADD ? op->operand : op->compare;
		wr->wr.atomic.swap = op->operand;
	} else if (!kinds[op->kind].scatters) {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = there->rkey;
	}
	if (op->flags & IBV_SEND_SIGNALED)
		initiator(run, op)->expected++;
}

/* In the order of the batch; lists of requests are of one QP. */
static void post_sends(struct run *run)
{
	static struct ibv_send_wr wr[MAX_OPS];
	static struct ibv_sge sge[MAX_OPS][MAX_SGE];
	unsigned int i, j, first;

	for (i = 0; i < run->ops; i++) {
		first = i;
		if (!initiator(run, &run->op[i])->here) {
			if (run->op[i].flags & IBV_SEND_INLINE)
				scribble(run, &run->op[i]);
			continue;
		}
		build_wr(run, i, &wr[i], sge[i]);
		while (run->op[i].list && i + 1 < run->ops &&
		       run->op[i + 1].qp == run->op[first].qp &&
		       run->op[i + 1].from == run->op[first].from) {
			wr[i].next = &wr[i + 1];
			i++;
			build_wr(run, i, &wr[i], sge[i]);
		}
		post_send(initiator(run, &run->op[first])->qp[run->op[first].qp], &wr[first]);
		for (j = first; j <= i; j++)
			if (run->op[j].flags & IBV_SEND_INLINE)
				scribble(run, &run->op[j]);
	}
}

/* ----------------------------------------------------------------------------- completing */

static void check_send(const struct op *op, const struct ibv_wc *wc)
{
	need_eq(wc->opcode, kinds[op->kind].wc);
	if (kinds[op->kind].answers)
		need_eq(wc->byte_len, op->len);
}

static void check_recv(const struct op *op, const struct ibv_wc *wc)
{
	need_eq(wc->opcode, kinds[op->kind].scatters ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
	need_eq(wc->byte_len, op->len);
	need_eq(wc->wc_flags & IBV_WC_WITH_IMM, kinds[op->kind].imm ? IBV_WC_WITH_IMM : 0);
	if (kinds[op->kind].imm)
		need_eq(wc->imm_data, op->imm);
}

static void complete(struct run *run, struct side *side, const struct ibv_wc *wc)
{
	unsigned int i = wc->wr_id & ~RECV;
	bool recv = wc->wr_id & RECV;
	const struct op *op = &run->op[i];
	int *last;

	need_that(wc->status == IBV_WC_SUCCESS, "%s %u of %u, %u bytes: %s (vendor %#x)",
		  recv ? "receive" : "request", i, run->ops, op->len,
		  ibv_wc_status_str(wc->status), wc->vendor_err);
	need_that(i < run->ops, "completion of %llu", (unsigned long long)wc->wr_id);
	need(side == (recv ? target(run, op) : initiator(run, op)));
	need_eq(wc->qp_num, side->qp[op->qp]->qp_num);
	last = recv ? side->last_recv : side->last_send;
	need_that((int)i > last[op->qp], "op %u completed behind %d", i, last[op->qp]);
	last[op->qp] = i;
	if (recv)
		check_recv(op, wc);
	else
		check_send(op, wc);
	side->expected--;
}

static unsigned int poll_side(struct run *run, struct side *side)
{
	struct ibv_wc wc[16];
	int i, count;

	if (!side->here || !side->expected)
		return 0;
	count = ibv_poll_cq(side->cq, 16, wc);
	need_that(count >= 0, "ibv_poll_cq: %d", count);
	for (i = 0; i < count; i++)
		complete(run, side, &wc[i]);
	return count;
}

/* How far each QP has come. */
static void explain_missing(struct run *run)
{
	struct side *side;
	unsigned int i;

	tap_note("seed %llu, batch %llu of %u operations, receives %s",
		 (unsigned long long)options.seed, (unsigned long long)run->batch, run->ops,
		 run->late_receives ? "late" : "first");
	for (side = run->side; side < run->side + 2; side++) {
		for (i = 0; side->here && i < run->qps; i++)
			tap_note("side %d QP %u: %s, last send %d, last receive %d",
				 (int)(side - run->side), i, state_name(qp_state(side->qp[i])),
				 side->last_send[i], side->last_recv[i]);
	}
	for (i = 0; i < run->ops; i++)
		tap_note("op %u: %s from side %d, QP %u, %u bytes, flags %#x", i,
			 kinds[run->op[i].kind].name, run->op[i].from, run->op[i].qp,
			 run->op[i].len, run->op[i].flags);
	tap_fail(__FILE__, __LINE__, "%u and %u completions are missing", run->side[0].expected,
		 run->side[1].expected);
}

static void wait_for_all(struct run *run)
{
	uint64_t moved = now_us();

	while (run->side[0].expected + run->side[1].expected) {
		if (poll_side(run, &run->side[0]) + poll_side(run, &run->side[1]))
			moved = now_us();
		if (now_us() - moved > MAX_LAG_US)
			explain_missing(run);
	}
}

/* ------------------------------------------------------------------------------ comparing */

static bool covers(const struct piece *pieces, int count, size_t offset)
{
	int i;

	for (i = 0; i < count; i++)
		if (offset - pieces[i].offset < pieces[i].len)
			return true;
	return false;
}

static void explain_difference(struct run *run, int side, size_t offset)
{
	const struct op *op;
	unsigned int i;

	tap_note("batch %llu, side %d, offset %#zx: %#x, not %#x",
		 (unsigned long long)run->batch, side, offset, run->side[side].mem.addr[offset],
		 run->side[side].image[offset]);
	for (i = 0; i < run->ops; i++) {
		op = &run->op[i];
		if (covers(op->from == side ? op->local : op->remote,
			   op->from == side ? op->locals : op->remotes, offset))
			tap_note("%s of op %u: %s from side %d, QP %u, %u bytes, %d and %d SGEs",
				 op->from == side ? "initiator" : "target", i,
				 kinds[op->kind].name, op->from, op->qp, op->len, op->locals,
				 op->remotes);
	}
	tap_fail(__FILE__, __LINE__, "data differs; seed %llu",
		 (unsigned long long)options.seed);
}

static void compare(struct run *run)
{
	struct side *side;
	size_t at;
	int i;

	for (i = 0; i < 2; i++) {
		side = &run->side[i];
		if (!side->here || !memcmp(side->mem.addr, side->image, side->used))
			continue;
		for (at = 0; side->mem.addr[at] == side->image[at]; at++)
			;
		explain_difference(run, i, at);
	}
}

/* ------------------------------------------------------------------------ a whole batch */

static void batch_begin(struct run *run)
{
	run->ops = 0;
	run->side[0].used = 0;
	run->side[1].used = 0;
}

/* The last request of each QP is signalled, so that all have been completed at the end. */
static void signal_last(struct run *run)
{
	bool seen[2][MAX_QPS] = {};
	unsigned int i = run->ops;

	while (i--) {
		struct op *op = &run->op[i];

		if (!seen[op->from][op->qp])
			op->flags |= IBV_SEND_SIGNALED;
		seen[op->from][op->qp] = true;
	}
}

static void batch_run(struct run *run)
{
	static uint8_t *buffer;
	struct side *side;
	unsigned int i;
	int j;

	if (!run->ops)
		return;
	if (!buffer)
		buffer = need_ptr(malloc(options.memory));
	run->batch++;
	signal_last(run);
	for (j = 0; j < 2; j++) {
		side = &run->side[j];
		/* Behind the last operation as well. */
		side->used += options.memory - side->used < 64 ? options.memory - side->used : 64;
		fill(side->image, side->used, options.seed + 2 * run->batch + j);
		if (side->here)
			memcpy(side->mem.addr, side->image, side->used);
		memset(side->last_send, 0xff, sizeof(side->last_send));
		memset(side->last_recv, 0xff, sizeof(side->last_recv));
	}
	for (i = 0; i < run->ops; i++)
		model_apply(run, &run->op[i], buffer);
	if (!run->late_receives)
		post_receives(run);
	peer_barrier(run->batch << 2);
	post_sends(run);
	if (run->late_receives)
		post_receives(run);
	wait_for_all(run);
	peer_barrier(run->batch << 2 | 1);
	compare(run);
	peer_barrier(run->batch << 2 | 2);
}

/* -------------------------------------------------------------- every size of one kind */

struct matrix {
	enum kind kind;
	enum ibv_mtu mtu;
};

static int sge_limit = MAX_SGE;		/* the device may have less */

static const int mtu_bytes[] = { 0, 256, 512, 1024, 2048, 4096 };

/* How the two ranges lie: offset in a page, and number of SGEs. */
static const struct shape {
	uint32_t local_offset;
	uint32_t remote_offset;
	int sges;
} shapes[] = {
	{ 0, 0, 1 },
	{ 1, 63, 1 },
	{ PAGE - 1, PAGE - 7, 1 },
	{ 0, 0, 2 },
	{ 0, 0, MAX_SGE },	/* or as many as there may be */
};

static bool add_shaped(struct run *run, enum kind kind, uint32_t len, const struct shape *shape)
{
	struct op *op = &run->op[run->ops];
	bool placed;

	if (run->ops == MAX_OPS)
		return false;
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->len = len;
	op->flags = IBV_SEND_SIGNALED;
	op->imm = next_random(run);
	op->from = run->ops & 1;
	op->locals = shape->sges < sge_limit ? shape->sges : sge_limit;
	op->remotes = kinds[kind].scatters ? op->locals : 1;
	if (shape->sges > 1)
		placed = scatter(run, initiator(run, op), op->local, op->locals, len);
	else
		placed = place_at(initiator(run, op), op->local, len, shape->local_offset);
	if (op->remotes > 1)
		placed = placed && scatter(run, target(run, op), op->remote, op->remotes, len);
	else
		placed = placed && place_at(target(run, op), op->remote, len,
					    shape->remote_offset);
	run->ops += placed;
	return placed;
}

static void run_matrix(const void *arg)
{
	const struct matrix *matrix = arg;
	const uint32_t mtu = mtu_bytes[matrix->mtu];
	const uint32_t sizes[] = {
		0, 1, 2, 3, 4, 7, 8, 63, 64, 65, 255, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu,
		2 * mtu + 1, PAGE - 1, PAGE, PAGE + 1, 65535, 65536, 65537, (1 << 20) + 3, 8 << 20,
	};
	struct run *run = need_ptr(calloc(1, sizeof(*run)));
	size_t i, j;

	run->attr = rig_defaults();
	run->attr.mtu = matrix->mtu;
	run->attr.send_sge = run->attr.recv_sge = sge_limit;
	run->attr.send_wr = run->attr.recv_wr = MAX_OPS;
	run->attr.cqe = 2 * MAX_OPS;
	run->attr.rd_atomic = 16;
	run->qps = 1;
	run->rng = options.seed;
	run_create(run);
	batch_begin(run);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* Two such and what lies between them must have room. */
		if (sizes[i] > options.memory / 4 || (!sizes[i] && !may_be_empty(matrix->kind)))
			continue;
		for (j = 0; j < sizeof(shapes) / sizeof(shapes[0]); j++) {
			if (add_shaped(run, matrix->kind, sizes[i], &shapes[j]))
				continue;
			batch_run(run);
			batch_begin(run);
			need(add_shaped(run, matrix->kind, sizes[i], &shapes[j]));
		}
	}
	batch_run(run);
	run_destroy(run);
}

/* ------------------------------------------------------------------------- inline data */

static void run_inline(const void *arg)
{
	struct run *run = need_ptr(calloc(1, sizeof(*run)));
	struct ibv_qp_init_attr init;
	uint32_t len;
	int i;

	(void)arg;
	run->attr = rig_defaults();
	run->attr.inline_bytes = MAX_INLINE;
	run->attr.send_sge = run->attr.recv_sge = 3;
	run->attr.send_wr = run->attr.recv_wr = MAX_OPS;
	run->attr.cqe = 2 * MAX_OPS;
	run->qps = 1;
	run->rng = options.seed;
	run_create(run);
	for (i = 0; i < 2; i++) {
		if (!run->side[i].here)
			continue;
		qp_query(run->side[i].qp[0], &init);
		need(init.cap.max_inline_data >= MAX_INLINE);
	}
	batch_begin(run);
	for (len = 0; len <= MAX_INLINE; len++) {
		for (i = 0; i < 3; i++) {
			static const enum kind inlined[] = { SEND, WRITE, WRITE_IMM };
			struct shape shape = { len % 7, len % 5, 1 + (len + i) % 3 };

			if (!len && !may_be_empty(inlined[i]))
				continue;
			if (!add_shaped(run, inlined[i], len, &shape)) {
				batch_run(run);
				batch_begin(run);
				need(add_shaped(run, inlined[i], len, &shape));
			}
			run->op[run->ops - 1].flags |= IBV_SEND_INLINE;
		}
	}
	batch_run(run);
	run_destroy(run);
}

/* ---------------------------------------------------------------------- a random mix */

/* Mostly small, sometimes large: all sizes are equally likely on a logarithmic scale. */
static uint32_t random_len(struct run *run)
{
	uint32_t max = one_in(run, 16) ? 20 : 13;

	return below(run, 2u << below(run, max));
}

static bool add_random(struct run *run)
{
	struct op *op = &run->op[run->ops];
	const struct kind_info *kind;
	bool placed;

	if (run->ops == MAX_OPS)
		return false;
	memset(op, 0, sizeof(*op));
	op->kind = below(run, run->atomics ? KINDS : SWAP);
	kind = &kinds[op->kind];
	op->from = below(run, 2);
	op->qp = below(run, run->qps);
	op->imm = next_random(run);
	op->list = !one_in(run, 3);
	op->flags = one_in(run, 3) ? 0 : IBV_SEND_SIGNALED;
	op->flags |= one_in(run, 4) && !options.plain ? IBV_SEND_FENCE : 0;
	op->flags |= one_in(run, 2) ? IBV_SEND_SOLICITED : 0;
	op->len = kind->atomic ? 8 : random_len(run);
	if (!op->len && !may_be_empty(op->kind))
		op->len = 1;
	op->operand = next_random(run);
	op->matches = one_in(run, 2);
	op->locals = kind->atomic ? 1 : 1 + below(run, run->attr.send_sge);
	op->remotes = kind->scatters ? 1 + below(run, run->attr.recv_sge) : 1;
	if (!kind->answers && op->len <= run->attr.inline_bytes && one_in(run, 2))
		op->flags |= IBV_SEND_INLINE;
	placed = scatter(run, initiator(run, op), op->local, op->locals, op->len);
	if (kind->scatters)
		/* Some receives are longer than what arrives. */
		placed = placed && scatter(run, target(run, op), op->remote, op->remotes,
					   op->len + (one_in(run, 2) ? below(run, 5000) : 0));
	else
		placed = placed && place(target(run, op), op->remote, op->len, below(run, 200),
					 kind->atomic ? 8 : 1);
	run->ops += placed;
	return placed;
}

static void mix_phase(struct run *run, uint64_t phase, bool late)
{
	unsigned int batch, i, count;

	run->rng = mix64(options.seed) + phase;
	run->attr = rig_defaults();
	run->qps = 1 + below(run, MAX_QPS);
	run->attr.mtu = IBV_MTU_256 + below(run, 5);
	run->attr.send_sge = 1 + below(run, sge_limit);
	run->attr.recv_sge = 1 + below(run, sge_limit);
	run->attr.inline_bytes = one_in(run, 2) ? below(run, MAX_INLINE + 1) : 0;
	/* All of a batch may be of one QP; and rings wrap at every depth. */
	run->attr.send_wr = run->attr.recv_wr = MAX_OPS + below(run, 300);
	run->attr.cqe = 4 * MAX_OPS;
	run->attr.rd_atomic = 1 + below(run, 16);
	/* Soft-RoCE takes it for the next power of two, and sends more at once than was agreed. */
	if (options.plain)
		run->attr.rd_atomic = 1 << below(run, 5);
	run->attr.min_rnr_timer = 1 + below(run, 12);
	run_create(run);
	for (batch = 0; batch < 10; batch++) {
		run->late_receives = late && one_in(run, 2);
		batch_begin(run);
		count = 1 + below(run, MAX_OPS - 1);
		for (i = 0; i < count && add_random(run); i++)
			;
		batch_run(run);
	}
	run_destroy(run);
}

/* With an argument, many sends find no receive at first. */
static void run_mix(const void *arg)
{
	uint64_t phase = 0, end = now_us() + options.seconds * 1000000ull;
	uint64_t go_on, theirs;
	struct run *run = need_ptr(calloc(1, sizeof(*run)));

	do {
		memset(run, 0, sizeof(*run));
		mix_phase(run, phase++, arg);
		go_on = options.seconds ? now_us() < end : phase < options.iterations;
		/* The one that listens decides. */
		if (peer_present()) {
			peer_exchange(&go_on, &theirs, sizeof(go_on));
			go_on = options.listen ? go_on : theirs;
		}
	} while (go_on);
	tap_note("seed %llu: %llu phases of 10 batches", (unsigned long long)options.seed,
		 (unsigned long long)phase);
	free(run);
}

/* -------------------------------------------------------------------- order and atomicity */

#define ORDER_ROUNDS	500

/* When a receive completes, what was written before that message was sent is there. */
static void run_order(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	struct ibv_send_wr wr[2];
	struct ibv_sge sge;
	struct rig rig;
	int i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	sge = region_sge(&rig.a.mem, 0, attr.bytes);
	for (i = 0; i < ORDER_ROUNDS; i++) {
		sge.length = 1 + mix64(i) % attr.bytes;
		fill(rig.a.mem.addr, attr.bytes, i);
		post_recv(rig.b.qp, i, NULL, 0);
		wr[0] = send_wr(0, IBV_WR_RDMA_WRITE, &sge, 1);
		wr_to(&wr[0], &rig.b.mem, 0);
		wr[0].next = &wr[1];
		wr[1] = send_wr(1, IBV_WR_SEND, NULL, 0);
		post_send(rig.a.qp, wr);
		need_wc(rig.b.cq, i, IBV_WC_SUCCESS);
		need_that(!memcmp(rig.a.mem.addr, rig.b.mem.addr, sge.length),
			  "round %d: %u bytes were not all there", i, sge.length);
		need_wc(rig.a.cq, 0, IBV_WC_SUCCESS);
		need_wc(rig.a.cq, 1, IBV_WC_SUCCESS);
	}
	rig_destroy(&rig);
}

/* The last byte of a WRITE shows up last, as many programs that poll memory expect. */
static void run_last_byte(const void *arg)
{
	struct rig_attr attr = rig_defaults();
	volatile uint8_t *last;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	uint64_t end;
	int i;

	(void)arg;
	rig_connect_new(&rig, &attr);
	for (i = 0; i < ORDER_ROUNDS; i++) {
		uint32_t len = 1 + mix64(i) % attr.bytes;

		sge = region_sge(&rig.a.mem, 0, len);
		fill(rig.a.mem.addr, len, i);
		last = rig.b.mem.addr + len - 1;
		*last = ~rig.a.mem.addr[len - 1];
		wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, 1);
		wr_to(&wr, &rig.b.mem, 0);
		post_send(rig.a.qp, &wr);
		for (end = now_us() + MAX_LAG_US; *last != rig.a.mem.addr[len - 1];)
			need_that(now_us() < end, "round %d: the last byte never came", i);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		need_that(!memcmp(rig.a.mem.addr, rig.b.mem.addr, len),
			  "round %d: the last of %u bytes came before another", i, len);
		need_wc(rig.a.cq, i, IBV_WC_SUCCESS);
	}
	rig_destroy(&rig);
}

#define COUNTER_QPS	8
#define COUNTER_ADDS	100

/* Every addition to one word by many QPs finds another old value. */
static void run_counter(const void *arg)
{
	bool seen[COUNTER_QPS * COUNTER_ADDS] = {};
	struct end a[COUNTER_QPS] = {}, b[COUNTER_QPS] = {};
	struct rig_attr attr = rig_defaults();
	struct region counter;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;
	uint64_t *old;
	int i, j;

	(void)arg;
	attr.send_wr = COUNTER_ADDS;
	attr.rd_atomic = 16;
	attr.qp_access |= IBV_ACCESS_REMOTE_ATOMIC;
	rig_create(&rig, &attr);
	region_create(&counter, rig.a.pd, 64, ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC);
	for (i = 0; i < COUNTER_QPS; i++) {
		end_create(&a[i], rig.a.pd, &attr, i);
		end_create(&b[i], rig.a.pd, &attr, i + 100);
		ends_connect(&a[i], &b[i], &attr);
	}
	for (j = 0; j < COUNTER_ADDS; j++) {
		for (i = 0; i < COUNTER_QPS; i++) {
			sge = region_sge(&a[i].mem, 8 * j, 8);
			wr = send_wr(j, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
			wr_to(&wr, &counter, 0);
			wr.wr.atomic.compare_add = 1;
			post_send(a[i].qp, &wr);
		}
	}
	for (i = 0; i < COUNTER_QPS; i++) {
		for (j = 0; j < COUNTER_ADDS; j++)
			need_wc(a[i].cq, j, IBV_WC_SUCCESS);
		old = (uint64_t *)a[i].mem.addr;
		for (j = 0; j < COUNTER_ADDS; j++) {
			need(old[j] < COUNTER_QPS * COUNTER_ADDS && !seen[old[j]]);
			seen[old[j]] = true;
		}
	}
	need_eq(*(uint64_t *)counter.addr, COUNTER_QPS * COUNTER_ADDS);
	for (i = 0; i < COUNTER_QPS; i++) {
		end_destroy(&a[i]);
		end_destroy(&b[i]);
	}
	region_destroy(&counter);
	rig_destroy(&rig);
}

/* --------------------------------------------------------------------------------- main */

#define MTUS	5

static struct matrix matrices[SWAP * MTUS];
static char names[SWAP * MTUS][48];
static struct tap_test tests[SWAP * MTUS + 6];

static size_t list_tests(bool atomics)
{
	size_t count = 0;
	enum kind kind;
	int mtu;

	for (kind = SEND; kind < SWAP; kind++) {
		for (mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++, count++) {
			matrices[count] = (struct matrix) { .kind = kind, .mtu = mtu };
			snprintf(names[count], sizeof(names[count]), "%s, MTU %d",
				 kinds[kind].name, mtu_bytes[mtu]);
			tests[count] = (struct tap_test) {
				.name = names[count], .run = run_matrix,
				.arg = &matrices[count], .seconds = 600,
			};
		}
	}
	tests[count++] = (struct tap_test) { .name = "inline", .run = run_inline };
	tests[count++] = (struct tap_test) {
		.name = "mix", .run = run_mix, .seconds = 600 + options.seconds,
	};
	if (!options.plain)
		tests[count++] = (struct tap_test) {
			.name = "late receives", .run = run_mix, .arg = "late",
			.seconds = 600 + options.seconds,
		};
	if (peer_present())
		return count;
	tests[count++] = (struct tap_test) { .name = "order", .run = run_order };
	tests[count++] = (struct tap_test) { .name = "last byte", .run = run_last_byte };
	if (atomics)
		tests[count++] = (struct tap_test) { .name = "counter", .run = run_counter };
	return count;
}

/* What the device can. Peers must have the same limits. */
static bool look_at_device(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr device;

	need_ok(ibv_query_device(ctx, &device));
	need_ok(ibv_close_device(ctx));
	if (device.max_sge < MAX_SGE)
		sge_limit = device.max_sge;
	return device.atomic_cap != IBV_ATOMIC_NONE;
}

int main(int argc, char **argv)
{
	size_t count;

	options_parse(argc, argv, "Data arrives, all of it, where it belongs and nowhere else.");
	if (!options.list && (options.listen || options.peer))
		peer_connect();
	count = list_tests(look_at_device());
	if (options.list) {
		tap_list(tests, count);
		return 0;
	}
	return tap_run(tests, count, options.only, peer_present());
}
