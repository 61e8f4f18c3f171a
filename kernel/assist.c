// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Assist, on hosts whose CPU caches the device does not snoop.
 *
 * BEFORE_READ: what the CPUs have stored reaches memory. BEFORE_WRITE: nothing of theirs
 * is left in the range that could reach memory later. AFTER_WRITE: the CPUs read memory
 * anew; the bytes at the ends, which share lines with others, are stored here as any
 * thread of the process would. What the device says is believed in nothing: key and range
 * are checked like a process's.
 */
#include <linux/slab.h>

#include "assist.h"
#include "verbs.h"

struct ferry_question {
	u64 iova;
	u64 length;
	u8 head_len;
	u8 tail_len;
	const struct ferry_assist_slot *slot;	/* a copy */
};

typedef int ferry_assist_op(struct ferry_dev *dev, const struct ferry_mr *mr,
			    const struct ferry_question *q);

static int ferry_assist_before_read(struct ferry_dev *dev, const struct ferry_mr *mr,
				    const struct ferry_question *q)
{
	ferry_umem_clean(dev, &mr->mem, q->iova, q->length);
	return 0;
}

static int ferry_assist_before_write(struct ferry_dev *dev, const struct ferry_mr *mr,
				     const struct ferry_question *q)
{
	if (!mr->writable)
		return -EACCES;
	ferry_umem_flush(dev, &mr->mem, q->iova, q->length);
	return 0;
}

static int ferry_assist_after_write(struct ferry_dev *dev, const struct ferry_mr *mr,
				    const struct ferry_question *q)
{
	u64 end = q->iova + q->length;

	if (!mr->writable || q->head_len > sizeof(q->slot->head) ||
	    q->tail_len > sizeof(q->slot->tail) || q->head_len + q->tail_len > q->length)
		return -EINVAL;
	ferry_umem_flush(dev, &mr->mem, q->iova + q->head_len,
			 q->length - q->head_len - q->tail_len);
	if (q->head_len)
		ferry_umem_store(&mr->mem, q->iova, q->slot->head, q->head_len);
	/* The last byte comes last: programs poll on it. A flush is ordered as a store is. */
	smp_wmb();
	if (q->tail_len)
		ferry_umem_store(&mr->mem, end - q->tail_len, q->slot->tail, q->tail_len);
	return 0;
}

static ferry_assist_op *const ferry_assist_ops[] = {
	[FERRY_ASSIST_BEFORE_READ]	= ferry_assist_before_read,
	[FERRY_ASSIST_BEFORE_WRITE]	= ferry_assist_before_write,
	[FERRY_ASSIST_AFTER_WRITE]	= ferry_assist_after_write,
};

static int ferry_assist_do(struct ferry_dev *dev, const struct ferry_assist_slot *slot)
{
	const struct ferry_question q = {
		.iova = le64_to_cpu(slot->iova),
		.length = le64_to_cpu(slot->length),
		.head_len = slot->head_len,
		.tail_len = slot->tail_len,
		.slot = slot,
	};
	struct ferry_mr *mr;
	int err = -EINVAL;

	if (slot->op >= ARRAY_SIZE(ferry_assist_ops) || !ferry_assist_ops[slot->op])
		return -EINVAL;
	/* Gone: the device has not noticed yet. */
	mr = ferry_mr_get(dev, le32_to_cpu(slot->key));
	if (!mr)
		return -ENOENT;
	if (ferry_umem_has(&mr->mem, q.iova, q.length))
		err = ferry_assist_ops[slot->op](dev, mr, &q);
	ferry_mr_put(mr);
	return err;
}

static void ferry_assist_answer(struct ferry_assist *assist, unsigned int i)
{
	struct ferry_assist_slot *slot = assist->slots.cpu + i * sizeof(*slot);
	struct ferry_assist_slot copy;

	/*
	 * The event, then the slot, and the cache operations on what the device wrote before
	 * it: fence r,rw (litmus fl3). The work queue orders the interrupt before this.
	 */
	dma_mb();
	memcpy(&copy, slot, sizeof(copy));
	WRITE_ONCE(slot->status, ferry_assist_do(assist->dev, &copy) ? 1 : 0);
	/* Status and cache operations before the doorbell: writeq() orders them (fence w,o). */
	writeq(FERRY_DB(FERRY_DB_ASSIST_ACK, 0, i), assist->dev->kernel_db);
}

static void ferry_assist_work(struct work_struct *work)
{
	struct ferry_assist *assist = container_of(work, struct ferry_assist, work);
	unsigned int i;

	for_each_set_bit(i, assist->asked, FERRY_ASSIST_SLOTS) {
		clear_bit(i, assist->asked);
		if (ferry_is_lost(assist->dev))
			return;
		ferry_assist_answer(assist, i);
		cond_resched();
	}
}

/* An event has come; in interrupt context. False: there is no such slot. */
bool ferry_assist_event(struct ferry_dev *dev, u32 slot)
{
	struct ferry_assist *assist = &dev->assist;

	if (!ferry_assist_ready(assist) || slot >= FERRY_ASSIST_SLOTS)
		return false;
	set_bit(slot, assist->asked);
	queue_work(assist->wq, &assist->work);
	return true;
}

/* The event queues must be there. */
int ferry_assist_create(struct ferry_dev *dev)
{
	struct ferry_assist *assist = &dev->assist;
	struct ferry_admin_set_assist cmd = {
		.eq = cpu_to_le32(dev->eqs[0].number),
		.slots = cpu_to_le32(FERRY_ASSIST_SLOTS),
		.line_size = cpu_to_le32(dev->cache_line),
	};
	int err;

	if (!dev->cache_line || !(dev->limits.caps & FERRY_CAP_ASSIST))
		return 0;
	assist->dev = dev;
	INIT_WORK(&assist->work, ferry_assist_work);
	assist->wq = alloc_workqueue("ferry-assist", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 1);
	if (!assist->wq)
		return -ENOMEM;
	err = ferry_dma_alloc(dev, &assist->slots,
			      FERRY_ASSIST_SLOTS * sizeof(struct ferry_assist_slot), GFP_KERNEL);
	if (err)
		goto err_wq;
	cmd.addr = cpu_to_le64(assist->slots.dma);
	err = ferry_admin_exec(dev, FERRY_ADMIN_SET_ASSIST, &cmd);
	if (err)
		goto err_slots;
	return 0;

err_slots:
	ferry_dma_free(dev, &assist->slots);
err_wq:
	destroy_workqueue(assist->wq);
	return err;
}

/* The device has been reset, and its interrupts are gone. */
void ferry_assist_destroy(struct ferry_dev *dev)
{
	if (!ferry_assist_ready(&dev->assist))
		return;
	destroy_workqueue(dev->assist.wq);
	ferry_dma_free(dev, &dev->assist.slots);
}
