/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread that runs the engine, and all that only it may touch: the DMA table, the
 * Ethernet port, the engine. Others reach it in two ways: the queue, for what needs no
 * answer, and shard_call(), for what does.
 */
#ifndef VNIC_SHARD_H
#define VNIC_SHARD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dma.h"
#include "dma_message.h"
#include "engine.h"
#include "irq.h"
#include "queue.h"
#include "raw.h"
#include "ether.h"
#include "shadow.h"

/* Run by the shard, between two calls of the engine. */
typedef void (*shard_work)(void *arg);

struct shard_config {
	struct ferry_engine_config engine;
	bool message;			/* DMA by messages */
	uint32_t refuse;		/* as ferry_engine_refuse() takes it */
	const char *raw;		/* a FIFO, see raw.h; or NULL */
	struct irq_table *irqs;
	struct dma_message *messages;	/* with message */
	struct link *link;		/* taken over, also when shard_init() fails */
	struct pcap *pcap;		/* likewise; or NULL */
	const struct impair_config *impair;	/* or NULL */
};

struct shard_stats {
	uint64_t doorbells;
	uint64_t registers;
	uint64_t calls;
	uint64_t runs;
	uint64_t naps;
	uint64_t sleeps;
	uint64_t refused_sleeps;	/* the engine found work when it looked once more */
};

struct shard {
	struct ferry_engine *engine;
	bool message;
	bool poll;
	struct irq_table *irqs;
	struct dma_message *messages;

	/* Shared with the client's thread. */
	struct queue queue;
	atomic_bool waiting;		/* the shard is, or is about to be, in ppoll */
	atomic_bool dma_allowed;
	atomic_bool stop;
	atomic_bool stats_asked;
	atomic_uint resets_asked;	/* CTRL writes of RESET, pushed */
	atomic_uint resets_done;	/* and carried out */
	_Atomic(shard_work) work;	/* of the call in hand, or NULL */
	void *work_arg;
	sem_t work_done;
	int wake_fd;
	pthread_t thread;
	bool started;

	/* The shard's own. */
	struct dma_table dma;
	struct shadow *shadow;		/* or NULL: see shadow.h */
	struct ether ether;
	struct raw raw;
	bool carrier;			/* what the engine was told */
	bool awake;			/* likewise, with poll */
	uint64_t now;
	bool busy;			/* the last run() did something */
	uint64_t active;		/* when something was last done */
	uint64_t next_link;
	struct shard_stats stats;
};

/* The engine's way out; for shard_init(). */
void shard_fill_port(struct shard *shard, struct ferry_port *port);

/* 0, or -1 after an error line. */
int shard_init(struct shard *shard, const struct shard_config *config);
int shard_start(struct shard *shard);

/* Ends the thread, if it was started, and frees everything. */
void shard_destroy(struct shard *shard);

/*
 * Runs @work on the shard's thread and returns when it has returned; on the caller's if
 * the thread is not started. For the client's thread. What was queued before is
 * carried out before. A shard that waits for a DMA message must be aborted first.
 */
void shard_call(struct shard *shard, shard_work work, void *arg);

/* Likewise for the client's thread. */
void shard_write_register(struct shard *shard, uint32_t offset, uint32_t value);
void shard_doorbell(struct shard *shard, uint32_t page, uint64_t value);

/*
 * Any thread. The engine runs only while memory may be accessed; in the middle of a run
 * its accesses fail from this moment.
 */
void shard_allow_dma(struct shard *shard, bool allowed);

static inline bool shard_may_access_memory(const struct shard *shard)
{
	return atomic_load_explicit(&shard->dma_allowed, memory_order_relaxed);
}

/* Any thread. */
uint32_t shard_read_register(struct shard *shard, uint32_t offset);

/* Everything that is due, once, without waiting: for a shard without a thread. */
void shard_run_once(struct shard *shard);

/* Has the shard write its counts to standard error, soon. Any thread. */
void shard_log_stats(struct shard *shard);

#endif
