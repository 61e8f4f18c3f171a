// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/pci_regs.h>
#include <string.h>

#include "ferry_hw.h"
#include "pci.h"

#define CAP_PM		0x40
#define CAP_EXP		0x50
#define CAP_MSIX	0x90

/* Not in every linux/pci_regs.h that we are built with. */
#define EXP_SIZE	0x3c
#define CLASS_ETHERNET	0x0200

_Static_assert(CAP_PM + PCI_PM_SIZEOF <= CAP_EXP, "capabilities overlap");
_Static_assert(CAP_EXP + EXP_SIZE <= CAP_MSIX, "capabilities overlap");

static uint16_t get16(const struct pci *pci, uint32_t offset)
{
	return (uint16_t)(pci->config[offset] | pci->config[offset + 1] << 8);
}

static void put16(uint8_t *at, uint32_t offset, uint16_t value)
{
	at[offset] = (uint8_t)value;
	at[offset + 1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t offset, uint32_t value)
{
	put16(at, offset, (uint16_t)value);
	put16(at, offset + 2, (uint16_t)(value >> 16));
}

static void init_bar(struct pci *pci, unsigned int bar, uint64_t size, uint32_t flags)
{
	uint32_t offset = PCI_BASE_ADDRESS_0 + 4 * bar;
	uint64_t mask = ~(size - 1);

	put32(pci->config, offset, flags);
	put32(pci->writable, offset, (uint32_t)mask);
	if (flags & PCI_BASE_ADDRESS_MEM_TYPE_64)
		put32(pci->writable, offset + 4, (uint32_t)(mask >> 32));
}

static void init_header(struct pci *pci)
{
	uint8_t *c = pci->config, *w = pci->writable;

	put16(c, PCI_VENDOR_ID, FERRY_PCI_VENDOR);
	put16(c, PCI_DEVICE_ID, FERRY_PCI_DEVICE);
	put16(c, PCI_STATUS, PCI_STATUS_CAP_LIST);
	c[PCI_REVISION_ID] = FERRY_PCI_REVISION;
	put16(c, PCI_CLASS_DEVICE, CLASS_ETHERNET);
	put16(c, PCI_SUBSYSTEM_VENDOR_ID, FERRY_PCI_VENDOR);
	put16(c, PCI_SUBSYSTEM_ID, FERRY_PCI_DEVICE);
	c[PCI_CAPABILITY_LIST] = CAP_PM;

	/* No I/O space and no INTx: interrupt pin 0 is what the zeroes say. */
	put16(w, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
	      PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	w[PCI_CACHE_LINE_SIZE] = 0xff;
	w[PCI_INTERRUPT_LINE] = 0xff;

	init_bar(pci, FERRY_BAR_REGS, FERRY_REGS_SIZE, PCI_BASE_ADDRESS_MEM_TYPE_32);
	/* Reading a doorbell has no effect, and stores are never merged beyond one of 64 bits. */
	init_bar(pci, FERRY_BAR_DOORBELL, (uint64_t)VNIC_DOORBELL_PAGES << FERRY_PAGE_SHIFT,
		 PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	init_bar(pci, FERRY_BAR_MSIX, VNIC_MSIX_SIZE, PCI_BASE_ADDRESS_MEM_TYPE_32);
}

static void init_cap(struct pci *pci, uint32_t at, uint8_t id, uint8_t next)
{
	pci->config[at + PCI_CAP_LIST_ID] = id;
	pci->config[at + PCI_CAP_LIST_NEXT] = next;
}

static void init_pm(struct pci *pci)
{
	init_cap(pci, CAP_PM, PCI_CAP_ID_PM, CAP_EXP);
	put16(pci->config, CAP_PM + PCI_PM_PMC, 3);		/* version 1.2: D0 and D3hot */
	put16(pci->config, CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
	/* The state field is not in the mask: write_pm_state() takes only what exists. */
}

static void init_exp(struct pci *pci)
{
	uint8_t *c = pci->config + CAP_EXP, *w = pci->writable + CAP_EXP;
	const uint16_t link = PCI_EXP_LNKSTA_CLS_8_0GB | PCI_EXP_LNKSTA_NLW_X4;

	init_cap(pci, CAP_EXP, PCI_CAP_ID_EXP, CAP_MSIX);
	put16(c, PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	put32(c, PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR |
	      PCI_EXP_DEVCAP_EXT_TAG | 1);			/* payload 256 */
	put16(w, PCI_EXP_DEVCTL, 0x7fff);			/* all but the reset bit */
	put32(c, PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS_8_0GB | 4 << 4);
	put16(c, PCI_EXP_LNKSTA, link);
	put16(w, PCI_EXP_LNKCTL, PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES);
	put32(c, PCI_EXP_LNKCAP2, PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB |
	      PCI_EXP_LNKCAP2_SLS_8_0GB);
	put16(c, PCI_EXP_LNKCTL2, PCI_EXP_LNKCTL2_TLS_8_0GT);
}

static void init_msix(struct pci *pci, unsigned int vectors)
{
	init_cap(pci, CAP_MSIX, PCI_CAP_ID_MSIX, 0);
	put16(pci->config, CAP_MSIX + PCI_MSIX_FLAGS, (uint16_t)(vectors - 1));
	put16(pci->writable, CAP_MSIX + PCI_MSIX_FLAGS,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	put32(pci->config, CAP_MSIX + PCI_MSIX_TABLE, FERRY_BAR_MSIX | VNIC_MSIX_TABLE);
	put32(pci->config, CAP_MSIX + PCI_MSIX_PBA, FERRY_BAR_MSIX | VNIC_MSIX_PBA);
}

void pci_init(struct pci *pci, unsigned int vectors)
{
	memset(pci, 0, sizeof(*pci));
	init_header(pci);
	init_pm(pci);
	init_exp(pci);
	init_msix(pci, vectors);
}

void pci_reset(struct pci *pci)
{
	pci_init(pci, (get16(pci, CAP_MSIX + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_QSIZE) + 1u);
}

void pci_read(const struct pci *pci, uint32_t offset, void *to, uint32_t len)
{
	memcpy(to, pci->config + offset, len);
}

/* The byte that a write puts at @at, or -1 if it does not reach there. */
static int written(uint32_t at, uint32_t offset, const uint8_t *from, uint32_t len)
{
	return at >= offset && at - offset < len ? from[at - offset] : -1;
}

static void write_pm_state(struct pci *pci, int byte)
{
	uint8_t *state = &pci->config[CAP_PM + PCI_PM_CTRL];
	uint8_t wanted = (uint8_t)byte & PCI_PM_CTRL_STATE_MASK;

	if (byte >= 0 && (wanted == 0 || wanted == 3))
		*state = (*state & (uint8_t)~PCI_PM_CTRL_STATE_MASK) | wanted;
}

unsigned int pci_write(struct pci *pci, uint32_t offset, const void *from, uint32_t len)
{
	bool dma = pci_dma_allowed(pci);
	const uint8_t *bytes = from;
	unsigned int did = 0;
	uint32_t i;
	int devctl;

	for (i = 0; i < len; i++) {
		uint8_t mask = pci->writable[offset + i];
		uint8_t *at = &pci->config[offset + i];

		*at = (*at & (uint8_t)~mask) | (bytes[i] & mask);
	}
	write_pm_state(pci, written(CAP_PM + PCI_PM_CTRL, offset, bytes, len));

	devctl = written(CAP_EXP + PCI_EXP_DEVCTL + 1, offset, bytes, len);
	if (devctl >= 0 && (devctl << 8) & PCI_EXP_DEVCTL_BCR_FLR)
		did |= PCI_DID_RESET;
	if (dma != pci_dma_allowed(pci))
		did |= PCI_DID_DMA;
	return did;
}

static bool allowed(const struct pci *pci, uint16_t command)
{
	return (get16(pci, PCI_COMMAND) & command) &&
	       !(get16(pci, CAP_PM + PCI_PM_CTRL) & PCI_PM_CTRL_STATE_MASK);
}

bool pci_dma_allowed(const struct pci *pci)
{
	return allowed(pci, PCI_COMMAND_MASTER);
}

bool pci_memory_allowed(const struct pci *pci)
{
	return allowed(pci, PCI_COMMAND_MEMORY);
}
