/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DMA by vfio-user messages: each access is a DMA_READ or DMA_WRITE that the client
 * carries out, through the guest's IOMMU where there is one.
 *
 * The shard calls read, write and interrupt; the client's thread hands in replies, and
 * opens, closes and aborts. QEMU serves a DMA message only while no vCPU waits for an
 * answer of ours with the big lock held, so whoever holds such an answer back until the
 * shard has drained must abort first.
 *
 * Reads wait for their data. Writes are posted, as on PCI: write returns once the message
 * is sent, the client carries them out in order, and a read or an interrupt that comes
 * later comes after them. A posted write that fails is reported by the next write.
 */
#ifndef VNIC_DMA_MESSAGE_H
#define VNIC_DMA_MESSAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "irq.h"

/*
 * QEMU loses the tail of a reply that its socket buffer does not take: keep well below
 * its 208 KiB, which overheads and the answers to other messages share.
 */
#define DMA_CHUNK		(32u << 10)
#define DMA_READS		3u	/* in flight: 96 KiB of replies */
#define DMA_WRITES		64u	/* posted, power of two */
#define DMA_WRITE_BYTES		(256u << 10)

struct vfio_user;

struct dma_slot {
	uint16_t id;
	bool busy;
	int error;
	void *to;		/* of a read; NULL once nobody waits for it */
	uint32_t length;
};

struct dma_deferred {
	bool due;
	uint32_t first;		/* raised once this many writes are done */
	uint32_t last;		/* and again after these, if raised meanwhile */
};

struct dma_message {
	struct vfio_user *client;
	struct irq_table *irqs;
	uint64_t timeout;	/* ns without an answer before the client is given up */

	pthread_mutex_t lock;
	pthread_cond_t change;
	bool open;		/* a client is connected */
	bool aborted;		/* the client's thread waits for the shard */
	uint16_t next_id;
	uint32_t chunk;		/* bytes a message, what the client takes */

	struct dma_slot read[DMA_READS];

	struct dma_slot write[DMA_WRITES];
	uint32_t posted;	/* writes sent; free running, as is done */
	uint32_t done;
	uint32_t bytes;		/* posted and not done */
	int error;		/* of a posted write, not reported yet */

	struct dma_deferred deferred[VNIC_MAX_VECTORS];
	unsigned int deferrals;

	uint64_t reads;
	uint64_t writes;
	uint64_t failures;
};

void dma_message_init(struct dma_message *dma, struct vfio_user *client, struct irq_table *irqs,
		      uint64_t timeout);
void dma_message_destroy(struct dma_message *dma);

/* A client has come that takes @max_transfer bytes a message, or has gone. */
void dma_message_open(struct dma_message *dma, uint32_t max_transfer);
void dma_message_close(struct dma_message *dma);

/* While @on, what waits returns -ECANCELED and so does what comes. */
void dma_message_abort(struct dma_message *dma, bool on);

/* Forgets posted errors and deferred interrupts. */
void dma_message_reset(struct dma_message *dma);

/* 0 or a negative errno. */
int dma_message_read(struct dma_message *dma, uint64_t addr, void *to, size_t len);
int dma_message_write(struct dma_message *dma, uint64_t addr, const void *from, size_t len);

/* Waits until the writes posted so far are done. 0, or why one failed; not reported again. */
int dma_message_flush(struct dma_message *dma);

/* Raises @vector as soon as the writes posted so far are done. */
void dma_message_interrupt(struct dma_message *dma, unsigned int vector);

/* The reply to message @id; @error is 0 or an errno. */
void dma_message_reply(struct dma_message *dma, uint16_t command, uint16_t id, int error,
		       const void *data, size_t len);

#endif
