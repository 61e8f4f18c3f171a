/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A run of random traffic between simulated NICs, from a seed. All that happens is
 * foretold by a model: every byte of registered memory and around it, every completion,
 * in its order, once.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define SIM_HOSTS	3
#define SIM_CONNS	6	/* at most; two QPs each */
#define SIM_CQS		4	/* of a host */

enum sim_kind {
	SIM_SEND,
	SIM_SEND_IMM,
	SIM_SEND_INV,
	SIM_WRITE,
	SIM_WRITE_IMM,
	SIM_READ,
	SIM_ATOMIC_CS,
	SIM_ATOMIC_FA,
	SIM_KINDS
};

/* What befell an operation: at least one of its packets, or a packet that answers it. */
enum sim_column {
	SIM_NONE,		/* it crossed the wire and met nothing of what follows */
	SIM_LOSS,
	SIM_DUPLICATE,
	SIM_REORDER,
	SIM_CORRUPT,
	SIM_BUSY,		/* the link did not take it at first */
	SIM_RNR,		/* it, or one before it, found no receive */
	SIM_LOCAL,		/* within one NIC */
	SIM_MESSAGE,		/* a side without mapped memory */
	SIM_IPV6,
	SIM_COLUMNS
};

enum sim_ending {		/* how a connection is broken in the end */
	SIM_END_LKEY,		/* local key that is none */
	SIM_END_RKEY,		/* remote key that is none */
	SIM_END_RANGE,		/* one byte too far */
	SIM_END_TOO_LONG,	/* longer than the receive */
	SIM_END_INVALIDATE,	/* SEND_INV of a key that only its owner may take back */
	SIM_END_CUT,		/* nothing gets through any more */
	SIM_ENDINGS
};

struct sim_table {
	uint64_t cell[SIM_KINDS][SIM_COLUMNS];
	uint64_t ending[SIM_ENDINGS];
	uint64_t operations, frames, bytes;
};

/* Runs a seed and adds to @table. A failure ends the process by tap_fail(). */
void sim_run(uint64_t seed, bool verbose, struct sim_table *table);

void sim_table_add(struct sim_table *to, const struct sim_table *from);
void sim_table_print(const struct sim_table *table);

/* True if every operation has met everything. */
bool sim_table_complete(const struct sim_table *table);

#endif
