/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * measure-link: the same exchanges by RDMA and by TCP. A control connection (TCP) tells
 * the server what comes next; the data goes over connections of their own.
 */
#ifndef MEASURE_LINK_H
#define MEASURE_LINK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LARGEST_MESSAGE	(1u << 20)
/* Of a stream, under way at once. */
#define WINDOW		64
/* No wait is longer, in seconds. (A server hears nothing during one-sided work.) */
#define PATIENCE	60

/* How two ends exchange messages. */
enum kind {
	SEND,		/* RDMA, completions polled */
	SEND_EVENT,	/* RDMA, sleeping until there is a completion */
	WRITE,		/* RDMA, the peer's CPU takes no part */
	READ,		/* RDMA, likewise */
	TCP,		/* blocking receive */
	TCP_POLL,	/* receive that never sleeps */
	KINDS,
};

/* An end of the RDMA connection. */
struct rdma {
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buffer;			/* to send from; to receive into from LARGEST_MESSAGE on */
	union ibv_gid gid;
	int gid_index;
	uint8_t port;
	uint32_t depth;			/* of each queue */
	uint32_t max_inline;
	uint64_t peer_addr;
	uint32_t peer_rkey;
	unsigned int received, sent;	/* completions polled and not waited for yet */
	bool sleeps;			/* SEND_EVENT */
};

/* What one end tells the other to connect, in network byte order. */
struct rdma_address {
	uint8_t gid[16];
	uint64_t addr;
	uint32_t rkey;
	uint32_t qpn;
	uint32_t psn;
	uint16_t lid;
	uint8_t mtu;
	uint8_t pad;
};

/* @device and @gid_index: NULL and -1 to choose. Each dies with a message if it fails. */
void rdma_open(struct rdma *r, const char *device, int gid_index, uint32_t depth);
void rdma_address(const struct rdma *r, struct rdma_address *address);
void rdma_connect(struct rdma *r, const struct rdma_address *peer);
void rdma_close(struct rdma *r);
void rdma_facts(const struct rdma *r);

/* Posts @count receives. */
void rdma_post_recv(struct rdma *r, unsigned int count);
void rdma_post(struct rdma *r, enum kind kind, uint32_t size);
/* Waits for one completion of that sort. */
void rdma_wait_sent(struct rdma *r);
void rdma_wait_received(struct rdma *r);

/* Of the RDMA device's netdev: what TCP must use to go over the same link; false: unknown. */
bool rdma_ip_address(const struct rdma *r, struct sockaddr_storage *address, unsigned int *length);

int tcp_listen(const struct sockaddr_storage *address, unsigned int length);
int tcp_accept(int listener);
int tcp_connect(const struct sockaddr_storage *from, unsigned int from_length,
		const struct sockaddr_storage *to, unsigned int to_length);
void tcp_send(int fd, const void *data, size_t size);
/* @poll: without sleeping. */
void tcp_recv(int fd, void *data, size_t size, bool poll);

/* Posting, polling and registration: parts of measure-link that need no server. */
void measure_post(const char *device, int gid_index);
void measure_registration(const char *device, int gid_index);

#endif
