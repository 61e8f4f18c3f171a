// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Event queues and their interrupts. Vector 0 serves the admin queue and the events of
 * the device, the others completions; a device with one vector gets all by that one.
 *
 * An interrupt finds an object by its number. RCU keeps the xarray's nodes meanwhile; the
 * object itself is kept by the queue's lock, under which all its entries are handled:
 * who has taken an object out of the xarray, and then held that lock for a moment, may
 * free it (ferry_object_remove()).
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/log2.h>

#include "ferry.h"
#include "net.h"
#include "pagelist.h"
#include "ring.h"

#define FERRY_EQ_SHIFT_MIN	4
#define FERRY_EQ_SHIFT_MAX	16
#define FERRY_EQ_BUDGET		128	/* entries in one go of the interrupt */
#define FERRY_EQ_RECORD_SIZE	64	/* a line each */
#define FERRY_EQS_MAX		(PAGE_SIZE / FERRY_EQ_RECORD_SIZE)

/* What an event is about. */
enum ferry_event_of {
	FERRY_EVENT_OF_NONE,
	FERRY_EVENT_OF_CQ,
	FERRY_EVENT_OF_QP,
	FERRY_EVENT_OF_SRQ,
};

static const u8 ferry_event_of[FERRY_EVENT_COUNT] = {
	[FERRY_EVENT_COMPLETION]	= FERRY_EVENT_OF_CQ,
	[FERRY_EVENT_CQ_ERR]		= FERRY_EVENT_OF_CQ,
	[FERRY_EVENT_QP_FATAL]		= FERRY_EVENT_OF_QP,
	[FERRY_EVENT_QP_REQ_ERR]	= FERRY_EVENT_OF_QP,
	[FERRY_EVENT_QP_ACCESS_ERR]	= FERRY_EVENT_OF_QP,
	[FERRY_EVENT_COMM_EST]		= FERRY_EVENT_OF_QP,
	[FERRY_EVENT_SQ_DRAINED]	= FERRY_EVENT_OF_QP,
	[FERRY_EVENT_LAST_WQE]		= FERRY_EVENT_OF_QP,
	[FERRY_EVENT_SRQ_ERR]		= FERRY_EVENT_OF_SRQ,
	[FERRY_EVENT_SRQ_LIMIT]		= FERRY_EVENT_OF_SRQ,
};

static void ferry_eq_deliver(struct xarray *xa, u32 number, enum ferry_event type)
{
	struct ferry_object *obj;

	/* No such object: it was destroyed after the event had been raised. */
	rcu_read_lock();
	obj = xa_load(xa, number);
	if (obj)
		obj->event(obj, type);
	rcu_read_unlock();
}

static void ferry_eq_dispatch(struct ferry_dev *dev, const struct ferry_eqe *eqe)
{
	u8 type = eqe->type;

	switch (type < FERRY_EVENT_COUNT ? ferry_event_of[type] : FERRY_EVENT_OF_NONE) {
	case FERRY_EVENT_OF_CQ:
		ferry_eq_deliver(&dev->cqs, le32_to_cpu(eqe->number), type);
		break;
	case FERRY_EVENT_OF_QP:
		ferry_eq_deliver(&dev->qps, le32_to_cpu(eqe->number), type);
		break;
	case FERRY_EVENT_OF_SRQ:
		ferry_eq_deliver(&dev->srqs, le32_to_cpu(eqe->number), type);
		break;
	default:
		if (type == FERRY_EVENT_PORT)
			ferry_net_link(dev, le64_to_cpu(eqe->data) & 1);
		else if (type != FERRY_EVENT_ASSIST ||
			 !ferry_assist_event(dev, le32_to_cpu(eqe->number)))
			ferry_device_suspect(dev, "it raised an event nobody asked for");
	}
}

static const struct ferry_eqe *ferry_eq_next(struct ferry_eq *eq)
{
	u32 slot = eq->ci & ((1u << eq->depth_shift) - 1);
	u32 lap = eq->ci >> eq->depth_shift;
	const struct ferry_eqe *eqe = ferry_ring_at(eq->ring, slot * sizeof(*eqe));

	if ((READ_ONCE(eqe->phase) & FERRY_EQE_PHASE) != (~lap & 1))
		return NULL;
	/* Valid bit before body: fence r,r. */
	dma_rmb();
	return eqe;
}

/* Takes up to a budget of entries; whether there may be more. */
static bool ferry_eq_take(struct ferry_eq *eq)
{
	const struct ferry_eqe *eqe;
	unsigned int done = 0;

	while (done < FERRY_EQ_BUDGET && (eqe = ferry_eq_next(eq))) {
		ferry_eq_dispatch(eq->dev, eqe);
		eq->ci++;
		done++;
	}
	if (!done)
		return false;
	/*
	 * The entries were read before their places are given back (fence r,w; litmus
	 * ci-body-rw).
	 */
	dma_mb();
	WRITE_ONCE(*eq->record, cpu_to_le32(eq->ci));
	/*
	 * Index, then one more look: fence w,r (litmus arm1). The device stores an entry and
	 * then reads the index: either it sees that all before it was taken, and interrupts,
	 * or we see the entry. On x86 this is mfence.
	 */
	dma_mb();
	return ferry_eq_next(eq);
}

/*
 * Until it is empty. The device raises no further interrupt while entries lie there, so
 * a queue that fills as fast as it is emptied is left to the thread, which can be
 * preempted.
 */
static irqreturn_t ferry_eq_irq(int irq, void *data)
{
	struct ferry_eq *eq = data;
	irqreturn_t ret = IRQ_HANDLED;

	if (eq == &eq->dev->eqs[0])
		ferry_admin_irq(eq->dev);
	if (!smp_load_acquire(&eq->ready))
		return ret;
	spin_lock(&eq->lock);
	if (ferry_eq_take(eq) && ferry_eq_take(eq))
		ret = IRQ_WAKE_THREAD;
	spin_unlock(&eq->lock);
	return ret;
}

/* When this returns, whatever was being handled has been. */
void ferry_eq_flush(struct ferry_eq *eq)
{
	spin_lock_irq(&eq->lock);
	spin_unlock_irq(&eq->lock);
}

static irqreturn_t ferry_eq_thread(int irq, void *data)
{
	struct ferry_eq *eq = data;
	bool more;

	do {
		/* NAPI that an event scheduled runs at once, not after the next interrupt. */
		local_bh_disable();
		spin_lock_irq(&eq->lock);
		more = ferry_eq_take(eq);
		spin_unlock_irq(&eq->lock);
		local_bh_enable();
		cond_resched();
	} while (more && !ferry_is_lost(eq->dev));
	return IRQ_HANDLED;
}

static int ferry_eq_request(struct ferry_dev *dev, unsigned int vector)
{
	struct ferry_eq *eq = &dev->eqs[vector];
	int err;

	eq->dev = dev;
	spin_lock_init(&eq->lock);
	eq->irq = pci_irq_vector(dev->pdev, vector);
	if (vector)
		snprintf(eq->name, sizeof(eq->name), "ferry-comp%u@%s", vector - 1,
			 pci_name(dev->pdev));
	else
		snprintf(eq->name, sizeof(eq->name), "ferry-admin@%s", pci_name(dev->pdev));
	err = request_threaded_irq(eq->irq, ferry_eq_irq, ferry_eq_thread, 0, eq->name, eq);
	if (err)
		return err;
	if (vector)
		irq_set_affinity_and_hint(eq->irq,
					  cpumask_of(cpumask_local_spread(vector - 1,
								dev_to_node(&dev->pdev->dev))));
	return 0;
}

static void ferry_eqs_free_irqs(struct ferry_dev *dev, unsigned int count)
{
	while (count--) {
		irq_set_affinity_and_hint(dev->eqs[count].irq, NULL);
		free_irq(dev->eqs[count].irq, &dev->eqs[count]);
	}
}

/* Vectors and handlers; no event arrives before ferry_eqs_create(). */
int ferry_eqs_request(struct ferry_dev *dev)
{
	unsigned int i, want = num_online_cpus() + 1;
	struct pci_dev *pdev = dev->pdev;
	int got, err;

	want = min3(want, ferry_read(dev, FERRY_REG_VECTORS), (unsigned int)FERRY_EQS_MAX);
	got = pci_alloc_irq_vectors(pdev, 1, max(want, 1u), PCI_IRQ_MSIX);
	if (got < 0)
		return dev_err_probe(&pdev->dev, got, "no MSI-X, which the device needs\n");
	dev->eqs = kcalloc(got, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs) {
		err = -ENOMEM;
		goto err_vectors;
	}
	for (i = 0; i < got; i++) {
		err = ferry_eq_request(dev, i);
		if (err)
			goto err_irqs;
	}
	dev->num_eqs = got;
	return 0;

err_irqs:
	ferry_eqs_free_irqs(dev, i);
	kfree(dev->eqs);
err_vectors:
	pci_free_irq_vectors(pdev);
	return err;
}

/* The device has been reset. */
void ferry_eqs_release(struct ferry_dev *dev)
{
	unsigned int i;

	ferry_eqs_free_irqs(dev, dev->num_eqs);
	for (i = 0; i < dev->num_eqs; i++)
		ferry_ring_free(dev->eqs[i].ring);
	ferry_dma_free(dev, &dev->eq_records);
	kfree(dev->eqs);
	pci_free_irq_vectors(dev->pdev);
}

/*
 * Deep enough for an event of every CQ, as none has more than one under way, and on the
 * first queue for several of every QP too.
 */
static unsigned int ferry_eq_shift(struct ferry_dev *dev, unsigned int vector)
{
	u64 events = dev->limits.max_cqs;

	if (!vector)
		events += 4ull * dev->limits.max_qps;
	return clamp(order_base_2(events + 1), FERRY_EQ_SHIFT_MIN, FERRY_EQ_SHIFT_MAX);
}

static int ferry_eq_create(struct ferry_dev *dev, unsigned int vector)
{
	struct ferry_eq *eq = &dev->eqs[vector];
	size_t record = vector * FERRY_EQ_RECORD_SIZE;
	struct ferry_admin_create_eq cmd = {
		.vector = cpu_to_le16(vector),
		.ci_addr = cpu_to_le64(dev->eq_records.dma + record),
	};
	struct ferry_pages pages;
	int err;

	eq->depth_shift = ferry_eq_shift(dev, vector);
	eq->record = dev->eq_records.cpu + record;
	eq->ring = ferry_ring_alloc(dev, NULL, sizeof(struct ferry_eqe) << eq->depth_shift);
	if (!eq->ring)
		return -ENOMEM;
	/* From here on the interrupt looks at the ring. */
	smp_store_release(&eq->ready, true);

	cmd.depth_shift = eq->depth_shift;
	err = ferry_ring_list(eq->ring, &pages, &cmd.ring);
	if (!err)
		err = ferry_admin_create(dev, FERRY_ADMIN_CREATE_EQ, &cmd, &eq->number);
	ferry_pages_free(dev, &pages);
	return err;
}

/* After an error, ferry_eqs_release() frees what there is. */
int ferry_eqs_create(struct ferry_dev *dev)
{
	unsigned int i;
	int err;

	err = ferry_dma_alloc(dev, &dev->eq_records, PAGE_SIZE, GFP_KERNEL);
	for (i = 0; i < dev->num_eqs && !err; i++)
		err = ferry_eq_create(dev, i);
	return err;
}

unsigned int ferry_comp_vectors(const struct ferry_dev *dev)
{
	return max(dev->num_eqs - 1, 1u);
}

struct ferry_eq *ferry_comp_eq(struct ferry_dev *dev, unsigned int vector)
{
	return &dev->eqs[dev->num_eqs > 1 ? 1 + vector % (dev->num_eqs - 1) : 0];
}
