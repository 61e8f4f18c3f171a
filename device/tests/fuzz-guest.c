// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A guest that lies: commands, WQEs, receives, records, page lists and doorbells with
 * bytes changed, while traffic runs. Nothing is demanded but that the device lives, ends
 * what it is told, and can be reset.
 */
#include <endian.h>
#include <string.h>

#include "fuzz.h"
#include "rig.h"
#include "tap.h"

#define RUNS	40	/* of the engine, after each thing done to it */

static struct rig rig;
static struct host *host;

static void run(void)
{
	unsigned int i;

	for (i = 0; i < RUNS; i++) {
		host_run(host);
		if (host->next > host->now)
			host->now = host->next < host->now + 1000000 ? host->next : host->now + 1000;
	}
}

/* An address that the guest has, somewhere near it, or any. */
static uint64_t some_address(struct fuzz_tape *tape)
{
	uint64_t dma = host->mem.chunks[fuzz_below(tape, host->mem.count)]->dma;

	switch (fuzz_below(tape, 8)) {
	case 0:
		return fuzz_take(tape, 8);
	case 1:
		return dma + fuzz_below(tape, 8192);
	default:
		return dma;
	}
}

/* A number that names something, or nearly. */
static uint32_t some_number(struct fuzz_tape *tape)
{
	const uint32_t numbers[] = {
		rig.qp[0]->number, rig.qp[1]->number, rig.cq[0]->number, rig.cq[1]->number,
		rig.pd[0]->number, rig.pd[1]->number, rig.context[0]->number, host->eq.number,
		rig.mr[0]->key, rig.mr[1]->key, 0, 1, 2, FERRY_KEY_LOCAL_DMA,
	};
	uint32_t number = numbers[fuzz_below(tape, 14)];

	return fuzz_below(tape, 16) ? number : number ^ 1u << fuzz_below(tape, 32);
}

/* Eight bytes of something, at an offset that is aligned most of the time. */
static void spoil(struct fuzz_tape *tape, uint8_t *bytes, size_t len, unsigned int times)
{
	while (times--) {
		size_t at = fuzz_below(tape, (uint32_t)len);
		uint64_t value;

		switch (fuzz_below(tape, 4)) {
		case 0:
			bytes[at] = (uint8_t)fuzz_take(tape, 1);
			continue;
		case 1:
			value = some_address(tape);
			break;
		case 2:
			value = some_number(tape);
			break;
		default:
			value = fuzz_below(tape, 64);
		}
		at &= ~(size_t)3;
		memcpy(bytes + at, &value, len - at < 8 ? 4 : 8);
	}
}

/* ---- commands: a right one of each kind, spoiled */

static void fill_list(struct fuzz_tape *tape, struct ferry_page_list *list)
{
	unsigned int i;

	list->block_shift = 12;
	list->count = htole32(1 + fuzz_below(tape, 16));
	if (fuzz_below(tape, 4) == 0) {
		list->levels = 2;
		list->root = htole64(some_address(tape));
		return;
	}
	for (i = 0; i < FERRY_INLINE_BLOCKS; i++)
		list->inline_[i] = htole64(some_address(tape));
}

static void fill_qp(struct fuzz_tape *tape, struct ferry_admin_create_qp *cmd)
{
	cmd->context = htole32(rig.context[0]->number);
	cmd->pd = htole32(rig.pd[0]->number);
	cmd->send_cq = htole32(rig.cq[0]->number);
	cmd->recv_cq = htole32(rig.cq[0]->number);
	cmd->type = (uint8_t)fuzz_below(tape, 2);
	cmd->sq_shift = 3;
	cmd->rq_shift = 3;
	cmd->sq_wqe_shift = 6;
	cmd->rq_wqe_shift = 6;
	cmd->sq_slot_addr = htole64(rig.context[0]->page[0]->dma + 64 * fuzz_below(tape, 63));
	cmd->rq_slot_addr = htole64(rig.context[0]->page[0]->dma + 64 * fuzz_below(tape, 63));
	fill_list(tape, &cmd->sq);
	fill_list(tape, &cmd->rq);
}

static void fill_command(struct fuzz_tape *tape, union ferry_admin_sqe *cmd)
{
	uint16_t opcode = (uint16_t)fuzz_below(tape, FERRY_ADMIN_OP_COUNT + 1);

	memset(cmd, 0, sizeof(*cmd));
	cmd->head.opcode = htole16(opcode);
	cmd->object.number = htole32(some_number(tape));
	switch (opcode) {
	case FERRY_ADMIN_CREATE_EQ:
		cmd->create_eq.vector = htole16(1);
		cmd->create_eq.depth_shift = 4;
		cmd->create_eq.ci_addr = htole64(some_address(tape));
		fill_list(tape, &cmd->create_eq.ring);
		break;
	case FERRY_ADMIN_ADD_RECORD_PAGE:
	case FERRY_ADMIN_REMOVE_RECORD_PAGE:
	case FERRY_ADMIN_SET_STATUS_PAGE:
		cmd->set_page.addr = htole64(some_address(tape));
		break;
	case FERRY_ADMIN_SET_CONTEXT_MEMORY:
		cmd->set_context_memory.length = htole64(fuzz_below(tape, 65536));
		fill_list(tape, &cmd->set_context_memory.pages);
		break;
	case FERRY_ADMIN_CREATE_CQ:
	case FERRY_ADMIN_RESIZE_CQ:
		cmd->create_cq.context = htole32(rig.context[0]->number);
		cmd->create_cq.eq = htole32(host->eq.number);
		cmd->create_cq.cq = opcode == FERRY_ADMIN_RESIZE_CQ ?
				    htole32(rig.cq[0]->number) : 0;
		cmd->create_cq.depth_shift = (uint8_t)fuzz_below(tape, 10);
		cmd->create_cq.slot_addr = htole64(rig.context[0]->page[0]->dma +
						   64 * fuzz_below(tape, 64));
		fill_list(tape, &cmd->create_cq.ring);
		break;
	case FERRY_ADMIN_CREATE_QP:
		fill_qp(tape, &cmd->create_qp);
		break;
	case FERRY_ADMIN_MODIFY_QP:
		cmd->modify_qp.qp = htole32(rig.qp[fuzz_below(tape, 2)]->number);
		host_qp_attr(rig.qp[0], rig.qp[1], &rig.options.path, 0,
			     (enum ferry_qp_state)fuzz_below(tape, FERRY_QPS_COUNT),
			     &cmd->modify_qp.attr);
		break;
	case FERRY_ADMIN_CREATE_SRQ:
		cmd->create_srq.context = htole32(rig.context[0]->number);
		cmd->create_srq.pd = htole32(rig.pd[0]->number);
		cmd->create_srq.depth_shift = 3;
		cmd->create_srq.wqe_shift = 6;
		cmd->create_srq.slot_addr = htole64(rig.context[0]->page[0]->dma +
						    64 * fuzz_below(tape, 63));
		fill_list(tape, &cmd->create_srq.ring);
		break;
	case FERRY_ADMIN_CREATE_MR:
		cmd->create_mr.pd = htole32(rig.pd[0]->number);
		cmd->create_mr.access = RIG_ACCESS;
		cmd->create_mr.iova = htole64(some_address(tape));
		cmd->create_mr.length = htole64(fuzz_below(tape, 65536));
		cmd->create_mr.offset = htole64(fuzz_below(tape, 4096));
		fill_list(tape, &cmd->create_mr.pages);
		break;
	default:
		break;
	}
}

/* Whether it is answered is seen by the reset at the end. */
static void command(struct fuzz_tape *tape)
{
	uint32_t depth = 1u << host->admin_shift;
	union ferry_admin_sqe *cmd = (union ferry_admin_sqe *)host->asq->va +
				     (host->admin_pi & (depth - 1));

	fill_command(tape, cmd);
	spoil(tape, cmd->bytes, sizeof(cmd->bytes), fuzz_below(tape, 8) ? fuzz_below(tape, 2) : 20);
	host->admin_pi++;
	ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_DB, host->admin_pi);
}

/* ---- queues */

static void send(struct fuzz_tape *tape)
{
	unsigned int side = fuzz_below(tape, 2);
	struct host_ring *sq = &rig.qp[side]->sq;
	uint32_t index = sq->pi & ((1u << sq->shift) - 1);
	enum ferry_wr op = (enum ferry_wr)fuzz_below(tape, FERRY_WR_COUNT);
	struct host_wr wr = rig_wr(&rig, side, op, fuzz_below(tape, 60000),
				   fuzz_below(tape, 60000), fuzz_below(tape, 6000));

	host_post_send(rig.qp[side], &wr);
	spoil(tape, host_blocks_at(&sq->blocks, (uint64_t)index << sq->stride_shift), 80,
	      fuzz_below(tape, 3));
	host_announce(&sq->slot, FERRY_DB(FERRY_DB_SQ, rig.qp[side]->number, sq->pi));
}

static void receive(struct fuzz_tape *tape)
{
	unsigned int side = fuzz_below(tape, 2);
	struct host_ring *rq = &rig.qp[side]->rq;
	uint32_t index = rq->pi & ((1u << rq->shift) - 1);

	rig_recv(&rig, side, fuzz_below(tape, 60000), fuzz_below(tape, 6000), 1);
	spoil(tape, host_blocks_at(&rq->blocks, (uint64_t)index << rq->stride_shift), 32,
	      fuzz_below(tape, 2));
}

/* Any byte of any memory. */
static void scribble(struct fuzz_tape *tape)
{
	struct hostmem_chunk *chunk = host->mem.chunks[fuzz_below(tape, host->mem.count)];
	size_t len = chunk->len < 4096 ? chunk->len : 4096;

	spoil(tape, chunk->va, len, 4);
}

static void doorbell(struct fuzz_tape *tape)
{
	host_doorbell(host, fuzz_below(tape, 4),
		      FERRY_DB_ARM(fuzz_below(tape, 16), some_number(tape) & 0xffffff,
				   fuzz_below(tape, 40), fuzz_below(tape, 16)));
}

static void embedder(struct fuzz_tape *tape)
{
	struct hostmem_chunk *chunk = host->mem.chunks[fuzz_below(tape, host->mem.count)];

	switch (fuzz_below(tape, 4)) {
	case 0:
		ferry_engine_unmapped(host->engine, chunk->dma, chunk->len);
		hostmem_move(chunk);
		break;
	case 1:
		ferry_engine_unmapped(host->engine, chunk->dma, chunk->len);
		chunk->gone = !chunk->gone;
		break;
	case 2:
		host->asleep = ferry_engine_sleep(host->engine);
		break;
	default:
		host->alloc_fails_at = fuzz_below(tape, 4);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const things[])(struct fuzz_tape *) = {
		command, command, command, send, send, send, receive, receive, scribble, doorbell,
		embedder,
	};
	struct fuzz_tape tape = { .data = data, .size = size };
	struct rig_options o = { .local = true, .path.timeout = 8, .path.rnr_retry = 2 };
	unsigned int i;

	o.message = fuzz_below(&tape, 3) == 0;
	rig_init(&rig, &o);
	host = rig.host[0];
	host->mem.lenient = true;
	while (fuzz_left(&tape)) {
		things[fuzz_below(&tape, sizeof(things) / sizeof(things[0]))](&tape);
		run();
	}
	host->alloc_fails_at = 0;
	for (i = 0; i < host->mem.count; i++)
		host->mem.chunks[i]->gone = false;
	ferry_engine_reg_write(host->engine, FERRY_REG_CTRL, FERRY_CTRL_RESET);
	need_eq(host->allocations, 1);
	need(host_enable(host));
	need_eq(host_admin_object(host, FERRY_ADMIN_NOP, 0, NULL), FERRY_ADMIN_OK);
	rig_abandon(&rig);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	return fuzz_main(argc, argv, 1500, LLVMFuzzerTestOneInput);
}
#endif
