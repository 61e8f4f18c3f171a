/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What provider and driver say to each other over uverbs. Host byte order. Every
 * request is checked for size, zeros behind it and unknown bits; every response is
 * zeroed first, so both sides can grow at the end.
 */
#ifndef FERRY_ABI_H
#define FERRY_ABI_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

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
	__u32 cache_line;		/* bytes a cache operation covers, 16 to 64; 0 if coherent */
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

/*
 * resize_cq. In two steps, so that the new ring is mapped when the device moves to it: where
 * that cannot be, the old one works on. A provider that sends none of it, or zeros, gets both
 * at once.
 */
enum ferry_resize_cq_step {
	FERRY_RESIZE_CQ_PREPARE = 1,	/* answers ring and depth; instead of one prepared before */
	FERRY_RESIZE_CQ_COMMIT,		/* to the ring prepared for as many; answers depth, start */
};

struct ferry_resize_cq_req {
	__u32 step;			/* enum ferry_resize_cq_step, or 0 */
	__u32 reserved;
};

struct ferry_resize_cq_resp {
	struct ferry_ring_map ring;	/* the new one; the old one stays mapped */
	__u32 depth;			/* entries, a power of two */
	__u32 start;			/* index of the first entry of the new ring; those before
					 * it stay in the old one */
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

/*
 * reg_mr. A provider that sends none of it, or zeros, gets the usual: the pages of the
 * process are pinned; on a non-coherent host an MR with remote rights is assisted.
 */
#define FERRY_REG_MR_MEMORY	(1u << 0)	/* over memory of FERRY_METHOD_MEMORY_ALLOC */
#define FERRY_REG_MR_NO_ASSIST	(1u << 1)	/* the program synchronises what peers access */

struct ferry_reg_mr_req {
	__u32 flags;			/* FERRY_REG_MR_* */
	__u32 reserved;
	__aligned_u64 memory;		/* with MEMORY: ferry_ring_map.offset of it; else 0 */
	__aligned_u64 skip;		/* bytes of it before the MR's first; its address means
					 * nothing then; else 0 */
};

#define FERRY_MR_CACHED		(1u << 0)	/* the provider cleans and flushes for local access;
						 * never on a coherent host */
#define FERRY_MR_ASSISTED	(1u << 1)	/* the driver does it for access by peers */

struct ferry_reg_mr_resp {
	__u32 flags;			/* FERRY_MR_CACHED, FERRY_MR_ASSISTED */
	__u32 reserved;
};

/* Objects and methods of Ferry, for the ioctl interface. */
enum ferry_objects {
	FERRY_OBJECT_MEMORY = 1u << UVERBS_ID_NS_SHIFT,
};

/*
 * Memory that CPU and device share without cache maintenance, for a program's own use:
 * non-cached on a non-coherent host. It may be registered (FERRY_REG_MR_MEMORY) and
 * lives until the object, all MRs over it and all its mappings are gone. Until then it
 * counts against RLIMIT_MEMLOCK, like what is pinned by reg_mr; MRs over it do not again.
 */
enum ferry_memory_methods {
	FERRY_METHOD_MEMORY_ALLOC = 1u << UVERBS_ID_NS_SHIFT,
	FERRY_METHOD_MEMORY_FREE,
};

enum ferry_memory_alloc_attrs {
	FERRY_ATTR_MEMORY_ALLOC_HANDLE = 1u << UVERBS_ID_NS_SHIFT, /* new FERRY_OBJECT_MEMORY */
	FERRY_ATTR_MEMORY_ALLOC_LENGTH,	/* in, __u64: bytes, 1 to 4 GiB - 1 MiB */
	FERRY_ATTR_MEMORY_ALLOC_MAP,	/* out, struct ferry_ring_map: zeroed; bytes may be more */
};

enum ferry_memory_free_attrs {
	FERRY_ATTR_MEMORY_FREE_HANDLE = 1u << UVERBS_ID_NS_SHIFT,
};

/*
 * Memory of the same kind that the device calls by key 1 (FERRY_KEY_CONTEXT): for the
 * provider's own use, in every PD of the context. It only grows, and lives as long as
 * the context. The first byte added has key 1's address BASE, and those after it the
 * addresses after it. At most 4096 additions; it counts against RLIMIT_MEMLOCK, too.
 */
enum ferry_device_methods {
	FERRY_METHOD_CONTEXT_MEMORY_ADD = 1u << UVERBS_ID_NS_SHIFT, /* of UVERBS_OBJECT_DEVICE */
};

enum ferry_context_memory_add_attrs {
	FERRY_ATTR_CONTEXT_MEMORY_ADD_LENGTH = 1u << UVERBS_ID_NS_SHIFT, /* in, __u64: bytes,
						 * a power of two, 4 KiB to 1 MiB */
	FERRY_ATTR_CONTEXT_MEMORY_ADD_OFFSET,	/* out, __u64: mmap offset of the LENGTH bytes,
						 * zeroed */
	FERRY_ATTR_CONTEXT_MEMORY_ADD_BASE,	/* out, __u64 */
};

/*
 * Cache maintenance where user mode may not do it, or not on that mapping (cbo.clean
 * needs a writable one). Ranges are in the MR's own addresses, those of work requests,
 * and must lie in it; together they are no longer than it.
 * CLEAN: what the CPU has stored reaches memory, in each line that a range touches.
 * FLUSH: and the CPU reads memory anew; only in the lines that lie in a range as a whole.
 * Nothing is done where nothing needs be (a coherent host, memory of Ferry's own).
 */
enum ferry_mr_methods {
	FERRY_METHOD_MR_SYNC = 1u << UVERBS_ID_NS_SHIFT, /* of UVERBS_OBJECT_MR */
};

enum ferry_mr_sync_attrs {
	FERRY_ATTR_MR_SYNC_HANDLE = 1u << UVERBS_ID_NS_SHIFT,
	FERRY_ATTR_MR_SYNC_OP,		/* in, __u64: enum ferry_sync */
	FERRY_ATTR_MR_SYNC_RANGES,	/* in, array of struct ferry_range, 1 to 1024 of them */
};

enum ferry_sync {
	FERRY_SYNC_CLEAN = 1,
	FERRY_SYNC_FLUSH,
};

struct ferry_range {
	__aligned_u64 addr;
	__aligned_u64 length;		/* bytes, may be 0 */
};

#endif
