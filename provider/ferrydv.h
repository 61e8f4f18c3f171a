/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Direct verbs of Ferry: what programs may do that know which device they have. On hosts
 * whose device does not snoop the CPUs' caches, plain verbs are right without any of it;
 * this is for those whose peers read and write their memory and who want it fast. See
 * ferrydv(7).
 */
#ifndef __FERRYDV_H__
#define __FERRYDV_H__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

bool ferrydv_is_supported(struct ibv_device *device);

enum ferrydv_context_flags {
	FERRYDV_CONTEXT_COHERENT	= 1 << 0, /* no cache maintenance at all */
	FERRYDV_CONTEXT_USER_SYNC	= 1 << 1, /* maintenance without a system call */
	FERRYDV_CONTEXT_POLLS		= 1 << 2, /* the device finds work by itself while awake */
};

struct ferrydv_context_attr {
	uint64_t comp_mask;	/* in: what is asked for, out: what is filled in; 0 today */
	uint32_t flags;		/* enum ferrydv_context_flags */
	uint32_t cache_line;	/* bytes; what peers write should share none; 0 if coherent */
};

/* Returns 0 or an errno; @inlen is sizeof(*attr). */
int ferrydv_query_context(struct ibv_context *context, struct ferrydv_context_attr *attr,
			  uint32_t inlen);

/* Memory that device and CPUs share without cache maintenance. */
struct ferrydv_memory {
	void *addr;		/* page-aligned, zeroed */
	size_t length;		/* bytes */
};

/* NULL with errno set on failure. */
struct ferrydv_memory *ferrydv_alloc_memory(struct ibv_context *context, size_t length);
/* Returns 0 or an errno. MRs over it keep working, but addr ends. */
int ferrydv_free_memory(struct ferrydv_memory *memory);

enum ferrydv_mr_flags {
	FERRYDV_MR_NO_ASSIST	= 1 << 0, /* the program calls ferrydv_sync() for its peers */
};

/* As ibv_reg_mr_iova(); @flags: enum ferrydv_mr_flags. */
struct ibv_mr *ferrydv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			      int access, uint32_t flags);

enum ferrydv_sync_op {
	FERRYDV_SYNC_CLEAN = 1,	/* before a peer reads what has been stored */
	FERRYDV_SYNC_FLUSH,	/* before a peer writes, and before its data are read */
};

/* Returns 0 or an errno. */
int ferrydv_sync(struct ibv_mr *mr, void *addr, size_t length, enum ferrydv_sync_op op);

#ifdef __cplusplus
}
#endif

#endif
