/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The PCI function as a vfio-user client sees it: regions, interrupts, DMA, reset. Where
 * protocol, configuration space and shard meet.
 */
#ifndef VNIC_NIC_H
#define VNIC_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include "dma_message.h"
#include "irq.h"
#include "pci.h"
#include "shard.h"
#include "vfio_user.h"

struct nic_config {
	uint8_t mac[6];
	unsigned int vectors;
	bool message;
	uint32_t refuse;		/* as ferry_engine_refuse() takes it */
	const char *raw;		/* or NULL */
	uint64_t dma_timeout;		/* ns, with message */
	struct link *link;		/* taken over, also when nic_init() fails */
	struct pcap *pcap;		/* likewise; or NULL */
	const struct impair_config *impair;	/* or NULL */
	const char *shadow;		/* path of a coherence shadow, or NULL */
};

struct nic {
	struct pci pci;
	struct irq_table irqs;
	struct vfio_user vu;
	struct dma_message messages;
	struct shard shard;
	uint8_t msix_table[16 * VNIC_MAX_VECTORS];
	const char *shadow_path;	/* or NULL */
};

/* 0, or -1 after an error line. The shard's thread is not started yet. */
int nic_init(struct nic *nic, const struct nic_config *config);
void nic_destroy(struct nic *nic);

#endif
