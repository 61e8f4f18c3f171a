/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small driver and provider for an engine in the same process: memory, registers, admin
 * queue, objects, rings, records, doorbells. It does what a real host does, in the way the
 * interface asks for, so every test uses the engine from its public face.
 *
 * Numbers are in host order. One thread, unless a function says otherwise.
 */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "ferry_hw.h"
#include "hostmem.h"
#include "rng.h"

#define HOST_VECTORS	8
#define HOST_GID_IPV4	0	/* indices in the GID table */
#define HOST_GID_IPV6	1
#define HOST_SGES	16

struct host_options {
	uint64_t seed;
	unsigned int index;	/* makes MAC and GIDs; 0 to 255 */
	bool message;		/* the memory is never mapped */
	bool mixed;		/* some of it is not */
	bool poll;		/* FERRY_CAP_POLL */
	bool bare;		/* not even enabled */
};

/* Equal power-of-two blocks, scattered: a ring or an MR. */
struct host_blocks {
	unsigned int shift;
	uint32_t count;
	struct hostmem_chunk **chunk;
};

struct host_eq {
	uint32_t number;
	unsigned int shift;
	struct host_blocks ring;
	struct hostmem_chunk *index;	/* consumer index */
	uint32_t ci;
};

struct host;

/* Takes a frame from the host's device; false: it is not taken. */
typedef bool (*host_transmit_fn)(void *arg, struct host *from, const void *frame, size_t len);

/* Sees, and may change, each admin command before it is posted. */
typedef void (*host_mangle_fn)(void *arg, union ferry_admin_sqe *cmd);

struct host {
	struct hostmem mem;
	struct rng rng;
	struct ferry_engine *engine;
	unsigned int index;
	uint8_t mac[6];
	bool poll;
	bool verbose;
	bool lost;		/* the device answers no more: destroy without it */
	uint64_t now;		/* ns; the test moves it */
	uint64_t next;		/* when the engine wants to run */
	uint64_t deadline;	/* what it said of that last; next may be earlier */
	size_t budget;		/* bytes a run */
	bool asleep;		/* the engine was told to sleep */
	unsigned int allocations; /* the engine's, alive */
	unsigned int alloc_fails_at; /* counts down to the allocation that fails; 0: none */
	uint64_t interrupts[HOST_VECTORS];
	host_transmit_fn transmit;
	void *transmit_arg;
	host_mangle_fn mangle;
	void *mangle_arg;

	unsigned int admin_shift;
	struct hostmem_chunk *asq, *acq;
	uint32_t admin_pi, admin_ci;
	uint32_t detail;	/* of the last answer that was not OK */
	struct ferry_device_limits limits; /* as the device wrote them */

	struct hostmem_chunk *status; /* status page */
	struct host_eq eq;
};

struct host_context {
	struct host *host;
	uint32_t number;
	unsigned int num_pages;
	struct hostmem_chunk *page[8];
	uint64_t used[8];	/* slots, a bit each */
};

struct host_slot {
	struct host_context *context;
	struct hostmem_chunk *page;
	unsigned int index;
};

struct host_pd {
	struct host_context *context;
	uint32_t number;
};

struct host_cq {
	struct host_context *context;
	uint32_t number;
	unsigned int shift;	/* log2 of the depth */
	struct host_blocks ring;
	struct host_slot slot;
	uint32_t ci;
	uint32_t arm_seq;
};

struct host_ring {
	unsigned int shift;	/* log2 of the depth */
	unsigned int stride_shift;
	struct host_blocks blocks;
	struct host_slot slot;
	uint32_t pi;
};

struct host_qp_spec {
	struct host_pd *pd;
	struct host_cq *send_cq, *recv_cq;
	uint8_t type;		/* enum ferry_qp_type */
	bool signal_all;
	unsigned int sq_shift, rq_shift; /* log2 of the depths */
	unsigned int sq_stride_shift, rq_stride_shift; /* 0: 7 and 6 */
};

struct host_qp {
	struct host_pd *pd;
	struct host_cq *send_cq, *recv_cq;
	uint32_t number;
	struct host_ring sq, rq;
};

/* How two connected QPs talk; zeros are replaced by usable values. */
struct host_path {
	uint8_t mtu;		/* 1 to 5 */
	bool ipv6;
	uint32_t psn[2];	/* first PSN that each side sends */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t rd_atomic;
	uint8_t access;		/* FERRY_ACCESS_* that the peer has */
	uint8_t sl;
};

struct host_mr_spec {
	struct host_pd *pd;
	uint64_t length;
	uint64_t iova;
	uint64_t offset;	/* of the first byte in the first block */
	uint8_t access;
	unsigned int block_shift; /* 0: 12 */
	bool two_level;		/* even where the list would fit inline */
	bool assist;		/* FERRY_MR_ASSIST */
	struct host_mr *over;	/* whose blocks it names once more; NULL: it has its own */
};

struct host_mr {
	struct host_pd *pd;
	uint32_t key;
	struct host_mr_spec spec;
	struct host_blocks blocks;
};

struct host_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t key;
};

struct host_wr {
	uint8_t opcode;		/* enum ferry_wr */
	uint8_t flags;		/* FERRY_WQE_* */
	unsigned int num_sge;
	struct host_sge sge[HOST_SGES];
	const void *inline_data;
	uint16_t inline_len;
	uint8_t imm[4];
	uint32_t inv_key;
	uint64_t raddr;
	uint32_t rkey;
	uint64_t swap_or_add, compare;
};

/* A CQE. */
struct host_wc {
	uint32_t qpn;
	uint16_t wqe_index;
	uint8_t status;		/* enum ferry_wc_status */
	uint8_t op;		/* enum ferry_wc */
	uint32_t byte_len;
	uint8_t imm[4];
	uint32_t inv_key;
	uint8_t flags;		/* FERRY_CQE_* */
	uint8_t vendor_err;
};

struct host_event {
	uint8_t type;		/* enum ferry_event */
	uint32_t number;
	uint64_t data;
};

/* ---- the host and its device (host.c) */

/* Enabled, with status page, an EQ, GIDs and the port up, unless it is to be bare. */
struct host *host_create(const struct host_options *options);
void host_destroy(struct host *host);
bool host_enable(struct host *host);
void host_bring_up(struct host *host);

/* Calls the engine once at host->now. */
void host_run(struct host *host);

/* Runs it until it says that nothing is due. False: it did not come to an end. */
bool host_settle(struct host *host);

/* Settles, then lets the engine sleep if it agrees. */
bool host_sleep(struct host *host);

/* A frame from the link. */
void host_frame(struct host *host, const void *frame, size_t len);

/* One 64-bit store to a doorbell page. */
void host_doorbell(struct host *host, uint32_t page, uint64_t value);

/*
 * One admin command; its id is filled in. Returns enum ferry_admin_status, or
 * FERRY_ADMIN_STATUS_COUNT if there was no answer. @answer may be NULL.
 */
unsigned int host_admin(struct host *host, union ferry_admin_sqe *cmd,
			struct ferry_admin_cqe *answer);

/* Commands that name one object. */
unsigned int host_admin_object(struct host *host, unsigned int opcode, uint32_t number,
			       struct ferry_admin_cqe *answer);

uint64_t host_counter(struct host *host, enum ferry_counter counter);
void host_gid(const struct host *host, bool ipv6, uint8_t gid[16]);

bool host_eq_create(struct host *host, struct host_eq *eq, unsigned int shift, uint16_t vector);
bool host_eq_next(struct host *host, struct host_eq *eq, struct host_event *event);

/* ---- objects (host_objects.c). NULL: refused; host->detail has more. */

bool host_blocks_alloc(struct host *host, struct host_blocks *blocks, uint64_t bytes,
		       unsigned int shift);
void host_blocks_free(struct host *host, struct host_blocks *blocks);
void *host_blocks_at(const struct host_blocks *blocks, uint64_t pos);
void host_blocks_allow(struct host *host, const struct host_blocks *blocks, uint64_t pos,
		       uint64_t len, unsigned int rights);
void host_blocks_deny(struct host *host, const struct host_blocks *blocks, uint64_t pos,
		      uint64_t len, unsigned int rights);

/* What a two-level list needs while a command is answered. */
struct host_list {
	struct hostmem_chunk *root;
	struct host_blocks leaves;
};

void host_list_build(struct host *host, const struct host_blocks *blocks, bool two_level,
		     struct ferry_page_list *out, struct host_list *list);
void host_list_free(struct host *host, struct host_list *list);

struct host_context *host_context_create(struct host *host, unsigned int record_pages);
void host_context_destroy(struct host_context *context);
struct host_slot host_slot_get(struct host_context *context);
void host_slot_put(struct host_slot *slot);
uint64_t host_slot_addr(const struct host_slot *slot);
struct ferry_slot *host_slot_at(const struct host_slot *slot);

struct host_pd *host_pd_create(struct host_context *context);
void host_pd_destroy(struct host_pd *pd);
struct host_cq *host_cq_create(struct host_context *context, unsigned int shift);
void host_cq_destroy(struct host_cq *cq);
struct host_qp *host_qp_create(const struct host_qp_spec *spec);
void host_qp_destroy(struct host_qp *qp);
unsigned int host_qp_modify(struct host_qp *qp, const struct ferry_qp_attr *attr);
unsigned int host_qp_state(struct host_qp *qp, enum ferry_qp_state state);
unsigned int host_qp_query(struct host_qp *qp, struct ferry_qp_attr *attr);

/* Attributes that take @qp to @state on the way to RTS. @side is its side of the path. */
void host_qp_attr(const struct host_qp *qp, const struct host_qp *peer,
		  const struct host_path *path, unsigned int side, enum ferry_qp_state state,
		  struct ferry_qp_attr *attr);

/* Takes both to RTS. They may be of one host, or one QP. */
void host_connect(struct host_qp *a, struct host_qp *b, const struct host_path *path);

struct host_mr *host_mr_create(const struct host_mr_spec *spec);
void host_mr_destroy(struct host_mr *mr);

/* Bytes of the MR, from its first on; and of the blocks around it. */
void host_mr_write(struct host_mr *mr, uint64_t pos, const void *from, uint64_t len);
void host_mr_read(const struct host_mr *mr, uint64_t pos, void *to, uint64_t len);
void host_mr_fill(struct host_mr *mr, uint8_t value);

/* All that the blocks have outside the MR still is what host_mr_create() wrote there. */
bool host_mr_guards_intact(const struct host_mr *mr);

/* ---- queues (host_queues.c) */

/* Writes an entry; nothing is announced before the ring function. Returns its index. */
uint32_t host_post_send(struct host_qp *qp, const struct host_wr *wr);
uint32_t host_post_recv(struct host_qp *qp, const struct host_sge *sge, unsigned int num_sge,
			uint16_t id);
void host_ring_send(struct host_qp *qp);
void host_ring_recv(struct host_qp *qp);

/* Announces any doorbell word for a slot, as a provider would. */
void host_announce(struct host_slot *slot, uint64_t word);

bool host_poll(struct host_cq *cq, struct host_wc *wc);

/* The entry @ahead behind the next, without taking any. */
bool host_peek(const struct host_cq *cq, uint32_t ahead, struct host_wc *wc);
void host_arm(struct host_cq *cq, bool solicited);

#endif
