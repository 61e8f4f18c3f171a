/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What most tests stand on: a device, registered memory, and two RC QPs of this process
 * that are connected with each other. Every function here ends the test when it fails.
 */
#ifndef RIG_H
#define RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "tap.h"

struct options {
	const char *dev;		/* name; NULL: the first device */
	int gid;			/* index; -1: an IPv4 RoCEv2 GID, else any RoCEv2 GID */
	const char *only;
	bool list;
	uint64_t seed;
	unsigned int seconds;		/* 0: not limited by time */
	unsigned int iterations;
	size_t memory;			/* bytes a test may register on one side */
	uint8_t ack_timeout;		/* Local ACK Timeout: 4.096 us << this */
	bool plain;			/* no fences, receives before sends, no empty READs and WRITEs */
	const char *listen;		/* port */
	const char *peer;		/* host:port */
};
extern struct options options;

void options_parse(int argc, char **argv, const char *what);

struct ibv_context *open_device(void);
/* Of port 1. */
int find_gid(struct ibv_context *ctx, union ibv_gid *gid);

uint64_t now_us(void);

/* Registered memory, page-aligned, behind it a page that faults. */
struct region {
	uint8_t *addr;
	size_t len;
	struct ibv_mr *mr;
};

#define ACCESS_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

void region_create(struct region *region, struct ibv_pd *pd, size_t len, int access);
void region_destroy(struct region *region);
struct ibv_sge region_sge(const struct region *region, size_t offset, uint32_t len);

/* How the two QPs are made. */
struct rig_attr {
	uint32_t send_wr;
	uint32_t recv_wr;
	uint32_t send_sge;
	uint32_t recv_sge;
	uint32_t inline_bytes;
	int cqe;			/* of each of the two CQs */
	unsigned int qp_access;		/* IBV_ACCESS_* that the peer has */
	enum ibv_mtu mtu;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
	bool same_pd;
	bool events;			/* CQs on a completion channel each */
	size_t bytes;			/* of the region of each end */
	int access;			/* IBV_ACCESS_* of the regions */
};

/* Quick to give up where a test waits for that; never where it does not. */
struct rig_attr rig_defaults(void);

struct end {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct region mem;
	uint32_t psn;
};

/* The parts, for tests with more than two. */
void end_create(struct end *end, struct ibv_pd *pd, const struct rig_attr *attr, uint64_t seed);
void end_destroy(struct end *end);
void ends_connect(struct end *a, struct end *b, const struct rig_attr *attr);

struct rig {
	struct ibv_context *ctx;
	struct rig_attr attr;
	struct end a;			/* by custom the requester */
	struct end b;
};

/* Both QPs in RTS; rig_create() leaves them in RESET. */
void rig_connect_new(struct rig *rig, const struct rig_attr *attr);
void rig_create(struct rig *rig, const struct rig_attr *attr);
void rig_connect(struct rig *rig);
/* Destroys what is left of it, and each call must succeed. */
void rig_destroy(struct rig *rig);

struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_cq *cq, const struct rig_attr *attr);
void qp_destroy(struct ibv_qp **qp);

/* Where the QP that @qp talks to is. */
struct remote_qp {
	uint32_t qpn;
	uint32_t psn;
	union ibv_gid gid;
};

void qp_to_init(struct ibv_qp *qp, const struct rig_attr *attr);
void qp_to_rtr(struct ibv_qp *qp, const struct rig_attr *attr, const struct remote_qp *remote);
void qp_to_rts(struct ibv_qp *qp, const struct rig_attr *attr, uint32_t psn);
void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state qp_state(struct ibv_qp *qp);
struct ibv_qp_attr qp_query(struct ibv_qp *qp, struct ibv_qp_init_attr *init);

/* Work requests: signalled, all else zero. */
struct ibv_send_wr send_wr(uint64_t id, enum ibv_wr_opcode op, struct ibv_sge *sge, int num_sge);
void wr_to(struct ibv_send_wr *wr, const struct region *region, size_t offset);
void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr);
void post_recv(struct ibv_qp *qp, uint64_t id, struct ibv_sge *sge, int num_sge);

/* Waits at most 20 s for one completion; need_wc() also wants that one. */
struct ibv_wc wait_wc(struct ibv_cq *cq);
#define need_wc(cq, id, want) need_wc_at(__FILE__, __LINE__, cq, id, want)
struct ibv_wc need_wc_at(const char *file, int line, struct ibv_cq *cq, uint64_t id,
			 enum ibv_wc_status want);
/* No completion comes for @ms. */
void need_quiet(struct ibv_cq *cq, unsigned int ms);

#define need_state(qp, want) \
	need_that(qp_state(qp) == (want), "%s is in state %s, not %s", #qp, \
		  state_name(qp_state(qp)), state_name(want))
const char *state_name(enum ibv_qp_state state);

/* 4 KiB from a to b, and every byte is compared. */
void rig_message(struct rig *rig);
/* The same with all new objects: the device is as good as ever. */
void need_device(void);

/* Waits at most 10 s for that asynchronous event about @object, and acknowledges it. */
void need_event(struct ibv_context *ctx, enum ibv_event_type type, const void *object);

/* A pattern that differs at every offset and for every @seed. */
void fill(void *to, size_t len, uint64_t seed);
uint64_t mix64(uint64_t x);

#endif
