// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "ferry_hw.h"
#include "log.h"
#include "nic.h"

_Static_assert(VFIO_PCI_BAR0_REGION_INDEX == 0, "a BAR's region has its number");

/* INTx, MSI, MSI-X: what follows in VFIO (error and request) this function does not have. */
#define NUM_IRQS	(VFIO_PCI_MSIX_IRQ_INDEX + 1)

/* --------------------------------------------------------------------------- shard */

/*
 * Has the shard do what takes memory or objects away. The client waits, and QEMU carries
 * out no DMA message until it is answered: one that the shard waits for ends here.
 */
static void call_shard(struct nic *nic, shard_work work, void *arg)
{
	if (nic->shard.message)
		dma_message_abort(&nic->messages, true);
	shard_call(&nic->shard, work, arg);
	if (nic->shard.message)
		dma_message_abort(&nic->messages, false);
}

static void engine_reset(void *arg)
{
	struct nic *nic = arg;

	shard_allow_dma(&nic->shard, false);
	ferry_engine_reset(nic->shard.engine);
	dma_message_reset(&nic->messages);
}

static void stop_dma(void *arg)
{
	struct nic *nic = arg;

	shard_allow_dma(&nic->shard, false);
	ferry_engine_unmapped(nic->shard.engine, 0, UINT64_MAX);
}

static void forget_client(void *arg)
{
	struct nic *nic = arg;

	dma_clear(&nic->shard.dma);
}

/* Bus mastering and power state decide whether the function may touch memory. */
static void follow_dma(struct nic *nic)
{
	bool allowed = pci_dma_allowed(&nic->pci);

	irq_enable(&nic->irqs, allowed);
	/* By message the client refuses by itself, and a run may wait for it to do so. */
	if (allowed || nic->shard.message)
		shard_allow_dma(&nic->shard, allowed);
	else
		shard_call(&nic->shard, stop_dma, nic);
}

static void reset(struct nic *nic)
{
	pci_reset(&nic->pci);
	irq_reset(&nic->irqs);
	memset(nic->msix_table, 0, sizeof(nic->msix_table));
	call_shard(nic, engine_reset, nic);
}

/* -------------------------------------------------------------------------- regions */

static int config_read(struct nic *nic, uint64_t offset, void *to, uint32_t count)
{
	pci_read(&nic->pci, (uint32_t)offset, to, count);
	return 0;
}

static int config_write(struct nic *nic, uint64_t offset, const void *from, uint32_t count)
{
	unsigned int did = pci_write(&nic->pci, (uint32_t)offset, from, count);

	if (did & PCI_DID_RESET)
		reset(nic);
	else if (did & PCI_DID_DMA)
		follow_dma(nic);
	return 0;
}

/* An access to memory space that is off, or of a function that sleeps, is not answered. */
static int no_answer(void *to, uint32_t count)
{
	memset(to, 0xff, count);
	return 0;
}

static int regs_read(struct nic *nic, uint64_t offset, void *to, uint32_t count)
{
	uint8_t *bytes = to;
	uint32_t i, value = 0;

	if (!pci_memory_allowed(&nic->pci))
		return no_answer(to, count);
	for (i = 0; i < count; i++, offset++) {
		if (!i || !(offset % 4))
			value = shard_read_register(&nic->shard, (uint32_t)offset & ~3u);
		bytes[i] = (uint8_t)(value >> 8 * (offset % 4));
	}
	return 0;
}

static int regs_write(struct nic *nic, uint64_t offset, const void *from, uint32_t count)
{
	const uint8_t *bytes = from;
	uint32_t i, value;

	if (!pci_memory_allowed(&nic->pci))
		return 0;
	if (offset % 4 || count % 4 || count > 8) {
		log_few("%u bytes written to register 0x%llx: ignored, registers take 32 bits",
			count, (unsigned long long)offset);
		return 0;
	}
	for (i = 0; i < count; i += 4) {
		memcpy(&value, bytes + i, 4);
		shard_write_register(&nic->shard, (uint32_t)offset + i, value);
	}
	return 0;
}

static int doorbell_read(struct nic *nic, uint64_t offset, void *to, uint32_t count)
{
	(void)offset;
	if (!pci_memory_allowed(&nic->pci))
		return no_answer(to, count);
	memset(to, 0, count);
	return 0;
}

static int doorbell_write(struct nic *nic, uint64_t offset, const void *from, uint32_t count)
{
	uint64_t value;

	if (!pci_memory_allowed(&nic->pci))
		return 0;
	if (offset % 8 || count != 8) {
		log_few("%u bytes written to doorbell page %llu: ignored, a doorbell is one 64-bit store",
			count, (unsigned long long)(offset >> FERRY_PAGE_SHIFT));
		return 0;
	}
	memcpy(&value, from, 8);
	shard_doorbell(&nic->shard, (uint32_t)(offset >> FERRY_PAGE_SHIFT), value);
	return 0;
}

/* The client keeps the table itself and acts on it; this is what it reads back. */
static int msix_read(struct nic *nic, uint64_t offset, void *to, uint32_t count)
{
	uint8_t *bytes = to;
	uint32_t i;

	if (!pci_memory_allowed(&nic->pci))
		return no_answer(to, count);
	for (i = 0; i < count; i++, offset++) {
		if (offset < VNIC_MSIX_PBA)
			bytes[i] = nic->msix_table[offset];
		else if (offset - VNIC_MSIX_PBA < VNIC_MAX_VECTORS / 8)
			bytes[i] = irq_pending(&nic->irqs, (unsigned int)(offset - VNIC_MSIX_PBA));
		else
			bytes[i] = 0;
	}
	return 0;
}

static int msix_write(struct nic *nic, uint64_t offset, const void *from, uint32_t count)
{
	if (!pci_memory_allowed(&nic->pci) || offset >= sizeof(nic->msix_table))
		return 0;
	if (count > sizeof(nic->msix_table) - offset)
		count = (uint32_t)(sizeof(nic->msix_table) - offset);
	memcpy(nic->msix_table + offset, from, count);
	return 0;
}

_Static_assert(VNIC_MSIX_PBA >= 16 * VNIC_MAX_VECTORS, "the table overlaps the pending bits");

static const struct region {
	uint64_t size;
	int (*read)(struct nic *nic, uint64_t offset, void *to, uint32_t count);
	int (*write)(struct nic *nic, uint64_t offset, const void *from, uint32_t count);
} regions[VFIO_PCI_NUM_REGIONS] = {
	[FERRY_BAR_REGS] = { FERRY_REGS_SIZE, regs_read, regs_write },
	[FERRY_BAR_DOORBELL] = { (uint64_t)VNIC_DOORBELL_PAGES << FERRY_PAGE_SHIFT,
				 doorbell_read, doorbell_write },
	[FERRY_BAR_MSIX] = { VNIC_MSIX_SIZE, msix_read, msix_write },
	[VFIO_PCI_CONFIG_REGION_INDEX] = { PCI_CONFIG_SIZE, config_read, config_write },
};

static int op_region_info(void *device, uint32_t index, uint64_t *size, uint32_t *flags)
{
	(void)device;
	if (index >= VFIO_PCI_NUM_REGIONS)
		return -EINVAL;
	*size = regions[index].size;
	*flags = *size ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0;
	return 0;
}

static int op_region_read(void *device, uint32_t index, uint64_t offset, void *to, uint32_t count)
{
	return regions[index].read(device, offset, to, count);
}

static int op_region_write(void *device, uint32_t index, uint64_t offset, const void *from,
			   uint32_t count)
{
	return regions[index].write(device, offset, from, count);
}

/* ----------------------------------------------------------------------- interrupts */

static int op_irq_info(void *device, uint32_t index, uint32_t *count, uint32_t *flags)
{
	struct nic *nic = device;

	if (index >= NUM_IRQS)
		return -EINVAL;
	*count = index == VFIO_PCI_MSIX_IRQ_INDEX ? nic->irqs.count : 0;
	*flags = *count ? VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE : 0;
	return 0;
}

static int op_set_irqs(void *device, const struct vfio_user_irqs *irqs)
{
	struct nic *nic = device;
	uint32_t i;

	if (irqs->action == VFIO_USER_IRQ_ASSIGN) {
		irq_assign(&nic->irqs, irqs->start, irqs->count, irqs->fds);
		return 0;
	}
	for (i = 0; i < irqs->count; i++) {
		if (irqs->selected && !irqs->selected[i])
			continue;
		if (irqs->action == VFIO_USER_IRQ_TRIGGER)
			irq_raise(&nic->irqs, irqs->start + i);
		else
			irq_mask(&nic->irqs, irqs->start + i,
				 irqs->action == VFIO_USER_IRQ_MASK);
	}
	return 0;
}

/* ------------------------------------------------------------------------------ DMA */

struct map_call {
	struct nic *nic;
	const struct vfio_user_dma_map *map;
	int fd;
	int result;
};

static void shard_map(void *arg)
{
	struct map_call *call = arg;

	call->result = dma_map(&call->nic->shard.dma, call->map->addr, call->map->size,
			       call->map->flags, call->fd, call->map->offset);
}

/* What is larger than any BAR that QEMU has by default is the guest's memory. */
#define SURELY_MEMORY	(64u << 20)

/*
 * By message nothing is mapped, whatever the client offers: where the guest has an IOMMU
 * that QEMU does not mirror in its maps, they would lead past it.
 */
static int op_dma_map(void *device, const struct vfio_user_dma_map *map, int fd)
{
	struct nic *nic = device;
	struct map_call call = { .nic = nic, .map = map, .fd = fd };

	if (nic->shard.message)
		return 0;
	shard_call(&nic->shard, shard_map, &call);
	log_debug("map 0x%llx + 0x%llx, file offset 0x%llx%s: %s", (unsigned long long)map->addr,
		  (unsigned long long)map->size, (unsigned long long)map->offset,
		  fd < 0 ? ", no file" : "", call.result ? strerror(-call.result) : "done");
	if (fd < 0 && map->size >= SURELY_MEMORY)
		log_few("the guest's memory comes without file descriptor, out of reach: QEMU needs "
			"share=on and memory-backend=mem (--help), or this NIC --dma message");
	return call.result;
}

struct unmap_call {
	struct nic *nic;
	uint64_t addr;
	uint64_t last;
	int64_t result;
};

static void shard_unmap(void *arg)
{
	struct unmap_call *call = arg;
	uint64_t len = call->last - call->addr;

	call->result = dma_unmap(&call->nic->shard.dma, call->addr, call->last);
	ferry_engine_unmapped(call->nic->shard.engine, call->addr,
			      len == UINT64_MAX ? len : len + 1);
}

static int64_t op_dma_unmap(void *device, uint64_t addr, uint64_t last)
{
	struct nic *nic = device;
	struct unmap_call call = { .nic = nic, .addr = addr, .last = last };

	/* A message is checked by the client when it is carried out, not by us. */
	if (nic->shard.message)
		return last - addr < INT64_MAX ? (int64_t)(last - addr + 1) : INT64_MAX;
	shard_call(&nic->shard, shard_unmap, &call);
	return call.result;
}

/* -------------------------------------------------------------------------- session */

static void op_reset(void *device)
{
	reset(device);
}

/* QEMU is there, and so is what its plugin has made. Without it nothing would be checked. */
static void open_shadow(void *arg)
{
	struct nic *nic = arg;

	shadow_close(nic->shard.shadow);
	nic->shard.shadow = shadow_open(nic->shadow_path, nic->shard.engine);
	if (!nic->shard.shadow)
		exit(EXIT_FAILURE);
}

static void op_opened(void *device, uint32_t max_transfer)
{
	struct nic *nic = device;

	if (nic->shadow_path)
		shard_call(&nic->shard, open_shadow, nic);
	dma_message_open(&nic->messages, max_transfer);
}

/* The next client finds the NIC as after power-on. */
static void op_closed(void *device)
{
	struct nic *nic = device;

	dma_message_close(&nic->messages);
	reset(nic);
	irq_assign(&nic->irqs, 0, nic->irqs.count, NULL);
	call_shard(nic, forget_client, nic);
}

static void op_dma_reply(void *device, uint16_t command, uint16_t id, int error, const void *data,
			 size_t len)
{
	struct nic *nic = device;

	dma_message_reply(&nic->messages, command, id, error, data, len);
}

static const struct vfio_user_ops nic_ops = {
	.region_info = op_region_info,
	.irq_info = op_irq_info,
	.region_read = op_region_read,
	.region_write = op_region_write,
	.dma_map = op_dma_map,
	.dma_unmap = op_dma_unmap,
	.set_irqs = op_set_irqs,
	.reset = op_reset,
	.opened = op_opened,
	.closed = op_closed,
	.dma_reply = op_dma_reply,
	.regions = VFIO_PCI_NUM_REGIONS,
	.irqs = NUM_IRQS,
	.device_flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
};

int nic_init(struct nic *nic, const struct nic_config *config)
{
	struct shard_config shard = {
		.engine = {
			.vectors = (uint16_t)config->vectors,
			.poll = !config->message,
		},
		.message = config->message,
		.refuse = config->refuse,
		.raw = config->raw,
		.irqs = &nic->irqs,
		.messages = &nic->messages,
		.link = config->link,
		.pcap = config->pcap,
		.impair = config->impair,
	};

	memcpy(shard.engine.mac, config->mac, sizeof(config->mac));
	shard.engine.seed = (uint32_t)clock_now();
	nic->shadow_path = config->shadow;
	memset(nic->msix_table, 0, sizeof(nic->msix_table));
	pci_init(&nic->pci, config->vectors);
	irq_init(&nic->irqs, config->vectors);
	if (vfio_user_init(&nic->vu, &nic_ops, nic)) {
		log_error("out of memory");
		link_close(config->link);
		if (config->pcap)
			pcap_close(config->pcap);
		goto no_protocol;
	}
	dma_message_init(&nic->messages, &nic->vu, &nic->irqs, config->dma_timeout);
	if (shard_init(&nic->shard, &shard))
		goto no_shard;
	return 0;

no_shard:
	dma_message_destroy(&nic->messages);
	vfio_user_destroy(&nic->vu);
no_protocol:
	irq_destroy(&nic->irqs);
	return -1;
}

void nic_destroy(struct nic *nic)
{
	shard_destroy(&nic->shard);
	dma_message_destroy(&nic->messages);
	vfio_user_destroy(&nic->vu);
	irq_destroy(&nic->irqs);
}
