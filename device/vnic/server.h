/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The listening socket and the thread that serves its clients, one after another.
 */
#ifndef VNIC_SERVER_H
#define VNIC_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "nic.h"

/* The two ends of a client's connection that is being served. */
struct server_link {
	int fd;
	int listen_fd;		/* others who come meanwhile are turned away; -1: nobody can */
};

extern const struct vfio_user_transport server_transport;

struct server {
	struct nic *nic;
	struct sockaddr_un name;
	dev_t dev;		/* of the socket's name, to unlink no one else's */
	ino_t ino;
	int listen_fd;
	int stop_fd;
	int guard_fd;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;	/* of client_fd */
	int client_fd;		/* -1: nobody is connected */
	bool stopping;
};

/*
 * Listens on @path. @guard_fd is of guard_start(), -1: there is no guard. 0, or -1 after an
 * error line.
 */
int server_init(struct server *server, struct nic *nic, const char *path, int guard_fd);
int server_start(struct server *server);

/* Hangs up on the client, ends the thread, removes the socket. */
void server_destroy(struct server *server);

#endif
