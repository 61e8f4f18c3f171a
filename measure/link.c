// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Latency, rate, bandwidth and CPU time by size, by RDMA and by TCP over the same link:
 * the same loops for both, so that they can be compared. Needs a server, on another
 * machine or on this one; the client decides what is done and prints the rows.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "sample.h"

#define DEFAULT_PORT	"18777"
#define HELLO_MAGIC	0x46654d31u	/* changes with what is said here */
#define DEPTH		256
#define RECEIVES	(2 * WINDOW)
/* A client must come within that many seconds. */
#define CLIENT_PATIENCE	600
/* Of a ping and of a stream, however slow they are. */
#define FEWEST_ROUNDS	(settings.quick ? 4 : 16)
#define FEWEST_MESSAGES	((settings.quick ? 2 : 4) * WINDOW)
#define MOST_ROUNDS	100000u
#define MOST_MESSAGES	10000000u

static const char * const kind_names[KINDS] = {
	[SEND] = "RDMA send",
	[SEND_EVENT] = "RDMA send, sleeping",
	[WRITE] = "RDMA write",
	[READ] = "RDMA read",
	[TCP] = "TCP",
	[TCP_POLL] = "TCP, polling",
};

/* ---------------------------------------------------------------- what both ends share */

enum op { PING, STREAM, BYE };

/* In network byte order. */
struct hello {
	uint32_t magic;
	struct rdma_address rdma;
	uint16_t port;		/* where the server listens for TCP data, of sockaddr's order */
	uint16_t family;	/* 0: use the address of the control connection */
	uint8_t ip[16];
};

struct request {
	uint32_t op;
	uint32_t kind;
	uint32_t size;		/* of what the client sends */
	uint32_t reply;		/* of what comes back; PING */
	uint32_t count;
};

struct link {
	struct rdma rdma;
	int control;
	int data;		/* TCP */
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void signal_peer(struct link *l)
{
	tcp_send(l->control, "!", 1);
}

static void wait_peer(struct link *l)
{
	char c;

	tcp_recv(l->control, &c, 1, false);
}

static bool is_tcp(enum kind kind)
{
	return kind == TCP || kind == TCP_POLL;
}

static bool is_one_sided(enum kind kind)
{
	return kind == WRITE || kind == READ;
}

static void send_message(struct link *l, enum kind kind, uint32_t size)
{
	if (is_tcp(kind)) {
		tcp_send(l->data, l->rdma.buffer, size);
	} else {
		rdma_post(&l->rdma, kind, size);
		rdma_wait_sent(&l->rdma);
	}
}

static void receive_message(struct link *l, enum kind kind, uint32_t size)
{
	if (is_tcp(kind)) {
		tcp_recv(l->data, l->rdma.buffer + LARGEST_MESSAGE, size, kind == TCP_POLL);
	} else {
		rdma_wait_received(&l->rdma);
		rdma_post_recv(&l->rdma, 1);
	}
}

/* An address's IP, and back. */
static void pack_ip(struct hello *hello, const struct sockaddr_storage *address)
{
	hello->family = htobe16(address->ss_family == AF_INET ? 4 : 6);
	if (address->ss_family == AF_INET)
		memcpy(hello->ip, &((const struct sockaddr_in *)address)->sin_addr, 4);
	else
		memcpy(hello->ip, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
}

static void unpack_ip(const struct hello *hello, struct sockaddr_storage *address,
		      unsigned int *length, uint32_t scope)
{
	memset(address, 0, sizeof(*address));
	if (be16toh(hello->family) == 4) {
		struct sockaddr_in *in = (void *)address;

		in->sin_family = AF_INET;
		in->sin_port = hello->port;
		memcpy(&in->sin_addr, hello->ip, 4);
		*length = sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (void *)address;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = hello->port;
		in6->sin6_scope_id = scope;
		memcpy(&in6->sin6_addr, hello->ip, 16);
		*length = sizeof(*in6);
	}
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = port;
	else
		((struct sockaddr_in6 *)address)->sin6_port = port;
}

static uint16_t get_port(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_port :
					       ((const struct sockaddr_in6 *)address)->sin6_port;
}

static uint32_t get_scope(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ?
	       ((const struct sockaddr_in6 *)address)->sin6_scope_id : 0;
}

static void exchange_hello(struct link *l, struct hello *mine, struct hello *peer)
{
	mine->magic = htobe32(HELLO_MAGIC);
	rdma_address(&l->rdma, &mine->rdma);
	tcp_send(l->control, mine, sizeof(*mine));
	tcp_recv(l->control, peer, sizeof(*peer), false);
	if (be32toh(peer->magic) != HELLO_MAGIC)
		die("the other end is no measure-link of this version");
	rdma_connect(&l->rdma, &peer->rdma);
	rdma_post_recv(&l->rdma, RECEIVES);
	signal_peer(l);
	wait_peer(l);
}

/* ---------------------------------------------------------------- server */

static void serve_ping(struct link *l, const struct request *q)
{
	uint32_t i;

	signal_peer(l);
	for (i = 0; i < q->count; i++) {
		receive_message(l, q->kind, q->size);
		send_message(l, q->kind, q->reply);
	}
}

static void serve_stream(struct link *l, const struct request *q)
{
	uint64_t began = cpu_ns(), used;
	uint32_t i;

	signal_peer(l);
	if (!is_one_sided(q->kind))
		for (i = 0; i < q->count; i++)
			receive_message(l, q->kind, q->size);
	signal_peer(l);
	wait_peer(l);
	used = htobe64(cpu_ns() - began);
	tcp_send(l->control, &used, sizeof(used));
}

/* False at the end. What a client asks for is checked, since anybody may connect. */
static bool serve_one(struct link *l)
{
	struct request q;

	tcp_recv(l->control, &q, sizeof(q), false);
	q.op = be32toh(q.op);
	q.kind = be32toh(q.kind);
	q.size = be32toh(q.size);
	q.reply = be32toh(q.reply);
	q.count = be32toh(q.count);
	if (q.op == BYE)
		return false;
	if (q.kind >= KINDS || !q.size || q.size > LARGEST_MESSAGE || q.reply > LARGEST_MESSAGE ||
	    q.count > MOST_MESSAGES)
		die("a request that makes no sense");
	l->rdma.sleeps = q.kind == SEND_EVENT;
	switch (q.op) {
	case PING:
		if (!q.reply || is_one_sided(q.kind))
			die("a request that makes no sense");
		serve_ping(l, &q);
		return true;
	case STREAM:
		serve_stream(l, &q);
		return true;
	default:
		die("a request that makes no sense");
	}
}

static int listen_anywhere(const char *port)
{
	struct sockaddr_storage any = { 0 };
	struct sockaddr_in6 *in6 = (void *)&any;
	struct sockaddr_in *in = (void *)&any;
	uint16_t number = htobe16(parse_number(port, "the port", 1, 65535));
	int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (probe >= 0) {
		close(probe);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = number;
		return tcp_listen(&any, sizeof(*in6));
	}
	in->sin_family = AF_INET;
	in->sin_port = number;
	return tcp_listen(&any, sizeof(*in));
}

/* For TCP data: on the RDMA device's address, or else on that of the control connection. */
static int listen_for_data(struct link *l, struct hello *mine)
{
	struct sockaddr_storage address;
	unsigned int length;
	socklen_t size = sizeof(address);
	int listener;

	if (rdma_ip_address(&l->rdma, &address, &length)) {
		pack_ip(mine, &address);
	} else {
		if (getsockname(l->control, (struct sockaddr *)&address, &size))
			die("getsockname: %s", strerror(errno));
		length = size;
	}
	set_port(&address, 0);
	listener = tcp_listen(&address, length);
	size = sizeof(address);
	if (getsockname(listener, (struct sockaddr *)&address, &size))
		die("getsockname: %s", strerror(errno));
	mine->port = get_port(&address);
	return listener;
}

static void accept_patiently(int listener, int seconds, int *fd)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	if (poll(&p, 1, seconds * 1000) != 1)
		die("nobody has connected within %d s", seconds);
	*fd = tcp_accept(listener);
	close(listener);
}

static void serve(const char *device, int gid_index, const char *port)
{
	struct hello mine = { 0 }, peer;
	struct link l;
	int listener;

	rdma_open(&l.rdma, device, gid_index, DEPTH);
	listener = listen_anywhere(port);
	fprintf(stderr, "measure-link: ready on port %s\n", port);
	accept_patiently(listener, CLIENT_PATIENCE, &l.control);
	listener = listen_for_data(&l, &mine);
	exchange_hello(&l, &mine, &peer);
	accept_patiently(listener, PATIENCE, &l.data);
	while (serve_one(&l))
		;
	rdma_close(&l.rdma);
}

/* ---------------------------------------------------------------- client */

static int connect_control(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	struct sockaddr_storage to = { 0 };
	unsigned int length;
	int err;

	err = getaddrinfo(host, port, &hints, &found);
	if (err)
		die("%s: %s", host, gai_strerror(err));
	length = found->ai_addrlen;
	memcpy(&to, found->ai_addr, length);
	freeaddrinfo(found);
	return tcp_connect(NULL, 0, &to, length);
}

static void connect_data(struct link *l, const struct hello *peer)
{
	struct sockaddr_storage mine, to;
	unsigned int length = 0, to_length;
	socklen_t size = sizeof(to);
	bool known = rdma_ip_address(&l->rdma, &mine, &length);

	if (known && peer->family) {
		unpack_ip(peer, &to, &to_length, get_scope(&mine));
		if (to.ss_family != mine.ss_family)
			die("one end has an IPv4 GID, the other an IPv6 one: choose with -g");
	} else {
		if (getpeername(l->control, (struct sockaddr *)&to, &size))
			die("getpeername: %s", strerror(errno));
		to_length = size;
		set_port(&to, peer->port);
		known = false;
	}
	printf("fact\tTCP over\t%s\n", known ? "the addresses of the RDMA devices" :
	       "the addresses of the control connection");
	l->data = tcp_connect(known ? &mine : NULL, length, &to, to_length);
}

static void ask(struct link *l, enum op op, enum kind kind, uint32_t size, uint32_t reply,
		uint32_t count)
{
	struct request q = {
		.op = htobe32(op),
		.kind = htobe32(kind),
		.size = htobe32(size),
		.reply = htobe32(reply),
		.count = htobe32(count),
	};

	l->rdma.sleeps = kind == SEND_EVENT;
	tcp_send(l->control, &q, sizeof(q));
	if (op != BYE)
		wait_peer(l);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t rounds[MOST_ROUNDS];

/* Mean time of a round in ns, with each round's in rounds[]. */
static double ping(struct link *l, enum kind kind, uint32_t size, uint32_t reply, uint32_t count)
{
	uint64_t began, last, now;
	uint32_t i;

	if (!is_one_sided(kind))
		ask(l, PING, kind, size, reply, count);
	began = now_ns();
	last = began;
	for (i = 0; i < count; i++) {
		send_message(l, kind, size);
		if (!is_one_sided(kind))
			receive_message(l, kind, reply);
		now = now_ns();
		rounds[i] = now - last > UINT32_MAX ? UINT32_MAX : now - last;
		last = now;
	}
	return (double)(last - began) / count;
}

static void measure_ping(struct link *l, enum kind kind, const char *name, uint32_t size,
			 uint32_t reply)
{
	struct samples mean = { 0 }, p99 = { 0 };
	uint32_t parameter = reply > size ? reply : size;
	uint32_t count = FEWEST_ROUNDS;
	unsigned int r;
	double took;

	/* The first rounds warm up, and tell how many make a sample. */
	took = ping(l, kind, size, reply, count);
	took = ping(l, kind, size, reply, count);
	count = settings.sample_ns / took;
	if (count < FEWEST_ROUNDS)
		count = FEWEST_ROUNDS;
	if (count > MOST_ROUNDS)
		count = MOST_ROUNDS;
	for (r = 0; r < settings.repeats; r++) {
		sample_add(&mean, ping(l, kind, size, reply, count) / 1000);
		qsort(rounds, count, sizeof(rounds[0]), by_value);
		sample_add(&p99, rounds[(uint64_t)count * 99 / 100] / 1000.0);
	}
	print_row(&mean, "latency", name, parameter, "us", count);
	/* Of fewer than a hundred there is no hundredth. */
	if (count >= 100)
		print_row(&p99, "latency, p99", name, parameter, "us", count);
}

struct streamed {
	double ns;
	double client_cpu_ns, server_cpu_ns;
};

static void stream(struct link *l, enum kind kind, uint32_t size, uint32_t count,
		   struct streamed *result)
{
	uint64_t began, cpu, server;
	uint32_t i;

	ask(l, STREAM, kind, size, 0, count);
	cpu = cpu_ns();
	began = now_ns();
	for (i = 0; i < count; i++) {
		if (is_tcp(kind)) {
			tcp_send(l->data, l->rdma.buffer, size);
			continue;
		}
		if (i >= WINDOW)
			rdma_wait_sent(&l->rdma);
		rdma_post(&l->rdma, kind, size);
	}
	if (!is_tcp(kind))
		for (i = 0; i < count && i < WINDOW; i++)
			rdma_wait_sent(&l->rdma);
	/* What was sent by TCP has arrived when the server says so. */
	wait_peer(l);
	result->ns = now_ns() - began;
	result->client_cpu_ns = cpu_ns() - cpu;
	signal_peer(l);
	tcp_recv(l->control, &server, sizeof(server), false);
	result->server_cpu_ns = be64toh(server);
}

static void measure_stream(struct link *l, enum kind kind, uint32_t size)
{
	struct samples bandwidth = { 0 }, rate = { 0 }, client = { 0 }, server = { 0 };
	/* Long, beside the round trip with which it ends. */
	uint64_t wanted = 5 * settings.sample_ns;
	uint64_t count = FEWEST_MESSAGES;
	struct streamed s;
	char name[64];
	unsigned int r;

	for (;;) {
		stream(l, kind, size, count, &s);
		if (s.ns >= wanted / 2 || count >= MOST_MESSAGES / 4)
			break;
		count *= 4;
	}
	for (r = 0; r < settings.repeats; r++) {
		stream(l, kind, size, count, &s);
		sample_add(&bandwidth, count * (double)size / s.ns * 1e9 / (1 << 20));
		sample_add(&rate, count / s.ns * 1e6);
		sample_add(&client, s.client_cpu_ns / count);
		sample_add(&server, s.server_cpu_ns / count);
	}
	print_row(&bandwidth, "bandwidth", kind_names[kind], size, "MiB/s", count);
	print_row(&rate, "rate", kind_names[kind], size, "k/s", count);
	snprintf(name, sizeof(name), "%s: client", kind_names[kind]);
	print_row(&client, "CPU time", name, size, "ns", count);
	snprintf(name, sizeof(name), "%s: server", kind_names[kind]);
	print_row(&server, "CPU time", name, size, "ns", count);
}

static void measure_link(const char *device, int gid_index, const char *host, const char *port)
{
	static const enum kind streams[] = { SEND, WRITE, READ, TCP };
	static const uint32_t sizes[] = { 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576 };
	static const uint32_t few_sizes[] = { 8, 4096, 65536 };
	const uint32_t *size = settings.quick ? few_sizes : sizes;
	size_t n = settings.quick ? sizeof(few_sizes) / 4 : sizeof(sizes) / 4;
	struct hello mine = { 0 }, peer;
	enum kind kind;
	struct link l;
	size_t i, k;

	rdma_open(&l.rdma, device, gid_index, DEPTH);
	l.control = connect_control(host, port);
	exchange_hello(&l, &mine, &peer);
	connect_data(&l, &peer);
	rdma_facts(&l.rdma);
	fflush(stdout);

	for (i = 0; i < n; i++) {
		for (kind = 0; kind < KINDS; kind++)
			measure_ping(&l, kind, kind_names[kind], size[i], size[i]);
		/* What a READ does, by asking for it. */
		measure_ping(&l, TCP, "TCP, fetch", 8, size[i]);
		for (k = 0; k < sizeof(streams) / sizeof(streams[0]); k++)
			measure_stream(&l, streams[k], size[i]);
	}
	ask(&l, BYE, 0, 0, 0, 0);
	rdma_close(&l.rdma);
}

/* ---------------------------------------------------------------- main */

static void usage(FILE *to)
{
	fputs("measure-link [OPTION...] server          wait for a client, serve it, end\n"
	      "measure-link [OPTION...] client HOST     latency, rate, bandwidth, CPU time\n"
	      "measure-link [OPTION...] post            posting and polling, alone\n"
	      "measure-link [OPTION...] registration    memory registration, alone\n"
	      "  -d DEVICE  RDMA device, the first if not given\n"
	      "  -g INDEX   of its GID; chosen if not given: RoCEv2, IPv4 if there is one\n"
	      "  -p PORT    TCP port of the control connection (" DEFAULT_PORT ")\n"
	      COMMON_OPTIONS_HELP, to);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = DEFAULT_PORT, *what;
	int option, gid_index = -1;

	while ((option = getopt(argc, argv, COMMON_OPTIONS "d:g:p:h")) != -1) {
		switch (option) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = parse_number(optarg, "-g", 0, 65535);
			break;
		case 'p':
			parse_number(optarg, "-p", 1, 65535);
			port = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			if (!set_option(option, optarg)) {
				usage(stderr);
				return 1;
			}
		}
	}
	what = optind < argc ? argv[optind] : "";
	if (!strcmp(what, "server") && argc == optind + 1)
		serve(device, gid_index, port);
	else if (!strcmp(what, "client") && argc == optind + 2)
		measure_link(device, gid_index, argv[optind + 1], port);
	else if (!strcmp(what, "post") && argc == optind + 1)
		measure_post(device, gid_index);
	else if (!strcmp(what, "registration") && argc == optind + 1)
		measure_registration(device, gid_index);
	else {
		usage(stderr);
		return 1;
	}
	return 0;
}
