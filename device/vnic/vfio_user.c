// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dma.h"
#include "log.h"
#include "vfio_user.h"

#define MAJOR		0
#define MINOR		0
#define MIN_TRANSFER	64	/* a client that takes less cannot be served */

_Static_assert(sizeof(struct vfio_user_header) == 16, "wire format");
_Static_assert(sizeof(struct vfio_user_dma_map) == 32, "wire format");
_Static_assert(sizeof(struct vfio_user_dma_unmap) == 24, "wire format");
_Static_assert(sizeof(struct vfio_user_region_info) == 32, "wire format");
_Static_assert(sizeof(struct vfio_user_set_irqs) == 20, "wire format");
_Static_assert(sizeof(struct vfio_user_access) == 16, "wire format");
_Static_assert(DMA_READ == VFIO_DMA_MAP_FLAG_READ && DMA_WRITE == VFIO_DMA_MAP_FLAG_WRITE,
	       "rights are passed on as they come");

/* A request in hand. */
struct request {
	struct vfio_user_header head;
	const uint8_t *data;
	uint32_t len;		/* of data */
	int fds[VFIO_USER_MAX_FDS];
	unsigned int nfds;
};

/* What a handler answers with, apart from an error. */
struct answer {
	uint8_t fixed[64];
	uint32_t fixed_len;
	const void *more;	/* behind fixed */
	uint32_t more_len;
};

struct command {
	const char *name;
	uint32_t min;		/* bytes of data that must be there */
	unsigned int max_fds;
	int (*handle)(struct vfio_user *vu, struct request *request, struct answer *answer);
};

int vfio_user_init(struct vfio_user *vu, const struct vfio_user_ops *ops, void *device)
{
	memset(vu, 0, sizeof(*vu));
	vu->ops = ops;
	vu->device = device;
	vu->message = malloc(VFIO_USER_MAX_MESSAGE);
	vu->reply = malloc(VFIO_USER_MAX_TRANSFER);
	if (!vu->message || !vu->reply) {
		free(vu->message);
		free(vu->reply);
		return -ENOMEM;
	}
	pthread_mutex_init(&vu->send_lock, NULL);
	return 0;
}

void vfio_user_destroy(struct vfio_user *vu)
{
	pthread_mutex_destroy(&vu->send_lock);
	free(vu->message);
	free(vu->reply);
}

/* ------------------------------------------------------------------------ sending */

static int send_message(struct vfio_user *vu, const struct iovec *iov, int count)
{
	int ret;

	pthread_mutex_lock(&vu->send_lock);
	ret = vu->transport ? vu->transport->send(vu->link, iov, count) : -ENOTCONN;
	pthread_mutex_unlock(&vu->send_lock);
	return ret;
}

static int reply(struct vfio_user *vu, const struct request *request, int error,
		 const struct answer *answer)
{
	struct vfio_user_header head = {
		.id = request->head.id,
		.command = request->head.command,
		.size = sizeof(head),
		.flags = VFIO_USER_REPLY,
	};
	struct iovec iov[3] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)answer->fixed, .iov_len = answer->fixed_len },
		{ .iov_base = (void *)answer->more, .iov_len = answer->more_len },
	};

	if (request->head.flags & VFIO_USER_NO_REPLY)
		return 0;
	if (error) {
		head.flags |= VFIO_USER_ERROR;
		head.error = (uint32_t)-error;
		return send_message(vu, iov, 1);
	}
	head.size += answer->fixed_len + answer->more_len;
	return send_message(vu, iov, answer->more_len ? 3 : 2);
}

int vfio_user_dma_read(struct vfio_user *vu, uint16_t id, uint64_t addr, uint32_t len)
{
	struct vfio_user_dma dma = { .addr = addr, .count = len };
	struct vfio_user_header head = {
		.id = id,
		.command = VFIO_USER_DMA_READ,
		.size = sizeof(head) + sizeof(dma),
	};
	struct iovec iov[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = &dma, .iov_len = sizeof(dma) },
	};

	return send_message(vu, iov, 2);
}

int vfio_user_dma_write(struct vfio_user *vu, uint16_t id, uint64_t addr, const void *from,
			uint32_t len)
{
	struct vfio_user_dma dma = { .addr = addr, .count = len };
	struct vfio_user_header head = {
		.id = id,
		.command = VFIO_USER_DMA_WRITE,
		.size = (uint32_t)(sizeof(head) + sizeof(dma) + len),
	};
	struct iovec iov[3] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = &dma, .iov_len = sizeof(dma) },
		{ .iov_base = (void *)from, .iov_len = len },
	};

	return send_message(vu, iov, 3);
}

void vfio_user_hang_up(struct vfio_user *vu)
{
	pthread_mutex_lock(&vu->send_lock);
	if (vu->transport)
		vu->transport->hang_up(vu->link);
	pthread_mutex_unlock(&vu->send_lock);
}

/* ----------------------------------------------------------------------- handlers */

static void put(struct answer *answer, const void *from, uint32_t len)
{
	memcpy(answer->fixed + answer->fixed_len, from, len);
	answer->fixed_len += len;
}

/*
 * The number behind "name": in the client's JSON; @otherwise if it is not there. Names do
 * not repeat in what vfio-user defines, so there is no need to know the nesting.
 */
static uint64_t json_number(const char *text, const char *name, uint64_t otherwise)
{
	const char *at = strstr(text, name);
	char *end;
	unsigned long long value;

	if (!at)
		return otherwise;
	at += strlen(name);
	at += strspn(at, " \t\r\n");
	if (*at != ':')
		return otherwise;
	at++;
	at += strspn(at, " \t\r\n");
	if (*at < '0' || *at > '9')
		return otherwise;
	errno = 0;
	value = strtoull(at, &end, 10);
	return errno || end == at ? otherwise : value;
}

static int do_version(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	/* Short: QEMU takes no reply longer than its request. */
	static const char capabilities[] =
		"{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":1048576}}";
	struct vfio_user_version version;
	const char *text = (const char *)request->data + sizeof(version);
	uint32_t text_len = request->len - sizeof(version);
	uint64_t transfer;

	_Static_assert(VFIO_USER_MAX_FDS == 16 && VFIO_USER_MAX_TRANSFER == 1048576,
		       "the text above says so");
	memcpy(&version, request->data, sizeof(version));
	if (vu->negotiated || (text_len && text[text_len - 1]))
		return -EINVAL;
	if (version.major != MAJOR) {
		log_info("the client speaks vfio-user %u.%u, this server %u.%u", version.major,
			 version.minor, MAJOR, MINOR);
		return -ENOTSUP;
	}
	transfer = json_number(text_len ? text : "", "\"max_data_xfer_size\"",
			       VFIO_USER_MAX_TRANSFER);
	if (transfer < MIN_TRANSFER)
		return -EINVAL;
	if (transfer > VFIO_USER_MAX_TRANSFER)
		transfer = VFIO_USER_MAX_TRANSFER;

	vu->negotiated = true;
	vu->ops->opened(vu->device, (uint32_t)transfer);
	version.minor = MINOR;
	put(answer, &version, sizeof(version));
	answer->more = capabilities;
	answer->more_len = sizeof(capabilities);
	return 0;
}

static int do_dma_map(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_dma_map map;

	(void)answer;
	memcpy(&map, request->data, sizeof(map));
	if (request->len != sizeof(map) || map.argsz < sizeof(map) ||
	    !map.flags || map.flags & ~(DMA_READ | DMA_WRITE))
		return -EINVAL;
	return vu->ops->dma_map(vu->device, &map, request->nfds ? request->fds[0] : -1);
}

static int do_dma_unmap(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_dma_unmap unmap;
	uint64_t last;
	int64_t removed;

	memcpy(&unmap, request->data, sizeof(unmap));
	if (request->len != sizeof(unmap) || unmap.argsz < sizeof(unmap) ||
	    unmap.flags & ~VFIO_USER_UNMAP_ALL)
		return -EINVAL;
	if (unmap.flags & VFIO_USER_UNMAP_ALL) {
		if (unmap.addr || unmap.size)
			return -EINVAL;
		last = UINT64_MAX;
	} else {
		last = unmap.addr + unmap.size - 1;
		if (!unmap.size || last < unmap.addr || (unmap.addr | unmap.size) % DMA_PAGE_SIZE)
			return -EINVAL;
	}
	removed = vu->ops->dma_unmap(vu->device, unmap.addr, last);
	if (removed < 0)
		return (int)removed;
	unmap.argsz = sizeof(unmap);
	unmap.size = (uint64_t)removed;
	put(answer, &unmap, sizeof(unmap));
	return 0;
}

static int do_device_info(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_device_info info;

	memcpy(&info, request->data, sizeof(info));
	if (info.argsz < sizeof(info))
		return -EINVAL;
	info.argsz = sizeof(info);
	info.flags = vu->ops->device_flags;
	info.regions = vu->ops->regions;
	info.irqs = vu->ops->irqs;
	put(answer, &info, sizeof(info));
	return 0;
}

static int do_region_info(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_region_info info;
	int ret;

	memcpy(&info, request->data, sizeof(info));
	if (info.argsz < sizeof(info))
		return -EINVAL;
	ret = vu->ops->region_info(vu->device, info.index, &info.size, &info.flags);
	if (ret)
		return ret;
	info.argsz = sizeof(info);
	info.cap_offset = 0;
	info.offset = 0;
	put(answer, &info, sizeof(info));
	return 0;
}

static int do_irq_info(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_irq_info info;
	int ret;

	memcpy(&info, request->data, sizeof(info));
	if (info.argsz < sizeof(info))
		return -EINVAL;
	ret = vu->ops->irq_info(vu->device, info.index, &info.count, &info.flags);
	if (ret)
		return ret;
	info.argsz = sizeof(info);
	put(answer, &info, sizeof(info));
	return 0;
}

/* What the flags of SET_IRQS ask for; -EINVAL for a combination that VFIO does not have. */
static int irq_action(const struct vfio_user_set_irqs *set)
{
	static const struct {
		uint32_t flags;
		enum vfio_user_irq_action action;
	} known[] = {
#define DATA(name)	VFIO_IRQ_SET_DATA_##name
#define ACTION(name)	VFIO_IRQ_SET_ACTION_##name
		{ DATA(EVENTFD) | ACTION(TRIGGER), VFIO_USER_IRQ_ASSIGN },
		{ DATA(NONE) | ACTION(TRIGGER), VFIO_USER_IRQ_TRIGGER },
		{ DATA(BOOL) | ACTION(TRIGGER), VFIO_USER_IRQ_TRIGGER },
		{ DATA(NONE) | ACTION(MASK), VFIO_USER_IRQ_MASK },
		{ DATA(BOOL) | ACTION(MASK), VFIO_USER_IRQ_MASK },
		{ DATA(NONE) | ACTION(UNMASK), VFIO_USER_IRQ_UNMASK },
		{ DATA(BOOL) | ACTION(UNMASK), VFIO_USER_IRQ_UNMASK },
#undef DATA
#undef ACTION
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].flags == set->flags)
			return (int)known[i].action;
	return -EINVAL;
}

static int do_set_irqs(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_set_irqs set;
	struct vfio_user_irqs irqs = { 0 };
	uint32_t extra = request->len - sizeof(set), count, flags, wanted;
	int action, ret;

	(void)answer;
	memcpy(&set, request->data, sizeof(set));
	action = irq_action(&set);
	if (action < 0 || set.argsz < sizeof(set))
		return -EINVAL;
	ret = vu->ops->irq_info(vu->device, set.index, &count, &flags);
	if (ret)
		return ret;
	if (set.start > count || set.count > count - set.start)
		return -EINVAL;
	wanted = set.flags & VFIO_IRQ_SET_DATA_BOOL ? set.count : 0;
	if (extra != wanted)
		return -EINVAL;
	if (request->nfds && (action != VFIO_USER_IRQ_ASSIGN || request->nfds != set.count))
		return -EINVAL;

	irqs.index = set.index;
	irqs.start = set.start;
	irqs.count = set.count;
	irqs.action = (enum vfio_user_irq_action)action;
	irqs.fds = request->nfds ? request->fds : NULL;
	irqs.selected = wanted ? request->data + sizeof(set) : NULL;
	if (action == VFIO_USER_IRQ_TRIGGER && !set.count) {
		/* VFIO's way to switch a whole index off. */
		irqs.action = VFIO_USER_IRQ_ASSIGN;
		irqs.start = 0;
		irqs.count = count;
	}
	ret = vu->ops->set_irqs(vu->device, &irqs);
	if (!ret)
		request->nfds = 0;
	return ret;
}

/* Checks an access against its region. */
static int check_access(struct vfio_user *vu, const struct vfio_user_access *access,
			uint32_t needed)
{
	uint64_t size;
	uint32_t flags;
	int ret;

	ret = vu->ops->region_info(vu->device, access->region, &size, &flags);
	if (ret)
		return ret;
	if (!(flags & needed) || !access->count || access->count > VFIO_USER_MAX_TRANSFER ||
	    access->offset > size || access->count > size - access->offset)
		return -EINVAL;
	return 0;
}

static int do_region_read(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_access access;
	int ret;

	memcpy(&access, request->data, sizeof(access));
	ret = check_access(vu, &access, VFIO_REGION_INFO_FLAG_READ);
	if (!ret)
		ret = vu->ops->region_read(vu->device, access.region, access.offset, vu->reply,
					   access.count);
	if (ret)
		return ret;
	put(answer, &access, sizeof(access));
	answer->more = vu->reply;
	answer->more_len = access.count;
	return 0;
}

static int do_region_write(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	struct vfio_user_access access;
	int ret;

	memcpy(&access, request->data, sizeof(access));
	if (request->len - sizeof(access) != access.count)
		return -EINVAL;
	ret = check_access(vu, &access, VFIO_REGION_INFO_FLAG_WRITE);
	if (!ret)
		ret = vu->ops->region_write(vu->device, access.region, access.offset,
					    request->data + sizeof(access), access.count);
	put(answer, &access, sizeof(access));
	return ret;
}

static int do_reset(struct vfio_user *vu, struct request *request, struct answer *answer)
{
	(void)request;
	(void)answer;
	vu->ops->reset(vu->device);
	return 0;
}

static const struct command commands[VFIO_USER_COMMAND_COUNT] = {
	[VFIO_USER_VERSION] = { "VERSION", sizeof(struct vfio_user_version), 0, do_version },
	[VFIO_USER_DMA_MAP] = { "DMA_MAP", sizeof(struct vfio_user_dma_map), 1, do_dma_map },
	[VFIO_USER_DMA_UNMAP] = { "DMA_UNMAP", sizeof(struct vfio_user_dma_unmap), 0,
		do_dma_unmap },
	[VFIO_USER_DEVICE_GET_INFO] = { "DEVICE_GET_INFO", sizeof(struct vfio_user_device_info),
		0, do_device_info },
	[VFIO_USER_DEVICE_GET_REGION_INFO] = { "DEVICE_GET_REGION_INFO",
		sizeof(struct vfio_user_region_info), 0, do_region_info },
	[VFIO_USER_DEVICE_GET_IRQ_INFO] = { "DEVICE_GET_IRQ_INFO",
		sizeof(struct vfio_user_irq_info), 0, do_irq_info },
	[VFIO_USER_DEVICE_SET_IRQS] = { "DEVICE_SET_IRQS", sizeof(struct vfio_user_set_irqs),
		VFIO_USER_MAX_FDS, do_set_irqs },
	[VFIO_USER_REGION_READ] = { "REGION_READ", sizeof(struct vfio_user_access), 0,
		do_region_read },
	[VFIO_USER_REGION_WRITE] = { "REGION_WRITE", sizeof(struct vfio_user_access), 0,
		do_region_write },
	[VFIO_USER_DEVICE_RESET] = { "DEVICE_RESET", 0, 0, do_reset },
};

/* ------------------------------------------------------------------------- serving */

static void close_fds(struct request *request)
{
	unsigned int i, count = request->nfds;

	if (count > VFIO_USER_MAX_FDS)
		count = VFIO_USER_MAX_FDS;
	for (i = 0; i < count; i++)
		close(request->fds[i]);
	request->nfds = 0;
}

static int handle_request(struct vfio_user *vu, struct request *request)
{
	const struct command *command = NULL;
	struct answer answer = { .fixed_len = 0 };
	int ret;

	if (request->head.command < VFIO_USER_COMMAND_COUNT)
		command = &commands[request->head.command];
	if (!command || !command->handle)
		ret = -ENOTSUP;
	else if (request->head.flags & VFIO_USER_ERROR || request->len < command->min ||
		 request->nfds > command->max_fds ||
		 (!vu->negotiated && command->handle != do_version))
		ret = -EINVAL;
	else
		ret = command->handle(vu, request, &answer);
	if (ret)
		log_debug("%s (%u), %u bytes, %u descriptors: %s",
			  command && command->name ? command->name : "unknown command",
			  request->head.command, request->len, request->nfds, strerror(-ret));
	return reply(vu, request, ret, &answer);
}

static int handle_reply(struct vfio_user *vu, const struct request *request)
{
	const struct vfio_user_header *head = &request->head;
	const uint8_t *data = request->data;
	size_t len = request->len;
	int error = 0;

	if (head->command != VFIO_USER_DMA_READ && head->command != VFIO_USER_DMA_WRITE) {
		log_few("the client replies to command %u, which is not ours", head->command);
		return 0;
	}
	if (head->flags & VFIO_USER_ERROR)
		error = head->error && head->error < 4096 ? (int)head->error : EIO;
	if (len >= sizeof(struct vfio_user_dma)) {
		data += sizeof(struct vfio_user_dma);
		len -= sizeof(struct vfio_user_dma);
	} else {
		len = 0;
	}
	vu->ops->dma_reply(vu->device, head->command, head->id, error, data, len);
	return 0;
}

/* After a header that makes no sense nobody knows where the next one starts. */
static int check_header(const struct vfio_user_header *head)
{
	uint32_t type = head->flags & VFIO_USER_TYPE_MASK;

	if (head->size < sizeof(*head) || head->size > VFIO_USER_MAX_MESSAGE) {
		log_info("the client sends a message of %u bytes: dropping it", head->size);
		return -EPROTO;
	}
	if (type > VFIO_USER_REPLY || head->flags & ~VFIO_USER_FLAGS) {
		log_info("the client sends a message with flags 0x%x: dropping it", head->flags);
		return -EPROTO;
	}
	return 0;
}

static int serve_one(struct vfio_user *vu)
{
	struct request request = { .data = vu->message };
	int ret;

	ret = vu->transport->receive(vu->link, &request.head, sizeof(request.head), request.fds,
				     &request.nfds);
	if (!ret)
		ret = check_header(&request.head);
	if (!ret) {
		request.len = request.head.size - (uint32_t)sizeof(request.head);
		if (request.len)
			ret = vu->transport->receive(vu->link, vu->message, request.len,
						     request.fds, &request.nfds);
	}
	if (!ret) {
		if ((request.head.flags & VFIO_USER_TYPE_MASK) == VFIO_USER_REPLY)
			ret = handle_reply(vu, &request);
		else
			ret = handle_request(vu, &request);
	}
	close_fds(&request);
	return ret;
}

static void set_transport(struct vfio_user *vu, const struct vfio_user_transport *transport,
			  void *link)
{
	pthread_mutex_lock(&vu->send_lock);
	vu->transport = transport;
	vu->link = link;
	pthread_mutex_unlock(&vu->send_lock);
}

int vfio_user_serve(struct vfio_user *vu, const struct vfio_user_transport *transport,
		    void *link)
{
	int ret;

	set_transport(vu, transport, link);
	vu->negotiated = false;
	do {
		ret = serve_one(vu);
	} while (!ret);
	/* Whoever sends now fails, and nobody sends later: the caller may close the link. */
	transport->hang_up(link);
	set_transport(vu, NULL, NULL);
	vu->ops->closed(vu->device);
	return ret;
}
