/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The NIC's part of the coherence checker: each access to guest memory is told to the
 * shadow that a TCG plugin of QEMU shares with us. Only for the shard's thread.
 */
#ifndef VNIC_SHADOW_H
#define VNIC_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ferry_engine;
struct shadow;

/* The file that the plugin has made; NULL after an error line. */
struct shadow *shadow_open(const char *path, struct ferry_engine *engine);
void shadow_close(struct shadow *shadow);

/* Addresses are guest-physical. After a read, and before a write. */
void shadow_reads(struct shadow *shadow, uint64_t addr, size_t len);
void shadow_writes(struct shadow *shadow, uint64_t addr, size_t len);

#endif
