// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes the vfio-user server: an input is what a client sends in one session, byte by
 * byte, with a descriptor now and then. The whole NIC is behind it, without threads, so
 * that an input always does the same.
 *
 * Input: messages, each behind one byte that says which descriptors come with it. Headers
 * are taken as they are, but for a size that would end the session at once.
 *
 * As a program of its own: fuzz-vfio-user [SEED [COUNT]] makes up sessions that are nearly
 * right; fuzz-vfio-user FILE... replays inputs. Built with -DFUZZER and -fsanitize=fuzzer
 * it is a libFuzzer target.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ferry_hw.h"
#include "log.h"
#include "nic.h"
#include "rng.h"

#define MEMORY_SIZE	(64u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ------------------------------------------------------------------------ transport */

struct tape {
	volatile uint8_t sum;	/* of what was sent, so that it is read */
	struct nic *nic;
	const uint8_t *data;
	size_t left;
	bool in_message;	/* the next receive is the second of a message */
	bool hung_up;
	uint64_t sent;
};

/* What may come with a message; each kind is right for some request. */
static int make_fd(unsigned int kind)
{
	int pipes[2], fd;

	switch (kind) {
	case 0:
		fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd >= 0 && ftruncate(fd, MEMORY_SIZE))
			abort();
		return fd;
	case 1:
		return eventfd(0, EFD_CLOEXEC);
	case 2:
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	default:
		if (pipe2(pipes, O_CLOEXEC))
			return -1;
		close(pipes[0]);
		return pipes[1];
	}
}

static void take_fds(struct tape *tape, int *fds, unsigned int *nfds)
{
	uint8_t byte = *tape->data;
	unsigned int i, count = byte >> 3;
	int fd;

	tape->data++;
	tape->left--;
	/* Most messages have none. */
	if (!(byte & 4))
		return;
	for (i = 0; i < count; i++) {
		fd = make_fd(byte & 3);
		if (fd < 0)
			break;
		if (*nfds < VFIO_USER_MAX_FDS)
			fds[*nfds] = fd;
		else
			close(fd);
		++*nfds;
	}
}

static int tape_receive(void *link, void *to, size_t len, int *fds, unsigned int *nfds)
{
	struct tape *tape = link;
	struct vfio_user_header *head = to;

	/* Between two messages the shard gets its turn. */
	if (!tape->in_message)
		shard_run_once(&tape->nic->shard);
	if (tape->hung_up)
		return -ECONNRESET;
	if (!tape->in_message) {
		if (tape->left < 1 + sizeof(*head))
			return -ECONNRESET;
		take_fds(tape, fds, nfds);
	}
	if (tape->left < len)
		return -ECONNRESET;
	memcpy(to, tape->data, len);
	tape->data += len;
	tape->left -= len;
	if (!tape->in_message && head->size > sizeof(*head) + tape->left)
		head->size = (uint32_t)(sizeof(*head) + tape->left % 128);
	tape->in_message = !tape->in_message && head->size > sizeof(*head);
	return 0;
}

static int tape_send(void *link, const struct iovec *iov, int count)
{
	struct tape *tape = link;
	const uint8_t *bytes;
	size_t j;
	int i;

	if (tape->hung_up)
		return -EPIPE;
	/* A sanitizer should see every byte that leaves. */
	for (i = 0; i < count; i++) {
		bytes = iov[i].iov_base;
		for (j = 0; j < iov[i].iov_len; j += j < 64 ? 1 : 61)
			tape->sum ^= bytes[j];
		tape->sent += iov[i].iov_len;
	}
	return 0;
}

static void tape_hang_up(void *link)
{
	struct tape *tape = link;

	tape->hung_up = true;
}

static const struct vfio_user_transport tape_transport = {
	.receive = tape_receive,
	.send = tape_send,
	.hang_up = tape_hang_up,
};

/* ---------------------------------------------------------------------------- target */

/* The lowest free one: higher when one was left open. */
static int next_fd(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static struct nic *make_nic(bool message)
{
	struct nic_config config = { .mac = { 2 }, .vectors = 16, .message = message };
	struct nic *nic = malloc(sizeof(*nic));

	/* A DMA message is never answered at once here: its wait ends at once instead. */
	config.dma_timeout = 0;
	config.link = link_open("loopback");
	if (!nic || !config.link || nic_init(nic, &config))
		abort();
	return nic;
}

/* The first byte chooses how memory is reached. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nic *nics[2];
	struct tape tape = { 0 };
	int fd;

	if (!size)
		return 0;
	if (!nics[0]) {
		log_quiet(true);
		nics[0] = make_nic(false);
		nics[1] = make_nic(true);
	}
	fd = next_fd();
	tape.nic = nics[*data & 1];
	tape.data = data + 1;
	tape.left = size - 1;
	vfio_user_serve(&tape.nic->vu, &tape_transport, &tape);
	shard_run_once(&tape.nic->shard);
	if (tape.nic->shard.dma.count || next_fd() != fd)
		abort();
	return 0;
}

/* ------------------------------------------------------------------ made-up sessions */

struct writer {
	struct rng rng;
	uint8_t bytes[64u << 10];
	size_t len;
};

static void put(struct writer *w, const void *from, size_t len)
{
	if (len > sizeof(w->bytes) - w->len)
		return;
	memcpy(w->bytes + w->len, from, len);
	w->len += len;
}

/* A number of the kind that finds mistakes. */
static uint64_t odd_number(struct writer *w, uint64_t likely)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 4095, 4096, 4097, 8192, 0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000, INT64_MAX, UINT64_MAX - 4095, UINT64_MAX - 1, UINT64_MAX,
	};

	if (rng_chance(&w->rng, 80))
		return likely;
	if (rng_chance(&w->rng, 50))
		return likely + odd[rng_below(&w->rng, sizeof(odd) / sizeof(odd[0]))];
	return odd[rng_below(&w->rng, sizeof(odd) / sizeof(odd[0]))];
}

static void put_message(struct writer *w, uint16_t command, const void *data, size_t len,
			unsigned int fd_kind, unsigned int nfds)
{
	struct vfio_user_header head = {
		.id = (uint16_t)rng_next(&w->rng),
		.command = command,
		.size = (uint32_t)odd_number(w, sizeof(head) + len),
		.flags = rng_chance(&w->rng, 5) ? (uint32_t)rng_below(&w->rng, 64) : 0,
	};
	uint8_t byte = (uint8_t)(nfds ? fd_kind | 4 | nfds << 3 : 0);

	if (rng_chance(&w->rng, 3))
		byte = (uint8_t)rng_next(&w->rng);
	put(w, &byte, 1);
	put(w, &head, sizeof(head));
	put(w, data, len);
}

static void put_version(struct writer *w)
{
	static const struct {
		struct vfio_user_version version;
		char text[60];
	} request = { { 0, 0 }, "{\"capabilities\":{\"max_data_xfer_size\":65536}}" };

	put_message(w, VFIO_USER_VERSION, &request, sizeof(request), 0, 0);
}

static void put_map(struct writer *w)
{
	struct vfio_user_dma_map map = {
		.argsz = (uint32_t)odd_number(w, sizeof(map)),
		.flags = (uint32_t)odd_number(w, 3),
		.offset = odd_number(w, 4096 * rng_below(&w->rng, 20)),
		.addr = odd_number(w, 4096 * rng_below(&w->rng, 32)),
		.size = odd_number(w, 4096 * rng_range(&w->rng, 1, 4)),
	};

	put_message(w, VFIO_USER_DMA_MAP, &map, sizeof(map), 0, rng_chance(&w->rng, 85));
}

static void put_unmap(struct writer *w)
{
	struct vfio_user_dma_unmap unmap = {
		.argsz = (uint32_t)odd_number(w, sizeof(unmap)),
		.flags = rng_chance(&w->rng, 5) ? 2 : 0,
		.addr = odd_number(w, 4096 * rng_below(&w->rng, 32)),
		.size = odd_number(w, 4096 * rng_range(&w->rng, 1, 8)),
	};

	if (unmap.flags && rng_chance(&w->rng, 80))
		unmap.addr = unmap.size = 0;
	put_message(w, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap), 0, 0);
}

static void put_irqs(struct writer *w)
{
	static const uint32_t flags[] = { 0x24, 0x21, 0x22, 0x09, 0x0a, 0x11, 0x12 };
	struct {
		struct vfio_user_set_irqs set;
		uint8_t bytes[16];
	} request = { .set = {
		.argsz = (uint32_t)odd_number(w, sizeof(request.set)),
		.flags = (uint32_t)odd_number(w, flags[rng_below(&w->rng, 7)]),
		.index = (uint32_t)odd_number(w, 2),
		.start = (uint32_t)odd_number(w, rng_below(&w->rng, 16)),
		.count = (uint32_t)odd_number(w, rng_range(&w->rng, 0, 16)),
	} };
	bool some = request.set.flags & 2, fds = request.set.flags & 4;

	rng_fill(&w->rng, request.bytes, sizeof(request.bytes));
	put_message(w, VFIO_USER_DEVICE_SET_IRQS, &request,
		    sizeof(request.set) + (some ? request.set.count % 17 : 0), 1,
		    fds ? request.set.count % 17 : 0);
}

static void put_access(struct writer *w, uint16_t command, uint32_t region, uint64_t offset,
		       uint64_t value, uint32_t count)
{
	struct {
		struct vfio_user_access access;
		uint64_t value;
	} request = {
		.access = { odd_number(w, offset), region, (uint32_t)odd_number(w, count) },
		.value = value,
	};
	bool write = command == VFIO_USER_REGION_WRITE;

	put_message(w, command, &request,
		    sizeof(request.access) + (write ? request.access.count % 9 : 0), 0, 0);
}

static void put_any_access(struct writer *w)
{
	static const uint32_t sizes[] = { 1, 2, 4, 8 };
	uint32_t region = (uint32_t)odd_number(w, rng_below(&w->rng, 10));
	uint32_t count = sizes[rng_below(&w->rng, 4)];
	uint16_t command = rng_chance(&w->rng, 40) ? VFIO_USER_REGION_READ :
						     VFIO_USER_REGION_WRITE;

	put_access(w, command, region, rng_below(&w->rng, 0x100) & ~(uint64_t)(count - 1),
		   rng_next(&w->rng), count);
}

/* Enough of a driver to have the engine read and write what is mapped. */
static void put_driver(struct writer *w)
{
	static const struct {
		uint32_t offset, value;
	} writes[] = {
		{ FERRY_REG_ASQ_LO, 0 }, { FERRY_REG_ASQ_HI, 0 }, { FERRY_REG_ACQ_LO, 0x8000 },
		{ FERRY_REG_ACQ_HI, 0 }, { FERRY_REG_ADMIN_SHIFT, 3 },
		{ FERRY_REG_CTRL, FERRY_CTRL_ENABLE }, { FERRY_REG_ADMIN_DB, 5 },
	};
	size_t i;

	put_access(w, VFIO_USER_REGION_WRITE, 7, 4, 6, 2);
	for (i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
		put_access(w, VFIO_USER_REGION_WRITE, 0, writes[i].offset,
			   odd_number(w, writes[i].value), 4);
	put_access(w, VFIO_USER_REGION_WRITE, 2, rng_below(&w->rng, 2048) * 8,
		   rng_next(&w->rng), 8);
}

static void put_reply(struct writer *w)
{
	struct vfio_user_header head = {
		.id = (uint16_t)rng_below(&w->rng, 8),
		.command = (uint16_t)odd_number(w, VFIO_USER_DMA_READ + rng_below(&w->rng, 2)),
		.size = sizeof(head),
		.flags = rng_chance(&w->rng, 50) ? 0x21 : 1,
		.error = (uint32_t)odd_number(w, 14),
	};

	put(w, "", 1);
	put(w, &head, sizeof(head));
}

static void put_query(struct writer *w)
{
	static const uint16_t commands[] = {
		VFIO_USER_DEVICE_GET_INFO, VFIO_USER_DEVICE_GET_REGION_INFO,
		VFIO_USER_DEVICE_GET_IRQ_INFO, VFIO_USER_DEVICE_GET_REGION_IO_FDS,
		VFIO_USER_DEVICE_RESET, 14, 200,
	};
	uint32_t data[8] = { (uint32_t)odd_number(w, 32), 0, (uint32_t)odd_number(w, 2) };

	put_message(w, commands[rng_below(&w->rng, 7)], data, sizeof(data), 0, 0);
}

static void put_garbage(struct writer *w)
{
	uint8_t bytes[40];

	rng_fill(&w->rng, bytes, sizeof(bytes));
	put(w, bytes, rng_range(&w->rng, 1, sizeof(bytes)));
}

static void put_anything(struct writer *w)
{
	static void (*const kinds[])(struct writer *w) = {
		put_map, put_map, put_unmap, put_irqs, put_any_access, put_any_access,
		put_driver, put_reply, put_query, put_version,
	};

	if (rng_chance(&w->rng, 1))
		put_garbage(w);
	else
		kinds[rng_below(&w->rng, sizeof(kinds) / sizeof(kinds[0]))](w);
}

static void make_session(struct writer *w, uint64_t seed)
{
	unsigned int i, messages;

	rng_init(&w->rng, seed);
	w->len = 0;
	put(w, &(uint8_t){ (uint8_t)seed }, 1);
	if (rng_chance(&w->rng, 95))
		put_version(w);
	messages = (unsigned int)rng_range(&w->rng, 1, 100);
	for (i = 0; i < messages; i++)
		put_anything(w);
	/* A bit here and there. */
	for (i = rng_chance(&w->rng, 30) ? (unsigned int)rng_below(&w->rng, 8) : 0; i; i--)
		w->bytes[rng_below(&w->rng, w->len)] ^= (uint8_t)(1u << rng_below(&w->rng, 8));
}

static struct writer writer;

#ifdef FUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Now and then a fresh session, so that no corpus is needed to start from. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	if (seed % 16)
		return LLVMFuzzerMutate(data, size, max_size);
	make_session(&writer, seed);
	size = writer.len < max_size ? writer.len : max_size;
	memcpy(data, writer.bytes, size);
	return size;
}
#else
static int replay(const char *path)
{
	static uint8_t bytes[1u << 20];
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file) {
		perror(path);
		return EXIT_FAILURE;
	}
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, len);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 1000, i;
	char *end;
	int ret;

	if (argc > 1) {
		seed = strtoull(argv[1], &end, 0);
		if (*end) {
			for (ret = 0, i = 1; i < (uint64_t)argc; i++)
				ret |= replay(argv[i]);
			return ret;
		}
	}
	if (argc > 2)
		count = strtoull(argv[2], NULL, 0);
	for (i = seed; i < seed + count; i++) {
		if (i % 256 == 0)
			printf("# seed %llu\n", (unsigned long long)i);
		make_session(&writer, i);
		LLVMFuzzerTestOneInput(writer.bytes, writer.len);
	}
	printf("# %llu sessions from seed %llu\n", (unsigned long long)count,
	       (unsigned long long)seed);
	return EXIT_SUCCESS;
}
#endif
