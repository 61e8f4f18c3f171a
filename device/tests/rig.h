/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two connected QPs and what they need, for tests of one thing at a time.
 */
#ifndef RIG_H
#define RIG_H

#include "wire.h"

#define RIG_MR_LEN	65536
#define RIG_ACCESS	(FERRY_ACCESS_LOCAL_WRITE | FERRY_ACCESS_REMOTE_WRITE | \
			 FERRY_ACCESS_REMOTE_READ | FERRY_ACCESS_REMOTE_ATOMIC)

struct rig_options {
	bool local;		/* both QPs in one NIC */
	bool message;		/* memory is not mapped */
	bool no_poll;		/* without FERRY_CAP_POLL */
	bool unconnected;	/* the QPs stay in RESET */
	unsigned int cq_shift;	/* 0: 8 */
	unsigned int sq_shift, rq_shift; /* 0: 4 */
	struct host_path path;	/* access 0: all */
};

/* With @local the second host is the first. */
struct rig {
	struct rig_options options;
	struct wire wire;
	struct host *host[2];
	struct host_context *context[2];
	struct host_pd *pd[2];
	struct host_cq *cq[2];	/* of sends and receives */
	struct host_qp *qp[2];
	struct host_mr *mr[2];
	uint8_t image[2][RIG_MR_LEN]; /* what the MRs held at first */
};

void rig_init(struct rig *rig, const struct rig_options *options);

/* Destroys everything, by commands, and demands that it goes. */
void rig_free(struct rig *rig);

/* The same where the devices may be dead. */
void rig_abandon(struct rig *rig);

/* Lets things happen until nothing does, 1 s at most. */
void rig_run(struct rig *rig);

/* A work request of @len bytes from offset @at of the side's MR to @to of the peer's. */
struct host_wr rig_wr(const struct rig *rig, unsigned int side, enum ferry_wr opcode, uint64_t at,
		      uint64_t to, uint32_t len);

/* Posts one, rings, returns its index. */
uint32_t rig_post(struct rig *rig, unsigned int side, const struct host_wr *wr);

/* Posts a receive of @len bytes at @at. */
void rig_recv(struct rig *rig, unsigned int side, uint64_t at, uint32_t len, uint16_t id);

/* The next completion of the side's CQ must be this one. */
struct host_wc rig_expect(struct rig *rig, unsigned int side, enum ferry_wc_status status,
			  uint16_t wqe_index);

/* Nothing has come. */
void rig_expect_none(struct rig *rig, unsigned int side);

/* The next event of the side's host, skipping those of other types; false: none. */
bool rig_event(struct rig *rig, unsigned int side, enum ferry_event type,
	       struct host_event *event);

enum ferry_qp_state rig_state(struct rig *rig, unsigned int side);

/* Whether @len bytes at @to of the side's MR are the peer's first image from @from on. */
bool rig_got(struct rig *rig, unsigned int side, uint64_t to, uint64_t from, uint32_t len);

/* Takes both QPs through RESET to RTS again. */
void rig_reconnect(struct rig *rig);

/* Both sides work: a WRITE each way. */
void rig_check_traffic(struct rig *rig);

#endif
