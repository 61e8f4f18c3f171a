/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration space of the function. One thread, the one that serves the client,
 * calls all of this.
 *
 * Class 02.00.00, Ethernet controller: the function is an Ethernet port first (it has a
 * netdev), and RDMA comes on top of it, as with every RoCE NIC; 02.07 names InfiniBand.
 */
#ifndef VNIC_PCI_H
#define VNIC_PCI_H

#include <stdbool.h>
#include <stdint.h>

#define PCI_CONFIG_SIZE		4096

#define VNIC_MAX_VECTORS	256
/* 2 MiB, which is what Linux keeps free behind a slot that was empty when it booted. */
#define VNIC_DOORBELL_PAGES	512

#define VNIC_MSIX_TABLE		0x0000	/* in BAR 4: 16 bytes a vector */
#define VNIC_MSIX_PBA		0x1000
#define VNIC_MSIX_SIZE		0x2000

struct pci {
	uint8_t config[PCI_CONFIG_SIZE];
	uint8_t writable[PCI_CONFIG_SIZE];	/* bits that a write changes */
};

/* What a write to configuration space asks of the device. */
#define PCI_DID_DMA		(1u << 0)	/* pci_dma_allowed() may have changed */
#define PCI_DID_RESET		(1u << 1)	/* function level reset */

/* @vectors: 1 to VNIC_MAX_VECTORS. */
void pci_init(struct pci *pci, unsigned int vectors);

/* Back to the state after power-on. */
void pci_reset(struct pci *pci);

/* The caller has checked that [offset, offset + len) lies in configuration space. */
void pci_read(const struct pci *pci, uint32_t offset, void *to, uint32_t len);
unsigned int pci_write(struct pci *pci, uint32_t offset, const void *from, uint32_t len);

/* Bus mastering is on and the function is in D0: it may access memory and interrupt. */
bool pci_dma_allowed(const struct pci *pci);

/* Memory space is on and the function is in D0: BARs answer. */
bool pci_memory_allowed(const struct pci *pci);

#endif
