// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link.h"
#include "log.h"
#include "pcap.h"

#define MAGIC_NSEC		0xa1b23c4du
#define LINKTYPE_ETHERNET	1

struct pcap_header {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	int32_t zone;
	uint32_t accuracy;
	uint32_t snap_length;
	uint32_t link_type;
};

struct pcap_record {
	uint32_t sec;
	uint32_t nsec;
	uint32_t captured;
	uint32_t length;
};

struct pcap {
	FILE *file;
	const char *path;
	bool dirty;
	bool broken;
};

static void failed(struct pcap *pcap)
{
	log_info("--pcap %s: %s: capture ends here", pcap->path, strerror(errno));
	pcap->broken = true;
}

struct pcap *pcap_open(const char *path)
{
	const struct pcap_header header = {
		.magic = MAGIC_NSEC,
		.major = 2,
		.minor = 4,
		.snap_length = LINK_FRAME_MAX,
		.link_type = LINKTYPE_ETHERNET,
	};
	struct pcap *pcap = calloc(1, sizeof(*pcap));

	if (!pcap) {
		log_error("--pcap %s: out of memory", path);
		return NULL;
	}
	pcap->path = path;
	pcap->file = fopen(path, "wbe");
	if (!pcap->file || fwrite(&header, sizeof(header), 1, pcap->file) != 1 ||
	    fflush(pcap->file)) {
		log_error("--pcap %s: cannot write it: %s", path, strerror(errno));
		if (pcap->file)
			fclose(pcap->file);
		free(pcap);
		return NULL;
	}
	return pcap;
}

void pcap_close(struct pcap *pcap)
{
	if (fclose(pcap->file) && !pcap->broken)
		failed(pcap);
	free(pcap);
}

void pcap_frame(struct pcap *pcap, const void *frame, size_t len)
{
	struct pcap_record record;
	struct timespec ts;

	if (pcap->broken)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	record = (struct pcap_record){ (uint32_t)ts.tv_sec, (uint32_t)ts.tv_nsec, (uint32_t)len,
				       (uint32_t)len };
	pcap->dirty = true;
	if (fwrite(&record, sizeof(record), 1, pcap->file) != 1 ||
	    fwrite(frame, len, 1, pcap->file) != 1)
		failed(pcap);
}

void pcap_flush(struct pcap *pcap)
{
	if (!pcap->dirty || pcap->broken)
		return;
	pcap->dirty = false;
	if (fflush(pcap->file))
		failed(pcap);
}
