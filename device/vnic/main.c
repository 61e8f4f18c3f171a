// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ferry-vnic: a Ferry NIC in a process of its own. Three threads: this one takes signals,
 * one serves the vfio-user client, one (the shard) runs the engine. And a process that
 * guards this one.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "guard.h"
#include "log.h"
#include "nic.h"
#include "options.h"
#include "server.h"

#define DMA_TIMEOUT	(30 * NSEC_PER_SEC)

/* Before the first thread, so that all inherit it and only sigwait() gets them. */
static void block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void take_signals(const sigset_t *set, struct nic *nic)
{
	int number;

	for (;;) {
		if (sigwait(set, &number))
			continue;
		if (number != SIGUSR1)
			return;
		shard_log_stats(&nic->shard);
	}
}

static int run(const struct options *options, const sigset_t *signals)
{
	struct nic_config config = {
		.vectors = options->vectors,
		.message = options->message,
		.refuse = options->refuse,
		.raw = options->raw,
		.shadow = options->shadow,
		.dma_timeout = DMA_TIMEOUT,
		.impair = options->impaired ? &options->impair : NULL,
	};
	int guard_fd = guard_start();
	static struct nic nic;
	static struct server server;
	int ret = EXIT_FAILURE;

	memcpy(config.mac, options->mac, sizeof(config.mac));
	config.link = link_open(options->link);
	if (!config.link)
		return ret;
	if (options->pcap) {
		config.pcap = pcap_open(options->pcap);
		if (!config.pcap) {
			link_close(config.link);
			return ret;
		}
	}
	if (nic_init(&nic, &config))
		return ret;
	if (server_init(&server, &nic, options->socket, guard_fd))
		goto no_server;
	if (shard_start(&nic.shard) || server_start(&server))
		goto no_threads;

	printf("ferry-vnic: ready on %s, link %s, DMA %s, MAC %02x:%02x:%02x:%02x:%02x:%02x\n",
	       options->socket, options->link, options->message ? "by message" : "direct",
	       config.mac[0], config.mac[1], config.mac[2], config.mac[3], config.mac[4],
	       config.mac[5]);
	fflush(stdout);
	take_signals(signals, &nic);
	ret = EXIT_SUCCESS;

no_threads:
	server_destroy(&server);
no_server:
	nic_destroy(&nic);
	return ret;
}

int main(int argc, char **argv)
{
	struct options options;
	sigset_t signals;

	switch (options_parse(argc, argv, &options)) {
	case OPTIONS_DONE:
		return EXIT_SUCCESS;
	case OPTIONS_BAD:
		return 2;
	case OPTIONS_RUN:
		break;
	}
	log_verbose(options.verbose);
	block_signals(&signals);
	return run(&options, &signals);
}
