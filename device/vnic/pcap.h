/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A capture file in pcap format, with nanoseconds. One thread. */
#ifndef VNIC_PCAP_H
#define VNIC_PCAP_H

#include <stddef.h>

struct pcap;

/* NULL, after an error line, if @path cannot be written. */
struct pcap *pcap_open(const char *path);
void pcap_close(struct pcap *pcap);

/* A frame without FCS. A file that can no longer be written ends the capture, with a line. */
void pcap_frame(struct pcap *pcap, const void *frame, size_t len);

/* What was captured is in the file when this returns. */
void pcap_flush(struct pcap *pcap);

#endif
