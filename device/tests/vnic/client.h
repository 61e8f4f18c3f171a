/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A NIC in this process and a vfio-user client that talks to it over a socketpair, for
 * tests. Whatever must not happen at all ends the program.
 */
#ifndef VNIC_CLIENT_H
#define VNIC_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic.h"

struct client {
	struct nic nic;
	int fd;
	pthread_t server;
	int server_fd;
	int result;		/* of vfio_user_serve() */
	uint16_t next_id;

	/* What the NIC's DMA messages are answered from; NULL: they stay unanswered. */
	uint8_t *memory;
	uint64_t memory_addr;
	uint64_t memory_size;
	unsigned int unanswered;
	unsigned int dma_reads;
	unsigned int dma_writes;
};

void client_start(struct client *client, bool message, unsigned int vectors);
void client_stop(struct client *client);

/* One session: from a fresh connection to its end, whose reason is left in result. */
void client_connect(struct client *client);
void client_hang_up(struct client *client);
/* Waits for the server to end the session. */
void client_dropped(struct client *client);

/* Sends @len bytes as they are, with descriptors. */
void client_send(struct client *client, const void *data, size_t len, const int *fds,
		 unsigned int nfds);

/*
 * Sends a request and waits for its reply, serving DMA messages meanwhile. Returns the
 * length of the reply's data, or minus the errno it carries. @reply may be NULL.
 */
int client_request(struct client *client, uint16_t command, const void *data, uint32_t len,
		   const int *fds, unsigned int nfds, void *reply, size_t reply_size);

/* Serves DMA messages until @done says so; false if that takes ten seconds. */
bool client_serve(struct client *client, bool (*done)(void *arg), void *arg);

/* The usual requests; results as client_request(). */
int client_version(struct client *client);
int client_read(struct client *client, uint32_t region, uint64_t offset, void *to, uint32_t len);
int client_write(struct client *client, uint32_t region, uint64_t offset, const void *from,
		 uint32_t len);
uint32_t client_read32(struct client *client, uint32_t region, uint64_t offset);
void client_write16(struct client *client, uint32_t region, uint64_t offset, uint16_t value);
void client_write32(struct client *client, uint32_t region, uint64_t offset, uint32_t value);
int client_map(struct client *client, uint64_t addr, uint64_t size, uint32_t flags, int fd,
	       uint64_t offset);
int client_unmap(struct client *client, uint64_t addr, uint64_t size, uint32_t flags,
		 uint64_t *removed);
int client_set_irqs(struct client *client, uint32_t flags, uint32_t start, uint32_t count,
		    const void *data, uint32_t len, const int *fds, unsigned int nfds);

#endif
