// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <endian.h>
#include <string.h>

#include "rig.h"
#include "tap.h"

#define SECOND	1000000000ull

static void make_hosts(struct rig *rig)
{
	const struct rig_options *o = &rig->options;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct host_options options = {
			.seed = 77 + i,
			.index = i,
			.message = o->message,
			.poll = !o->no_poll,
		};

		if (i && o->local) {
			rig->host[1] = rig->host[0];
			continue;
		}
		rig->host[i] = host_create(&options);
		wire_add(&rig->wire, rig->host[i]);
	}
}

static void make_side(struct rig *rig, unsigned int i)
{
	const struct rig_options *o = &rig->options;
	struct host_qp_spec qp = {
		.sq_shift = o->sq_shift ? o->sq_shift : 4,
		.rq_shift = o->rq_shift ? o->rq_shift : 4,
		.sq_stride_shift = 9,
	};
	struct host_mr_spec mr = {
		.length = RIG_MR_LEN,
		.iova = 0x7f0012340000ull,
		.offset = 1000,
		.access = RIG_ACCESS,
	};

	rig->context[i] = host_context_create(rig->host[i], 1);
	need(rig->context[i]);
	rig->pd[i] = host_pd_create(rig->context[i]);
	need(rig->pd[i]);
	rig->cq[i] = host_cq_create(rig->context[i], o->cq_shift ? o->cq_shift : 8);
	need(rig->cq[i]);
	qp.pd = rig->pd[i];
	qp.send_cq = rig->cq[i];
	qp.recv_cq = rig->cq[i];
	rig->qp[i] = host_qp_create(&qp);
	need(rig->qp[i]);
	mr.pd = rig->pd[i];
	rig->mr[i] = host_mr_create(&mr);
	need(rig->mr[i]);
	rng_fill(&rig->host[i]->rng, rig->image[i], RIG_MR_LEN);
	host_mr_write(rig->mr[i], 0, rig->image[i], RIG_MR_LEN);
}

void rig_init(struct rig *rig, const struct rig_options *options)
{
	memset(rig, 0, sizeof(*rig));
	rig->options = *options;
	if (!rig->options.path.access)
		rig->options.path.access = RIG_ACCESS;
	wire_init(&rig->wire, 1);
	make_hosts(rig);
	make_side(rig, 0);
	make_side(rig, 1);
	if (!options->unconnected)
		host_connect(rig->qp[0], rig->qp[1], &rig->options.path);
}

void rig_free(struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (rig->qp[i])
			host_qp_destroy(rig->qp[i]);
	}
	for (i = 0; i < 2; i++) {
		if (rig->mr[i])
			host_mr_destroy(rig->mr[i]);
		if (rig->cq[i])
			host_cq_destroy(rig->cq[i]);
		host_pd_destroy(rig->pd[i]);
		host_context_destroy(rig->context[i]);
	}
	host_destroy(rig->host[0]);
	if (rig->host[1] != rig->host[0])
		host_destroy(rig->host[1]);
	wire_destroy(&rig->wire);
}

void rig_abandon(struct rig *rig)
{
	rig->host[0]->lost = true;
	rig->host[1]->lost = true;
	rig_free(rig);
}

void rig_run(struct rig *rig)
{
	wire_run(&rig->wire, SECOND);
}

struct host_wr rig_wr(const struct rig *rig, unsigned int side, enum ferry_wr opcode, uint64_t at,
		      uint64_t to, uint32_t len)
{
	return (struct host_wr) {
		.opcode = (uint8_t)opcode,
		.flags = FERRY_WQE_SIGNALED,
		.num_sge = 1,
		.sge[0].addr = rig->mr[side]->spec.iova + at,
		.sge[0].length = len,
		.sge[0].key = rig->mr[side]->key,
		.raddr = rig->mr[!side]->spec.iova + to,
		.rkey = rig->mr[!side]->key,
		.imm = { 1, 2, 3, 4 },
	};
}

uint32_t rig_post(struct rig *rig, unsigned int side, const struct host_wr *wr)
{
	uint32_t index = host_post_send(rig->qp[side], wr);

	host_ring_send(rig->qp[side]);
	return index;
}

void rig_recv(struct rig *rig, unsigned int side, uint64_t at, uint32_t len, uint16_t id)
{
	struct host_sge sge = {
		.addr = rig->mr[side]->spec.iova + at,
		.length = len,
		.key = rig->mr[side]->key,
	};

	host_post_recv(rig->qp[side], &sge, 1, id);
	host_ring_recv(rig->qp[side]);
}

struct host_wc rig_expect(struct rig *rig, unsigned int side, enum ferry_wc_status status,
			  uint16_t wqe_index)
{
	struct host_wc wc;

	need_that(host_poll(rig->cq[side], &wc), "side %u: no completion; %u with status %u was due",
		  side, wqe_index, status);
	need_that(wc.status == status && wc.wqe_index == wqe_index,
		  "side %u: completion of %u with status %u (vendor %u), not of %u with status %u",
		  side, wc.wqe_index, wc.status, wc.vendor_err, wqe_index, status);
	return wc;
}

void rig_expect_none(struct rig *rig, unsigned int side)
{
	struct host_wc wc;

	need_that(!host_poll(rig->cq[side], &wc),
		  "side %u: a completion of %u with status %u that was not due", side,
		  wc.wqe_index, wc.status);
}

bool rig_event(struct rig *rig, unsigned int side, enum ferry_event type, struct host_event *event)
{
	while (host_eq_next(rig->host[side], &rig->host[side]->eq, event)) {
		if (event->type == type)
			return true;
	}
	return false;
}

enum ferry_qp_state rig_state(struct rig *rig, unsigned int side)
{
	struct ferry_qp_attr attr;

	need_eq(host_qp_query(rig->qp[side], &attr), FERRY_ADMIN_OK);
	return (enum ferry_qp_state)attr.state;
}

bool rig_got(struct rig *rig, unsigned int side, uint64_t to, uint64_t from, uint32_t len)
{
	uint8_t data[RIG_MR_LEN];

	host_mr_read(rig->mr[side], to, data, len);
	return !memcmp(data, rig->image[!side] + from, len);
}

void rig_reconnect(struct rig *rig)
{
	need_eq(host_qp_state(rig->qp[0], FERRY_QPS_RESET), FERRY_ADMIN_OK);
	need_eq(host_qp_state(rig->qp[1], FERRY_QPS_RESET), FERRY_ADMIN_OK);
	host_connect(rig->qp[0], rig->qp[1], &rig->options.path);
}

void rig_check_traffic(struct rig *rig)
{
	unsigned int side;

	for (side = 0; side < 2; side++) {
		struct host_wr wr = rig_wr(rig, side, FERRY_WR_WRITE, 100, 40000, 3000);
		uint32_t index = rig_post(rig, side, &wr);

		rig_run(rig);
		rig_expect(rig, side, FERRY_WC_SUCCESS, (uint16_t)index);
		need(rig_got(rig, !side, 40000, 100, 3000));
	}
}
