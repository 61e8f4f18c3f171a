// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "sample.h"

/* Every message at once, and no wait without end. */
static void prepare(int fd)
{
	struct timeval patience = { .tv_sec = PATIENCE };
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

int tcp_listen(const struct sockaddr_storage *address, unsigned int length)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0)
		die("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)address, length) || listen(fd, 1))
		die("cannot listen: %s", strerror(errno));
	return fd;
}

int tcp_accept(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		die("accept: %s", strerror(errno));
	prepare(fd);
	return fd;
}

int tcp_connect(const struct sockaddr_storage *from, unsigned int from_length,
		const struct sockaddr_storage *to, unsigned int to_length)
{
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket: %s", strerror(errno));
	prepare(fd);
	if (from && bind(fd, (const struct sockaddr *)from, from_length))
		die("cannot use the RDMA device's address for TCP: %s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)to, to_length))
		die("cannot connect: %s (is the server running there?)", strerror(errno));
	return fd;
}

void tcp_send(int fd, const void *data, size_t size)
{
	ssize_t n;

	while (size) {
		n = send(fd, data, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("TCP: cannot send: %s", strerror(errno));
		data = (const char *)data + n;
		size -= n;
	}
}

void tcp_recv(int fd, void *data, size_t size, bool poll)
{
	uint64_t tries = 0, deadline = 0;
	ssize_t n;

	while (size) {
		n = recv(fd, data, size, poll ? MSG_DONTWAIT : 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && poll) {
			if (++tries % 4096)
				continue;
			if (!deadline)
				deadline = now_ns() + PATIENCE * 1000000000ull;
			if (now_ns() < deadline)
				continue;
		}
		if (n <= 0)
			die("TCP: %s", n ? strerror(errno) : "the other end has gone");
		data = (char *)data + n;
		size -= n;
	}
}
