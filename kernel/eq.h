/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event queues, one for each MSI-X vector.
 */
#ifndef FERRY_EQ_H
#define FERRY_EQ_H

#include <linux/spinlock.h>

#include "ferry_hw.h"

struct ferry_dev;
struct ferry_ring;

struct ferry_eq {
	struct ferry_dev *dev;
	struct ferry_ring *ring;
	__le32 *record;		/* the consumer index as the device sees it */
	u32 number;
	u32 ci;
	unsigned int depth_shift;
	int irq;
	bool ready;		/* the interrupt may look at the ring */
	spinlock_t lock;	/* ring, ci, record, and what an entry leads to */
	char name[32];
};

int ferry_eqs_request(struct ferry_dev *dev);
void ferry_eqs_release(struct ferry_dev *dev);
int ferry_eqs_create(struct ferry_dev *dev);
void ferry_eq_flush(struct ferry_eq *eq);
unsigned int ferry_comp_vectors(const struct ferry_dev *dev);
struct ferry_eq *ferry_comp_eq(struct ferry_dev *dev, unsigned int vector);

#endif
