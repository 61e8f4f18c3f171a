// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "server.h"
#include "tap.h"
#include "vnic/client.h"

#define PATIENCE_MS	10000	/* a sanitized server on a busy machine */

/* -------------------------------------------------------------------------- sessions */

void client_start(struct client *client, bool message, unsigned int vectors)
{
	struct nic_config config = {
		.mac = { 2, 0, 0, 0, 0, 1 },
		.vectors = vectors,
		.message = message,
		.dma_timeout = 5 * NSEC_PER_SEC,
	};

	memset(client, 0, sizeof(*client));
	config.link = link_open_loopback();
	need(config.link);
	need_eq(nic_init(&client->nic, &config), 0);
	need_eq(shard_start(&client->nic.shard), 0);
	client->fd = -1;
}

void client_stop(struct client *client)
{
	if (client->fd >= 0)
		client_hang_up(client);
	nic_destroy(&client->nic);
}

static void *serve(void *arg)
{
	struct client *client = arg;
	struct server_link link = { .fd = client->server_fd, .listen_fd = -1 };

	client->result = vfio_user_serve(&client->nic.vu, &server_transport, &link);
	return NULL;
}

void client_connect(struct client *client)
{
	int fds[2];

	need_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	client->fd = fds[0];
	client->server_fd = fds[1];
	need_eq(pthread_create(&client->server, NULL, serve, client), 0);
}

static void end_session(struct client *client)
{
	pthread_join(client->server, NULL);
	close(client->server_fd);
	close(client->fd);
	client->fd = -1;
}

void client_hang_up(struct client *client)
{
	shutdown(client->fd, SHUT_RDWR);
	end_session(client);
}

static void wait_readable(struct client *client, int timeout)
{
	struct pollfd fds = { .fd = client->fd, .events = POLLIN };

	need_that(poll(&fds, 1, timeout) == 1, "the server says nothing");
}

void client_dropped(struct client *client)
{
	char byte;

	wait_readable(client, PATIENCE_MS);
	need_eq(recv(client->fd, &byte, 1, 0), 0);
	end_session(client);
}

/* -------------------------------------------------------------------------- messages */

void client_send(struct client *client, const void *data, size_t len, const int *fds,
		 unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 64)];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (nfds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * nfds);
	}
	while (iov.iov_len) {
		ssize_t sent = sendmsg(client->fd, &msg, MSG_NOSIGNAL);

		need(sent > 0);
		iov.iov_base = (char *)iov.iov_base + sent;
		iov.iov_len -= (size_t)sent;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
}

static void receive(struct client *client, void *to, size_t len)
{
	while (len) {
		ssize_t got;

		wait_readable(client, PATIENCE_MS);
		got = recv(client->fd, to, len, 0);
		need(got > 0);
		to = (char *)to + got;
		len -= (size_t)got;
	}
}

/* What the client's IOMMU would do. */
static uint8_t *translate(struct client *client, const struct vfio_user_dma *dma)
{
	if (!client->memory || dma->addr < client->memory_addr ||
	    dma->addr - client->memory_addr > client->memory_size ||
	    dma->count > client->memory_size - (dma->addr - client->memory_addr))
		return NULL;
	return client->memory + (dma->addr - client->memory_addr);
}

static void serve_dma(struct client *client, const struct vfio_user_header *request,
		      const uint8_t *data)
{
	bool read = request->command == VFIO_USER_DMA_READ;
	static uint8_t out[VFIO_USER_MAX_MESSAGE];
	struct vfio_user_header head = *request;
	struct vfio_user_dma dma;
	uint8_t *at;

	memcpy(&dma, data, sizeof(dma));
	need(read || request->size == sizeof(head) + sizeof(dma) + dma.count);
	need(dma.count <= VFIO_USER_MAX_TRANSFER);
	if (!client->memory) {
		client->unanswered++;
		return;
	}
	if (read)
		client->dma_reads++;
	else
		client->dma_writes++;
	at = translate(client, &dma);
	head.flags = VFIO_USER_REPLY;
	head.size = sizeof(head);
	if (!at) {
		head.flags |= VFIO_USER_ERROR;
		head.error = EFAULT;
	} else if (read) {
		head.size += (uint32_t)(sizeof(dma) + dma.count);
		memcpy(out + sizeof(head), &dma, sizeof(dma));
		memcpy(out + sizeof(head) + sizeof(dma), at, dma.count);
	} else {
		memcpy(at, data + sizeof(dma), dma.count);
	}
	memcpy(out, &head, sizeof(head));
	client_send(client, out, head.size, NULL, 0);
}

/* Receives one message; a request of the server is served, a reply is left in *@head. */
static bool receive_reply(struct client *client, struct vfio_user_header *head, uint8_t *data)
{
	receive(client, head, sizeof(*head));
	need(head->size >= sizeof(*head) && head->size <= VFIO_USER_MAX_MESSAGE);
	receive(client, data, head->size - sizeof(*head));
	if ((head->flags & VFIO_USER_TYPE_MASK) == VFIO_USER_REPLY)
		return true;
	need(head->command == VFIO_USER_DMA_READ || head->command == VFIO_USER_DMA_WRITE);
	need(head->size >= sizeof(*head) + sizeof(struct vfio_user_dma));
	serve_dma(client, head, data);
	return false;
}

static uint8_t received[VFIO_USER_MAX_MESSAGE];

int client_request(struct client *client, uint16_t command, const void *data, uint32_t len,
		   const int *fds, unsigned int nfds, void *reply, size_t reply_size)
{
	static uint8_t message[VFIO_USER_MAX_MESSAGE + 4096];
	struct vfio_user_header head = {
		.id = client->next_id++,
		.command = command,
		.size = (uint32_t)sizeof(head) + len,
	}, answer;
	uint32_t got;

	memcpy(message, &head, sizeof(head));
	if (len)
		memcpy(message + sizeof(head), data, len);
	client_send(client, message, head.size, fds, nfds);
	while (!receive_reply(client, &answer, received))
		;
	need_eq(answer.id, head.id);
	need_eq(answer.command, command);
	got = answer.size - (uint32_t)sizeof(answer);
	if (answer.flags & VFIO_USER_ERROR) {
		need(answer.error);
		need_eq(got, 0);
		return -(int)answer.error;
	}
	if (reply) {
		need_that(got <= reply_size, "the reply has %u bytes", got);
		memcpy(reply, received, got);
	}
	return (int)got;
}

bool client_serve(struct client *client, bool (*done)(void *arg), void *arg)
{
	uint64_t until = clock_now() + 10 * NSEC_PER_SEC;
	struct vfio_user_header head;
	struct pollfd fds = { .fd = client->fd, .events = POLLIN };

	while (!done(arg)) {
		if (clock_now() > until)
			return false;
		if (poll(&fds, 1, 1) == 1)
			need(!receive_reply(client, &head, received));
	}
	return true;
}

/* ------------------------------------------------------------------------- requests */

int client_version(struct client *client)
{
	struct {
		struct vfio_user_version version;
		char text[96];
	} request = {
		.version = { 0, 0 },
		.text = "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576,"
			"\"migration\":{\"pgsize\":4096}}}",
	};

	return client_request(client, VFIO_USER_VERSION, &request, sizeof(request), NULL, 0, NULL,
			      0);
}

int client_read(struct client *client, uint32_t region, uint64_t offset, void *to, uint32_t len)
{
	struct vfio_user_access access = { offset, region, len };
	uint8_t reply[sizeof(access) + PCI_CONFIG_SIZE];
	int ret;

	ret = client_request(client, VFIO_USER_REGION_READ, &access, sizeof(access), NULL, 0,
			     reply, sizeof(reply));
	if (ret < 0)
		return ret;
	need_eq(ret, sizeof(access) + len);
	memcpy(to, reply + sizeof(access), len);
	return 0;
}

int client_write(struct client *client, uint32_t region, uint64_t offset, const void *from,
		 uint32_t len)
{
	struct vfio_user_access access = { offset, region, len };
	uint8_t request[sizeof(access) + PCI_CONFIG_SIZE];
	int ret;

	memcpy(request, &access, sizeof(access));
	memcpy(request + sizeof(access), from, len);
	ret = client_request(client, VFIO_USER_REGION_WRITE, request,
			     (uint32_t)sizeof(access) + len, NULL, 0, NULL, 0);
	return ret < 0 ? ret : 0;
}

uint32_t client_read32(struct client *client, uint32_t region, uint64_t offset)
{
	uint32_t value;

	need_eq(client_read(client, region, offset, &value, sizeof(value)), 0);
	return value;
}

void client_write16(struct client *client, uint32_t region, uint64_t offset, uint16_t value)
{
	need_eq(client_write(client, region, offset, &value, sizeof(value)), 0);
}

void client_write32(struct client *client, uint32_t region, uint64_t offset, uint32_t value)
{
	need_eq(client_write(client, region, offset, &value, sizeof(value)), 0);
}

int client_map(struct client *client, uint64_t addr, uint64_t size, uint32_t flags, int fd,
	       uint64_t offset)
{
	struct vfio_user_dma_map map = { sizeof(map), flags, offset, addr, size };

	return client_request(client, VFIO_USER_DMA_MAP, &map, sizeof(map), &fd, fd >= 0, NULL, 0);
}

int client_unmap(struct client *client, uint64_t addr, uint64_t size, uint32_t flags,
		 uint64_t *removed)
{
	struct vfio_user_dma_unmap unmap = { sizeof(unmap), flags, addr, size };
	int ret = client_request(client, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap), NULL, 0,
				 &unmap, sizeof(unmap));

	if (ret >= 0 && removed)
		*removed = unmap.size;
	return ret < 0 ? ret : 0;
}

int client_set_irqs(struct client *client, uint32_t flags, uint32_t start, uint32_t count,
		    const void *data, uint32_t len, const int *fds, unsigned int nfds)
{
	struct vfio_user_set_irqs set = {
		sizeof(set), flags, VFIO_PCI_MSIX_IRQ_INDEX, start, count
	};
	uint8_t request[sizeof(set) + 512];

	memcpy(request, &set, sizeof(set));
	if (len)
		memcpy(request + sizeof(set), data, len);
	return client_request(client, VFIO_USER_DEVICE_SET_IRQS, request,
			      (uint32_t)sizeof(set) + len, fds, nfds, NULL, 0);
}
