/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions and the checks of their keys.
 */
#ifndef FERRY_MR_H
#define FERRY_MR_H

#include "context.h"

struct mr {
	uint32_t key;
	uint8_t access;
	bool assist;		/* the driver is asked when a peer accesses it */
	struct pd *pd;
	uint64_t iova;
	uint64_t length;
	uint64_t offset;	/* of the first byte in the region */
	struct region region;
};

/*
 * The MR that lets @access be made to [addr, addr + len) by somebody of @pd, with
 * *@offset in its region; NULL if there is none. @len is not 0.
 */
struct mr *mr_check(struct ferry_engine *e, struct pd *pd, uint32_t key, uint64_t addr,
		    uint64_t len, uint8_t access, uint64_t *offset);

/* A work request's local memory. */
struct sge {
	uint64_t addr;
	uint32_t len;
	uint32_t key;
};

/* Adds where @sge lies, from @skip on, @len bytes of it; false: the key forbids it. */
bool sge_resolve(struct ferry_engine *e, struct pd *pd, const struct sge *sge, uint32_t skip,
		 uint32_t len, bool write, struct vecs *vecs);

/* The same for the bytes [skip, skip + len) of a list; they must lie in the list. */
bool sges_resolve(struct ferry_engine *e, struct pd *pd, const struct sge *sge, unsigned int count,
		  uint32_t skip, uint32_t len, bool write, struct vecs *vecs);

#endif
