// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "ferry_hw.h"
#include "log.h"
#include "options.h"
#include "pci.h"

#define DEFAULT_VECTORS		64

static const char usage[] =
"Usage: ferry-vnic --socket PATH [OPTION...]\n"
"A Ferry RDMA NIC for one virtual machine: a PCI device that QEMU attaches by vfio-user.\n"
"\n"
"  --socket PATH         where QEMU connects:\n"
"                        -device '{\"driver\":\"vfio-user-pci\",\n"
"                                  \"socket\":{\"type\":\"unix\",\"path\":\"PATH\"}}'\n"
"                        The guest's memory must be shared:\n"
"                        -object memory-backend-memfd,id=mem,size=SIZE,share=on\n"
"                        -machine TYPE,memory-backend=mem\n"
"  --link LINK           what the port is plugged into:\n"
"                          loopback           nothing else on the wire (the default)\n"
"                          unix:LOCAL,REMOTE  datagram sockets, one frame a datagram; another\n"
"                                             ferry-vnic or QEMU's -netdev dgram at REMOTE\n"
"                          tap:NAME           a tap interface of this host\n"
"  --mac XX:XX:XX:XX:XX:XX\n"
"                        default: made of host name and socket path, always the same\n"
"  --dma direct|message  how to reach the guest's memory: by mapping it (the default), or by\n"
"                        messages to QEMU. Use message, and list this device before the\n"
"                        IOMMU, with riscv-iommu-pci: only then does the IOMMU see the NIC\n"
"  --vectors N           MSI-X vectors, 1 to 256 (default 64)\n"
"  --pcap FILE           record all frames on the link; what goes from one QP of this NIC to\n"
"                        another does not get there\n"
"  --impair LIST         a bad link, in both directions, for tests:\n"
"                        loss=P,dup=P,reorder=P,corrupt=P,seed=N; P as 0.01 or 1%\n"
"  --refuse N|each       for tests: answer the N-th admin command with an error; each: behind a\n"
"                        reset the first, behind the next reset the second, and so on\n"
"  --raw FIFO            read and write any address as this FIFO says, with --dma message,\n"
"                        for tests of the guest's IOMMU; device/vnic/raw.h has the orders\n"
"  --coherence-shadow FILE\n"
"                        tell each access to memory to the coherence checker, which has made\n"
"                        FILE: see doc/coherence-checker.md\n"
"  --verbose             say more\n"
"  --help, --version\n"
"\n"
"Prints \"ferry-vnic: ready on PATH\" once QEMU may connect. Signals: TERM and INT end it,\n"
"USR1 makes it print counts to standard error.\n";

static bool parse_number(const char *name, const char *text, unsigned long min,
			 unsigned long max, unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 0);
	if (!errno && end != text && !*end && *text != '-' && *value >= min && *value <= max)
		return true;
	log_error("--%s %s: give a number from %lu to %lu", name, text, min, max);
	return false;
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
	char rest;

	if (strlen(text) != 17 ||
	    sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &mac[0], &mac[1], &mac[2],
		   &mac[3], &mac[4], &mac[5], &rest) != 6) {
		log_error("--mac %s: write six bytes as 02:00:00:00:00:01", text);
		return false;
	}
	if (mac[0] & 1 || !(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5])) {
		log_error("--mac %s: not the address of one station; use for instance 02:00:00:00:00:01",
			  text);
		return false;
	}
	return true;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	do {
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;	/* FNV-1a */
	} while (*text++);
	return hash;
}

/* Locally administered, and the same each time, so that the guest keeps its names and GIDs. */
static void default_mac(const char *socket, uint8_t mac[6])
{
	uint64_t hash = 0xcbf29ce484222325ull;
	char host[HOST_NAME_MAX + 1] = "", *cwd;
	unsigned int i;

	if (!gethostname(host, sizeof(host) - 1))
		hash = hash_text(hash, host);
	cwd = *socket == '/' ? NULL : getcwd(NULL, 0);
	if (cwd)
		hash = hash_text(hash, cwd);
	hash = hash_text(hash, socket);
	free(cwd);
	mac[0] = 0x02;
	for (i = 1; i < 6; i++)
		mac[i] = (uint8_t)(hash >> 8 * i);
}

static bool parse_dma(const char *text, bool *message)
{
	*message = !strcmp(text, "message");
	if (*message || !strcmp(text, "direct"))
		return true;
	log_error("--dma %s: not a way to reach memory; use direct or message", text);
	return false;
}

static bool parse_refuse(const char *text, uint32_t *refuse)
{
	unsigned long value = FERRY_REFUSE_EACH;

	if (strcmp(text, "each") &&
	    !parse_number("refuse", text, 1, FERRY_REFUSE_EACH - 1, &value))
		return false;
	*refuse = (uint32_t)value;
	return true;
}

enum { OPT_SOCKET = 256, OPT_LINK, OPT_MAC, OPT_DMA, OPT_VECTORS, OPT_PCAP, OPT_IMPAIR,
       OPT_REFUSE, OPT_RAW, OPT_SHADOW, OPT_VERBOSE, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "link", required_argument, NULL, OPT_LINK },
	{ "mac", required_argument, NULL, OPT_MAC },
	{ "dma", required_argument, NULL, OPT_DMA },
	{ "vectors", required_argument, NULL, OPT_VECTORS },
	{ "pcap", required_argument, NULL, OPT_PCAP },
	{ "impair", required_argument, NULL, OPT_IMPAIR },
	{ "refuse", required_argument, NULL, OPT_REFUSE },
	{ "raw", required_argument, NULL, OPT_RAW },
	{ "coherence-shadow", required_argument, NULL, OPT_SHADOW },
	{ "verbose", no_argument, NULL, OPT_VERBOSE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 }
};

static bool take(int option, struct options *o, bool *mac_given)
{
	unsigned long value;

	switch (option) {
	case OPT_SOCKET:
		o->socket = optarg;
		return true;
	case OPT_LINK:
		o->link = optarg;
		return true;
	case OPT_PCAP:
		o->pcap = optarg;
		return true;
	case OPT_RAW:
		o->raw = optarg;
		return true;
	case OPT_SHADOW:
		o->shadow = optarg;
		return true;
	case OPT_VERBOSE:
		o->verbose = true;
		return true;
	case OPT_MAC:
		*mac_given = true;
		return parse_mac(optarg, o->mac);
	case OPT_DMA:
		return parse_dma(optarg, &o->message);
	case OPT_IMPAIR:
		o->impaired = true;
		return impair_parse(optarg, &o->impair);
	case OPT_VECTORS:
		if (!parse_number("vectors", optarg, 1, VNIC_MAX_VECTORS, &value))
			return false;
		o->vectors = (unsigned int)value;
		return true;
	case OPT_REFUSE:
		return parse_refuse(optarg, &o->refuse);
	default:
		return false;
	}
}

enum options_result options_parse(int argc, char **argv, struct options *o)
{
	bool mac_given = false;
	int option;

	memset(o, 0, sizeof(*o));
	o->link = "loopback";
	o->vectors = DEFAULT_VECTORS;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPT_HELP) {
			fputs(usage, stdout);
			return OPTIONS_DONE;
		}
		if (option == OPT_VERSION) {
			printf("ferry-vnic, hardware interface %u.%u\n", FERRY_VERSION_MAJOR,
			       FERRY_VERSION_MINOR);
			return OPTIONS_DONE;
		}
		if (option == '?')		/* getopt has said what is wrong */
			goto hint;
		if (!take(option, o, &mac_given))
			return OPTIONS_BAD;
	}
	if (optind < argc) {
		log_error("%s: not an option", argv[optind]);
		goto hint;
	}
	if (!o->socket || !*o->socket) {
		log_error("no --socket PATH");
		goto hint;
	}
	if (o->raw && !o->message) {
		log_error("--raw goes with --dma message: else no IOMMU sees what it does");
		goto hint;
	}
	if (o->shadow && o->message) {
		log_error("--coherence-shadow needs --dma direct: behind an IOMMU addresses are not those of memory");
		goto hint;
	}
	if (!mac_given)
		default_mac(o->socket, o->mac);
	return OPTIONS_RUN;

hint:
	fputs("Try ferry-vnic --help\n", stderr);
	return OPTIONS_BAD;
}
