// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the engine needs from outside, as the virtual NIC has it. */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "log.h"
#include "shard.h"

/* With a shadow nothing is mapped: the engine makes each access by the two below. */
static void *port_map(void *ctx, uint64_t addr, uint64_t len, bool write)
{
	struct shard *shard = ctx;

	if (shard->message || shard->shadow || !shard_may_access_memory(shard))
		return NULL;
	return dma_lookup(&shard->dma, addr, len, write ? DMA_READ | DMA_WRITE : DMA_READ);
}

static int port_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct shard *shard = ctx;
	int ret;

	if (!shard_may_access_memory(shard))
		return -EPERM;
	ret = shard->message ? dma_message_read(shard->messages, addr, to, len) :
			       dma_read(&shard->dma, addr, to, len);
	if (shard->shadow && !ret)
		shadow_reads(shard->shadow, addr, len);
	return ret;
}

static int port_write(void *ctx, uint64_t addr, const void *from, size_t len)
{
	struct shard *shard = ctx;

	if (!shard_may_access_memory(shard))
		return -EPERM;
	if (shard->shadow)
		shadow_writes(shard->shadow, addr, len);
	return shard->message ? dma_message_write(shard->messages, addr, from, len) :
				dma_write(&shard->dma, addr, from, len);
}

static bool port_transmit(void *ctx, const void *frame, size_t len)
{
	struct shard *shard = ctx;

	return ether_transmit(&shard->ether, frame, len);
}

static void port_interrupt(void *ctx, unsigned int vector)
{
	struct shard *shard = ctx;

	if (shard->message)
		dma_message_interrupt(shard->messages, vector);
	else
		irq_raise(shard->irqs, vector);
}

/* In front of each block: where free() finds what calloc() returned. */
struct block {
	void *start;
	uint8_t pad[56];
};

/* calloc, since the large tables of the engine should not be touched before they are used. */
static void *port_alloc(void *ctx, size_t size)
{
	struct block *block;
	void *start;

	(void)ctx;
	if (size > SIZE_MAX - 2 * sizeof(*block))
		return NULL;
	start = calloc(1, size + 2 * sizeof(*block));
	if (!start)
		return NULL;
	block = (struct block *)(((uintptr_t)start + 63) & ~(uintptr_t)63);
	block->start = start;
	return block + 1;
}

static void port_free(void *ctx, void *mem)
{
	(void)ctx;
	if (mem)
		free(((struct block *)mem - 1)->start);
}

/* What the engine says is mostly what a guest made it say: some lines a second, no more. */
static void port_log(void *ctx, enum ferry_log_level level, const char *format, ...)
{
	static const enum log_kind kinds[] = {
		[FERRY_LOG_ERROR] = LOG_ERROR,
		[FERRY_LOG_INFO] = LOG_INFO,
		[FERRY_LOG_DEBUG] = LOG_DEBUG,
	};
	static uint64_t second;
	static unsigned int lines;
	struct shard *shard = ctx;
	va_list args;

	if (shard->now / NSEC_PER_SEC != second) {
		second = shard->now / NSEC_PER_SEC;
		lines = 0;
	}
	if (lines++ >= 10)
		return;
	va_start(args, format);
	log_vline(kinds[level], format, args);
	va_end(args);
}

void shard_fill_port(struct shard *shard, struct ferry_port *port)
{
	*port = (struct ferry_port){
		.ctx = shard,
		.map = port_map,
		.read = port_read,
		.write = port_write,
		.transmit = port_transmit,
		.interrupt = port_interrupt,
		.alloc = port_alloc,
		.free = port_free,
		.log = port_log,
	};
}
