// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The admin queue. A command takes the ring's next place and keeps it until it is
 * answered, so a place is also the name of a command (with a count that tells an answer
 * to its predecessor), and neither ring can overflow.
 */
#include <linux/delay.h>

#include "ferry.h"

/* For a virtual device on a machine that emulates and is busy; hardware takes microseconds. */
#define FERRY_ADMIN_TIMEOUT	(10 * HZ)

#define FERRY_ADMIN_MASK	(FERRY_ADMIN_DEPTH - 1)

static const int ferry_admin_errno[FERRY_ADMIN_STATUS_COUNT] = {
	[FERRY_ADMIN_OK]		= 0,
	[FERRY_ADMIN_BAD_OPCODE]	= -EOPNOTSUPP,
	[FERRY_ADMIN_BAD_PARAM]		= -EINVAL,
	[FERRY_ADMIN_NOT_FOUND]		= -EINVAL,
	[FERRY_ADMIN_NO_RESOURCES]	= -ENOMEM,
	[FERRY_ADMIN_BUSY]		= -EBUSY,
	[FERRY_ADMIN_BAD_STATE]		= -EINVAL,
	[FERRY_ADMIN_DMA_FAULT]		= -EFAULT,
	[FERRY_ADMIN_NOT_SUPPORTED]	= -EOPNOTSUPP,
	[FERRY_ADMIN_REFUSED]		= -EPERM,
};

int ferry_admin_init(struct ferry_dev *dev)
{
	struct ferry_admin *q = &dev->admin;
	unsigned int i;
	int err;

	spin_lock_init(&q->lock);
	init_waitqueue_head(&q->room);
	for (i = 0; i < FERRY_ADMIN_DEPTH; i++)
		init_completion(&q->place[i].done);

	err = ferry_dma_alloc(dev, &q->sq, FERRY_ADMIN_DEPTH * FERRY_ADMIN_SQE_SIZE, GFP_KERNEL);
	if (err)
		return err;
	err = ferry_dma_alloc(dev, &q->cq, FERRY_ADMIN_DEPTH * FERRY_ADMIN_CQE_SIZE, GFP_KERNEL);
	if (err)
		ferry_dma_free(dev, &q->sq);
	return err;
}

void ferry_admin_free(struct ferry_dev *dev)
{
	ferry_dma_free(dev, &dev->admin.cq);
	ferry_dma_free(dev, &dev->admin.sq);
}

/* The next answer, or NULL. The caller holds the lock. */
static const struct ferry_admin_cqe *ferry_admin_next(struct ferry_admin *q)
{
	const struct ferry_admin_cqe *cqe = q->cq.cpu;
	u8 lap = q->ci >> FERRY_ADMIN_SHIFT;

	cqe += q->ci & FERRY_ADMIN_MASK;
	if ((READ_ONCE(cqe->phase) & 1) != (~lap & 1))
		return NULL;
	/* Valid bit before body: fence r,r. */
	dma_rmb();
	return cqe;
}

static void ferry_admin_take_answers(struct ferry_dev *dev)
{
	struct ferry_admin *q = &dev->admin;
	const struct ferry_admin_cqe *cqe;
	struct ferry_admin_place *place;

	while ((cqe = ferry_admin_next(q))) {
		place = &q->place[le16_to_cpu(cqe->id) & FERRY_ADMIN_MASK];
		q->ci++;
		if (!place->busy || place->answered || place->id != le16_to_cpu(cqe->id)) {
			ferry_device_suspect(dev, "it answered a command that was not given");
			return;
		}
		place->answer = *cqe;
		place->answered = true;
		complete(&place->done);
	}
}

void ferry_admin_irq(struct ferry_dev *dev)
{
	spin_lock(&dev->admin.lock);
	ferry_admin_take_answers(dev);
	spin_unlock(&dev->admin.lock);
}

/* The device is lost: whoever waits for it waits no longer. */
void ferry_admin_abort(struct ferry_dev *dev)
{
	struct ferry_admin *q = &dev->admin;
	unsigned int i;

	spin_lock_irq(&q->lock);
	for (i = 0; i < FERRY_ADMIN_DEPTH; i++)
		if (q->place[i].busy && !q->place[i].answered)
			complete(&q->place[i].done);
	spin_unlock_irq(&q->lock);
	wake_up_all(&q->room);
}

/* Waits for the ring's next place, puts the command there, rings. NULL: the device is lost. */
static struct ferry_admin_place *ferry_admin_submit(struct ferry_dev *dev, enum ferry_admin_op op,
						    void *cmd, size_t size)
{
	struct ferry_admin *q = &dev->admin;
	struct ferry_admin_head *head = cmd;
	struct ferry_admin_place *place = NULL;
	union ferry_admin_sqe *sqe;

	spin_lock_irq(&q->lock);
	/* Bounded: a place that is not answered in time makes the device lost. */
	wait_event_lock_irq(q->room,
			    !q->place[q->pi & FERRY_ADMIN_MASK].busy || ferry_is_lost(dev),
			    q->lock);
	if (ferry_is_lost(dev))
		goto out;

	place = &q->place[q->pi & FERRY_ADMIN_MASK];
	place->id = q->pi;
	place->busy = true;
	place->answered = false;
	reinit_completion(&place->done);

	head->opcode = cpu_to_le16(op);
	head->id = cpu_to_le16(place->id);
	sqe = (union ferry_admin_sqe *)q->sq.cpu + (q->pi & FERRY_ADMIN_MASK);
	memcpy(sqe, cmd, size);
	memset(sqe->bytes + size, 0, sizeof(*sqe) - size);
	q->pi++;
	/* Command before doorbell: writel() orders it (fence w,o). */
	ferry_write(dev, FERRY_REG_ADMIN_DB, q->pi);
out:
	spin_unlock_irq(&q->lock);
	return place;
}

static bool ferry_admin_wait(struct ferry_dev *dev, struct ferry_admin_place *place)
{
	struct ferry_admin *q = &dev->admin;
	bool answered;

	if (!wait_for_completion_timeout(&place->done, FERRY_ADMIN_TIMEOUT)) {
		/* Perhaps only the interrupt was late. */
		spin_lock_irq(&q->lock);
		ferry_admin_take_answers(dev);
		spin_unlock_irq(&q->lock);
	}
	spin_lock_irq(&q->lock);
	answered = place->answered;
	spin_unlock_irq(&q->lock);
	return answered;
}

static void ferry_admin_finish(struct ferry_dev *dev, struct ferry_admin_place *place,
			       struct ferry_admin_cqe *answer)
{
	struct ferry_admin *q = &dev->admin;

	spin_lock_irq(&q->lock);
	*answer = place->answer;
	place->busy = false;
	spin_unlock_irq(&q->lock);
	wake_up_all(&q->room);
}

/**
 * ferry_admin_send - gives a command to the device and waits for the answer
 * @dev: the device
 * @op: what to do
 * @cmd: the command; its head is filled in here
 * @size: of the command
 * @answer: where to put the answer, or NULL
 *
 * May sleep, not interruptible, but bounded: a device that does not answer is lost.
 *
 * Return: 0; -EIO when the device is lost; what its refusal means, else.
 */
int ferry_admin_send(struct ferry_dev *dev, enum ferry_admin_op op, void *cmd, size_t size,
		     struct ferry_admin_cqe *answer)
{
	struct ferry_admin_place *place;
	struct ferry_admin_cqe own;

	if (!answer)
		answer = &own;
	place = ferry_admin_submit(dev, op, cmd, size);
	if (!place)
		return -EIO;
	if (!ferry_admin_wait(dev, place)) {
		ferry_device_lost(dev, "it did not answer a command");
		return -EIO;
	}
	ferry_admin_finish(dev, place, answer);

	if (!answer->status)
		return 0;
	dev_dbg(&dev->pdev->dev, "command %u refused: status %u, detail %u\n", op, answer->status,
		le32_to_cpu(answer->detail));
	return answer->status < FERRY_ADMIN_STATUS_COUNT ? ferry_admin_errno[answer->status] : -EIO;
}

/*
 * What the device may give as a number. A context's says which page of its BAR a process maps: any
 * other would be another's, or no page of the device at all.
 */
static bool ferry_admin_may_give(const struct ferry_dev *dev, enum ferry_admin_op op, u32 number)
{
	switch (op) {
	case FERRY_ADMIN_CREATE_CONTEXT:
		return number && number < dev->limits.max_contexts;
	case FERRY_ADMIN_CREATE_MR:
		/* A key; those of index 0 mean something else. */
		return number >> 8;
	case FERRY_ADMIN_RESIZE_CQ:
		/* An index. */
		return true;
	default:
		return number && number <= FERRY_NUMBER_MAX;
	}
}

/* A command that creates something; its number to @number. */
int ferry_admin_create_sized(struct ferry_dev *dev, enum ferry_admin_op op, void *cmd,
			     size_t size, u32 *number)
{
	struct ferry_admin_cqe answer;
	int err;

	err = ferry_admin_send(dev, op, cmd, size, &answer);
	if (err)
		return err;
	*number = le32_to_cpu(answer.number);
	if (ferry_admin_may_give(dev, op, *number))
		return 0;
	ferry_device_lost(dev, "it gave a number that cannot be");
	return -EIO;
}

int ferry_admin_query(struct ferry_dev *dev, enum ferry_admin_op op, u32 number,
		      struct ferry_admin_cqe *answer)
{
	struct ferry_admin_object cmd = { .number = cpu_to_le32(number) };

	return ferry_admin_send(dev, op, &cmd, sizeof(cmd), answer);
}

/*
 * A command that takes memory away from the device. Cannot fail: a device that does not
 * let go is lost, and then it does no DMA. On return the memory may be freed.
 */
void ferry_admin_destroy_sized(struct ferry_dev *dev, enum ferry_admin_op op, void *cmd,
			       size_t size)
{
	if (ferry_admin_send(dev, op, cmd, size, NULL))
		ferry_device_lost(dev, "it did not destroy what it was told to");
}

void ferry_admin_destroy(struct ferry_dev *dev, enum ferry_admin_op op, u32 number)
{
	struct ferry_admin_object cmd = { .number = cpu_to_le32(number) };

	ferry_admin_destroy_sized(dev, op, &cmd, sizeof(cmd));
}
