// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard.h"
#include "log.h"
#include "server.h"

/* A client that does not read its replies for so long is dropped. */
#define SEND_TIMEOUT_MS		30000

/* ------------------------------------------------------------------------ transport */

/* Who comes while another is served learns at once that there is no second place. */
static void turn_away(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	guard_farewell(fd);
	close(fd);
	log_few("turned a second client away: one is connected");
}

/* Waits until @fd can be read. The client's own news come first: it may have left. */
static int wait_readable(const struct server_link *link)
{
	struct pollfd fds[] = {
		{ .fd = link->fd, .events = POLLIN },
		{ .fd = link->listen_fd, .events = POLLIN },
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (fds[0].revents)
			return 0;
		if (fds[1].revents)
			turn_away(link->listen_fd);
	}
}

static void take_fds(struct msghdr *msg, int *fds, unsigned int *nfds)
{
	struct cmsghdr *cmsg;
	size_t i, count;
	int fd;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < count; i++, (*nfds)++) {
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
			if (*nfds < VFIO_USER_MAX_FDS)
				fds[*nfds] = fd;
			else
				close(fd);
		}
	}
	/* The kernel has closed what did not fit: too many all the same. */
	if (msg->msg_flags & MSG_CTRUNC)
		*nfds = VFIO_USER_MAX_FDS + 1;
}

static int socket_receive(void *at, void *to, size_t len, int *fds, unsigned int *nfds)
{
	struct server_link *link = at;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * VFIO_USER_MAX_FDS)];
	} control;
	struct msghdr msg = { 0 };
	struct iovec iov;
	ssize_t got;
	int ret;

	while (len) {
		iov = (struct iovec){ .iov_base = to, .iov_len = len };
		msg.msg_iov = &iov;
		msg.msg_iovlen = 1;
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		got = recvmsg(link->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (got < 0 && errno == EAGAIN) {
			ret = wait_readable(link);
			if (ret)
				return ret;
			continue;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -ECONNRESET;
		take_fds(&msg, fds, nfds);
		to = (char *)to + got;
		len -= (size_t)got;
	}
	return 0;
}

/*
 * A message starts with a sendmsg() of its own, and the kernel never cuts one within its
 * first bytes: QEMU takes a header that comes in two pieces for an error.
 */
static int socket_send(void *at, const struct iovec *iov, int count)
{
	struct server_link *link = at;
	struct iovec left[3];
	struct msghdr msg = { .msg_iov = left };
	struct pollfd fds = { .fd = link->fd, .events = POLLOUT };
	ssize_t sent;

	if (count > (int)(sizeof(left) / sizeof(left[0])))
		return -EINVAL;
	memcpy(left, iov, (size_t)count * sizeof(*iov));
	msg.msg_iovlen = (size_t)count;
	while (msg.msg_iovlen) {
		sent = sendmsg(link->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EAGAIN) {
			if (poll(&fds, 1, SEND_TIMEOUT_MS))
				continue;
			log_few("the client does not read what it is sent: dropping it");
			shutdown(link->fd, SHUT_RDWR);
			return -ETIMEDOUT;
		}
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		while (msg.msg_iovlen && (size_t)sent >= msg.msg_iov->iov_len) {
			sent -= (ssize_t)msg.msg_iov->iov_len;
			msg.msg_iov++;
			msg.msg_iovlen--;
		}
		if (msg.msg_iovlen) {
			msg.msg_iov->iov_base = (char *)msg.msg_iov->iov_base + sent;
			msg.msg_iov->iov_len -= (size_t)sent;
		}
	}
	return 0;
}

static void socket_hang_up(void *at)
{
	struct server_link *link = at;

	shutdown(link->fd, SHUT_RDWR);
}

const struct vfio_user_transport server_transport = {
	.receive = socket_receive,
	.send = socket_send,
	.hang_up = socket_hang_up,
};

/* -------------------------------------------------------------------------- clients */

/* False once the server is told to stop. */
static bool set_client(struct server *server, int fd)
{
	bool stopping;

	pthread_mutex_lock(&server->lock);
	server->client_fd = fd;
	stopping = server->stopping;
	pthread_mutex_unlock(&server->lock);
	return !stopping;
}

static void serve(struct server *server, int fd)
{
	struct server_link link = { .fd = fd, .listen_fd = server->listen_fd };
	int ret;

	log_info("client connected");
	ret = vfio_user_serve(&server->nic->vu, &server_transport, &link);
	if (ret == -ECONNRESET)
		log_info("client disconnected");
	else
		log_info("client dropped: %s", strerror(-ret));
}

static void *server_thread(void *arg)
{
	struct server *server = arg;
	struct pollfd fds[] = {
		{ .fd = server->listen_fd, .events = POLLIN },
		{ .fd = server->stop_fd, .events = POLLIN },
	};
	int fd;

	pthread_setname_np(pthread_self(), "ferry-client");
	for (;;) {
		poll(fds, 2, -1);
		if (fds[1].revents)
			return NULL;
		fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			/* Out of descriptors, perhaps: the client stays in the backlog. */
			poll(&fds[1], 1, 100);
			continue;
		}
		guard_client(server->guard_fd, fd);
		if (set_client(server, fd))
			serve(server, fd);
		set_client(server, -1);
		guard_farewell(fd);
		guard_client(server->guard_fd, -1);
		close(fd);
	}
}

/* ------------------------------------------------------------------- memory that shrinks */

static char sigbus_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];

/*
 * Guest memory in a file that cannot be sealed may shrink under us, and huge pages may run
 * out. There is nothing left to serve then: end, so that QEMU and the driver see a device
 * that is gone.
 */
static void sigbus(int number)
{
	static const char text[] =
		"ferry-vnic: error: guest memory is gone (file truncated, or out of huge pages): giving up\n";

	(void)number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 || unlink(sigbus_path))
		_exit(EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

static void catch_sigbus(const char *path)
{
	struct sigaction action = { .sa_handler = sigbus };

	memcpy(sigbus_path, path, strlen(path) + 1);
	sigaction(SIGBUS, &action, NULL);
}

/* ----------------------------------------------------------------------- life and death */

/* A socket that nobody listens on is left by a process that died; anything else is not ours. */
static int remove_stale(const struct sockaddr_un *name)
{
	struct stat st;
	int fd, busy;

	if (lstat(name->sun_path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		log_error("--socket %s: exists and is not a socket; remove it or choose another path",
			  name->sun_path);
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		log_error("--socket: no socket: %s", strerror(errno));
		return -1;
	}
	busy = !connect(fd, (const struct sockaddr *)name, sizeof(*name)) || errno != ECONNREFUSED;
	close(fd);
	if (busy) {
		log_error("--socket %s: in use; stop the process that listens there or choose another path",
			  name->sun_path);
		return -1;
	}
	unlink(name->sun_path);
	return 0;
}

static int listen_at(struct server *server)
{
	struct stat st;

	server->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd < 0 ||
	    bind(server->listen_fd, (struct sockaddr *)&server->name, sizeof(server->name))) {
		log_error("--socket %s: cannot bind: %s", server->name.sun_path, strerror(errno));
		return -1;
	}
	if (listen(server->listen_fd, 1) || stat(server->name.sun_path, &st)) {
		log_error("--socket %s: cannot listen: %s", server->name.sun_path,
			  strerror(errno));
		unlink(server->name.sun_path);
		return -1;
	}
	server->dev = st.st_dev;
	server->ino = st.st_ino;
	return 0;
}

int server_init(struct server *server, struct nic *nic, const char *path, int guard_fd)
{
	memset(server, 0, sizeof(*server));
	server->nic = nic;
	server->client_fd = -1;
	server->listen_fd = -1;
	server->guard_fd = guard_fd;
	pthread_mutex_init(&server->lock, NULL);
	server->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (server->stop_fd < 0) {
		log_error("no eventfd: %s", strerror(errno));
		goto fail;
	}
	server->name.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(server->name.sun_path)) {
		log_error("--socket %s: longer than the %zu bytes a socket path may have", path,
			  sizeof(server->name.sun_path) - 1);
		goto fail;
	}
	strcpy(server->name.sun_path, path);
	if (remove_stale(&server->name) || listen_at(server))
		goto fail;
	catch_sigbus(path);
	return 0;

fail:
	server_destroy(server);
	return -1;
}

int server_start(struct server *server)
{
	int error = pthread_create(&server->thread, NULL, server_thread, server);

	if (error) {
		log_error("cannot start a thread: %s", strerror(error));
		return -1;
	}
	server->started = true;
	return 0;
}

static void stop_thread(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stopping = true;
	/* What has come is still answered. */
	if (server->client_fd >= 0)
		shutdown(server->client_fd, SHUT_RD);
	pthread_mutex_unlock(&server->lock);
	if (eventfd_write(server->stop_fd, 1))
		log_error("cannot wake the client's thread: %s", strerror(errno));
	pthread_join(server->thread, NULL);
}

void server_destroy(struct server *server)
{
	struct stat st;

	if (server->started)
		stop_thread(server);
	if (server->ino && !stat(server->name.sun_path, &st) && st.st_dev == server->dev &&
	    st.st_ino == server->ino)
		unlink(server->name.sun_path);
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->stop_fd >= 0)
		close(server->stop_fd);
	pthread_mutex_destroy(&server->lock);
}
