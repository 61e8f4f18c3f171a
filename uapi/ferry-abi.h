/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What provider and driver say to each other over uverbs. Host byte order. Every
 * request is checked for size, zeros behind it and unknown bits; every response is
 * zeroed first, so both sides can grow at the end.
 */
#ifndef FERRY_ABI_H
#define FERRY_ABI_H

#include <linux/types.h>

#define FERRY_ABI_VERSION	1

/*
 * A ring as the user maps it: chunks of chunk_bytes (4 KiB to 1 MiB, a power of two), each
 * by its own mmap. Chunk i lies at mmap offset `offset + i * chunk_bytes`; the provider
 * reserves `bytes` of address space and maps the chunks into it side by side.
 * bytes is a multiple of chunk_bytes.
 */
struct ferry_ring_map {
	__aligned_u64 offset;
	__u32 bytes;
	__u32 chunk_bytes;
};

/*
 * A doorbell record: slot `slot` of the record page at mmap offset `page_offset`. Pages
 * live as long as the context; one page serves many queues, so map each offset once.
 */
struct ferry_slot_map {
	__aligned_u64 page_offset;
	__u32 slot;
	__u32 reserved;
};

#define FERRY_UCTX_POLL		(1u << 0)	/* FERRY_CAP_POLL: use group word and status page */
#define FERRY_UCTX_NONCOHERENT	(1u << 1)	/* the device does not snoop the CPU's caches */

struct ferry_alloc_ucontext_resp {
	__aligned_u64 doorbell_offset;	/* mmap: one write-only page */
	__aligned_u64 status_offset;	/* mmap: one read-only page */
	__u32 context;			/* the context's number on the device */
	__u32 flags;			/* FERRY_UCTX_* */
	__u32 caps;			/* FERRY_CAP_* */
	__u32 max_inline;		/* bytes */
	__u32 cache_line;		/* bytes a cache operation covers; 0 if coherent */
	__u32 reserved;
};

struct ferry_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

struct ferry_create_cq_resp {
	struct ferry_ring_map ring;
	struct ferry_slot_map slot;
	__u32 cqn;
	__u32 depth;			/* entries, a power of two */
};

struct ferry_create_qp_resp {
	struct ferry_ring_map sq;
	struct ferry_ring_map rq;	/* bytes 0 with an SRQ */
	struct ferry_slot_map sq_slot;
	struct ferry_slot_map rq_slot;
	__u32 sq_depth;			/* entries, powers of two */
	__u32 rq_depth;
	__u32 sq_stride;		/* bytes, powers of two */
	__u32 rq_stride;
};

struct ferry_create_srq_resp {
	struct ferry_ring_map ring;
	struct ferry_slot_map slot;
	__u32 srqn;
	__u32 depth;
	__u32 stride;
	__u32 reserved;
};

struct ferry_create_ah_resp {
	__u8 dmac[6];			/* what the kernel resolved; wire order */
	__u8 reserved[2];
};

#endif
