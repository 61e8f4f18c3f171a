// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"
#include "rig.h"

#define CONNECT_US	(30 * 1000 * 1000ull)

static int peer_socket = -1;

bool peer_present(void)
{
	return peer_socket >= 0;
}

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo *found, hints = {
		.ai_family = host ? AF_UNSPEC : AF_INET6,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	int err = getaddrinfo(host, port, &hints, &found);

	need_that(!err, "%s port %s: %s", host ? host : "any", port, gai_strerror(err));
	return found;
}

static int wait_for_caller(const char *port)
{
	struct timeval patience = { .tv_sec = CONNECT_US / 1000000 };
	struct addrinfo *addr = resolve(NULL, port);
	int one = 1, listener, fd;

	listener = socket(addr->ai_family, addr->ai_socktype, addr->ai_protocol);
	need(listener >= 0);
	need_ok(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	need_ok(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	need_ok(bind(listener, addr->ai_addr, addr->ai_addrlen));
	need_ok(listen(listener, 1));
	fd = accept(listener, NULL, NULL);
	need_that(fd >= 0, "nobody called: %s", tap_error(errno));
	close(listener);
	freeaddrinfo(addr);
	return fd;
}

static int call(const char *peer)
{
	uint64_t end = now_us() + CONNECT_US;
	struct addrinfo *addr;
	char *host, *colon;
	int fd;

	host = need_ptr(strdup(peer));
	colon = strrchr(host, ':');
	need_that(colon, "--peer %s has no port", peer);
	*colon = 0;
	addr = resolve(host, colon + 1);
	for (;;) {
		fd = socket(addr->ai_family, addr->ai_socktype, addr->ai_protocol);
		need(fd >= 0);
		if (!connect(fd, addr->ai_addr, addr->ai_addrlen))
			break;
		close(fd);
		need_that(now_us() < end, "%s does not answer: %s", peer, tap_error(errno));
		usleep(100000);
	}
	freeaddrinfo(addr);
	free(host);
	return fd;
}

void peer_connect(void)
{
	int one = 1;

	peer_socket = options.listen ? wait_for_caller(options.listen) : call(options.peer);
	need_ok(setsockopt(peer_socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
}

void peer_exchange(const void *mine, void *theirs, size_t len)
{
	ssize_t count;
	size_t done;

	for (done = 0; done < len; done += count) {
		count = send(peer_socket, (const char *)mine + done, len - done, MSG_NOSIGNAL);
		need_that(count > 0, "the peer is gone: %s", tap_error(errno));
	}
	for (done = 0; done < len; done += count) {
		count = recv(peer_socket, (char *)theirs + done, len - done, 0);
		need_that(count > 0, "the peer is gone");
	}
}

void peer_barrier(uint64_t where)
{
	uint64_t theirs;

	if (!peer_present())
		return;
	peer_exchange(&where, &theirs, sizeof(where));
	need_that(theirs == where, "the peer is at %#llx, not at %#llx",
		  (unsigned long long)theirs, (unsigned long long)where);
}
