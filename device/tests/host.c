// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "tap.h"

#define ADMIN_RUNS	1000	/* calls of the engine that a command may take */
#define SETTLE_RUNS	200000
#define PORT_MTU	9000

/* ---- what the engine needs from outside */

static void *port_map(void *ctx, uint64_t addr, uint64_t len, bool write)
{
	struct host *host = ctx;

	return hostmem_map(&host->mem, addr, len, write);
}

static int port_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct host *host = ctx;

	return hostmem_read(&host->mem, addr, to, len);
}

static int port_write(void *ctx, uint64_t addr, const void *from, size_t len)
{
	struct host *host = ctx;

	return hostmem_write(&host->mem, addr, from, len);
}

static bool port_transmit(void *ctx, const void *frame, size_t len)
{
	struct host *host = ctx;

	return host->transmit && host->transmit(host->transmit_arg, host, frame, len);
}

static void port_interrupt(void *ctx, unsigned int vector)
{
	struct host *host = ctx;

	need(vector < HOST_VECTORS);
	host->interrupts[vector]++;
}

static void *port_alloc(void *ctx, size_t size)
{
	struct host *host = ctx;
	void *mem;

	if (host->alloc_fails_at && !--host->alloc_fails_at)
		return NULL;
	size = (size + 63) & ~(size_t)63;
	mem = aligned_alloc(64, size);
	need(mem);
	memset(mem, 0, size);
	host->allocations++;
	return mem;
}

static void port_free(void *ctx, void *mem)
{
	struct host *host = ctx;

	if (mem)
		host->allocations--;
	free(mem);
}

static void port_log(void *ctx, enum ferry_log_level level, const char *format, ...)
{
	struct host *host = ctx;
	va_list args;

	if (!host->verbose)
		return;
	printf("# [%u %llu] %s", host->index, (unsigned long long)host->now,
	       level == FERRY_LOG_ERROR ? "error: " : "");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* ---- running it */

static void wake(struct host *host)
{
	if (host->asleep)
		ferry_engine_wake(host->engine);
	host->asleep = false;
	host->next = 0;
}

void host_run(struct host *host)
{
	wake(host);
	host->deadline = ferry_engine_run(host->engine, host->now, host->budget);
	host->next = host->deadline;
}

bool host_settle(struct host *host)
{
	unsigned int i;

	for (i = 0; i < SETTLE_RUNS; i++) {
		host_run(host);
		if (host->next > host->now)
			return true;
	}
	return false;
}

bool host_sleep(struct host *host)
{
	if (!host->asleep && host_settle(host))
		host->asleep = host->poll && ferry_engine_sleep(host->engine);
	return host->asleep;
}

/* The device gets a copy of just that size, so that a sanitizer sees who reads past it. */
void host_frame(struct host *host, const void *frame, size_t len)
{
	void *copy = malloc(len ? len : 1);

	need(copy);
	memcpy(copy, frame, len);
	wake(host);
	ferry_engine_frame(host->engine, copy, len);
	free(copy);
}

void host_doorbell(struct host *host, uint32_t page, uint64_t value)
{
	ferry_engine_doorbell(host->engine, page, value);
	wake(host);
}

/* ---- admin queue */

static bool admin_answer(struct host *host, struct ferry_admin_cqe *answer)
{
	uint32_t depth = 1u << host->admin_shift;
	const struct ferry_admin_cqe *cqe = (struct ferry_admin_cqe *)host->acq->va +
					    (host->admin_ci & (depth - 1));
	uint8_t phase = ((host->admin_ci >> host->admin_shift) & 1) ^ 1;

	if ((cqe->phase & 1) != phase)
		return false;
	*answer = *cqe;
	host->admin_ci++;
	return true;
}

unsigned int host_admin(struct host *host, union ferry_admin_sqe *cmd,
			struct ferry_admin_cqe *answer)
{
	uint32_t depth = 1u << host->admin_shift;
	struct ferry_admin_cqe copy;
	unsigned int i;

	cmd->head.id = htole16((uint16_t)host->admin_pi);
	if (host->mangle)
		host->mangle(host->mangle_arg, cmd);
	((union ferry_admin_sqe *)host->asq->va)[host->admin_pi & (depth - 1)] = *cmd;
	host->admin_pi++;
	ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_DB, host->admin_pi);
	for (i = 0; i < ADMIN_RUNS; i++) {
		host_run(host);
		if (!admin_answer(host, &copy))
			continue;
		need_eq(le16toh(copy.id), le16toh(cmd->head.id));
		need(copy.status < FERRY_ADMIN_STATUS_COUNT);
		if (copy.status)
			host->detail = le32toh(copy.detail);
		if (answer)
			*answer = copy;
		return copy.status;
	}
	return FERRY_ADMIN_STATUS_COUNT;
}

unsigned int host_admin_object(struct host *host, unsigned int opcode, uint32_t number,
			       struct ferry_admin_cqe *answer)
{
	union ferry_admin_sqe cmd = {
		.object.head.opcode = htole16((uint16_t)opcode),
		.object.number = htole32(number),
	};

	return host_admin(host, &cmd, answer);
}

uint64_t host_counter(struct host *host, enum ferry_counter counter)
{
	struct ferry_admin_cqe answer;

	need_eq(host_admin_object(host, FERRY_ADMIN_QUERY_COUNTERS, 0, &answer), FERRY_ADMIN_OK);
	return le64toh(answer.counters[counter]);
}

/* ---- event queues */

bool host_eq_create(struct host *host, struct host_eq *eq, unsigned int shift, uint16_t vector)
{
	uint64_t bytes = sizeof(struct ferry_eqe) << shift;
	union ferry_admin_sqe cmd = {
		.create_eq.head.opcode = htole16(FERRY_ADMIN_CREATE_EQ),
		.create_eq.vector = htole16(vector),
		.create_eq.depth_shift = (uint8_t)shift,
	};
	struct ferry_admin_cqe answer;
	struct host_list list;
	unsigned int status;

	memset(eq, 0, sizeof(*eq));
	eq->shift = shift;
	if (!host_blocks_alloc(host, &eq->ring, bytes, FERRY_PAGE_SHIFT))
		return false;
	host_blocks_allow(host, &eq->ring, 0, bytes, HOSTMEM_WRITE);
	eq->index = hostmem_alloc(&host->mem, HOSTMEM_PAGE, HOSTMEM_PAGE);
	hostmem_allow(&host->mem, eq->index->dma, sizeof(__le32), HOSTMEM_READ);
	cmd.create_eq.ci_addr = htole64(eq->index->dma);
	host_list_build(host, &eq->ring, rng_chance(&host->rng, 30), &cmd.create_eq.ring, &list);
	status = host_admin(host, &cmd, &answer);
	host_list_free(host, &list);
	eq->number = le32toh(answer.number);
	return status == FERRY_ADMIN_OK;
}

bool host_eq_next(struct host *host, struct host_eq *eq, struct host_event *event)
{
	uint32_t depth = 1u << eq->shift;
	const struct ferry_eqe *eqe = host_blocks_at(&eq->ring, (eq->ci & (depth - 1)) *
						     sizeof(*eqe));
	uint8_t phase = ((eq->ci >> eq->shift) & 1) ^ 1;

	(void)host;
	if ((eqe->phase & FERRY_EQE_PHASE) != phase)
		return false;
	event->type = eqe->type;
	event->number = le32toh(eqe->number);
	event->data = le64toh(eqe->data);
	eq->ci++;
	*(__le32 *)eq->index->va = htole32(eq->ci);
	return true;
}

/* ---- bring-up */

void host_gid(const struct host *host, bool ipv6, uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(gid, 0, 16);
	if (ipv6) {
		gid[0] = 0xfd;
		gid[15] = (uint8_t)(host->index + 1);
	} else {
		memcpy(gid, mapped, sizeof(mapped));
		gid[12] = 10;
		gid[15] = (uint8_t)(host->index + 1);
	}
}

static void reg_write64(struct host *host, uint32_t offset, uint64_t value)
{
	ferry_engine_reg_write(host->engine, offset, (uint32_t)value);
	ferry_engine_reg_write(host->engine, offset + 4, (uint32_t)(value >> 32));
}

bool host_enable(struct host *host)
{
	size_t depth = (size_t)1 << host->admin_shift;
	unsigned int i;

	host->admin_pi = 0;
	host->admin_ci = 0;
	memset(host->acq->va, 0, depth * FERRY_ADMIN_CQE_SIZE);
	reg_write64(host, FERRY_REG_ASQ_LO, host->asq->dma);
	reg_write64(host, FERRY_REG_ACQ_LO, host->acq->dma);
	ferry_engine_reg_write(host->engine, FERRY_REG_ADMIN_SHIFT, host->admin_shift);
	ferry_engine_reg_write(host->engine, FERRY_REG_CTRL, FERRY_CTRL_ENABLE);
	for (i = 0; i < ADMIN_RUNS; i++) {
		if (ferry_engine_reg_read(host->engine, FERRY_REG_STATUS) & FERRY_STATUS_READY)
			return true;
		host_run(host);
	}
	return false;
}

static void set_status_page(struct host *host)
{
	union ferry_admin_sqe cmd = {
		.set_page.head.opcode = htole16(FERRY_ADMIN_SET_STATUS_PAGE),
	};

	host->status = hostmem_alloc(&host->mem, HOSTMEM_PAGE, HOSTMEM_PAGE);
	hostmem_allow(&host->mem, host->status->dma, 64, HOSTMEM_WRITE);
	((struct ferry_status_page *)host->status->va)->alive = htole32(1);
	cmd.set_page.addr = htole64(host->status->dma);
	need_eq(host_admin(host, &cmd, NULL), FERRY_ADMIN_OK);
}

static void set_port(struct host *host)
{
	union ferry_admin_sqe cmd = {
		.set_port.head.opcode = htole16(FERRY_ADMIN_SET_PORT),
		.set_port.mtu = htole16(PORT_MTU),
		.set_port.up = 1,
	};

	memcpy(cmd.set_port.mac, host->mac, sizeof(host->mac));
	need_eq(host_admin(host, &cmd, NULL), FERRY_ADMIN_OK);
}

static void set_gid(struct host *host, uint16_t index, bool ipv6)
{
	union ferry_admin_sqe cmd = {
		.set_gid.head.opcode = htole16(FERRY_ADMIN_SET_GID),
		.set_gid.index = htole16(index),
		.set_gid.valid = 1,
		.set_gid.vlan = htole16(0xffff),
	};

	host_gid(host, ipv6, cmd.set_gid.gid);
	need_eq(host_admin(host, &cmd, NULL), FERRY_ADMIN_OK);
}

void host_bring_up(struct host *host)
{
	struct ferry_admin_cqe answer;

	need(host_enable(host));
	need_eq(host_admin_object(host, FERRY_ADMIN_QUERY_DEVICE, 0, &answer), FERRY_ADMIN_OK);
	host->limits = answer.device;
	if (host->poll)
		set_status_page(host);
	need(host_eq_create(host, &host->eq, 8, 1));
	set_port(host);
	set_gid(host, HOST_GID_IPV4, false);
	set_gid(host, HOST_GID_IPV6, true);
}

struct host *host_create(const struct host_options *options)
{
	struct host *host = calloc(1, sizeof(*host));
	struct ferry_engine_config config = {
		.mac = { 0x02, 0xfe, 0, 0, 0, (uint8_t)options->index },
		.vectors = HOST_VECTORS,
		.poll = options->poll,
		.link_up = true,
		.speed_mbps = 100000,
		.seed = (uint32_t)options->seed,
	};
	const struct ferry_port port = {
		.ctx = host,
		.map = port_map,
		.read = port_read,
		.write = port_write,
		.transmit = port_transmit,
		.interrupt = port_interrupt,
		.alloc = port_alloc,
		.free = port_free,
		.log = port_log,
	};

	need(host);
	hostmem_init(&host->mem, options->seed);
	host->mem.message = options->message;
	host->mem.mixed = options->mixed;
	rng_init(&host->rng, options->seed + 1);
	host->index = options->index;
	host->poll = options->poll;
	host->budget = 1 << 16;
	memcpy(host->mac, config.mac, sizeof(host->mac));
	host->engine = ferry_engine_create(&config, &port);
	need(host->engine);
	host->asleep = true;

	host->admin_shift = (unsigned int)rng_range(&host->rng, 1, 6);
	host->asq = hostmem_alloc(&host->mem, (size_t)FERRY_ADMIN_SQE_SIZE << 8, HOSTMEM_PAGE);
	host->acq = hostmem_alloc(&host->mem, (size_t)FERRY_ADMIN_CQE_SIZE << 8, HOSTMEM_PAGE);
	hostmem_allow(&host->mem, host->asq->dma,
		      (uint64_t)FERRY_ADMIN_SQE_SIZE << host->admin_shift, HOSTMEM_READ);
	hostmem_allow(&host->mem, host->acq->dma,
		      (uint64_t)FERRY_ADMIN_CQE_SIZE << host->admin_shift, HOSTMEM_WRITE);
	if (!options->bare)
		host_bring_up(host);
	return host;
}

void host_destroy(struct host *host)
{
	ferry_engine_destroy(host->engine);
	need_eq(host->allocations, 0);
	free(host->eq.ring.chunk);
	hostmem_destroy(&host->mem);
	free(host);
}
