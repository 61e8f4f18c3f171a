/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of an IOMMU: accesses to memory that no key, queue or check of ours stands
 * before, as a broken or hostile NIC would make them. Only by DMA messages, since what is
 * mapped does not pass through the guest's IOMMU any more.
 *
 * Orders are lines written to a FIFO; numbers are hexadecimal:
 *   read ADDR		8 bytes
 *   write ADDR VALUE	8 bytes
 *   mr KEY		where an MR begins for the guest's DMA
 *   sq QPN		where a send queue does
 * The answer is a line in the log, "raw: ORDER = RESULT": a number, "done", "refused" or
 * "none".
 */
#ifndef VNIC_RAW_H
#define VNIC_RAW_H

#include <stdbool.h>

struct shard;

struct raw {
	int fd;			/* -1: off */
	unsigned int len;
	char line[128];
};

/* @path: an existing FIFO. 0, or -1 after an error line. */
int raw_open(struct raw *raw, const char *path);
void raw_close(struct raw *raw);

/* On the shard: carries out what has come; true if there was something. */
bool raw_take(struct shard *shard);

#endif
