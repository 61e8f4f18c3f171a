// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The virtual NIC as a vfio-user client sees it: what is right, what is refused, and what
 * must go on working after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "ferry_hw.h"
#include "guard.h"
#include "rng.h"
#include "server.h"
#include "tap.h"
#include "vnic/client.h"

#define CONFIG		VFIO_PCI_CONFIG_REGION_INDEX
#define VECTORS		20u
#define MEMORY		0x80000000ull	/* where the guest's memory lies */
#define MEMORY_SIZE	(1u << 20)
#define RW		(DMA_READ | DMA_WRITE)

static struct client client;

static void start(bool message)
{
	client_start(&client, message, VECTORS);
	client_connect(&client);
	need(client_version(&client) > 0);
}

static void set_command(uint16_t command)
{
	client_write16(&client, CONFIG, PCI_COMMAND, command);
}

static int memory_file(uint64_t size)
{
	int fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	need(fd >= 0);
	need_eq(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static bool readable(int fd, int timeout)
{
	struct pollfd fds = { .fd = fd, .events = POLLIN };

	return poll(&fds, 1, timeout) == 1;
}

/* -------------------------------------------------------------------------- handshake */

static int say_version(uint16_t major, uint16_t minor, const char *text, uint32_t text_len,
		       struct vfio_user_version *answer)
{
	uint8_t request[256], reply[256];
	struct vfio_user_version version = { major, minor };
	int ret;

	memcpy(request, &version, sizeof(version));
	memcpy(request + sizeof(version), text, text_len);
	ret = client_request(&client, VFIO_USER_VERSION, request,
			     (uint32_t)sizeof(version) + text_len, NULL, 0, reply, sizeof(reply));
	if (ret > 0) {
		memcpy(answer, reply, sizeof(*answer));
		need_eq(reply[ret - 1], 0);
	}
	return ret;
}

static void test_version(void)
{
	struct vfio_user_device_info info = { .argsz = sizeof(info) };
	struct vfio_user_version answer;

	client_start(&client, false, VECTORS);
	client_connect(&client);
	need_eq(client_request(&client, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info), NULL, 0,
			       NULL, 0), -EINVAL);
	need_eq(client_request(&client, VFIO_USER_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0),
		-EINVAL);
	need_eq(client_request(&client, VFIO_USER_VERSION, "", 1, NULL, 0, NULL, 0), -EINVAL);
	need_eq(say_version(0, 0, "{}", 2, &answer), -EINVAL);	/* no NUL */
	need_eq(say_version(1, 0, "{}", 3, &answer), -ENOTSUP);
	need_eq(say_version(0, 0, "{\"max_data_xfer_size\":1}", 25, &answer), -EINVAL);
	need(say_version(0, 7, "{\"max_data_xfer_size\" : 4096}", 30, &answer) > 0);
	need_eq(answer.major, 0);
	need_eq(answer.minor, 0);
	need_eq(say_version(0, 0, "", 0, &answer), -EINVAL);	/* once is enough */
	client_hang_up(&client);

	client_connect(&client);
	need(say_version(0, 0, "", 0, &answer) > 0);		/* the text is optional */
	client_stop(&client);
}

static void test_info(void)
{
	struct vfio_user_device_info info = { .argsz = sizeof(info) };
	struct vfio_user_region_info region;
	struct vfio_user_irq_info irq;
	static const uint64_t sizes[VFIO_PCI_NUM_REGIONS] = {
		[0] = 0x1000, [2] = 0x200000, [4] = 0x2000, [CONFIG] = 0x1000,
	};
	uint32_t i;

	start(false);
	need_eq(client_request(&client, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info), NULL, 0,
			       &info, sizeof(info)), sizeof(info));
	need_eq(info.flags, VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI);
	need_eq(info.regions, VFIO_PCI_NUM_REGIONS);
	need(info.irqs > VFIO_PCI_MSIX_IRQ_INDEX);
	info.argsz = sizeof(info) - 1;
	need_eq(client_request(&client, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info), NULL, 0,
			       NULL, 0), -EINVAL);

	for (i = 0; i <= VFIO_PCI_NUM_REGIONS; i++) {
		region = (struct vfio_user_region_info){ .argsz = 64, .index = i };
		if (i == VFIO_PCI_NUM_REGIONS) {
			need_eq(client_request(&client, VFIO_USER_DEVICE_GET_REGION_INFO, &region,
					       sizeof(region), NULL, 0, NULL, 0), -EINVAL);
			break;
		}
		need_eq(client_request(&client, VFIO_USER_DEVICE_GET_REGION_INFO, &region,
				       sizeof(region), NULL, 0, &region, sizeof(region)),
			sizeof(region));
		need_eq(region.argsz, sizeof(region));
		need_eq(region.index, i);
		need_eq(region.size, sizes[i]);
		need_eq(region.flags, sizes[i] ? 3 : 0);
	}
	for (i = 0; i < 8; i++) {
		int ret;

		irq = (struct vfio_user_irq_info){ .argsz = sizeof(irq), .index = i };
		ret = client_request(&client, VFIO_USER_DEVICE_GET_IRQ_INFO, &irq, sizeof(irq),
				     NULL, 0, &irq, sizeof(irq));
		if (i >= info.irqs) {
			need_eq(ret, -EINVAL);
			continue;
		}
		need_eq(ret, sizeof(irq));
		need_eq(irq.count, i == VFIO_PCI_MSIX_IRQ_INDEX ? VECTORS : 0);
	}
	client_stop(&client);
}

/* ------------------------------------------------------------------- configuration */

static uint32_t find_cap(uint8_t id)
{
	uint8_t config[256], at, steps = 0;

	need_eq(client_read(&client, CONFIG, 0, config, sizeof(config)), 0);
	need(config[PCI_STATUS] & PCI_STATUS_CAP_LIST);
	for (at = config[PCI_CAPABILITY_LIST]; at; at = config[at + 1]) {
		need(at >= 0x40 && at % 4 == 0 && steps++ < 10);
		if (config[at] == id)
			return at;
	}
	tap_fail(__FILE__, __LINE__, "no capability %u", id);
}

static void test_config(void)
{
	static const struct {
		uint32_t bar, low, high;
	} bars[] = {
		{ 0, 0xfffff000, 0 }, { 2, 0xffe0000c, 0xffffffff }, { 4, 0xffffe000, 0 },
	};
	uint8_t before[PCI_CONFIG_SIZE], after[PCI_CONFIG_SIZE], ones[64];
	uint32_t at, i;

	start(false);
	need_eq(client_read32(&client, CONFIG, 0), 0x10f01af4);
	need_eq(client_read32(&client, CONFIG, PCI_CLASS_REVISION) >> 8, 0x020000);
	need_eq(client_read32(&client, CONFIG, PCI_INTERRUPT_LINE) >> 8 & 0xff, 0);
	for (i = 0; i < 6; i++)
		client_write32(&client, CONFIG, PCI_BASE_ADDRESS_0 + 4 * i, 0xffffffff);
	for (i = 0; i < 3; i++) {
		at = PCI_BASE_ADDRESS_0 + 4 * bars[i].bar;
		need_eq(client_read32(&client, CONFIG, at), bars[i].low);
		need_eq(client_read32(&client, CONFIG, at + 4), bars[i].high);
	}

	at = find_cap(PCI_CAP_ID_MSIX);
	need_eq(client_read32(&client, CONFIG, at) >> 16, VECTORS - 1);
	need_eq(client_read32(&client, CONFIG, at + PCI_MSIX_TABLE), 4);
	need_eq(client_read32(&client, CONFIG, at + PCI_MSIX_PBA), 0x1004);
	client_write16(&client, CONFIG, at + PCI_MSIX_FLAGS, 0xffff);
	need_eq(client_read32(&client, CONFIG, at) >> 16, 0xc000 | (VECTORS - 1));
	at = find_cap(PCI_CAP_ID_EXP);
	need(client_read32(&client, CONFIG, at + PCI_EXP_DEVCAP) & PCI_EXP_DEVCAP_FLR);
	need_eq(client_read32(&client, CONFIG, at) >> 16 & PCI_EXP_FLAGS_TYPE, 0);

	/* Ones everywhere change what may change, and a second time nothing more. */
	memset(ones, 0xff, sizeof(ones));
	need_eq(client_read(&client, CONFIG, 0, before, sizeof(before)), 0);
	for (i = 0; i < PCI_CONFIG_SIZE; i += sizeof(ones))
		need_eq(client_write(&client, CONFIG, i, ones, sizeof(ones)), 0);
	need_eq(client_read(&client, CONFIG, 0, after, sizeof(after)), 0);
	need(!memcmp(before, after, 4));
	need(!memcmp(before + 6, after + 6, 6));
	need(!memcmp(before + 0x100, after + 0x100, PCI_CONFIG_SIZE - 0x100));
	client_stop(&client);
}

static void test_power_and_reset(void)
{
	uint32_t pm, exp;

	start(false);
	need_eq(client_read32(&client, 0, FERRY_REG_MAGIC), 0xffffffff);
	set_command(PCI_COMMAND_MEMORY);
	need_eq(client_read32(&client, 0, FERRY_REG_MAGIC), FERRY_MAGIC);
	need_eq(client_read32(&client, 2, 0x1ffff8), 0);

	pm = find_cap(PCI_CAP_ID_PM) + PCI_PM_CTRL;
	client_write16(&client, CONFIG, pm, 3);
	need_eq(client_read32(&client, 0, FERRY_REG_MAGIC), 0xffffffff);
	client_write16(&client, CONFIG, pm, 1);		/* no D1: stays */
	need_eq(client_read32(&client, CONFIG, pm) & 3, 3);
	client_write16(&client, CONFIG, pm, 0);
	need_eq(client_read32(&client, 0, FERRY_REG_MAGIC), FERRY_MAGIC);

	exp = find_cap(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;
	client_write16(&client, CONFIG, exp, PCI_EXP_DEVCTL_BCR_FLR | 0x10);
	need_eq(client_read32(&client, CONFIG, PCI_COMMAND) & 0xffff, 0);
	need_eq(client_read32(&client, CONFIG, exp) & 0xffff, 0);
	need_eq(client_read32(&client, 0, FERRY_REG_MAGIC), 0xffffffff);

	set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	need_eq(client_request(&client, VFIO_USER_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0), 0);
	need_eq(client_read32(&client, CONFIG, PCI_COMMAND) & 0xffff, 0);
	client_stop(&client);
}

static void test_registers(void)
{
	uint64_t both = 0x1122334455667788ull;
	uint8_t bytes[6];

	start(false);
	set_command(PCI_COMMAND_MEMORY);
	need_eq(client_read(&client, 0, FERRY_REG_MAC_LO, bytes, 6), 0);
	need(!memcmp(bytes, "\2\0\0\0\0\1", 6));
	need_eq(client_read32(&client, 0, FERRY_REG_VECTORS), VECTORS);
	need_eq(client_write(&client, 0, FERRY_REG_ASQ_LO, &both, 8), 0);
	client_write32(&client, 0, FERRY_REG_ACQ_HI, 0xabcd1234);
	/* Nothing of what registers do not take may change them, and no error either. */
	need_eq(client_write(&client, 0, FERRY_REG_ASQ_LO, "\xff", 1), 0);
	need_eq(client_write(&client, 0, FERRY_REG_ASQ_LO + 2, &both, 4), 0);
	need_eq(client_write(&client, 0, FERRY_REG_ASQ_LO, client.nic.msix_table, 64), 0);
	/* A write is posted: a reset afterwards, waited for, tells that all were taken. */
	client_write32(&client, 0, FERRY_REG_CTRL, FERRY_CTRL_RESET);
	while (client_read32(&client, 0, FERRY_REG_CTRL))
		;
	need_eq(client.nic.shard.stats.registers, 4);
	client_stop(&client);
}

static void test_access_limits(void)
{
	struct vfio_user_access access[] = {
		{ 0, 1, 4 },				/* no such BAR */
		{ 0, 6, 4 },				/* no ROM */
		{ 0, 9, 4 },
		{ 0, 0xffffffff, 4 },
		{ 0, 0, 0 },
		{ 0x1000, 0, 4 },
		{ 0xffd, 0, 4 },
		{ UINT64_MAX, 0, 4 },
		{ UINT64_MAX - 3, 0, 4 },
		{ 0, CONFIG, 0x1001 },
		{ 0, 2, VFIO_USER_MAX_TRANSFER + 1 },
		{ 0, 2, 0xffffffff },
	};
	uint8_t request[sizeof(access[0]) + 8] = { 0 };
	size_t i;

	start(false);
	for (i = 0; i < sizeof(access) / sizeof(access[0]); i++) {
		need_eq(client_request(&client, VFIO_USER_REGION_READ, &access[i],
				       sizeof(access[i]), NULL, 0, NULL, 0), -EINVAL);
		memcpy(request, &access[i], sizeof(access[i]));
		need_eq(client_request(&client, VFIO_USER_REGION_WRITE, request,
				       (uint32_t)(sizeof(access[i]) +
						  (access[i].count <= 8 ? access[i].count : 8)),
				       NULL, 0, NULL, 0), -EINVAL);
	}
	/* The count must be that of the data. */
	access[0] = (struct vfio_user_access){ 0, CONFIG, 4 };
	memcpy(request, &access[0], sizeof(access[0]));
	need_eq(client_request(&client, VFIO_USER_REGION_WRITE, request, sizeof(request), NULL, 0,
			       NULL, 0), -EINVAL);
	need_eq(client_request(&client, VFIO_USER_REGION_WRITE, request, sizeof(request) - 5,
			       NULL, 0, NULL, 0), -EINVAL);
	/* The largest read there is. */
	set_command(PCI_COMMAND_MEMORY);
	access[0] = (struct vfio_user_access){ 0, 2, VFIO_USER_MAX_TRANSFER };
	need_eq(client_request(&client, VFIO_USER_REGION_READ, &access[0], sizeof(access[0]), NULL,
			       0, NULL, 0), sizeof(access[0]) + VFIO_USER_MAX_TRANSFER);
	client_stop(&client);
}

/* ------------------------------------------------------------------------ malformed */

static void send_header(uint16_t command, uint32_t size, uint32_t flags)
{
	struct vfio_user_header head = { 77, command, size, flags, 0 };

	client_send(&client, &head, sizeof(head), NULL, 0);
}

static void test_broken_framing(void)
{
	static const struct {
		uint32_t size, flags;
	} bad[] = {
		{ 0, 0 }, { 15, 0 }, { VFIO_USER_MAX_MESSAGE + 1, 0 }, { 0xffffffff, 0 },
		{ 16, 2 }, { 16, 0xf }, { 16, 0x40 }, { 16, 0x80000000 },
	};
	size_t i;

	client_start(&client, false, VECTORS);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		client_connect(&client);
		need(client_version(&client) > 0);
		send_header(VFIO_USER_DEVICE_GET_INFO, bad[i].size, bad[i].flags);
		client_dropped(&client);
		need_eq(client.result, -EPROTO);
	}
	/* Left in the middle of a header, and of a message. */
	for (i = 0; i < 2; i++) {
		client_connect(&client);
		need(client_version(&client) > 0);
		if (i)
			send_header(VFIO_USER_REGION_WRITE, 64, 0);
		client_send(&client, "12345", 5, NULL, 0);
		client_hang_up(&client);
		need_eq(client.result, -ECONNRESET);
	}
	client_connect(&client);
	need(client_version(&client) > 0);
	client_stop(&client);
}

static void test_broken_requests(void)
{
	static const uint16_t unknown[] = { 0, 6, 11, 12, 14, 15, 16, 18, 200, 0xffff };
	static const struct {
		uint16_t command;
		uint32_t len;
	} needs[] = {
		{ VFIO_USER_DMA_MAP, 32 }, { VFIO_USER_DMA_UNMAP, 24 },
		{ VFIO_USER_DEVICE_GET_INFO, 16 }, { VFIO_USER_DEVICE_GET_REGION_INFO, 32 },
		{ VFIO_USER_DEVICE_GET_IRQ_INFO, 16 }, { VFIO_USER_DEVICE_SET_IRQS, 20 },
		{ VFIO_USER_REGION_READ, 16 }, { VFIO_USER_REGION_WRITE, 16 },
	};
	static const uint8_t zeroes[64];
	struct vfio_user_header head;
	uint32_t len;
	size_t i;

	start(false);
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		need_eq(client_request(&client, unknown[i], zeroes, 40, NULL, 0, NULL, 0),
			-ENOTSUP);
	for (i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		for (len = 0; len <= needs[i].len; len++)
			need_eq(client_request(&client, needs[i].command, zeroes, len, NULL, 0,
					       NULL, 0), -EINVAL);

	/* An error in a request, an answer nobody asked for, a request that wants no reply. */
	send_header(VFIO_USER_DEVICE_RESET, sizeof(head), VFIO_USER_ERROR);
	need_eq(recv(client.fd, &head, sizeof(head), MSG_WAITALL), sizeof(head));
	need_eq(head.flags, VFIO_USER_REPLY | VFIO_USER_ERROR);
	need_eq(head.error, EINVAL);
	send_header(VFIO_USER_DMA_READ, sizeof(head), VFIO_USER_REPLY);
	send_header(VFIO_USER_DMA_WRITE, sizeof(head), VFIO_USER_REPLY | VFIO_USER_ERROR);
	send_header(VFIO_USER_DEVICE_GET_INFO, sizeof(head), VFIO_USER_REPLY);
	send_header(VFIO_USER_DEVICE_RESET, sizeof(head), VFIO_USER_NO_REPLY);
	send_header(200, sizeof(head), VFIO_USER_NO_REPLY);
	need_eq(client_read32(&client, CONFIG, 0), 0x10f01af4);
	client_stop(&client);
}

/* Descriptors that a request should not have are closed, and those of a refused one. */
static void test_descriptors(void)
{
	static const uint16_t commands[] = {
		VFIO_USER_DMA_MAP, VFIO_USER_DMA_UNMAP, VFIO_USER_DEVICE_GET_INFO,
		VFIO_USER_DEVICE_GET_REGION_INFO, VFIO_USER_DEVICE_GET_IRQ_INFO,
		VFIO_USER_DEVICE_SET_IRQS, VFIO_USER_REGION_READ, VFIO_USER_REGION_WRITE,
		VFIO_USER_DEVICE_RESET, VFIO_USER_VERSION, 99,
	};
	static const uint8_t zeroes[64];
	int pipes[2], many[40];
	size_t i, n;
	char byte;

	start(false);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		for (n = 1; n <= 40; n += 13) {
			size_t j;

			need_eq(pipe2(pipes, O_CLOEXEC), 0);
			for (j = 0; j < n; j++)
				many[j] = pipes[1];
			need(client_request(&client, commands[i], zeroes, 40, many, (unsigned int)n,
					    NULL, 0) < 0);
			close(pipes[1]);
			need_that(readable(pipes[0], 1000), "command %u keeps descriptors",
				  commands[i]);
			need_eq(read(pipes[0], &byte, 1), 0);
			close(pipes[0]);
		}
	}
	client_stop(&client);
}

/* ------------------------------------------------------------------------- interrupts */

#define ASSIGN		(VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER)
#define TRIGGER		(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER)
#define TRIGGER_SOME	(VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER)
#define MASK		(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK)
#define UNMASK		(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK)

static int raised(int fd)
{
	eventfd_t count;

	return eventfd_read(fd, &count) ? 0 : (int)count;
}

static void test_interrupts(void)
{
	static const uint8_t some[4] = { 0, 1, 0, 1 };
	int fds[16], i;

	start(false);
	for (i = 0; i < 16; i++) {
		fds[i] = eventfd(0, i % 2 ? EFD_NONBLOCK : 0);
		need(fds[i] >= 0);
	}
	need_eq(client_set_irqs(&client, ASSIGN, 4, 16, NULL, 0, fds, 16), 0);
	/* However they came, writing them does not block any more; ours share that. */
	for (i = 0; i < 16; i++)
		need(fcntl(fds[i], F_GETFL) & O_NONBLOCK);

	need_eq(client_set_irqs(&client, TRIGGER, 4, 2, NULL, 0, NULL, 0), 0);
	need_eq(raised(fds[0]), 0);				/* no bus mastering */
	set_command(PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY);
	need_eq(client_set_irqs(&client, TRIGGER, 0, 6, NULL, 0, NULL, 0), 0);
	need_eq(raised(fds[0]), 1);
	need_eq(raised(fds[1]), 1);
	need_eq(raised(fds[2]), 0);
	need_eq(client_set_irqs(&client, TRIGGER_SOME, 4, 4, some, 4, NULL, 0), 0);
	need_eq(raised(fds[0]), 0);
	need_eq(raised(fds[1]), 1);
	need_eq(raised(fds[3]), 1);

	need_eq(client_set_irqs(&client, MASK, 7, 2, NULL, 0, NULL, 0), 0);
	need_eq(client_set_irqs(&client, TRIGGER, 7, 2, NULL, 0, NULL, 0), 0);
	need_eq(raised(fds[3]), 0);
	need_eq(client_read32(&client, FERRY_BAR_MSIX, 0x1000), 3u << 7);
	need_eq(client_set_irqs(&client, UNMASK, 7, 1, NULL, 0, NULL, 0), 0);
	need_eq(raised(fds[3]), 1);
	need_eq(raised(fds[4]), 0);
	need_eq(client_read32(&client, FERRY_BAR_MSIX, 0x1000), 1u << 8);

	/* A counter at its limit is not waited for. */
	need_eq(eventfd_write(fds[0], UINT64_MAX - 1), 0);
	need_eq(client_set_irqs(&client, TRIGGER, 4, 1, NULL, 0, NULL, 0), 0);
	raised(fds[0]);

	need_eq(client_set_irqs(&client, ASSIGN, 4, 1, NULL, 0, NULL, 0), 0);
	need_eq(client_set_irqs(&client, TRIGGER, 4, 2, NULL, 0, NULL, 0), 0);
	need_eq(raised(fds[0]), 0);
	need_eq(raised(fds[1]), 1);
	need_eq(client_set_irqs(&client, TRIGGER, 0, 0, NULL, 0, NULL, 0), 0);	/* all off */
	need_eq(client_set_irqs(&client, TRIGGER, 0, VECTORS, NULL, 0, NULL, 0), 0);
	for (i = 1; i < 16; i++)
		need_eq(raised(fds[i]), 0);
	client_stop(&client);
}

static void test_interrupts_refused(void)
{
	static const uint8_t bytes[32];
	static const struct {
		uint32_t flags, start, count, len;
		unsigned int nfds;
	} bad[] = {
		{ ASSIGN, VECTORS, 1, 0, 1 }, { ASSIGN, VECTORS - 1, 2, 0, 2 },
		{ ASSIGN, 0xffffffff, 1, 0, 1 }, { ASSIGN, 1, 0xffffffff, 0, 1 },
		{ ASSIGN, 0, 2, 0, 1 }, { ASSIGN, 0, 1, 0, 2 }, { ASSIGN, 0, 1, 4, 1 },
		{ TRIGGER, 0, 1, 0, 1 }, { TRIGGER, 0, 1, 1, 0 }, { TRIGGER, VECTORS, 1, 0, 0 },
		{ TRIGGER_SOME, 0, 4, 3, 0 }, { TRIGGER_SOME, 0, 4, 5, 0 },
		{ 0, 0, 1, 0, 0 }, { 7, 0, 1, 0, 0 }, { 0x38, 0, 1, 0, 0 },
		{ TRIGGER | 0x40, 0, 1, 0, 0 }, { VFIO_IRQ_SET_ACTION_TRIGGER, 0, 1, 0, 0 },
		{ VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_MASK, 0, 1, 0, 1 },
		{ TRIGGER | VFIO_IRQ_SET_ACTION_MASK, 0, 1, 0, 0 },
	};
	int fds[2] = { eventfd(0, 0), eventfd(0, 0) };
	size_t i;

	start(false);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		need_that(client_set_irqs(&client, bad[i].flags, bad[i].start, bad[i].count, bytes,
					  bad[i].len, fds, bad[i].nfds) == -EINVAL,
			  "case %zu is not refused", i);
	client_stop(&client);
}

/* ------------------------------------------------------------------------------- DMA */

static void test_dma_refused(void)
{
	int file = memory_file(MEMORY_SIZE), other = memory_file(4096), pipes[2], two[2], ro;
	struct vfio_user_dma_map map = { sizeof(map), RW, 0, MEMORY, 4096 };
	char path[64];
	uint64_t removed;

	start(false);
	need_eq(pipe2(pipes, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	need(ro >= 0);

	need_eq(client_map(&client, MEMORY, 0, RW, file, 0), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4095, RW, file, 0), -EINVAL);
	need_eq(client_map(&client, MEMORY + 1, 4096, RW, file, 0), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, RW, file, 1), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, 0, file, 0), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, 4, file, 0), -EINVAL);
	need_eq(client_map(&client, UINT64_MAX - 4095, 8192, RW, file, 0), -EINVAL);
	need_eq(client_map(&client, MEMORY, MEMORY_SIZE + 4096, RW, file, 0), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, RW, file, MEMORY_SIZE), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, RW, file, UINT64_MAX - 4095), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, RW, pipes[0], 0), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, RW, client.fd, 0), -EINVAL);
	need_eq(client_map(&client, MEMORY, 4096, RW, ro, 0), -EACCES);
	two[0] = file;
	two[1] = other;
	need_eq(client_request(&client, VFIO_USER_DMA_MAP, &map, sizeof(map), two, 2, NULL, 0),
		-EINVAL);
	map.argsz = 31;
	need_eq(client_request(&client, VFIO_USER_DMA_MAP, &map, sizeof(map), two, 1, NULL, 0),
		-EINVAL);

	need_eq(client_map(&client, MEMORY, 8192, DMA_READ, ro, 0), 0);
	need_eq(client_map(&client, MEMORY + 8192, 8192, RW, -1, 0), 0);
	need_eq(client_map(&client, MEMORY, 8192, RW, file, 0), -EEXIST);
	need_eq(client_map(&client, MEMORY - 4096, 8192, RW, file, 0), -EEXIST);
	need_eq(client_map(&client, MEMORY + 12288, 8192, RW, file, 0), -EEXIST);
	need_eq(client_map(&client, MEMORY - 4096, 32768, RW, file, 0), -EEXIST);

	need_eq(client_unmap(&client, MEMORY, 0, 0, NULL), -EINVAL);
	need_eq(client_unmap(&client, MEMORY + 1, 4096, 0, NULL), -EINVAL);
	need_eq(client_unmap(&client, UINT64_MAX - 4095, 8192, 0, NULL), -EINVAL);
	need_eq(client_unmap(&client, MEMORY, 4096, 1, NULL), -EINVAL);
	need_eq(client_unmap(&client, MEMORY, 4096, VFIO_USER_UNMAP_ALL, NULL), -EINVAL);
	need_eq(client_unmap(&client, 0, 4096, 0, &removed), 0);
	need_eq(removed, 0);
	need_eq(client_unmap(&client, MEMORY + 4096, 8192, 0, &removed), 0);
	need_eq(removed, 8192);
	need_eq(client_map(&client, MEMORY + 4096, 8192, RW, file, 0), 0);
	need_eq(client_unmap(&client, 0, 0, VFIO_USER_UNMAP_ALL, &removed), 0);
	need_eq(removed, 16384);
	need_eq(client.nic.shard.dma.count, 0);
	client_stop(&client);
}

/* An admin queue of 4 entries at the start of guest memory. */
#define ASQ		(MEMORY + 0x1000)
#define ACQ		(MEMORY + 0x4000)

static void enable_admin(void)
{
	client_write32(&client, 0, FERRY_REG_ASQ_LO, (uint32_t)ASQ);
	client_write32(&client, 0, FERRY_REG_ASQ_HI, (uint32_t)(ASQ >> 32));
	client_write32(&client, 0, FERRY_REG_ACQ_LO, (uint32_t)ACQ);
	client_write32(&client, 0, FERRY_REG_ACQ_HI, (uint32_t)(ACQ >> 32));
	client_write32(&client, 0, FERRY_REG_ADMIN_SHIFT, 2);
	client_write32(&client, 0, FERRY_REG_CTRL, FERRY_CTRL_ENABLE);
}

static bool is_raised(void *arg)
{
	return raised(*(int *)arg);
}

static void post_command(uint8_t *memory, unsigned int index)
{
	struct ferry_admin_head *sqe = (void *)(memory + (ASQ - MEMORY) +
						FERRY_ADMIN_SQE_SIZE * (index % 4));

	memset(sqe, 0, FERRY_ADMIN_SQE_SIZE);
	sqe->opcode = FERRY_ADMIN_NOP;
	sqe->id = (uint16_t)(0x100 + index);
	client_write32(&client, 0, FERRY_REG_ADMIN_DB, index + 1);
}

static void take_answer(uint8_t *memory, unsigned int index, int irq)
{
	struct ferry_admin_cqe *cqe = (void *)(memory + (ACQ - MEMORY) +
					       FERRY_ADMIN_CQE_SIZE * (index % 4));

	need_that(client_serve(&client, is_raised, &irq), "no interrupt for command %u", index);
	need_eq(cqe->id, 0x100 + index);
	need_eq(cqe->status, FERRY_ADMIN_OK);
	need_eq(cqe->phase & 1, (index / 4 & 1) ^ 1);
}

/* A command goes through guest memory there and back, with an interrupt at its end. */
static void one_command(uint8_t *memory, unsigned int index, int irq)
{
	post_command(memory, index);
	take_answer(memory, index, irq);
}

static uint8_t *guest_memory(int *file)
{
	uint8_t *memory;

	*file = memory_file(MEMORY_SIZE);
	memory = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
	need(memory != MAP_FAILED);
	return memory;
}

static void test_admin_direct(void)
{
	int irq = eventfd(0, EFD_NONBLOCK), file;
	uint8_t *memory = guest_memory(&file);
	unsigned int i;

	start(false);
	/* Scattered as an IOMMU leaves it: each page a map of its own. */
	for (i = 0; i < MEMORY_SIZE; i += 4096)
		need_eq(client_map(&client, MEMORY + i, 4096, RW, file, i), 0);
	need_eq(client_set_irqs(&client, ASSIGN, 0, 1, NULL, 0, &irq, 1), 0);
	set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	enable_admin();
	for (i = 0; i < 10; i++)
		one_command(memory, i, irq);

	/* Without bus mastering nothing happens, and nothing is lost: it goes on with it. */
	set_command(PCI_COMMAND_MEMORY);
	client_write32(&client, 0, FERRY_REG_ADMIN_DB, i);
	need_eq(client_read32(&client, 0, FERRY_REG_STATUS) & (FERRY_STATUS_FATAL |
							       FERRY_STATUS_READY),
		FERRY_STATUS_READY);
	post_command(memory, i);
	usleep(20000);
	need_eq(raised(irq), 0);
	set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	take_answer(memory, i, irq);

	/* A queue where there is no memory is fatal, and the device says so. */
	need_eq(client_unmap(&client, MEMORY, MEMORY_SIZE, 0, NULL), 0);
	client_write32(&client, 0, FERRY_REG_ADMIN_DB, i + 2);
	for (i = 0; i < 1000 && !(client_read32(&client, 0, FERRY_REG_STATUS) &
				  FERRY_STATUS_FATAL); i++)
		usleep(1000);
	need(client_read32(&client, 0, FERRY_REG_STATUS) & FERRY_STATUS_FATAL);
	need_eq(raised(irq), 0);
	client_stop(&client);
}

static void test_admin_message(void)
{
	int irq = eventfd(0, EFD_NONBLOCK), file;
	uint8_t *memory = guest_memory(&file);
	unsigned int i;

	start(true);
	client.memory = memory;
	client.memory_addr = MEMORY;
	client.memory_size = MEMORY_SIZE;
	need_eq(client_map(&client, MEMORY, MEMORY_SIZE, RW, file, 0), 0);
	need_eq(client_set_irqs(&client, ASSIGN, 0, 1, NULL, 0, &irq, 1), 0);
	set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	need(!(client_read32(&client, 0, FERRY_REG_CAPS) & FERRY_CAP_POLL));
	enable_admin();
	for (i = 0; i < 10; i++)
		one_command(memory, i, irq);
	need(client.dma_reads >= 10 && client.dma_writes >= 10);
	client_stop(&client);
}

static bool dma_is_pending(void *arg)
{
	return *(unsigned int *)arg;
}

/* QEMU carries out no DMA message while it waits for one of these answers. */
static void test_reset_while_dma_waits(void)
{
	struct vfio_user_header late = {
		.command = VFIO_USER_DMA_READ, .size = sizeof(late), .flags = VFIO_USER_REPLY |
		VFIO_USER_ERROR, .error = EFAULT,
	};
	uint64_t began;
	int i;

	start(true);
	for (i = 0; i < 3; i++) {
		set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
		enable_admin();
		client.unanswered = 0;
		client_write32(&client, 0, FERRY_REG_ADMIN_DB, 1);
		need(client_serve(&client, dma_is_pending, &client.unanswered));
		/* Registers, maps and interrupts do not wait for it. */
		need_eq(client_read32(&client, 0, FERRY_REG_MAGIC), FERRY_MAGIC);
		need_eq(client_map(&client, MEMORY, 4096, RW, -1, 0), 0);
		need_eq(client_unmap(&client, MEMORY, 4096, 0, NULL), 0);
		began = clock_now();
		if (i == 0)
			need_eq(client_request(&client, VFIO_USER_DEVICE_RESET, NULL, 0, NULL, 0,
					       NULL, 0), 0);
		else if (i == 1)
			client_write16(&client, CONFIG, find_cap(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL,
				       PCI_EXP_DEVCTL_BCR_FLR);
		else
			client_hang_up(&client);
		need(clock_now() - began < 2 * NSEC_PER_SEC);
		if (client.fd < 0)
			break;
		/* Its answer comes when nobody wants it any more, or came twice. */
		late.id = (uint16_t)i;
		client_send(&client, &late, sizeof(late), NULL, 0);
		client_send(&client, &late, sizeof(late), NULL, 0);
	}
	client_stop(&client);
}

/* A client that never answers is given up, and the next one is served. */
static void test_dma_timeout(void)
{
	start(true);
	client.nic.messages.timeout = 200 * NSEC_PER_MSEC;
	set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	enable_admin();
	client_write32(&client, 0, FERRY_REG_ADMIN_DB, 1);
	need(client_serve(&client, dma_is_pending, &client.unanswered));
	client_dropped(&client);
	client_connect(&client);
	need(client_version(&client) > 0);
	set_command(PCI_COMMAND_MEMORY);
	need_eq(client_read32(&client, 0, FERRY_REG_CTRL), 0);
	client_stop(&client);
}

/* ------------------------------------------------------------ transfers by message */

#define TRANSFER_MAX	(300u << 10)

/* What runs beside the client, in place of the engine. */
struct job {
	pthread_t thread;
	atomic_bool done;
	uint64_t addr;
	uint8_t *bytes;
	size_t len;
	bool write;
	int result;
};

static void *run_job(void *arg)
{
	struct job *job = arg;

	job->result = job->write ?
		dma_message_write(&client.nic.messages, job->addr, job->bytes, job->len) :
		dma_message_read(&client.nic.messages, job->addr, job->bytes, job->len);
	atomic_store(&job->done, true);
	return NULL;
}

static bool job_is_done(void *arg)
{
	return atomic_load(&((struct job *)arg)->done);
}

static int transfer(struct job *job, bool write, uint64_t addr, size_t len)
{
	atomic_store(&job->done, false);
	job->write = write;
	job->addr = addr;
	job->len = len;
	need_eq(pthread_create(&job->thread, NULL, run_job, job), 0);
	need(client_serve(&client, job_is_done, job));
	pthread_join(job->thread, NULL);
	return job->result;
}

static bool writes_are_done(void *arg)
{
	struct dma_message *dma = arg;
	bool done;

	pthread_mutex_lock(&dma->lock);
	done = dma->posted == dma->done;
	pthread_mutex_unlock(&dma->lock);
	return done;
}

static void start_transfers(uint8_t **memory)
{
	int file;

	*memory = guest_memory(&file);
	start(true);
	client.memory = *memory;
	client.memory_addr = MEMORY;
	client.memory_size = MEMORY_SIZE;
	set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

static void test_transfers(void)
{
	static uint8_t bytes[TRANSFER_MAX], copy[MEMORY_SIZE];
	struct job job = { .bytes = bytes };
	uint64_t offset;
	uint8_t *memory;
	struct rng rng;
	size_t len;
	int i;

	start_transfers(&memory);
	rng_init(&rng, 5);
	rng_fill(&rng, copy, sizeof(copy));
	memcpy(memory, copy, sizeof(copy));
	for (i = 0; i < 100; i++) {
		len = rng_range(&rng, 1, rng_chance(&rng, 50) ? 100 : TRANSFER_MAX);
		offset = rng_below(&rng, MEMORY_SIZE - len);
		if (rng_chance(&rng, 50)) {
			rng_fill(&rng, bytes, len);
			memcpy(copy + offset, bytes, len);
			need_eq(transfer(&job, true, MEMORY + offset, len), 0);
		} else {
			/* Behind all writes, though those were only posted. */
			need_eq(transfer(&job, false, MEMORY + offset, len), 0);
			need(!memcmp(bytes, copy + offset, len));
		}
	}
	need(client_serve(&client, writes_are_done, &client.nic.messages));
	need(!memcmp(memory, copy, sizeof(copy)));
	client_stop(&client);
}

static void test_transfer_errors(void)
{
	static uint8_t bytes[TRANSFER_MAX];
	struct job job = { .bytes = bytes };
	uint8_t *memory;

	start_transfers(&memory);
	need_eq(transfer(&job, false, MEMORY - 4, 8), -EFAULT);
	need_eq(transfer(&job, false, MEMORY + MEMORY_SIZE - 100000, 200000), -EFAULT);
	need_eq(transfer(&job, false, MEMORY, 8), 0);
	/* A posted write fails after the call: the next one says so, and only that. */
	need_eq(transfer(&job, true, MEMORY - 4, 8), 0);
	need(client_serve(&client, writes_are_done, &client.nic.messages));
	need_eq(transfer(&job, false, MEMORY, 8), 0);
	need_eq(transfer(&job, true, MEMORY, 8), -EFAULT);
	need_eq(transfer(&job, true, MEMORY, 8), 0);
	/* More than the window: the error shows before the call has ended. */
	need_eq(transfer(&job, true, 0, TRANSFER_MAX), -EFAULT);
	client_stop(&client);
}

/* An interrupt must not overtake the writes before it, nor wait for those after it. */
static void test_interrupt_order(void)
{
	struct vfio_user_header head = { .command = VFIO_USER_DMA_WRITE, .size = sizeof(head),
					 .flags = VFIO_USER_REPLY };
	int irq = eventfd(0, EFD_NONBLOCK), i;
	uint8_t bytes[8] = { 0 };
	struct job job = { .bytes = bytes };

	start(true);
	set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	need_eq(client_set_irqs(&client, ASSIGN, 3, 1, NULL, 0, &irq, 1), 0);
	dma_message_interrupt(&client.nic.messages, 3);
	need_eq(raised(irq), 1);
	for (i = 0; i < 4; i++) {
		need_eq(transfer(&job, true, MEMORY, 8), 0);
		if (i != 2)
			dma_message_interrupt(&client.nic.messages, 3);
	}
	/* Raised behind writes 0, 1 and 3: once behind the first, once more behind the last. */
	for (i = 0; i < 4; i++) {
		need_eq(raised(irq), 0);
		head.id = (uint16_t)i;
		client_send(&client, &head, sizeof(head), NULL, 0);
		need_eq(client_read32(&client, CONFIG, 0), 0x10f01af4);
		need_eq(raised(irq), i == 0 || i == 3);
	}
	client_stop(&client);
}

/* --------------------------------------------------------------------------- sessions */

static void test_sessions(void)
{
	int irq = eventfd(0, EFD_NONBLOCK), file, i;
	uint8_t *memory = guest_memory(&file);

	client_start(&client, false, VECTORS);
	for (i = 0; i < 5; i++) {
		client_connect(&client);
		need(client_version(&client) > 0);
		need_eq(client_read32(&client, CONFIG, PCI_COMMAND) & 0xffff, 0);
		need_eq(client_map(&client, MEMORY, MEMORY_SIZE, RW, file, 0), 0);
		need_eq(client_set_irqs(&client, ASSIGN, 0, 1, NULL, 0, &irq, 1), 0);
		set_command(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
		memset(memory, 0, MEMORY_SIZE);
		enable_admin();
		one_command(memory, 0, irq);
		client_hang_up(&client);
		need_eq(client.nic.shard.dma.count, 0);
		need_eq(client.nic.irqs.vector[0].fd, -1);
	}
	client_stop(&client);
}

/* A register write, at whatever moment of spinning, napping, sleeping, is not missed. */
static void test_wakes(void)
{
	uint64_t until, began;
	unsigned int i;

	start(false);
	set_command(PCI_COMMAND_MEMORY);
	for (i = 0; i < 1000; i++) {
		until = clock_now() + (uint64_t)(i * 7919 % 1500) * NSEC_PER_USEC;
		while (clock_now() < until)
			usleep(20);
		began = clock_now();
		client_write32(&client, 0, FERRY_REG_CTRL, FERRY_CTRL_RESET);
		while (client_read32(&client, 0, FERRY_REG_CTRL))
			need_that(clock_now() - began < NSEC_PER_SEC, "write %u was missed", i);
	}
	client_stop(&client);
	need(client.nic.shard.stats.sleeps > 0 && client.nic.shard.stats.naps > 0);
}

/* More doorbells than the queue holds, all without a reply: none is lost, nothing stalls. */
static void test_doorbell_flood(void)
{
	struct {
		struct vfio_user_header head;
		struct vfio_user_access access;
		uint64_t value;
	} message = {
		.head = { 1, VFIO_USER_REGION_WRITE, sizeof(message), VFIO_USER_NO_REPLY, 0 },
		.access = { 0, FERRY_BAR_DOORBELL, 8 },
	};
	unsigned int i;

	_Static_assert(sizeof(message) == 40, "no padding");
	start(false);
	set_command(PCI_COMMAND_MEMORY);
	for (i = 0; i < QUEUE_SIZE + 1000; i++) {
		message.access.offset = (i % VNIC_DOORBELL_PAGES) * 4096ull;
		message.value = FERRY_DB(FERRY_DB_SQ, i, i);
		client_send(&client, &message, sizeof(message), NULL, 0);
	}
	client_write32(&client, 0, FERRY_REG_CTRL, FERRY_CTRL_RESET);
	while (client_read32(&client, 0, FERRY_REG_CTRL))
		;
	need_eq(client.nic.shard.stats.doorbells, QUEUE_SIZE + 1000);

	/* Halves and misplaced ones are no doorbells. */
	need_eq(client_write(&client, FERRY_BAR_DOORBELL, 0, &message.value, 4), 0);
	need_eq(client_write(&client, FERRY_BAR_DOORBELL, 4, &message.value, 8), 0);
	need_eq(client_write(&client, FERRY_BAR_DOORBELL, 0, &message, 16), 0);
	client_write32(&client, 0, FERRY_REG_CTRL, FERRY_CTRL_RESET);
	while (client_read32(&client, 0, FERRY_REG_CTRL))
		;
	need_eq(client.nic.shard.stats.doorbells, QUEUE_SIZE + 1000);
	client_stop(&client);
}

static int connect_to(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	need(fd >= 0);
	need_eq(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static void test_server(void)
{
	char directory[] = "/tmp/ferry-test-XXXXXX", path[64], byte;
	struct server server, second;
	int i, other;

	need(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/nic", directory);
	client_start(&client, false, VECTORS);
	need_eq(server_init(&server, &client.nic, path, -1), 0);
	need_eq(server_start(&server), 0);
	need(server_init(&second, &client.nic, path, -1));		/* in use */
	for (i = 0; i < 3; i++) {
		client.fd = connect_to(path);
		need(client_version(&client) > 0);
		other = connect_to(path);
		need(readable(other, 10000));
		need_eq(read(other, &byte, 1), 0);		/* no second place */
		close(other);
		need_eq(client_read32(&client, CONFIG, 0), 0x10f01af4);
		if (i < 2)
			close(client.fd);
	}
	/* With a client still there. */
	server_destroy(&server);
	need(readable(client.fd, 10000));
	close(client.fd);
	client.fd = -1;
	need(access(path, F_OK));

	/* What a process that died has left does not stand in the way; a file does. */
	need_eq(server_init(&server, &client.nic, path, -1), 0);
	close(server.listen_fd);
	server.listen_fd = -1;
	server.ino = 0;
	server_destroy(&server);
	need(!access(path, F_OK));
	need_eq(server_init(&second, &client.nic, path, -1), 0);
	server_destroy(&second);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	need(server_init(&server, &client.nic, path, -1));
	unlink(path);
	rmdir(directory);
	client_stop(&client);
}

static void read_memory(void *arg)
{
	need_eq(dma_read(&client.nic.shard.dma, MEMORY, arg, 8), 0);
}

static void lose_memory(const char *path)
{
	char file_path[] = "/tmp/ferry-test-XXXXXX";
	int file = mkstemp(file_path);
	struct server server;
	uint64_t word;

	need(file >= 0);
	unlink(file_path);
	need_eq(ftruncate(file, MEMORY_SIZE), 0);
	start(false);
	need_eq(server_init(&server, &client.nic, path, -1), 0);
	need_eq(client_map(&client, MEMORY, MEMORY_SIZE, RW, file, 0), 0);
	shard_call(&client.nic.shard, read_memory, &word);
	need_eq(ftruncate(file, 0), 0);
	shard_call(&client.nic.shard, read_memory, &word);
	_exit(42);
}

/* A file that knows no seals shrinks: the process ends, and says why. */
static void test_memory_shrinks(void)
{
	char directory[] = "/tmp/ferry-test-XXXXXX", path[64], text[256];
	int pipes[2], status;
	ssize_t len;
	pid_t pid;

	need(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/nic", directory);
	need_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		dup2(pipes[1], STDERR_FILENO);
		lose_memory(path);
	}
	close(pipes[1]);
	need_eq(waitpid(pid, &status, 0), pid);
	need(WIFEXITED(status));
	need_eq(WEXITSTATUS(status), EXIT_FAILURE);
	len = read(pipes[0], text, sizeof(text) - 1);
	need(len > 0);
	text[len] = '\0';
	need(strstr(text, "guest memory"));
	need(access(path, F_OK));
	rmdir(directory);
}

/* One request that wants an answer, a message that wants none, and half of one. */
static void send_unread(int fd)
{
	struct {
		struct vfio_user_header request;
		struct vfio_user_access access;
		struct vfio_user_header reply;
		uint32_t half[2];
	} bytes = {
		.request = { .id = 7, .command = VFIO_USER_REGION_READ,
			     .size = sizeof(bytes.request) + sizeof(bytes.access) },
		.reply = { .id = 8, .command = VFIO_USER_DMA_WRITE, .size = sizeof(bytes.reply),
			   .flags = VFIO_USER_REPLY },
	};

	need_eq(send(fd, &bytes, sizeof(bytes), 0), sizeof(bytes));
}

/* The end can be read as one: ECONNRESET is what QEMU does not survive. */
static void expect_farewell(int fd)
{
	struct vfio_user_header head;

	need_eq(recv(fd, &head, sizeof(head), MSG_WAITALL), sizeof(head));
	need_eq(head.id, 7);
	need_eq(head.command, VFIO_USER_REGION_READ);
	need_eq(head.flags, VFIO_USER_REPLY | VFIO_USER_ERROR);
	need_eq(head.error, ENODEV);
	need_eq(recv(fd, &head, sizeof(head), 0), 0);
	need(send(fd, &head, sizeof(head), MSG_NOSIGNAL) < 0);
	close(fd);
}

static void test_farewell(void)
{
	int fds[2];

	need_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	send_unread(fds[0]);
	guard_farewell(fds[1]);
	close(fds[1]);
	expect_farewell(fds[0]);
}

static void test_guard(void)
{
	int fds[2], other[2], status, guard_fd;
	pid_t pid;

	need_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	need_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	send_unread(fds[0]);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		guard_fd = guard_start();
		need(guard_fd >= 0);
		guard_client(guard_fd, other[1]);
		guard_client(guard_fd, -1);
		guard_client(guard_fd, fds[1]);
		raise(SIGKILL);
	}
	close(fds[1]);
	need_eq(waitpid(pid, &status, 0), pid);
	need(WIFSIGNALED(status));
	expect_farewell(fds[0]);
	close(other[0]);
	close(other[1]);
}

static const struct tap_test tests[] = {
	TAP_TEST(test_version, "version: agreed once, before all else"),
	TAP_TEST(test_info, "device, regions and interrupts are described"),
	TAP_TEST(test_config, "configuration space: identity, capabilities, size of the BARs"),
	TAP_TEST(test_power_and_reset, "power states, function level reset, device reset"),
	TAP_TEST(test_registers, "registers take 32 bits"),
	TAP_TEST(test_access_limits, "accesses outside a region are refused"),
	TAP_TEST(test_broken_framing, "a broken frame ends the session, and only that"),
	TAP_TEST(test_broken_requests, "malformed requests are answered with an error"),
	TAP_TEST(test_descriptors, "no descriptor leaks"),
	TAP_TEST(test_interrupts, "interrupts: assigned, raised, masked, taken away"),
	TAP_TEST(test_interrupts_refused, "malformed interrupt requests are refused"),
	TAP_TEST(test_dma_refused, "malformed maps and unmaps are refused"),
	TAP_TEST(test_admin_direct, "admin commands through mapped memory"),
	TAP_TEST(test_admin_message, "admin commands through DMA messages"),
	TAP_TEST(test_reset_while_dma_waits, "a reset does not wait for DMA"),
	TAP_TEST(test_dma_timeout, "a client that answers no DMA is given up"),
	TAP_TEST(test_transfers, "transfers by message, against a copy"),
	TAP_TEST(test_transfer_errors, "transfers by message that fail"),
	TAP_TEST(test_interrupt_order, "an interrupt stays behind the writes before it"),
	TAP_TEST(test_server, "the socket: one client, stale names, names in use"),
	TAP_TEST(test_farewell, "a client is not left with what it has sent unread"),
	TAP_TEST(test_guard, "nor when the process is killed"),
	TAP_TEST(test_memory_shrinks, "guest memory that shrinks ends the process with a line"),
	TAP_TEST(test_sessions, "one client after another finds a fresh NIC"),
	TAP_TEST(test_wakes, "no write is missed by a shard about to sleep"),
	TAP_TEST(test_doorbell_flood, "a flood of doorbells"),
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
