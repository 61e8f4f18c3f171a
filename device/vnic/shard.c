// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/sched/types.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "ferry_hw.h"
#include "log.h"
#include "shard.h"

#define RUN_BYTES	(128u << 10)	/* payload between two looks at queue and link */
#define FRAMES		32u		/* from the link between two runs of the engine */
#define DOORBELLS	1024u		/* from the queue, likewise */
#define LINK_PERIOD	(2 * NSEC_PER_USEC)

/*
 * How to wait; doc/performance.md has the measurements. A guest answers within 4 to 8 us when
 * both of its CPUs run, so spin a little longer than that. But we may be on the core of the
 * very CPU that has to answer: so give the core away after that, and for long enough that
 * the scheduler still owes us time when we come back and lets us in at once. Sleep when it
 * seems over.
 */
#define SPIN		(10 * NSEC_PER_USEC)
#define NAP		(30 * NSEC_PER_USEC)
#define SLEEP_AFTER	NSEC_PER_MSEC
#define SLICE		(100 * NSEC_PER_USEC)

static void deliver_frame(void *to, const void *frame, size_t len)
{
	struct shard *shard = to;

	/* Without access to memory there is nowhere to put it. */
	if (!shard_may_access_memory(shard))
		return;
	ferry_engine_frame(shard->engine, frame, len);
}

/* ---------------------------------------------------------------- life and death */

int shard_init(struct shard *shard, const struct shard_config *config)
{
	struct ferry_engine_config engine = config->engine;
	struct ferry_port port;

	memset(shard, 0, sizeof(*shard));
	shard->message = config->message;
	shard->poll = engine.poll;
	shard->irqs = config->irqs;
	shard->messages = config->messages;
	shard->raw.fd = -1;
	shard->now = clock_now();
	dma_init(&shard->dma);
	ether_init(&shard->ether, config->link, config->pcap, config->impair, deliver_frame, shard);
	shard->carrier = shard->ether.carrier;
	engine.link_up = shard->carrier;
	engine.speed_mbps = config->link->speed_mbps;
	sem_init(&shard->work_done, 0, 0);

	shard->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (shard->wake_fd < 0) {
		log_error("no eventfd: %s", strerror(errno));
		goto fail;
	}
	shard_fill_port(shard, &port);
	shard->engine = ferry_engine_create(&engine, &port);
	if (!shard->engine) {
		log_error("out of memory for the engine");
		goto fail;
	}
	ferry_engine_refuse(shard->engine, config->refuse);
	if (config->raw && raw_open(&shard->raw, config->raw))
		goto fail;
	return 0;

fail:
	shard_destroy(shard);
	return -1;
}

void shard_destroy(struct shard *shard)
{
	if (shard->started) {
		atomic_store(&shard->stop, true);
		if (eventfd_write(shard->wake_fd, 1))
			log_error("cannot wake the shard: %s", strerror(errno));
		pthread_join(shard->thread, NULL);
	}
	if (shard->engine)
		ferry_engine_destroy(shard->engine);
	if (shard->wake_fd >= 0)
		close(shard->wake_fd);
	sem_destroy(&shard->work_done);
	raw_close(&shard->raw);
	ether_close(&shard->ether);
	dma_clear(&shard->dma);
	shadow_close(shard->shadow);
}

/* ------------------------------------------------------------- from other threads */

/*
 * Wakes the shard if it waits. The caller has published what it has for it; the fence
 * orders that before the look at `waiting`, as the shard's orders its store to `waiting`
 * before its last look at what is published: one of the two sees the other (litmus
 * doorbell-sleep).
 */
static void wake(struct shard *shard)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&shard->waiting, memory_order_relaxed) &&
	    eventfd_write(shard->wake_fd, 1) && errno != EAGAIN)
		log_few("cannot wake the shard: %s", strerror(errno));
}

void shard_call(struct shard *shard, shard_work work, void *arg)
{
	if (!shard->started) {
		work(arg);
		return;
	}
	shard->work_arg = arg;
	/* Release: the argument before the work that uses it. */
	atomic_store_explicit(&shard->work, work, memory_order_release);
	wake(shard);
	while (sem_wait(&shard->work_done))
		;
}

static void do_nothing(void *arg)
{
	(void)arg;
}

/*
 * A guest posts faster than the shard takes: hold it back. With DMA by messages the shard
 * may be waiting for this very guest, which cannot answer while it is held back; then its
 * wait is cut short, and that transfer fails. The queue holds more than all doorbells that
 * sane queues can have under way.
 */
static void make_room(struct shard *shard)
{
	log_few("more than %u doorbells are waiting", QUEUE_SIZE);
	if (!shard->started) {
		shard_run_once(shard);
		return;
	}
	if (shard->message)
		dma_message_abort(shard->messages, true);
	shard_call(shard, do_nothing, NULL);
	if (shard->message)
		dma_message_abort(shard->messages, false);
}

static void push(struct shard *shard, enum queue_kind kind, uint32_t where, uint64_t value)
{
	const struct queue_entry entry = { kind, where, value };

	while (!queue_push(&shard->queue, &entry))
		make_room(shard);
	wake(shard);
}

void shard_allow_dma(struct shard *shard, bool allowed)
{
	atomic_store_explicit(&shard->dma_allowed, allowed, memory_order_relaxed);
	wake(shard);
}

void shard_write_register(struct shard *shard, uint32_t offset, uint32_t value)
{
	if (offset == FERRY_REG_CTRL && value & FERRY_CTRL_RESET)
		atomic_fetch_add_explicit(&shard->resets_asked, 1, memory_order_relaxed);
	push(shard, QUEUE_REGISTER, offset, value);
}

void shard_doorbell(struct shard *shard, uint32_t page, uint64_t value)
{
	push(shard, QUEUE_DOORBELL, page, value);
}

/*
 * A read is answered while an earlier write may still be in the queue. For one register
 * that would be a lie that matters: CTRL must not read as 0 before the reset is done.
 */
uint32_t shard_read_register(struct shard *shard, uint32_t offset)
{
	/* Acquire: what the engine did in the reset before the count that says it is done. */
	unsigned int done = atomic_load_explicit(&shard->resets_done, memory_order_acquire);
	uint32_t value = ferry_engine_reg_read(shard->engine, offset);

	if (offset == FERRY_REG_CTRL &&
	    done != atomic_load_explicit(&shard->resets_asked, memory_order_relaxed))
		value |= FERRY_CTRL_RESET;
	return value;
}

void shard_log_stats(struct shard *shard)
{
	atomic_store(&shard->stats_asked, true);
	wake(shard);
}

/* -------------------------------------------------------------------- on the shard */

static void take_register(struct shard *shard, const struct queue_entry *entry)
{
	uint32_t value = (uint32_t)entry->value;

	shard->stats.registers++;
	ferry_engine_reg_write(shard->engine, entry->where, value);
	if (entry->where == FERRY_REG_CTRL && value & FERRY_CTRL_RESET)
		atomic_fetch_add_explicit(&shard->resets_done, 1, memory_order_release);
}

static bool take_queue(struct shard *shard)
{
	struct queue_entry entry;
	unsigned int count = 0;

	while (count < DOORBELLS && queue_pop(&shard->queue, &entry)) {
		count++;
		if (entry.kind == QUEUE_REGISTER) {
			take_register(shard, &entry);
		} else {
			shard->stats.doorbells++;
			ferry_engine_doorbell(shard->engine, entry.where, entry.value);
		}
	}
	return count;
}

static bool take_call(struct shard *shard)
{
	shard_work work = atomic_load_explicit(&shard->work, memory_order_acquire);

	if (!work)
		return false;
	/* Its caller is waiting, so the queue gets no longer. */
	while (take_queue(shard))
		;
	shard->stats.calls++;
	work(shard->work_arg);
	atomic_store_explicit(&shard->work, NULL, memory_order_relaxed);
	sem_post(&shard->work_done);
	return true;
}

static bool take_link(struct shard *shard)
{
	bool did;

	/* A system call each time: not more often than it pays. */
	if (shard->now < shard->next_link)
		return false;
	did = ether_poll(&shard->ether, shard->now, FRAMES);
	shard->next_link = did ? 0 : shard->now + LINK_PERIOD;
	if (shard->carrier != shard->ether.carrier) {
		shard->carrier = shard->ether.carrier;
		log_info("link is %s", shard->carrier ? "up" : "down");
		ferry_engine_link(shard->engine, shard->carrier);
		did = true;
	}
	return did;
}

static double cpu_seconds(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#define LLU(x)	((unsigned long long)(x))

static void log_stats(const struct shard *shard)
{
	const struct shard_stats *s = &shard->stats;
	const struct ether *w = &shard->ether;
	uint64_t raised, lost;

	irq_counts(shard->irqs, &raised, &lost);

	log_info("stats: cpu %.3f s, shard %.3f s; runs %llu, naps %llu, sleeps %llu, found work instead %llu",
		 cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), cpu_seconds(CLOCK_THREAD_CPUTIME_ID),
		 LLU(s->runs), LLU(s->naps), LLU(s->sleeps), LLU(s->refused_sleeps));
	log_info("stats: doorbells %llu, register writes %llu, calls %llu, interrupts %llu, to nobody %llu, DMA ranges %zu",
		 LLU(s->doorbells), LLU(s->registers), LLU(s->calls), LLU(raised), LLU(lost),
		 shard->dma.count);
	log_info("stats: link %s, sent %llu frames %llu bytes, refused %llu, dropped %llu; received %llu frames %llu bytes, malformed %llu",
		 w->carrier ? "up" : "down", LLU(w->tx_frames), LLU(w->tx_bytes),
		 LLU(w->tx_refused), LLU(w->link->dropped), LLU(w->rx_frames), LLU(w->rx_bytes),
		 LLU(w->link->oversize));
	if (w->impaired)
		log_info("stats: impaired out/in: lost %llu/%llu, repeated %llu/%llu, reordered %llu/%llu, corrupted %llu/%llu",
			 LLU(w->tx.lost), LLU(w->rx.lost), LLU(w->tx.repeated), LLU(w->rx.repeated),
			 LLU(w->tx.reordered), LLU(w->rx.reordered), LLU(w->tx.corrupted),
			 LLU(w->rx.corrupted));
	if (shard->message)
		log_info("stats: DMA messages: reads %llu, writes %llu, failures %llu",
			 LLU(shard->messages->reads), LLU(shard->messages->writes),
			 LLU(shard->messages->failures));
}

/*
 * A function that may not access memory does nothing until it may: a driver that takes bus
 * mastering away and gives it back finds its objects as it left them.
 */
static uint64_t run_engine(struct shard *shard)
{
	uint64_t deadline;

	if (!shard_may_access_memory(shard) || ether_behind(&shard->ether, shard->now))
		return UINT64_MAX;
	if (shard->poll && !shard->awake) {
		ferry_engine_wake(shard->engine);
		shard->awake = true;
	}
	shard->stats.runs++;
	deadline = ferry_engine_run(shard->engine, shard->now, RUN_BYTES);
	ether_flush(&shard->ether, shard->now);
	return deadline;
}

/* Everything that is due. Returns when the engine or the link wants to be called again. */
static uint64_t run(struct shard *shard)
{
	uint64_t deadline, ether;
	bool did;

	shard->now = clock_now();
	if (shard->busy)
		shard->active = shard->now;
	did = take_call(shard);
	if (atomic_load_explicit(&shard->stats_asked, memory_order_relaxed) &&
	    atomic_exchange(&shard->stats_asked, false))
		log_stats(shard);
	did |= take_queue(shard);
	did |= take_link(shard);
	did |= raw_take(shard);
	deadline = run_engine(shard);
	shard->busy = did || !deadline;
	if (shard->busy)
		return 0;
	ether = ether_deadline(&shard->ether, shard->now);
	return ether < deadline ? ether : deadline;
}

/* Waits for a wake, a frame or @until, whatever comes first. */
static void block(struct shard *shard, uint64_t now, uint64_t until)
{
	struct pollfd fds[] = {
		{ .fd = shard->wake_fd, .events = POLLIN },
		{ .fd = shard->ether.link->fd, .events = POLLIN },
		{ .fd = shard->raw.fd, .events = POLLIN },
	};
	struct timespec ts = clock_timespec(until > now ? until - now : 0);
	eventfd_t count;

	atomic_store_explicit(&shard->waiting, true, memory_order_relaxed);
	/* Pairs with the fence in wake(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (queue_empty(&shard->queue) &&
	    !atomic_load_explicit(&shard->work, memory_order_relaxed) &&
	    !atomic_load_explicit(&shard->stats_asked, memory_order_relaxed) &&
	    !atomic_load_explicit(&shard->stop, memory_order_relaxed))
		ppoll(fds, 3, until == UINT64_MAX ? NULL : &ts, NULL);
	atomic_store_explicit(&shard->waiting, false, memory_order_relaxed);
	if (fds[0].revents)
		eventfd_read(shard->wake_fd, &count);
	shard->next_link = 0;
}

static void nap(struct shard *shard, uint64_t now, uint64_t deadline)
{
	shard->stats.naps++;
	block(shard, now, deadline < now + NAP ? deadline : now + NAP);
}

static void sleep_until(struct shard *shard, uint64_t now, uint64_t deadline)
{
	if (shard->ether.pcap)
		pcap_flush(shard->ether.pcap);
	if (shard->awake && shard_may_access_memory(shard)) {
		if (!ferry_engine_sleep(shard->engine)) {
			shard->stats.refused_sleeps++;
			shard->active = now;
			return;
		}
		shard->awake = false;
	}
	shard->stats.sleeps++;
	block(shard, now, deadline);
}

static void wait_for(struct shard *shard, uint64_t deadline)
{
	uint64_t now = clock_now(), idle = now - shard->active;

	if (deadline <= now || idle < SPIN)
		return;
	if (ether_behind(&shard->ether, now) || (shard->poll && idle < SLEEP_AFTER))
		nap(shard, now, deadline);
	else
		sleep_until(shard, now, deadline);
}

/*
 * Timers without slack, and short turns: who has the shorter slice takes the core as soon as
 * it wakes. Only wishes: Linux before 6.12 ignores the second.
 */
static void ask_for_short_waits(void)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_nice = getpriority(PRIO_PROCESS, 0),	/* as it is */
		.sched_runtime = SLICE,
	};

	prctl(PR_SET_TIMERSLACK, 1);
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *shard_thread(void *arg)
{
	struct shard *shard = arg;
	uint64_t deadline;

	ask_for_short_waits();
	pthread_setname_np(pthread_self(), "ferry-shard");
	while (!atomic_load_explicit(&shard->stop, memory_order_relaxed)) {
		deadline = run(shard);
		if (deadline)
			wait_for(shard, deadline);
	}
	return NULL;
}

void shard_run_once(struct shard *shard)
{
	run(shard);
}

int shard_start(struct shard *shard)
{
	int error = pthread_create(&shard->thread, NULL, shard_thread, shard);

	if (error) {
		log_error("cannot start a thread: %s", strerror(error));
		return -1;
	}
	shard->started = true;
	return 0;
}
