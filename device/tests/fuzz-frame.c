// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames into an engine whose QP is in the midst of traffic. Most are made right at the
 * end (lengths, checksums, ICRC), so that they get past the first checks.
 */
#include <endian.h>
#include <string.h>

#include "fuzz.h"
#include "rig.h"
#include "tap.h"

static struct rig rig;

static unsigned int drop_all(void *arg, struct host *from, struct host *to, const uint8_t *data,
			     const struct frame *frame)
{
	(void)arg;
	(void)from;
	(void)to;
	(void)data;
	(void)frame;
	return WIRE_LOSS;
}

static uint32_t near_psn(struct fuzz_tape *tape)
{
	return (uint32_t)(fuzz_below(tape, 24) - 8) & 0xffffff;
}

/* Fields that are right more often than not. */
static void make_frame(struct fuzz_tape *tape)
{
	static uint8_t payload[4100], data[FRAME_MAX];
	const struct host_mr *mr = rig.mr[0];
	struct frame frame = {
		.opcode = (uint8_t)fuzz_below(tape, 0x18),
		.psn = near_psn(tape),
		.dest_qpn = rig.qp[0]->number,
		.rkey = mr->key,
		.inv_key = mr->key,
		.syndrome = (uint8_t)fuzz_take(tape, 1),
		.ack_request = fuzz_below(tape, 2),
		.solicited = fuzz_below(tape, 2),
		.ipv6 = rig.options.path.ipv6,
	};
	uint32_t how = (uint32_t)fuzz_take(tape, 1), changes = fuzz_below(tape, 4);
	size_t len = how & 1 ? 1024 : fuzz_below(tape, 4097);

	if (frame.opcode == 0x15)
		frame.opcode = FRAME_ACK;
	frame.raddr = mr->spec.iova + fuzz_below(tape, RIG_MR_LEN + 64) - 32;
	frame.dma_len = how & 2 ? (uint32_t)len : fuzz_below(tape, 1u << 20);
	frame.compare = fuzz_take(tape, 1);
	if (how & 4)
		frame.raddr &= ~7ull;
	if (frame.opcode == FRAME_READ_REQUEST || frame.opcode == FRAME_ACK ||
	    (frame.opcode >= FRAME_ATOMIC_ACK && frame.opcode <= FRAME_FETCH_ADD))
		len = how & 8 ? len : 0;
	len = frame_build(data, rig.host[1], rig.host[0], &frame, payload, len);
	while (changes--)
		data[fuzz_below(tape, 90)] = (uint8_t)fuzz_take(tape, 1);
	if ((how & 0x30) == 0x30)
		len = fuzz_below(tape, (uint32_t)len + 1);
	if ((how & 0xc0) != 0xc0)
		frame_finish(data, len);
	host_frame(rig.host[0], data, len);
}

static void raw_frame(struct fuzz_tape *tape)
{
	uint8_t data[256];
	size_t len = fuzz_below(tape, 256), i;

	for (i = 0; i < len; i++)
		data[i] = (uint8_t)fuzz_take(tape, 1);
	if (fuzz_below(tape, 2) && len > 6)
		memcpy(data, rig.host[0]->mac, 6);
	host_frame(rig.host[0], data, len);
}

/* The QP has requests under way, so answers may fit. */
static void post(struct fuzz_tape *tape)
{
	static const enum ferry_wr wrs[] = {
		FERRY_WR_SEND, FERRY_WR_WRITE, FERRY_WR_READ, FERRY_WR_ATOMIC_FA,
	};
	enum ferry_wr op = wrs[fuzz_below(tape, 4)];
	uint32_t len = op == FERRY_WR_ATOMIC_FA ? 8 : fuzz_below(tape, 5000);
	struct host_wr wr = rig_wr(&rig, 0, op, fuzz_below(tape, 1000), 0, len);
	struct host_wc wc;

	while (host_poll(rig.cq[0], &wc))
		need(wc.status < FERRY_WC_STATUS_COUNT);
	if (rig_state(&rig, 0) != FERRY_QPS_RTS)
		rig_reconnect(&rig);
	rig_post(&rig, 0, &wr);
	rig_recv(&rig, 0, fuzz_below(tape, 30000), fuzz_below(tape, 5000), 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_tape tape = { .data = data, .size = size };
	struct rig_options o = { .path.timeout = 10, .path.rd_atomic = 2,
				 .path.rnr_retry = 1 };
	uint32_t way = (uint32_t)fuzz_take(&tape, 1);

	o.message = way & 1;
	o.path.ipv6 = way & 2;
	rig_init(&rig, &o);
	rig.wire.judge = drop_all;
	while (fuzz_left(&tape)) {
		uint32_t what = fuzz_below(&tape, 16);

		if (what < 11)
			make_frame(&tape);
		else if (what < 12)
			raw_frame(&tape);
		else if (what < 15)
			post(&tape);
		wire_run(&rig.wire, what == 15 ? 100000 : 100);
	}
	need(host_mr_guards_intact(rig.mr[0]));
	need(!(ferry_engine_reg_read(rig.host[0]->engine, FERRY_REG_STATUS) & FERRY_STATUS_FATAL));
	/* After all that it still works. */
	rig.wire.judge = NULL;
	while (host_poll(rig.cq[0], &(struct host_wc) { 0 }))
		;
	host_mr_read(rig.mr[0], 0, rig.image[0], RIG_MR_LEN);
	host_mr_read(rig.mr[1], 0, rig.image[1], RIG_MR_LEN);
	rig_reconnect(&rig);
	rig_check_traffic(&rig);
	rig_free(&rig);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	return fuzz_main(argc, argv, 1500, LLVMFuzzerTestOneInput);
}
#endif
