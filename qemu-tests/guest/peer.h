/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The other process of a test that runs in two: a TCP connection on which both say the
 * same number of bytes at the same time.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With --listen or --peer; both try for 30 s. */
void peer_connect(void);
bool peer_present(void);

/* Sends @len bytes and receives as many. */
void peer_exchange(const void *mine, void *theirs, size_t len);

/* Both have come here. @where tells them apart and must be equal. */
void peer_barrier(uint64_t where);

#endif
