/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The admin queue: commands to the device, from any number of threads at once.
 */
#ifndef FERRY_ADMIN_H
#define FERRY_ADMIN_H

#include <linux/completion.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "ferry_hw.h"
#include "dma.h"

struct ferry_dev;

/* As many commands may be under way. */
#define FERRY_ADMIN_SHIFT	6
#define FERRY_ADMIN_DEPTH	(1u << FERRY_ADMIN_SHIFT)

/* Place i of the ring: from the command to its answer. */
struct ferry_admin_place {
	struct completion done;
	struct ferry_admin_cqe answer;
	u16 id;
	bool busy;		/* its command has a waiter */
	bool answered;
};

struct ferry_admin {
	spinlock_t lock;	/* all below; taken by the interrupt */
	wait_queue_head_t room;
	struct ferry_buf sq;
	struct ferry_buf cq;
	u32 pi;
	u32 ci;
	struct ferry_admin_place place[FERRY_ADMIN_DEPTH];
};

int ferry_admin_init(struct ferry_dev *dev);
void ferry_admin_free(struct ferry_dev *dev);
void ferry_admin_irq(struct ferry_dev *dev);
void ferry_admin_abort(struct ferry_dev *dev);

int ferry_admin_send(struct ferry_dev *dev, enum ferry_admin_op op, void *cmd, size_t size,
		     struct ferry_admin_cqe *answer);
int ferry_admin_create_sized(struct ferry_dev *dev, enum ferry_admin_op op, void *cmd,
			     size_t size, u32 *number);
int ferry_admin_query(struct ferry_dev *dev, enum ferry_admin_op op, u32 number,
		      struct ferry_admin_cqe *answer);
void ferry_admin_destroy_sized(struct ferry_dev *dev, enum ferry_admin_op op, void *cmd,
			       size_t size);
void ferry_admin_destroy(struct ferry_dev *dev, enum ferry_admin_op op, u32 number);

/* @cmd points to the command's own structure. */
#define ferry_admin_exec(dev, op, cmd) \
	ferry_admin_send(dev, op, cmd, sizeof(*(cmd)), NULL)
#define ferry_admin_create(dev, op, cmd, number) \
	ferry_admin_create_sized(dev, op, cmd, sizeof(*(cmd)), number)
#define ferry_admin_undo(dev, op, cmd) \
	ferry_admin_destroy_sized(dev, op, cmd, sizeof(*(cmd)))

#endif
