/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Assist: the device asks before and after peers access an MR that it cannot keep coherent
 * by itself.
 */
#ifndef FERRY_ASSIST_H
#define FERRY_ASSIST_H

#include <linux/bitmap.h>
#include <linux/workqueue.h>

#include "dma.h"

struct ferry_dev;

#define FERRY_ASSIST_SLOTS	64	/* questions at a time */

struct ferry_assist {
	struct ferry_dev *dev;
	struct ferry_buf slots;		/* struct ferry_assist_slot[]; none: not set up */
	struct workqueue_struct *wq;
	struct work_struct work;
	DECLARE_BITMAP(asked, FERRY_ASSIST_SLOTS);
};

int ferry_assist_create(struct ferry_dev *dev);
void ferry_assist_destroy(struct ferry_dev *dev);
bool ferry_assist_event(struct ferry_dev *dev, u32 slot);

static inline bool ferry_assist_ready(const struct ferry_assist *assist)
{
	return assist->slots.cpu;
}

#endif
