// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard.h"
#include "log.h"
#include "vfio_user.h"

/* ------------------------------------------------------------------------- farewell */

/* Exactly @len bytes of what has arrived, to nowhere if @to is NULL. */
static bool take(int fd, void *to, size_t len)
{
	char sink[4096];
	ssize_t got;

	while (len) {
		got = recv(fd, to ? to : sink, to || len < sizeof(sink) ? len : sizeof(sink),
			   MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		if (to)
			to = (char *)to + got;
		len -= (size_t)got;
	}
	return true;
}

void guard_farewell(int client_fd)
{
	struct vfio_user_header head;

	/* The client can send nothing from here on; what it has sent can still be read. */
	shutdown(client_fd, SHUT_RD);
	while (take(client_fd, &head, sizeof(head)) && head.size >= sizeof(head) &&
	       take(client_fd, NULL, head.size - sizeof(head))) {
		if ((head.flags & VFIO_USER_TYPE_MASK) != VFIO_USER_REQUEST ||
		    head.flags & VFIO_USER_NO_REPLY)
			continue;
		head.size = sizeof(head);
		head.flags = VFIO_USER_REPLY | VFIO_USER_ERROR;
		head.error = ENODEV;
		if (send(client_fd, &head, sizeof(head), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
	}
	/* Whatever it was: nothing may be left. */
	take(client_fd, NULL, SIZE_MAX);
	shutdown(client_fd, SHUT_RDWR);
}

/* ------------------------------------------------------------------------ the guard */

union descriptor {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

void guard_client(int guard_fd, int client_fd)
{
	union descriptor control = { 0 };
	char any = 0;
	struct iovec iov = { .iov_base = &any, .iov_len = sizeof(any) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (guard_fd < 0)
		return;
	if (client_fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(client_fd));
		memcpy(CMSG_DATA(cmsg), &client_fd, sizeof(client_fd));
	}
	if (sendmsg(guard_fd, &msg, MSG_NOSIGNAL) < 0)
		log_few("the guard is gone: %s", strerror(errno));
}

/* The next news: false when nobody is left to bring any. */
static bool hear(int fd, int *client_fd)
{
	union descriptor control;
	char any;
	struct iovec iov = { .iov_base = &any, .iov_len = sizeof(any) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t got;

	do
		got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return false;
	if (*client_fd >= 0)
		close(*client_fd);
	*client_fd = -1;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(client_fd, CMSG_DATA(cmsg), sizeof(*client_fd));
	return true;
}

static void __attribute__((noreturn)) guard(int fd)
{
	int client_fd = -1;

	/* Signals that end the other one are blocked here as well. */
	prctl(PR_SET_NAME, "ferry-guard");
	while (hear(fd, &client_fd))
		;
	if (client_fd >= 0)
		guard_farewell(client_fd);
	_exit(EXIT_SUCCESS);
}

int guard_start(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		log_error("no guard, a crash takes the guest along: %s", strerror(errno));
		return -1;
	}
	switch (fork()) {
	case -1:
		log_error("no guard, a crash takes the guest along: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return -1;
	case 0:
		close(fds[0]);
		guard(fds[1]);
	default:
		close(fds[1]);
		return fds[0];
	}
}
