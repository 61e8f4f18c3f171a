/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MSI-X vectors and the eventfds that stand for them. The client's thread changes them,
 * the shard raises them: a lock keeps a descriptor from being closed, and its number
 * reused, under the shard's write.
 */
#ifndef VNIC_IRQ_H
#define VNIC_IRQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pci.h"

struct irq_vector {
	int fd;			/* -1: none, raising it does nothing */
	bool masked;
	bool pending;		/* raised while masked */
};

struct irq_table {
	pthread_mutex_t lock;
	unsigned int count;
	bool enabled;		/* the function may send messages at all */
	uint64_t raised;
	uint64_t lost;		/* raised while there was nobody to tell */
	struct irq_vector vector[VNIC_MAX_VECTORS];
};

void irq_init(struct irq_table *irqs, unsigned int count);
void irq_destroy(struct irq_table *irqs);

void irq_enable(struct irq_table *irqs, bool on);
void irq_raise(struct irq_table *irqs, unsigned int vector);

void irq_counts(struct irq_table *irqs, uint64_t *raised, uint64_t *lost);

/* [start, start + count) has been checked by the caller in all of these. */

/* Takes over @fds, one a vector; NULL takes the descriptors away. */
void irq_assign(struct irq_table *irqs, unsigned int start, unsigned int count, const int *fds);

void irq_mask(struct irq_table *irqs, unsigned int vector, bool masked);

/* Forgets what is pending and masked; the descriptors are the client's to take away. */
void irq_reset(struct irq_table *irqs);

/* Bits of the pending bit array, 8 vectors a byte. */
uint8_t irq_pending(struct irq_table *irqs, unsigned int byte);

#endif
