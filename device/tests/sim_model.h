/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a simulation: sim.c makes the world and lets time pass, sim_traffic.c
 * posts and checks, sim_memory.c knows what memory must hold.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "sim.h"

struct sim;
struct sim_side;

/* An MR, and what it must hold. */
struct sim_mr {
	struct host_mr *mr;
	uint8_t *shadow;
};

enum sim_use {
	SIM_SOURCE,		/* of SENDs and WRITEs; no rights at all */
	SIM_SINK,		/* of READs and atomics */
	SIM_RECV,
	SIM_TARGET,		/* of the peer's WRITEs; the peer READs it as well */
	SIM_LIBRARY,		/* what the peer READs */
	SIM_CELLS,		/* of the peer's atomics */
	SIM_USES
};

/* A side's part of an MR. The first three are used as rings: head and tail run free. */
struct sim_area {
	struct sim_mr *mr;
	uint64_t base, len;	/* in the MR */
	uint64_t head, tail;
};

struct sim_sges {
	unsigned int count;
	struct host_sge sge[HOST_SGES];
	uint64_t pos[HOST_SGES]; /* in the area */
	uint32_t len;		/* of all */
};

struct sim_op {
	enum sim_kind kind;
	uint32_t index;		/* of its WQE */
	uint32_t psn, num_psns;
	uint32_t len;
	bool signaled;
	bool from_target;	/* READs the peer's target area... */
	uint64_t remote_pos;	/* ...from here on */
	bool unknown;		/* an atomic on the cell that all share */
	unsigned int faults;	/* bits of enum sim_column */
	struct sim_sges sges;
	uint8_t *data;		/* what a READ or an atomic must bring; else NULL */
	uint64_t source_end, sink_end; /* where the ring may go on from; 0: nothing taken */
	uint32_t recv;		/* the receive that it consumes */
	uint8_t expect;		/* enum ferry_wc_status */
};

/* What a receive must bring. */
struct sim_expect {
	enum sim_kind kind;
	uint32_t len;
	bool solicited;
	uint8_t imm[4];
	uint8_t *data;		/* SENDs */
	uint8_t status;		/* enum ferry_wc_status */
};

struct sim_recv {
	uint16_t id;
	struct sim_sges sges;
	uint64_t end;
};

/* A queue of elements of one size. */
struct sim_queue {
	size_t size;
	uint32_t head, tail, capacity; /* entries [tail, head), free-running */
	uint8_t *entries;
};

struct sim_cq {
	struct host_cq *cq;
	bool by_event;		/* polled only when an event says so */
	bool armed;
};

struct sim_host {
	struct sim *sim;
	struct host *host;
	struct host_context *context[2];
	struct host_pd *pd[2];
	struct sim_mr mrs[2][SIM_USES]; /* a set for each PD */
	unsigned int num_cqs;
	struct sim_cq cqs[2][SIM_CQS];
	uint64_t interrupts;	/* as seen last */
	uint64_t area_used[2][SIM_USES];
};

struct sim_side {
	struct sim *sim;
	struct sim_side *peer;
	struct sim_host *host;
	unsigned int set;	/* context, PD and MRs that it uses */
	unsigned int number;	/* 0 or 1 of the connection */
	struct host_path *path;
	struct host_qp *qp;
	struct sim_cq *send_cq, *recv_cq;
	struct sim_area area[SIM_USES];
	unsigned int max_sge_send, max_sge_recv;
	unsigned int sq_depth, rq_depth;
	uint32_t max_message;	/* that it receives */
	uint64_t recv_seed;	/* of the sizes of its receives */
	bool recv_late;
	uint64_t recv_at;	/* not before then, when late */

	struct sim_queue ops;	/* posted, not completed */
	struct sim_queue recvs;	/* posted, not completed */
	struct sim_queue expects; /* what peers have sent, not received */
	uint32_t sends_posted;	/* that consume a receive of the peer */
	uint32_t recvs_posted, recvs_done;
	uint32_t next_psn;
	uint32_t unsignaled;	/* in a row */
	bool unrung;
	bool closing;		/* everything is signalled from now on */
	bool broken;		/* in the error state */
};

struct sim_conn {
	struct host_path path;
	struct sim_side side[2];
	bool local;
	bool cut;
};

struct sim {
	uint64_t seed;
	struct rng rng;
	struct rng fault_rng;
	struct wire wire;
	bool verbose;
	unsigned int num_hosts, num_conns;
	struct sim_host hosts[SIM_HOSTS];
	struct sim_conn conns[SIM_CONNS];
	unsigned int percent[WIRE_FAULTS]; /* of frames; by bit of WIRE_* */
	uint8_t losses[1 << 12]; /* how often a packet was lost, by hash */
	unsigned int to_post;	/* operations still to be posted */
	bool moving;		/* memory moves now and then */
	uint32_t big_message;
	uint64_t iova[SIM_USES]; /* where every MR of that use begins */
	struct sim_table *table;
};

/* ---- sim_memory.c */

void sim_mr_create(struct sim *sim, struct sim_mr *mr, struct host_pd *pd, uint64_t length,
		   enum sim_use use);
void sim_mr_destroy(struct sim_mr *mr);

/* Memory and model alike, or the model alone. */
void sim_put(struct sim_area *area, uint64_t pos, const void *data, uint64_t len);
void sim_foresee(struct sim_area *area, uint64_t pos, const void *data, uint64_t len);
void sim_recall(const struct sim_area *area, uint64_t pos, void *data, uint64_t len);
bool sim_holds(const struct sim_area *area, uint64_t pos, uint64_t len);

/* Every byte of the MR and around it. */
void sim_mr_check(const struct sim_mr *mr, const char *name);
uint64_t sim_addr(const struct sim_area *area, uint64_t pos);

/*
 * Takes @len bytes of a ring in up to @max pieces, in any order and with gaps; false: the
 * ring is full. @end: what tail may become once they are free.
 */
bool sim_take(struct sim *sim, struct sim_area *area, uint32_t len, unsigned int max,
	      struct sim_sges *sges, uint64_t *end);
void sim_release(struct sim_area *area, uint64_t end);

void sim_queue_init(struct sim_queue *queue, size_t size);
void sim_queue_free(struct sim_queue *queue);
uint32_t sim_queue_count(const struct sim_queue *queue);
void *sim_queue_add(struct sim_queue *queue); /* zeroed */
void *sim_queue_at(const struct sim_queue *queue, uint32_t i); /* from the oldest */
void sim_queue_drop(struct sim_queue *queue);

/* ---- sim_traffic.c */

/* Posts one operation, if there is room. */
bool sim_post(struct sim_side *side);
bool sim_post_receive(struct sim_side *side);

/* Posts an operation that is flushed, or one that fails in the way of @ending. */
bool sim_post_doomed(struct sim_side *side, uint8_t expect);
bool sim_post_ending(struct sim_side *side, enum sim_ending ending);
void sim_ring(struct sim_side *side);

/* Takes what there is, up to @most completions; true: something. */
bool sim_poll(struct sim *sim, struct sim_host *host, struct sim_cq *cq, unsigned int most);

/* The operation of @side that @psn belongs to; NULL: none under way. */
struct sim_op *sim_op_by_psn(struct sim_side *side, uint32_t psn);

#endif
