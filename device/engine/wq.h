/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work queues as the host fills them: SQ, RQ, SRQ.
 */
#ifndef FERRY_WQ_H
#define FERRY_WQ_H

#include "context.h"
#include "eq.h"
#include "mr.h"

#define MAX_SGE		16
#define MAX_INLINE	256
#define MAX_WQ_SHIFT	14
#define WQ_CACHE_SIZE	4096	/* entries fetched by one message */

struct wq {
	struct region ring;
	struct record_slot slot;
	uint32_t depth;		/* 0: the queue does not exist */
	uint8_t shift;		/* log2 of an entry's size */
	uint32_t pi;		/* the host's, as taken last */
	uint32_t ci;		/* entries before it are done with */
	uint8_t *cache;		/* NULL: the ring is mapped */
	uint32_t cache_first, cache_count;
};

struct wq_params {
	const struct ferry_page_list *pages;
	uint64_t slot_addr;
	uint8_t depth_shift, wqe_shift;
	uint8_t wqe_shift_min;
};

/* What is wrong with the parameters, as pages_region() says it. */
enum wq_field { WQ_DEPTH, WQ_STRIDE, WQ_SLOT, WQ_PAGES };

enum ferry_admin_status wq_create(struct ferry_engine *e, struct wq *wq, struct context *context,
				  const struct wq_params *params, enum wq_field *field,
				  uint32_t *detail);
void wq_destroy(struct ferry_engine *e, struct wq *wq);
void wq_reset(struct wq *wq);

/* Takes a producer index from the host; false: it is none. */
bool wq_take_index(struct wq *wq, uint32_t index);

/* Looks for new entries in the record. */
void wq_refresh(struct ferry_engine *e, struct wq *wq, enum ferry_db type, uint32_t number);

/*
 * Entry @index as the host has it, which may change it meanwhile: copy each byte once.
 * NULL if it cannot be read.
 */
const uint8_t *wq_entry(struct ferry_engine *e, struct wq *wq, uint32_t index);

/* A receive that was taken from its queue. */
struct recv {
	uint16_t id;
	bool bad;		/* it cannot be read, or makes no sense */
	uint8_t num_sge;
	uint32_t len;		/* bytes of all SGEs */
	struct sge sge[MAX_SGE];
};

/* Takes the next receive; there must be one. */
void recv_read(struct ferry_engine *e, struct wq *wq, struct recv *recv);

struct srq {
	struct event_source source;
	struct context *context;
	struct pd *pd;
	struct wq wq;
	uint16_t limit;
	bool failed;
	uint32_t users;		/* QPs */
};

/* The limit event, when it is due. */
void srq_check_limit(struct ferry_engine *e, struct srq *srq);

#endif
