// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "irq.h"

void irq_init(struct irq_table *irqs, unsigned int count)
{
	unsigned int i;

	memset(irqs, 0, sizeof(*irqs));
	pthread_mutex_init(&irqs->lock, NULL);
	irqs->count = count;
	for (i = 0; i < VNIC_MAX_VECTORS; i++)
		irqs->vector[i].fd = -1;
}

void irq_destroy(struct irq_table *irqs)
{
	irq_assign(irqs, 0, irqs->count, NULL);
	pthread_mutex_destroy(&irqs->lock);
}

void irq_enable(struct irq_table *irqs, bool on)
{
	pthread_mutex_lock(&irqs->lock);
	irqs->enabled = on;
	pthread_mutex_unlock(&irqs->lock);
}

/* The descriptor does not block: a counter at its limit has an interrupt due anyway. */
static void signal_vector(struct irq_table *irqs, struct irq_vector *v)
{
	const uint64_t one = 1;

	if (write(v->fd, &one, sizeof(one)) == (ssize_t)sizeof(one) || errno == EAGAIN)
		irqs->raised++;
	else
		irqs->lost++;
}

void irq_raise(struct irq_table *irqs, unsigned int vector)
{
	struct irq_vector *v;

	pthread_mutex_lock(&irqs->lock);
	v = vector < irqs->count ? &irqs->vector[vector] : NULL;
	if (!v || !irqs->enabled || v->fd < 0)
		irqs->lost++;
	else if (v->masked)
		v->pending = true;
	else
		signal_vector(irqs, v);
	pthread_mutex_unlock(&irqs->lock);
}

void irq_counts(struct irq_table *irqs, uint64_t *raised, uint64_t *lost)
{
	pthread_mutex_lock(&irqs->lock);
	*raised = irqs->raised;
	*lost = irqs->lost;
	pthread_mutex_unlock(&irqs->lock);
}

static void assign_one(struct irq_vector *v, int fd)
{
	int flags;

	if (v->fd >= 0)
		close(v->fd);
	v->fd = fd;
	v->pending = false;
	if (fd < 0)
		return;
	/* Whatever it is that the client has sent, raising an interrupt must not wait for it. */
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && !(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void irq_assign(struct irq_table *irqs, unsigned int start, unsigned int count, const int *fds)
{
	unsigned int i;

	pthread_mutex_lock(&irqs->lock);
	for (i = 0; i < count; i++)
		assign_one(&irqs->vector[start + i], fds ? fds[i] : -1);
	pthread_mutex_unlock(&irqs->lock);
}

void irq_mask(struct irq_table *irqs, unsigned int vector, bool masked)
{
	struct irq_vector *v = &irqs->vector[vector];

	pthread_mutex_lock(&irqs->lock);
	v->masked = masked;
	if (!masked && v->pending) {
		v->pending = false;
		if (irqs->enabled && v->fd >= 0)
			signal_vector(irqs, v);
	}
	pthread_mutex_unlock(&irqs->lock);
}

void irq_reset(struct irq_table *irqs)
{
	unsigned int i;

	pthread_mutex_lock(&irqs->lock);
	irqs->enabled = false;
	for (i = 0; i < irqs->count; i++) {
		irqs->vector[i].masked = false;
		irqs->vector[i].pending = false;
	}
	pthread_mutex_unlock(&irqs->lock);
}

uint8_t irq_pending(struct irq_table *irqs, unsigned int byte)
{
	unsigned int i;
	uint8_t bits = 0;

	pthread_mutex_lock(&irqs->lock);
	for (i = 0; i < 8 && 8 * byte + i < irqs->count; i++)
		if (irqs->vector[8 * byte + i].pending)
			bits |= (uint8_t)(1u << i);
	pthread_mutex_unlock(&irqs->lock);
	return bits;
}
