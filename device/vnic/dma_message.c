// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "dma_message.h"
#include "log.h"
#include "vfio_user.h"

void dma_message_init(struct dma_message *dma, struct vfio_user *client, struct irq_table *irqs,
		      uint64_t timeout)
{
	pthread_condattr_t attr;

	memset(dma, 0, sizeof(*dma));
	dma->client = client;
	dma->irqs = irqs;
	dma->timeout = timeout;
	pthread_mutex_init(&dma->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&dma->change, &attr);
	pthread_condattr_destroy(&attr);
}

void dma_message_destroy(struct dma_message *dma)
{
	pthread_cond_destroy(&dma->change);
	pthread_mutex_destroy(&dma->lock);
}

/* With the lock held. */
static void forget(struct dma_message *dma)
{
	dma->error = 0;
	dma->deferrals = 0;
	memset(dma->deferred, 0, sizeof(dma->deferred));
}

void dma_message_open(struct dma_message *dma, uint32_t max_transfer)
{
	pthread_mutex_lock(&dma->lock);
	forget(dma);
	memset(dma->read, 0, sizeof(dma->read));
	memset(dma->write, 0, sizeof(dma->write));
	dma->posted = 0;
	dma->done = 0;
	dma->bytes = 0;
	dma->chunk = max_transfer < DMA_CHUNK ? max_transfer : DMA_CHUNK;
	dma->open = true;
	pthread_mutex_unlock(&dma->lock);
}

void dma_message_close(struct dma_message *dma)
{
	pthread_mutex_lock(&dma->lock);
	dma->open = false;
	pthread_cond_broadcast(&dma->change);
	pthread_mutex_unlock(&dma->lock);
}

void dma_message_abort(struct dma_message *dma, bool on)
{
	pthread_mutex_lock(&dma->lock);
	dma->aborted = on;
	pthread_cond_broadcast(&dma->change);
	pthread_mutex_unlock(&dma->lock);
}

void dma_message_reset(struct dma_message *dma)
{
	pthread_mutex_lock(&dma->lock);
	forget(dma);
	pthread_mutex_unlock(&dma->lock);
}

/* ------------------------------------------------------------ with the lock held */

static int state(const struct dma_message *dma)
{
	if (!dma->open)
		return -ENOTCONN;
	return dma->aborted ? -ECANCELED : 0;
}

/* Waits for a reply, a close or an abort; a client that answers nothing is given up. */
static int wait_change(struct dma_message *dma)
{
	struct timespec until = clock_timespec(clock_now() + dma->timeout);
	int ret = state(dma);

	if (ret)
		return ret;
	ret = pthread_cond_timedwait(&dma->change, &dma->lock, &until);
	if (ret == ETIMEDOUT) {
		log_few("the client has left a DMA message unanswered for %llu s, giving it up",
			(unsigned long long)(dma->timeout / NSEC_PER_SEC));
		dma->open = false;
		pthread_mutex_unlock(&dma->lock);
		vfio_user_hang_up(dma->client);
		pthread_mutex_lock(&dma->lock);
		return -ETIMEDOUT;
	}
	return state(dma);
}

static struct dma_slot *free_read(struct dma_message *dma)
{
	unsigned int i;

	for (i = 0; i < DMA_READS; i++)
		if (!dma->read[i].busy)
			return &dma->read[i];
	return NULL;
}

static void fill(struct dma_message *dma, struct dma_slot *slot, void *to, uint32_t length)
{
	slot->id = dma->next_id++;
	slot->busy = true;
	slot->error = 0;
	slot->to = to;
	slot->length = length;
}

/* ------------------------------------------------------------------------- shard */

/* Messages leave without the lock: a reply must never wait behind a full socket. */
static int send_read(struct dma_message *dma, struct dma_slot *slot, uint64_t addr, void *to,
		     uint32_t length)
{
	int ret;

	fill(dma, slot, to, length);
	dma->reads++;
	pthread_mutex_unlock(&dma->lock);
	ret = vfio_user_dma_read(dma->client, slot->id, addr, length);
	pthread_mutex_lock(&dma->lock);
	if (ret)
		slot->busy = false;
	return ret;
}

/* Collects what has come; true while a read of ours is still under way. */
static bool reap_reads(struct dma_message *dma, int *error)
{
	bool waiting = false;
	unsigned int i;

	for (i = 0; i < DMA_READS; i++) {
		struct dma_slot *slot = &dma->read[i];

		if (slot->busy && slot->to)
			waiting = true;
		if (slot->error && !*error)
			*error = slot->error;
		slot->error = 0;
	}
	return waiting;
}

/* Replies that still come find nobody: the caller's buffer is gone when read returns. */
static void abandon_reads(struct dma_message *dma)
{
	unsigned int i;

	for (i = 0; i < DMA_READS; i++) {
		dma->read[i].to = NULL;
		dma->read[i].error = 0;
	}
}

int dma_message_read(struct dma_message *dma, uint64_t addr, void *to, size_t len)
{
	struct dma_slot *slot;
	int ret, error = 0;
	bool waiting;

	pthread_mutex_lock(&dma->lock);
	for (;;) {
		ret = state(dma);
		if (ret)
			break;
		waiting = reap_reads(dma, &error);
		if (!waiting && (!len || error))
			break;
		slot = len && !error ? free_read(dma) : NULL;
		if (slot) {
			uint32_t piece = len < dma->chunk ? (uint32_t)len : dma->chunk;

			ret = send_read(dma, slot, addr, to, piece);
			addr += piece;
			to = (char *)to + piece;
			len -= piece;
		} else {
			ret = wait_change(dma);
		}
		if (ret)
			break;
	}
	abandon_reads(dma);
	if (!ret)
		ret = error;
	if (ret)
		dma->failures++;
	pthread_mutex_unlock(&dma->lock);
	return ret;
}

static int send_write(struct dma_message *dma, uint64_t addr, const void *from, uint32_t length)
{
	struct dma_slot *slot = &dma->write[dma->posted % DMA_WRITES];
	int ret;

	fill(dma, slot, NULL, length);
	dma->posted++;
	dma->bytes += length;
	dma->writes++;
	pthread_mutex_unlock(&dma->lock);
	ret = vfio_user_dma_write(dma->client, slot->id, addr, from, length);
	pthread_mutex_lock(&dma->lock);
	return ret;
}

int dma_message_write(struct dma_message *dma, uint64_t addr, const void *from, size_t len)
{
	int ret = 0;

	pthread_mutex_lock(&dma->lock);
	while (!ret && len) {
		uint32_t piece = len < dma->chunk ? (uint32_t)len : dma->chunk;

		ret = dma->error;
		dma->error = 0;
		if (ret)
			break;
		if (dma->posted - dma->done == DMA_WRITES ||
		    (dma->bytes && dma->bytes + piece > DMA_WRITE_BYTES)) {
			ret = wait_change(dma);
			continue;
		}
		ret = state(dma);
		if (ret)
			break;
		ret = send_write(dma, addr, from, piece);
		addr += piece;
		from = (const char *)from + piece;
		len -= piece;
	}
	if (ret)
		dma->failures++;
	pthread_mutex_unlock(&dma->lock);
	return ret;
}

int dma_message_flush(struct dma_message *dma)
{
	int ret = 0;

	pthread_mutex_lock(&dma->lock);
	while (!ret && dma->posted != dma->done)
		ret = wait_change(dma);
	if (!ret)
		ret = dma->error;
	dma->error = 0;
	pthread_mutex_unlock(&dma->lock);
	return ret;
}

void dma_message_interrupt(struct dma_message *dma, unsigned int vector)
{
	struct dma_deferred *deferred;

	if (vector >= VNIC_MAX_VECTORS)
		return;
	pthread_mutex_lock(&dma->lock);
	if (dma->open && dma->posted != dma->done) {
		deferred = &dma->deferred[vector];
		deferred->last = dma->posted;
		if (!deferred->due) {
			deferred->due = true;
			deferred->first = dma->posted;
			dma->deferrals++;
		}
		pthread_mutex_unlock(&dma->lock);
		return;
	}
	pthread_mutex_unlock(&dma->lock);
	irq_raise(dma->irqs, vector);
}

/* ------------------------------------------------------------ the client's thread */

static void raise_deferred(struct dma_message *dma)
{
	unsigned int i;

	for (i = 0; dma->deferrals && i < VNIC_MAX_VECTORS; i++) {
		struct dma_deferred *deferred = &dma->deferred[i];

		if (!deferred->due || (int32_t)(dma->done - deferred->first) < 0)
			continue;
		if ((int32_t)(dma->done - deferred->last) < 0) {
			deferred->first = deferred->last;
		} else {
			deferred->due = false;
			dma->deferrals--;
		}
		irq_raise(dma->irqs, i);
	}
}

static struct dma_slot *find_slot(struct dma_slot *slots, unsigned int count, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (slots[i].busy && slots[i].id == id)
			return &slots[i];
	return NULL;
}

static void finish_read(struct dma_message *dma, uint16_t id, int error, const void *data,
			size_t len)
{
	struct dma_slot *slot = find_slot(dma->read, DMA_READS, id);

	if (!slot) {
		log_few("the client answers DMA_READ %u, which was not asked", id);
		return;
	}
	slot->busy = false;
	if (!slot->to)
		return;
	if (!error && len < slot->length)
		error = EPROTO;
	if (error)
		slot->error = -error;
	else
		memcpy(slot->to, data, slot->length);
}

static void finish_write(struct dma_message *dma, uint16_t id, int error)
{
	struct dma_slot *slot = find_slot(dma->write, DMA_WRITES, id);

	if (!slot) {
		log_few("the client answers DMA_WRITE %u, which was not sent", id);
		return;
	}
	slot->busy = false;
	dma->bytes -= slot->length;
	if (error && !dma->error) {
		dma->error = -error;
		log_few("a DMA write was refused: %s", strerror(error));
	}
	while (dma->done != dma->posted && !dma->write[dma->done % DMA_WRITES].busy)
		dma->done++;
	raise_deferred(dma);
}

void dma_message_reply(struct dma_message *dma, uint16_t command, uint16_t id, int error,
		       const void *data, size_t len)
{
	pthread_mutex_lock(&dma->lock);
	if (command == VFIO_USER_DMA_READ)
		finish_read(dma, id, error, data, len);
	else
		finish_write(dma, id, error);
	pthread_cond_broadcast(&dma->change);
	pthread_mutex_unlock(&dma->lock);
}
