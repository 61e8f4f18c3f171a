// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "sample.h"

/* ---------------------------------------------------------------- finding the port */

static void read_sysfs(char *text, size_t size, const char *format, const char *device,
		       unsigned int port, int index)
{
	char path[256];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), format, device, port, index);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
}

static void gid_netdev(const struct rdma *r, int index, char *name, size_t size)
{
	read_sysfs(name, size, "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%d",
		   ibv_get_device_name(r->context->device), r->port, index);
}

/* RoCEv2 of an IPv4 address is best, since TCP can use the same; then any RoCEv2. */
static int gid_rank(const struct rdma *r, int index)
{
	union ibv_gid gid;
	char type[32];

	if (ibv_query_gid(r->context, r->port, index, &gid) ||
	    !memcmp(gid.raw, (uint8_t[16]){ 0 }, 16))
		return -1;
	read_sysfs(type, sizeof(type), "/sys/class/infiniband/%s/ports/%u/gid_attrs/types/%d",
		   ibv_get_device_name(r->context->device), r->port, index);
	if (strcmp(type, "RoCE v2"))
		return 0;
	return IN6_IS_ADDR_V4MAPPED((struct in6_addr *)gid.raw) ? 2 : 1;
}

static void choose_gid(struct rdma *r)
{
	int best = -1, index, rank;

	for (index = 0; index < r->port_attr.gid_tbl_len; index++) {
		rank = gid_rank(r, index);
		if (rank > best) {
			best = rank;
			r->gid_index = index;
		}
	}
	if (best < 0)
		die("%s has no GID: has its network interface an address?",
		    ibv_get_device_name(r->context->device));
}

static bool choose_port(struct rdma *r)
{
	uint8_t port;

	for (port = 1; port <= r->attr.phys_port_cnt; port++) {
		if (!ibv_query_port(r->context, port, &r->port_attr) &&
		    r->port_attr.state == IBV_PORT_ACTIVE) {
			r->port = port;
			return true;
		}
	}
	return false;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int count, i;

	list = ibv_get_device_list(&count);
	if (!list || !count)
		die("no RDMA device (ibv_devices lists them)");
	for (i = 0; i < count && !context; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!context)
		die("cannot open RDMA device %s (ibv_devices lists them)", name ? name : "");
	return context;
}

bool rdma_ip_address(const struct rdma *r, struct sockaddr_storage *address, unsigned int *length)
{
	struct in6_addr ip;
	char netdev[IF_NAMESIZE];

	memcpy(&ip, r->gid.raw, sizeof(ip));
	memset(address, 0, sizeof(*address));
	gid_netdev(r, r->gid_index, netdev, sizeof(netdev));
	if (!netdev[0])
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&ip)) {
		struct sockaddr_in *in = (void *)address;

		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, &ip.s6_addr[12], 4);
		*length = sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (void *)address;

		in6->sin6_family = AF_INET6;
		in6->sin6_addr = ip;
		in6->sin6_scope_id = if_nametoindex(netdev);
		*length = sizeof(*in6);
	}
	return true;
}

void rdma_facts(const struct rdma *r)
{
	char netdev[IF_NAMESIZE];

	gid_netdev(r, r->gid_index, netdev, sizeof(netdev));
	printf("fact\tRDMA device\t%s\n", ibv_get_device_name(r->context->device));
	printf("fact\tRDMA firmware\t%s\n", r->attr.fw_ver);
	printf("fact\tRDMA vendor and part\t%04x:%04x\n", r->attr.vendor_id, r->attr.vendor_part_id);
	printf("fact\tRDMA link layer\t%s\n",
	       r->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	printf("fact\tRDMA netdev\t%s\n", netdev);
	printf("fact\tRDMA MTU\t%u\n", 128u << r->port_attr.active_mtu);
	printf("fact\tRDMA inline\t%u\n", r->max_inline);
	printf("fact\tRDMA queue depth\t%u\n", r->depth);
}

/* ---------------------------------------------------------------- the connection */

static void create_qp(struct rdma *r)
{
	struct ibv_qp_init_attr init = {
		.send_cq = r->send_cq,
		.recv_cq = r->recv_cq,
		.cap = {
			.max_send_wr = r->depth,
			.max_recv_wr = r->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 64,
		},
		.qp_type = IBV_QPT_RC,
	};

	r->qp = ibv_create_qp(r->pd, &init);
	if (!r->qp) {
		/* Some devices have no inline data. */
		init.cap.max_inline_data = 0;
		r->qp = ibv_create_qp(r->pd, &init);
	}
	if (!r->qp)
		die("cannot create a QP: %s", strerror(errno));
	r->max_inline = init.cap.max_inline_data;
}

void rdma_open(struct rdma *r, const char *device, int gid_index, uint32_t depth)
{
	memset(r, 0, sizeof(*r));
	r->context = open_device(device);
	if (ibv_query_device(r->context, &r->attr))
		die("cannot query the RDMA device");
	if (!choose_port(r))
		die("%s has no active port: is its network interface up?",
		    ibv_get_device_name(r->context->device));
	r->gid_index = gid_index;
	if (gid_index < 0)
		choose_gid(r);
	if (ibv_query_gid(r->context, r->port, r->gid_index, &r->gid))
		die("no GID %d", r->gid_index);

	r->depth = depth;
	if (r->depth > (uint32_t)r->attr.max_qp_wr)
		r->depth = r->attr.max_qp_wr;
	r->pd = ibv_alloc_pd(r->context);
	r->channel = ibv_create_comp_channel(r->context);
	r->send_cq = ibv_create_cq(r->context, r->depth, NULL, NULL, 0);
	r->recv_cq = ibv_create_cq(r->context, r->depth, NULL, r->channel, 0);
	r->buffer = aligned_alloc(4096, 2 * LARGEST_MESSAGE);
	if (!r->pd || !r->channel || !r->send_cq || !r->recv_cq || !r->buffer)
		die("cannot create a CQ: %s", strerror(errno));
	memset(r->buffer, 1, 2 * LARGEST_MESSAGE);
	r->mr = ibv_reg_mr(r->pd, r->buffer, 2 * LARGEST_MESSAGE, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!r->mr)
		die("cannot register memory: %s (see ulimit -l)", strerror(errno));
	create_qp(r);
}

void rdma_close(struct rdma *r)
{
	ibv_destroy_qp(r->qp);
	ibv_destroy_cq(r->send_cq);
	ibv_destroy_cq(r->recv_cq);
	ibv_destroy_comp_channel(r->channel);
	ibv_dereg_mr(r->mr);
	ibv_dealloc_pd(r->pd);
	ibv_close_device(r->context);
	free(r->buffer);
}

void rdma_address(const struct rdma *r, struct rdma_address *address)
{
	memset(address, 0, sizeof(*address));
	memcpy(address->gid, r->gid.raw, sizeof(address->gid));
	address->addr = htobe64((uintptr_t)r->buffer + LARGEST_MESSAGE);
	address->rkey = htobe32(r->mr->rkey);
	address->qpn = htobe32(r->qp->qp_num);
	address->psn = htobe32(r->qp->qp_num & 0xffffff);
	address->lid = htobe16(r->port_attr.lid);
	address->mtu = r->port_attr.active_mtu;
}

void rdma_connect(struct rdma *r, const struct rdma_address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = r->port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		die("QP to INIT: %s", strerror(errno));
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = peer->mtu < r->port_attr.active_mtu ? peer->mtu : r->port_attr.active_mtu;
	attr.dest_qp_num = be32toh(peer->qpn);
	attr.rq_psn = be32toh(peer->psn);
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	attr.ah_attr.dlid = be16toh(peer->lid);
	attr.ah_attr.port_num = r->port;
	attr.ah_attr.is_global = 1;
	memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, 16);
	attr.ah_attr.grh.sgid_index = r->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		die("QP to RTR: %s", strerror(errno));
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 17;	/* half a second: some machines are slow */
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.sq_psn = r->qp->qp_num & 0xffffff;
	attr.max_rd_atomic = 1;
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("QP to RTS: %s", strerror(errno));
	r->peer_addr = be64toh(peer->addr);
	r->peer_rkey = be32toh(peer->rkey);
}

/* ---------------------------------------------------------------- work */

static void check(int err, const char *what)
{
	if (err)
		die("cannot %s: %s", what, strerror(err));
}

void rdma_post_recv(struct rdma *r, unsigned int count)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->buffer + LARGEST_MESSAGE,
		.length = LARGEST_MESSAGE,
		.lkey = r->mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (count--)
		check(ibv_post_recv(r->qp, &wr, &bad), "post a receive");
}

void rdma_post(struct rdma *r, enum kind kind, uint32_t size)
{
	static const enum ibv_wr_opcode opcodes[KINDS] = {
		[SEND] = IBV_WR_SEND,
		[SEND_EVENT] = IBV_WR_SEND,
		[WRITE] = IBV_WR_RDMA_WRITE,
		[READ] = IBV_WR_RDMA_READ,
	};
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->buffer,
		.length = size,
		.lkey = r->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcodes[kind],
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = r->peer_addr, .rkey = r->peer_rkey },
	}, *bad;

	if (kind != READ && size <= r->max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	check(ibv_post_send(r->qp, &wr, &bad), "post");
}

/* Sleeps until there may be a completion. */
static void sleep_for_event(struct rdma *r)
{
	struct pollfd fd = { .fd = r->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, PATIENCE * 1000) != 1 || ibv_get_cq_event(r->channel, &cq, &context))
		die("no completion event within %d s", PATIENCE);
	ibv_ack_cq_events(cq, 1);
}

static unsigned int take(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int count, i;

	count = ibv_poll_cq(cq, 16, wc);
	if (count < 0)
		die("cannot poll the CQ");
	for (i = 0; i < count; i++)
		if (wc[i].status)
			die("a work request ended with: %s", ibv_wc_status_str(wc[i].status));
	return count;
}

void rdma_wait_sent(struct rdma *r)
{
	uint64_t tries = 0, deadline = 0;

	while (!r->sent) {
		r->sent = take(r->send_cq);
		if (r->sent || ++tries % 65536)
			continue;
		if (!deadline)
			deadline = now_ns() + PATIENCE * 1000000000ull;
		else if (now_ns() > deadline)
			die("no completion of a send within %d s", PATIENCE);
	}
	r->sent--;
}

void rdma_wait_received(struct rdma *r)
{
	uint64_t tries = 0, deadline = 0;

	while (!r->received) {
		r->received = take(r->recv_cq);
		if (!r->received && r->sleeps) {
			if (ibv_req_notify_cq(r->recv_cq, 0))
				die("cannot arm the CQ");
			/* What came before it was armed makes no event. */
			r->received = take(r->recv_cq);
			if (!r->received)
				sleep_for_event(r);
			continue;
		}
		if (r->received || ++tries % 65536)
			continue;
		if (!deadline)
			deadline = now_ns() + PATIENCE * 1000000000ull;
		else if (now_ns() > deadline)
			die("no message within %d s", PATIENCE);
	}
	r->received--;
}
