// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An AF_UNIX datagram socket, one raw Ethernet frame a datagram: what QEMU's
 * `-netdev dgram` speaks, too. The socket is not connected, so that either end may come,
 * go and come back at any time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"
#include "log.h"

#define BATCH		32u
#define QUEUE_FRAMES	4096u			/* power of two */
#define QUEUE_BYTES	(4u << 20)
#define SOCKET_BUFFER	(4 << 20)

/*
 * The kernel queues few datagrams at a receiver (net.unix.max_dgram_qlen, often 10), so a
 * full queue is no failure: frames wait in ours. A receiver that takes none for so long
 * has stopped, not just been off its CPU, and frames are dropped, as on any Ethernet.
 */
#define STUCK		(200 * NSEC_PER_MSEC)

struct queued {
	uint32_t offset;	/* into arena */
	uint32_t len;
};

struct link_unix {
	struct link link;
	struct sockaddr_un local;
	struct sockaddr_un remote;
	dev_t dev;		/* of our socket's name, to unlink no one else's */
	ino_t ino;

	uint32_t head;		/* next to send; free running */
	uint32_t tail;		/* next to fill */
	uint64_t stuck_since;	/* 0: not stuck */
	struct queued queued[QUEUE_FRAMES];
	char *arena;		/* frames, in order; one never wraps */

	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	char *rx;		/* BATCH frames */
};

static struct link_unix *unix_of(struct link *link)
{
	return (struct link_unix *)link;
}

/* Room for @len bytes behind the last frame, or UINT32_MAX. */
static uint32_t find_room(const struct link_unix *u, size_t len)
{
	const struct queued *first, *last;
	uint32_t end;

	if (u->head == u->tail)
		return 0;
	if (u->tail - u->head == QUEUE_FRAMES)
		return UINT32_MAX;
	first = &u->queued[u->head % QUEUE_FRAMES];
	last = &u->queued[(u->tail - 1) % QUEUE_FRAMES];
	end = last->offset + last->len;
	if (last->offset < first->offset)
		return end + len <= first->offset ? end : UINT32_MAX;
	if (end + len <= QUEUE_BYTES)
		return end;
	return len <= first->offset ? 0 : UINT32_MAX;
}

static int send_batch(struct link_unix *u)
{
	uint32_t i, count = u->tail - u->head;

	if (count > BATCH)
		count = BATCH;
	for (i = 0; i < count; i++) {
		const struct queued *q = &u->queued[(u->head + i) % QUEUE_FRAMES];

		u->iov[i].iov_base = u->arena + q->offset;
		u->iov[i].iov_len = q->len;
		memset(&u->msgs[i].msg_hdr, 0, sizeof(u->msgs[i].msg_hdr));
		u->msgs[i].msg_hdr.msg_name = &u->remote;
		u->msgs[i].msg_hdr.msg_namelen = sizeof(u->remote);
		u->msgs[i].msg_hdr.msg_iov = &u->iov[i];
		u->msgs[i].msg_hdr.msg_iovlen = 1;
	}
	return sendmmsg(u->link.fd, u->msgs, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void drop_queued(struct link_unix *u)
{
	u->link.dropped += u->tail - u->head;
	u->head = u->tail;
	u->stuck_since = 0;
}

/* Nobody there, or somebody who does not listen to us: frames go nowhere. */
static void remote_gone(struct link_unix *u)
{
	u->link.lost = true;
	drop_queued(u);
}

static bool unix_flush(struct link *link, uint64_t now)
{
	struct link_unix *u = unix_of(link);

	while (u->head != u->tail) {
		int sent = send_batch(u);

		if (sent > 0) {
			u->head += (uint32_t)sent;
			u->stuck_since = 0;
			continue;
		}
		switch (errno) {
		case EINTR:
			continue;
		case EAGAIN:
		case ENOBUFS:
			if (!u->stuck_since)
				u->stuck_since = now;
			if (now - u->stuck_since < STUCK)
				return true;
			drop_queued(u);
			return false;
		case EMSGSIZE:		/* this one frame */
			u->link.dropped++;
			u->head++;
			continue;
		default:
			remote_gone(u);
			return false;
		}
	}
	return false;
}

static bool unix_send(struct link *link, const void *frame, size_t len)
{
	struct link_unix *u = unix_of(link);
	uint32_t offset = find_room(u, len);

	if (offset == UINT32_MAX)
		return false;
	memcpy(u->arena + offset, frame, len);
	u->queued[u->tail % QUEUE_FRAMES] = (struct queued){ offset, (uint32_t)len };
	u->tail++;
	return true;
}

static unsigned int unix_receive(struct link *link, unsigned int max, link_deliver deliver,
				 void *to)
{
	struct link_unix *u = unix_of(link);
	struct iovec iov[BATCH];
	struct mmsghdr msgs[BATCH];
	int i, count;

	if (max > BATCH)
		max = BATCH;
	memset(msgs, 0, sizeof(msgs));
	for (i = 0; i < (int)max; i++) {
		iov[i].iov_base = u->rx + (size_t)i * LINK_FRAME_MAX;
		iov[i].iov_len = LINK_FRAME_MAX;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	count = recvmmsg(link->fd, msgs, max, MSG_DONTWAIT, NULL);
	for (i = 0; i < count; i++) {
		if (msgs[i].msg_hdr.msg_flags & MSG_TRUNC || msgs[i].msg_len < LINK_FRAME_MIN)
			link->oversize++;
		else
			deliver(to, iov[i].iov_base, msgs[i].msg_len);
	}
	return count > 0 ? (unsigned int)count : 0;
}

/* Knocks with a socket of its own: connecting ours would shut others out. */
static bool unix_probe(struct link *link)
{
	struct link_unix *u = unix_of(link);
	int fd, ret;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ret = connect(fd, (struct sockaddr *)&u->remote, sizeof(u->remote));
	/* EPERM: it is connected, to us we hope. */
	ret = ret && errno != EPERM;
	close(fd);
	return !ret;
}

static void unix_close(struct link *link)
{
	struct link_unix *u = unix_of(link);
	struct stat st;

	if (u->ino && !stat(u->local.sun_path, &st) && st.st_dev == u->dev &&
	    st.st_ino == u->ino)
		unlink(u->local.sun_path);
	if (link->fd >= 0)
		close(link->fd);
	if (u->arena)
		munmap(u->arena, QUEUE_BYTES);
	free(u->rx);
	free(u);
}

static const struct link_ops unix_ops = {
	.send = unix_send,
	.flush = unix_flush,
	.receive = unix_receive,
	.probe = unix_probe,
	.close = unix_close,
};

static bool set_path(struct sockaddr_un *sun, const char *path)
{
	sun->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(sun->sun_path)) {
		log_error("--link unix: %s is longer than the %zu bytes a socket path may have",
			  path, sizeof(sun->sun_path) - 1);
		return false;
	}
	strcpy(sun->sun_path, path);
	return true;
}

/* The name of a socket that nobody has open any more is left by a process that died. */
static bool remove_stale(const struct sockaddr_un *sun)
{
	struct stat st;
	int fd, ret;

	if (lstat(sun->sun_path, &st))
		return true;
	if (!S_ISSOCK(st.st_mode)) {
		log_error("--link unix: %s exists and is not a socket: remove it or choose another path",
			  sun->sun_path);
		return false;
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ret = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)sun, sizeof(*sun));
	if (fd >= 0)
		close(fd);
	if (!ret || errno != ECONNREFUSED) {
		log_error("--link unix: %s is in use: stop its owner or choose another path",
			  sun->sun_path);
		return false;
	}
	unlink(sun->sun_path);
	return true;
}

static bool open_socket(struct link_unix *u)
{
	const int size = SOCKET_BUFFER;
	struct stat st;

	u->link.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->link.fd < 0) {
		log_error("--link unix: no socket: %s", strerror(errno));
		return false;
	}
	/* As much as we may have; less is slower and works as well. */
	if (setsockopt(u->link.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(u->link.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (!remove_stale(&u->local))
		return false;
	if (bind(u->link.fd, (struct sockaddr *)&u->local, sizeof(u->local)) ||
	    stat(u->local.sun_path, &st)) {
		log_error("--link unix: cannot bind %s: %s", u->local.sun_path, strerror(errno));
		return false;
	}
	u->dev = st.st_dev;
	u->ino = st.st_ino;
	return true;
}

struct link *link_open_unix(const char *local, const char *remote)
{
	struct link_unix *u = calloc(1, sizeof(*u));
	void *arena;

	if (!u)
		goto no_memory;
	u->link.ops = &unix_ops;
	u->link.fd = -1;
	u->link.speed_mbps = 100000;
	u->rx = malloc((size_t)BATCH * LINK_FRAME_MAX);
	arena = mmap(NULL, QUEUE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u->arena = arena == MAP_FAILED ? NULL : arena;
	if (!u->rx || !u->arena)
		goto no_memory;
	if (!set_path(&u->local, local) || !set_path(&u->remote, remote) || !open_socket(u))
		goto fail;
	return &u->link;

no_memory:
	log_error("--link unix: out of memory");
fail:
	if (u)
		unix_close(&u->link);
	return NULL;
}
