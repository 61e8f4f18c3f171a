/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hardware interface of Ferry: all that driver, provider and device share in
 * registers and in memory. doc/hardware.md explains it; this file is the definition.
 *
 * Conventions, true of everything below:
 *  - Little-endian and naturally aligned. GIDs, MACs and immediate data are byte
 *    arrays in wire order.
 *  - Reserved fields and bits are written as zero and ignored when read, except that
 *    the device refuses an admin command whose reserved fields are not zero.
 *  - An index counts from 0, runs free and wraps at 2^32; a ring's size is a power of
 *    two; entry i of a ring of n entries lies at (i mod n).
 *  - An entry written by the device (admin CQE, CQE, EQE) is valid when its phase bit
 *    differs from the phase of the previous lap: on lap k (k = index / ring size) the
 *    valid phase is (k & 1) ^ 1, in a ring that starts zeroed. The device writes the
 *    64-bit word that holds the phase bit last, in one store.
 */
#ifndef FERRY_HW_H
#define FERRY_HW_H

#include <linux/types.h>

#define FERRY_CHECK_SIZE(type, size) \
	_Static_assert(sizeof(type) == (size), #type " is not " #size " bytes")
#define FERRY_CHECK_OFFSET(type, member, offset) \
	_Static_assert(__builtin_offsetof(type, member) == (offset), \
		       #type "." #member " is not at " #offset)

/* ------------------------------------------------------------------ PCI function */

/* From 1af4:10f0 to 10ff, the range its vendor sets aside for experiments. */
#define FERRY_PCI_VENDOR	0x1af4
#define FERRY_PCI_DEVICE	0x10f0
#define FERRY_PCI_REVISION	1

#define FERRY_BAR_REGS		0	/* 4 KiB of registers, below */
#define FERRY_BAR_DOORBELL	2	/* 4 KiB a context, page 0 is the kernel's */
#define FERRY_BAR_MSIX		4	/* MSI-X table and pending bits */

#define FERRY_PAGE_SHIFT	12	/* of doorbell, record, status and leaf pages */
#define FERRY_PAGE_SIZE		(1u << FERRY_PAGE_SHIFT)

/* ------------------------------------------------- registers (BAR0), 32-bit access */

#define FERRY_REG_MAGIC		0x00	/* ro: FERRY_MAGIC */
#define FERRY_REG_VERSION	0x04	/* ro: FERRY_VERSION, major in bits 31:16 */
#define FERRY_REG_CAPS		0x08	/* ro: FERRY_CAP_*; all else by QUERY_DEVICE */
#define FERRY_REG_STATUS	0x0c	/* ro: FERRY_STATUS_* */
#define FERRY_REG_CTRL		0x10	/* rw: FERRY_CTRL_* */
#define FERRY_REG_MAC_LO	0x14	/* ro: MAC bytes 0..3, byte 0 in bits 7:0 */
#define FERRY_REG_MAC_HI	0x18	/* ro: MAC bytes 4..5 in bits 15:0 */
#define FERRY_REG_VECTORS	0x1c	/* ro: MSI-X vectors the device can raise */
#define FERRY_REG_ASQ_LO	0x20	/* rw while not enabled: admin SQ, DMA address */
#define FERRY_REG_ASQ_HI	0x24
#define FERRY_REG_ACQ_LO	0x28	/* rw while not enabled: admin CQ, DMA address */
#define FERRY_REG_ACQ_HI	0x2c
#define FERRY_REG_ADMIN_SHIFT	0x30	/* rw while not enabled: log2 of both depths, 1..8 */
#define FERRY_REG_ADMIN_DB	0x34	/* wo: producer index of the admin SQ */
#define FERRY_REGS_SIZE		0x1000

#define FERRY_MAGIC		0x59525246u	/* "FRRY" */
#define FERRY_VERSION_MAJOR	1
#define FERRY_VERSION_MINOR	0
#define FERRY_VERSION		((FERRY_VERSION_MAJOR << 16) | FERRY_VERSION_MINOR)

#define FERRY_CAP_POLL		(1u << 0)	/* reads records by itself; see the status page */
#define FERRY_CAP_ETH		(1u << 1)	/* raw Ethernet QP */
#define FERRY_CAP_UD		(1u << 2)
#define FERRY_CAP_SRQ		(1u << 3)
#define FERRY_CAP_ATOMIC	(1u << 4)
#define FERRY_CAP_MW		(1u << 5)	/* memory windows */
#define FERRY_CAP_FAST_REG	(1u << 6)	/* REG_MR work requests, local DMA key */
#define FERRY_CAP_RESIZE_CQ	(1u << 7)
#define FERRY_CAP_ASSIST	(1u << 8)

#define FERRY_STATUS_READY	(1u << 0)	/* enabled, takes admin commands */
#define FERRY_STATUS_FATAL	(1u << 1)	/* stopped for good; only a reset helps */
#define FERRY_STATUS_LINK	(1u << 2)	/* carrier */
#define FERRY_STATUS_CAUSE(s)	(((s) >> 8) & 0xff)	/* FERRY_FATAL_*, with FATAL */
#define FERRY_STATUS_GONE	0xffffffffu	/* what a device that is no longer there reads as */

enum ferry_fatal {
	FERRY_FATAL_ADMIN_DMA = 1,	/* admin queue could not be read or written */
	FERRY_FATAL_EQ_OVERRUN,		/* an event queue was full */
	FERRY_FATAL_EQ_DMA,		/* an event queue could not be read or written */
	FERRY_FATAL_INTERNAL,
};

/*
 * Reset: write RESET. The device stops all DMA and interrupts, forgets every object
 * and clears CTRL; poll until CTRL reads 0. Then write the admin queue's registers,
 * write ENABLE, poll STATUS for READY. Clearing ENABLE alone does nothing.
 */
#define FERRY_CTRL_RESET	(1u << 0)
#define FERRY_CTRL_ENABLE	(1u << 1)

/* ------------------------------------------------------- doorbells and their records */

/*
 * A doorbell is one 64-bit store, anywhere into its context's doorbell page:
 *   63:60 sequence (CQ arms; else 0)   59:56 enum ferry_db   55:32 object number
 *   31:0  index: the producer index after the last posted entry; for a CQ arm the
 *         consumer index; for an assist acknowledgement the slot
 * A record holds the same word in memory. The device ignores an index that is not
 * ahead of the last it has taken or is more than one ring ahead, an arm whose sequence
 * is not ahead (mod 16, by 1 to 8) of the last, and a word whose object does not exist
 * or belongs to another context.
 */
#define FERRY_DB_SEQ_SHIFT	60
#define FERRY_DB_TYPE_SHIFT	56
#define FERRY_DB_NUMBER_SHIFT	32
#define FERRY_NUMBER_MAX	0xffffffu	/* of every object; none but context 0 is 0 */

enum ferry_db {
	FERRY_DB_NONE = 0,	/* an empty record */
	FERRY_DB_SQ,
	FERRY_DB_RQ,		/* record only */
	FERRY_DB_SRQ,		/* record only */
	FERRY_DB_CQ_CI,		/* record only */
	FERRY_DB_CQ_ARM,	/* event for the next CQE */
	FERRY_DB_CQ_ARM_SOLICITED, /* event for the next solicited or failed CQE */
	FERRY_DB_ASSIST_ACK,	/* doorbell only, kernel page only */
};

#define FERRY_DB(type, number, index) \
	(((__u64)(type) << FERRY_DB_TYPE_SHIFT) | \
	 ((__u64)(number) << FERRY_DB_NUMBER_SHIFT) | (__u32)(index))
#define FERRY_DB_ARM(type, number, index, seq) \
	(FERRY_DB(type, number, index) | ((__u64)(seq) << FERRY_DB_SEQ_SHIFT))
#define FERRY_DB_TYPE(db)	((enum ferry_db)(((db) >> FERRY_DB_TYPE_SHIFT) & 0xf))
#define FERRY_DB_NUMBER(db)	((__u32)((db) >> FERRY_DB_NUMBER_SHIFT) & 0xffffff)
#define FERRY_DB_INDEX(db)	((__u32)(db))
#define FERRY_DB_SEQ(db)	((__u32)((db) >> FERRY_DB_SEQ_SHIFT))

/*
 * A record page belongs to one context: 63 slots of 64 bytes, one a queue object, then
 * the group word. Which slot serves what is the driver's choice, told at creation.
 *
 * db   SQ: the doorbell last rung.  CQ: the arm last rung.  RQ, SRQ: the producer index.
 * ci   CQ: consumer index, a FERRY_DB_CQ_CI word.
 *
 * Only SQ and arm records use word and bell (FERRY_CAP_POLL):
 *   host:   store db; fence w,r; word is 0: store 1 to it; status page says not awake:
 *           store the same value to the doorbell page.
 *   device, awake:   word is 1: store 0, fence, scan the db of all 63 slots.
 *   device, to sleep: store awake 0, fence, scan the db of all slots of all pages; then
 *           sleep until a doorbell, a frame, a timer.
 * Without FERRY_CAP_POLL the host stores the doorbell and may leave record and word out.
 * RQ, SRQ and CI records are read by the device when its copy says empty or full.
 */
#define FERRY_SLOT_SIZE		64
#define FERRY_SLOTS_PER_PAGE	63

struct ferry_slot {
	__le64 db;
	__le64 ci;
	__u8 rsvd[48];
};
FERRY_CHECK_SIZE(struct ferry_slot, FERRY_SLOT_SIZE);

struct ferry_record_page {
	struct ferry_slot slot[FERRY_SLOTS_PER_PAGE];
	__le32 word;
	__u8 rsvd[60];
};
FERRY_CHECK_SIZE(struct ferry_record_page, 4096);
FERRY_CHECK_OFFSET(struct ferry_record_page, word, 4032);

/* One page of host memory for the device, mapped read-only into every context. */
struct ferry_status_page {
	__le32 awake;		/* written by the device: 1 while it reads records by itself */
	__u8 rsvd0[60];
	__le32 alive;		/* written by the driver: 1 while the device works, 0 once it is lost;
				 * reads 0, too, when the kernel has taken the mapping away (unbind) */
	__u8 rsvd1[60];
	__u8 rsvd2[3968];
};
FERRY_CHECK_SIZE(struct ferry_status_page, 4096);
FERRY_CHECK_OFFSET(struct ferry_status_page, alive, 64);

/* ----------------------------------------------------------------------- page lists */

/*
 * What a ring or an MR consists of: count blocks of 2^block_shift bytes, 12 to 30, each
 * aligned to its size. levels 0: the addresses stand in inline_[]. levels 2: root is
 * the address of an array of leaf addresses (aligned to 8), a leaf is a 4 KiB page of
 * 512 block addresses; the last leaf may be shorter. 1 TiB in 4 KiB blocks is a root of
 * 4 MiB.
 */
#define FERRY_INLINE_BLOCKS	16
#define FERRY_LEAF_ENTRIES	512
#define FERRY_BLOCK_SHIFT_MIN	12
#define FERRY_BLOCK_SHIFT_MAX	30

struct ferry_page_list {
	__u8 block_shift;
	__u8 levels;
	__le16 rsvd;
	__le32 count;
	__le64 root;
	__le64 inline_[FERRY_INLINE_BLOCKS];
};
FERRY_CHECK_SIZE(struct ferry_page_list, 144);

/* ----------------------------------------------------------------------------- keys */

/*
 * lkey and rkey are one number: index in bits 31:8, a variant that changes at every
 * reuse in 7:0. Index 0 is never given out; its keys mean:
 */
#define FERRY_KEY_INVALID	0x00	/* refused everywhere */
#define FERRY_KEY_CONTEXT	0x01	/* local only: offset into what SET_CONTEXT_MEMORY named */
#define FERRY_KEY_LOCAL_DMA	0x02	/* local only, QPs of context 0 only: a DMA address */

#define FERRY_ACCESS_LOCAL_WRITE	(1u << 0)
#define FERRY_ACCESS_REMOTE_WRITE	(1u << 1)
#define FERRY_ACCESS_REMOTE_READ	(1u << 2)
#define FERRY_ACCESS_REMOTE_ATOMIC	(1u << 3)
#define FERRY_ACCESS_MW_BIND		(1u << 4)
#define FERRY_ACCESS_ALL		0x1fu

/* ---------------------------------------------------------------------- work requests */

enum ferry_wr {
	FERRY_WR_SEND = 0,
	FERRY_WR_SEND_IMM,
	FERRY_WR_SEND_INV,
	FERRY_WR_WRITE,
	FERRY_WR_WRITE_IMM,
	FERRY_WR_READ,
	FERRY_WR_ATOMIC_CS,
	FERRY_WR_ATOMIC_FA,
	FERRY_WR_LOCAL_INV,
	FERRY_WR_REG_MR,	/* fast registration: kernel users */
	FERRY_WR_BIND_MW,
	FERRY_WR_COUNT
};

/* In the order of verbs' IBV_SEND_*. */
#define FERRY_WQE_FENCE		(1u << 0)	/* after all earlier READs and atomics */
#define FERRY_WQE_SIGNALED	(1u << 1)
#define FERRY_WQE_SOLICITED	(1u << 2)
#define FERRY_WQE_INLINE	(1u << 3)	/* data stands where the SGEs would */

#define FERRY_WQE_SHIFT_MIN	6		/* SQ stride: 64 to 512 bytes */
#define FERRY_WQE_SHIFT_MAX	9
#define FERRY_RQE_SHIFT_MIN	5		/* RQ and SRQ stride: 32 to 512 bytes */
#define FERRY_RQE_SHIFT_MAX	9

struct ferry_sge {
	__le64 addr;
	__le32 length;		/* bytes; 0 means 0 */
	__le32 lkey;
};
FERRY_CHECK_SIZE(struct ferry_sge, 16);

/* What leads to the peer. dgid ::ffff:a.b.c.d means IPv4. */
struct ferry_av {
	__u8 dgid[16];
	__u8 dmac[6];
	__le16 vlan;		/* 0xffff: untagged; anything else is refused today */
	__le32 flow_label;	/* 20 bits */
	__le16 sgid_index;
	__le16 udp_sport;	/* 0: the device derives one from both QPNs */
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 sl;		/* 0..7, the weight in scheduling */
	__u8 rsvd[5];
};
FERRY_CHECK_SIZE(struct ferry_av, 40);

struct ferry_wqe_head {
	__u8 opcode;		/* enum ferry_wr */
	__u8 flags;		/* FERRY_WQE_* */
	__u8 num_sge;		/* 0 with FERRY_WQE_INLINE */
	__u8 rsvd0;
	__le16 inline_len;	/* bytes, with FERRY_WQE_INLINE */
	__le16 rsvd1;
	union {
		__u8 imm[4];	/* wire order */
		__le32 inv_key;	/* SEND_INV: the peer's key; LOCAL_INV: one's own */
	};
	__le32 rsvd2;
};
FERRY_CHECK_SIZE(struct ferry_wqe_head, 16);

/* All of RC but atomics; raw Ethernet with remote as zero. Data from byte 32. */
struct ferry_wqe_rdma {
	struct ferry_wqe_head head;
	__le64 raddr;
	__le32 rkey;
	__le32 rsvd;
	struct ferry_sge sge[];
};
FERRY_CHECK_SIZE(struct ferry_wqe_rdma, 32);

/* The old value goes to the one SGE, 8 bytes, host order of the data: little-endian. */
struct ferry_wqe_atomic {
	struct ferry_wqe_head head;
	__le64 raddr;		/* aligned to 8 */
	__le32 rkey;
	__le32 rsvd;
	__le64 swap_or_add;
	__le64 compare;
	struct ferry_sge sge[];
};
FERRY_CHECK_SIZE(struct ferry_wqe_atomic, 48);

/* UD and GSI. Data from byte 64. */
struct ferry_wqe_ud {
	struct ferry_wqe_head head;
	struct ferry_av av;
	__le32 dest_qpn;
	__le32 qkey;
	struct ferry_sge sge[];
};
FERRY_CHECK_SIZE(struct ferry_wqe_ud, 64);

struct ferry_wqe_reg {		/* REG_MR: two-level list or one run of blocks */
	struct ferry_wqe_head head;
	__le64 iova;
	__le64 length;
	__le64 root;		/* array of block addresses */
	__le32 key;
	__le32 count;
	__u8 block_shift;
	__u8 access;
	__u8 rsvd[14];
};
FERRY_CHECK_SIZE(struct ferry_wqe_reg, 64);

struct ferry_wqe_bind {		/* BIND_MW */
	struct ferry_wqe_head head;
	__le64 addr;
	__le64 length;
	__le32 mr_key;
	__le32 mw_key;
	__u8 access;
	__u8 rsvd[23];
};
FERRY_CHECK_SIZE(struct ferry_wqe_bind, 64);

/* Receive. The device has copied it once the message's first packet took it. */
struct ferry_rqe {
	__le16 num_sge;
	__le16 id;		/* comes back as wqe_index */
	__le32 rsvd0;
	__le64 rsvd1;
	struct ferry_sge sge[];
};
FERRY_CHECK_SIZE(struct ferry_rqe, 16);

/* ------------------------------------------------------------------------ completions */

enum ferry_wc_status {		/* InfiniBand 11.6.2; the names of verbs */
	FERRY_WC_SUCCESS = 0,
	FERRY_WC_LOC_LEN_ERR,
	FERRY_WC_LOC_QP_OP_ERR,
	FERRY_WC_LOC_PROT_ERR,
	FERRY_WC_WR_FLUSH_ERR,
	FERRY_WC_MW_BIND_ERR,
	FERRY_WC_BAD_RESP_ERR,
	FERRY_WC_LOC_ACCESS_ERR,
	FERRY_WC_REM_INV_REQ_ERR,
	FERRY_WC_REM_ACCESS_ERR,
	FERRY_WC_REM_OP_ERR,
	FERRY_WC_RETRY_EXC_ERR,
	FERRY_WC_RNR_RETRY_EXC_ERR,
	FERRY_WC_REM_ABORT_ERR,
	FERRY_WC_FATAL_ERR,
	FERRY_WC_GENERAL_ERR,
	FERRY_WC_STATUS_COUNT
};

enum ferry_wc {
	FERRY_WC_SEND = 0,
	FERRY_WC_WRITE,
	FERRY_WC_READ,
	FERRY_WC_ATOMIC_CS,
	FERRY_WC_ATOMIC_FA,
	FERRY_WC_BIND_MW,
	FERRY_WC_LOCAL_INV,
	FERRY_WC_REG_MR,
	FERRY_WC_RECV,		/* from here on, with bit 3: of the receive queue */
	FERRY_WC_RECV_WRITE_IMM,
	FERRY_WC_COUNT
};

#define FERRY_CQE_IMM		(1u << 0)
#define FERRY_CQE_INV		(1u << 1)
#define FERRY_CQE_GRH		(1u << 2)
#define FERRY_CQE_SOLICITED	(1u << 3)

#define FERRY_CQE_OP(op)	((op) & 0xf)
#define FERRY_CQE_PHASE		0x80

struct ferry_cqe {
	__le32 byte_len;
	union {
		__u8 imm[4];	/* FERRY_CQE_IMM: wire order */
		__le32 inv_key;	/* FERRY_CQE_INV */
	};
	__le32 src_qpn;		/* UD */
	__le16 pkey_index;
	__u8 flags;		/* FERRY_CQE_* */
	__u8 vendor_err;	/* what the engine saw, for people; 0 on success */
	__le64 timestamp;	/* ns, the device's clock */
	/* the word that is written last */
	__le32 qpn;
	__le16 wqe_index;	/* SQ: low bits of the entry's index, completes all before it too;
				 * RQ, SRQ: the entry's id */
	__u8 status;		/* enum ferry_wc_status */
	__u8 op;		/* enum ferry_wc in 3:0, FERRY_CQE_PHASE */
};
FERRY_CHECK_SIZE(struct ferry_cqe, 32);
FERRY_CHECK_OFFSET(struct ferry_cqe, qpn, 24);

/* ------------------------------------------------------------------------ event queues */

/*
 * The host stores its consumer index into the EQ's own record (a __le32 at the address
 * given at creation), fences w,r, and looks for one more entry. The device stores an
 * entry, fences, reads that index: an interrupt is raised when the host had consumed
 * everything before this entry. So nobody arms an EQ and nobody rings for it.
 */
enum ferry_event {
	FERRY_EVENT_COMPLETION = 1,	/* number: CQ */
	FERRY_EVENT_CQ_ERR,		/* number: CQ; overflow or DMA error */
	FERRY_EVENT_QP_FATAL,		/* number: QP */
	FERRY_EVENT_QP_REQ_ERR,		/* number: QP; invalid request from the peer */
	FERRY_EVENT_QP_ACCESS_ERR,	/* number: QP; access the peer had no right to */
	FERRY_EVENT_COMM_EST,		/* number: QP */
	FERRY_EVENT_SQ_DRAINED,		/* number: QP */
	FERRY_EVENT_LAST_WQE,		/* number: QP */
	FERRY_EVENT_SRQ_ERR,		/* number: SRQ */
	FERRY_EVENT_SRQ_LIMIT,		/* number: SRQ */
	FERRY_EVENT_PORT,		/* data: 1 link up, 0 down */
	FERRY_EVENT_ASSIST,		/* number: slot */
	FERRY_EVENT_COUNT
};

#define FERRY_EQE_PHASE		0x01

struct ferry_eqe {
	/* the word that is written last */
	__u8 type;		/* enum ferry_event */
	__u8 phase;		/* FERRY_EQE_PHASE */
	__le16 rsvd;
	__le32 number;
	__le64 data;
};
FERRY_CHECK_SIZE(struct ferry_eqe, 16);

/*
 * Assist: before and after the device touches a range of an MR created with
 * FERRY_MR_ASSIST it fills a slot of the array that SET_ASSIST named, posts
 * FERRY_EVENT_ASSIST and waits for FERRY_DB_ASSIST_ACK with that slot. AFTER a write the
 * bytes of a line that the range covers in part stand in head and tail: the device has
 * not written them, the driver stores them.
 */
enum ferry_assist_op {
	FERRY_ASSIST_BEFORE_READ = 1,
	FERRY_ASSIST_BEFORE_WRITE,
	FERRY_ASSIST_AFTER_WRITE,
};

struct ferry_assist_slot {
	__u8 op;		/* enum ferry_assist_op */
	__u8 head_len;		/* bytes at iova */
	__u8 tail_len;		/* bytes that end at iova + length */
	__u8 status;		/* written by the driver: 0, or the access is refused */
	__le32 key;
	__le64 iova;
	__le64 length;
	__u8 rsvd[40];
	__u8 head[64];
	__u8 tail[64];
	__u8 rsvd1[64];
};
FERRY_CHECK_SIZE(struct ferry_assist_slot, 256);

/* ------------------------------------------------------------------------- admin queue */

/*
 * Two rings of the same depth. The driver writes a command, fences, writes its new
 * producer index to FERRY_REG_ADMIN_DB. The device answers each command once, in any
 * order, by an entry of the admin CQ, and raises MSI-X vector 0 for it. The driver
 * keeps no more than a ring of commands without answer, so the admin CQ cannot
 * overflow and has no consumer index.
 */
enum ferry_admin_op {
	FERRY_ADMIN_NOP = 0,
	FERRY_ADMIN_QUERY_DEVICE,
	FERRY_ADMIN_SET_STATUS_PAGE,
	FERRY_ADMIN_CREATE_EQ,
	FERRY_ADMIN_DESTROY_EQ,
	FERRY_ADMIN_CREATE_CONTEXT,
	FERRY_ADMIN_DESTROY_CONTEXT,
	FERRY_ADMIN_ADD_RECORD_PAGE,
	FERRY_ADMIN_REMOVE_RECORD_PAGE,
	FERRY_ADMIN_SET_CONTEXT_MEMORY,
	FERRY_ADMIN_CREATE_PD,
	FERRY_ADMIN_DESTROY_PD,
	FERRY_ADMIN_CREATE_CQ,
	FERRY_ADMIN_MODIFY_CQ,
	FERRY_ADMIN_RESIZE_CQ,
	FERRY_ADMIN_DESTROY_CQ,
	FERRY_ADMIN_CREATE_QP,
	FERRY_ADMIN_MODIFY_QP,
	FERRY_ADMIN_QUERY_QP,
	FERRY_ADMIN_DESTROY_QP,
	FERRY_ADMIN_CREATE_SRQ,
	FERRY_ADMIN_MODIFY_SRQ,
	FERRY_ADMIN_QUERY_SRQ,
	FERRY_ADMIN_DESTROY_SRQ,
	FERRY_ADMIN_CREATE_MR,
	FERRY_ADMIN_DESTROY_MR,
	FERRY_ADMIN_CREATE_MW,
	FERRY_ADMIN_DESTROY_MW,
	FERRY_ADMIN_SET_GID,
	FERRY_ADMIN_QUERY_PORT,
	FERRY_ADMIN_SET_PORT,
	FERRY_ADMIN_QUERY_COUNTERS,
	FERRY_ADMIN_SET_ASSIST,
	FERRY_ADMIN_ATTACH_MCAST,
	FERRY_ADMIN_DETACH_MCAST,
	FERRY_ADMIN_OP_COUNT
};

enum ferry_admin_status {
	FERRY_ADMIN_OK = 0,
	FERRY_ADMIN_BAD_OPCODE,
	FERRY_ADMIN_BAD_PARAM,		/* detail: byte offset of the field in the command */
	FERRY_ADMIN_NOT_FOUND,		/* detail: the number that names nothing */
	FERRY_ADMIN_NO_RESOURCES,
	FERRY_ADMIN_BUSY,		/* something still refers to the object */
	FERRY_ADMIN_BAD_STATE,
	FERRY_ADMIN_DMA_FAULT,
	FERRY_ADMIN_NOT_SUPPORTED,
	FERRY_ADMIN_REFUSED,		/* by the operator of the device (tests) */
	FERRY_ADMIN_STATUS_COUNT
};

struct ferry_admin_head {
	__le16 opcode;		/* enum ferry_admin_op */
	__le16 id;		/* comes back in the answer */
	__le32 rsvd;
};

/* In a command that names one object and nothing more. */
struct ferry_admin_object {
	struct ferry_admin_head head;
	__le32 number;		/* EQ, context, PD, CQ, QP, SRQ, or a key */
	__le32 rsvd;
};

struct ferry_admin_set_page {	/* SET_STATUS_PAGE, ADD_ and REMOVE_RECORD_PAGE */
	struct ferry_admin_head head;
	__le32 context;		/* 0 with SET_STATUS_PAGE */
	__le32 rsvd;
	__le64 addr;		/* aligned to 4 KiB; 0 takes the status page away */
};

struct ferry_admin_create_eq {
	struct ferry_admin_head head;
	__le16 vector;
	__u8 depth_shift;	/* 4..16 */
	__u8 rsvd[5];
	__le64 ci_addr;		/* __le32, aligned to 4 */
	struct ferry_page_list ring;
};

struct ferry_admin_set_context_memory {
	struct ferry_admin_head head;
	__le32 context;
	__le32 rsvd;
	__le64 length;		/* bytes; 0 takes it away */
	struct ferry_page_list pages;
};

struct ferry_admin_create_pd {
	struct ferry_admin_head head;
	__le32 context;
	__le32 rsvd;
};

struct ferry_admin_create_cq {	/* RESIZE_CQ too, with cq; only ring and depth count there */
	struct ferry_admin_head head;
	__le32 context;
	__le32 eq;
	__le32 cq;		/* RESIZE_CQ; else 0 */
	__u8 depth_shift;	/* 0 to FERRY_CQ_SHIFT_MAX */
	__u8 rsvd[3];
	__le64 slot_addr;	/* a slot of a record page of that context */
	struct ferry_page_list ring;
};

struct ferry_admin_modify_cq {
	struct ferry_admin_head head;
	__le32 cq;
	__le16 count;		/* event after so many CQEs, 0 and 1: each */
	__le16 period_us;	/* or so long after the first */
};

enum ferry_qp_type {
	FERRY_QPT_RC = 0,
	FERRY_QPT_UD,
	FERRY_QPT_GSI,		/* QPN 1; context 0 only */
	FERRY_QPT_ETH,		/* raw Ethernet: all frames that are not RoCE; context 0 only, one */
	FERRY_QPT_COUNT
};

enum ferry_qp_state {		/* InfiniBand 10.3.1 */
	FERRY_QPS_RESET = 0,
	FERRY_QPS_INIT,
	FERRY_QPS_RTR,
	FERRY_QPS_RTS,
	FERRY_QPS_SQD,
	FERRY_QPS_SQE,
	FERRY_QPS_ERR,
	FERRY_QPS_COUNT
};

#define FERRY_QP_SIGNAL_ALL	(1u << 0)	/* every send WQE is signalled */

struct ferry_admin_create_qp {
	struct ferry_admin_head head;
	__le32 context;
	__le32 pd;
	__le32 send_cq;
	__le32 recv_cq;
	__le32 srq;		/* 0: none */
	__u8 type;		/* enum ferry_qp_type */
	__u8 flags;		/* FERRY_QP_* */
	__u8 sq_shift;		/* log2 of the depth, 0 to FERRY_WQ_SHIFT_MAX */
	__u8 sq_wqe_shift;	/* log2 of the stride */
	__u8 rq_shift;
	__u8 rq_wqe_shift;
	__u8 rsvd[2];
	__le64 sq_slot_addr;
	__le64 rq_slot_addr;	/* 0 with an SRQ */
	struct ferry_page_list sq;
	struct ferry_page_list rq;	/* count 0 with an SRQ */
};

#define FERRY_QP_ATTR_STATE		(1u << 0)
#define FERRY_QP_ATTR_ACCESS		(1u << 1)
#define FERRY_QP_ATTR_PKEY_INDEX	(1u << 2)
#define FERRY_QP_ATTR_QKEY		(1u << 3)
#define FERRY_QP_ATTR_AV		(1u << 4)
#define FERRY_QP_ATTR_PATH_MTU		(1u << 5)
#define FERRY_QP_ATTR_TIMEOUT		(1u << 6)
#define FERRY_QP_ATTR_RETRY_CNT		(1u << 7)
#define FERRY_QP_ATTR_RNR_RETRY		(1u << 8)
#define FERRY_QP_ATTR_RQ_PSN		(1u << 9)
#define FERRY_QP_ATTR_SQ_PSN		(1u << 10)
#define FERRY_QP_ATTR_MAX_RD_ATOMIC	(1u << 11)
#define FERRY_QP_ATTR_MAX_DEST_RD_ATOMIC (1u << 12)
#define FERRY_QP_ATTR_MIN_RNR_TIMER	(1u << 13)
#define FERRY_QP_ATTR_DEST_QPN		(1u << 14)
#define FERRY_QP_ATTR_CUR_STATE		(1u << 15)
#define FERRY_QP_ATTR_SQD_NOTIFY	(1u << 16)
#define FERRY_QP_ATTR_ALL		0x1ffffu

struct ferry_qp_attr {
	__le32 mask;		/* FERRY_QP_ATTR_*; QUERY_QP: all */
	__u8 state;		/* enum ferry_qp_state */
	__u8 cur_state;
	__u8 path_mtu;		/* 1..5: 256, 512, 1024, 2048, 4096 bytes */
	__u8 access;		/* FERRY_ACCESS_* that peers may use */
	__le32 qkey;
	__le32 rq_psn;		/* 24 bits */
	__le32 sq_psn;
	__le32 dest_qpn;
	__le16 pkey_index;
	__u8 max_rd_atomic;	/* as requester */
	__u8 max_dest_rd_atomic; /* as responder */
	__u8 timeout;		/* 0: none; else 4.096 us << timeout; 31 at most */
	__u8 retry_cnt;		/* 0..7 */
	__u8 rnr_retry;		/* 0..6; 7: without end */
	__u8 min_rnr_timer;	/* 0..31, InfiniBand table 45 */
	__u8 sq_draining;	/* QUERY_QP */
	__u8 sqd_notify;	/* 1: FERRY_EVENT_SQ_DRAINED when drained */
	__u8 rsvd[6];
	struct ferry_av av;
};
FERRY_CHECK_SIZE(struct ferry_qp_attr, 80);

struct ferry_admin_modify_qp {
	struct ferry_admin_head head;
	__le32 qp;
	__le32 rsvd;
	struct ferry_qp_attr attr;
};

struct ferry_admin_create_srq {
	struct ferry_admin_head head;
	__le32 context;
	__le32 pd;
	__u8 depth_shift;	/* 0 to FERRY_WQ_SHIFT_MAX */
	__u8 wqe_shift;
	__u8 rsvd[6];
	__le64 slot_addr;
	struct ferry_page_list ring;
};

struct ferry_admin_modify_srq {
	struct ferry_admin_head head;
	__le32 srq;
	__le16 limit;		/* event once fewer entries are left; 0: none */
	__le16 rsvd;
};

#define FERRY_MR_ASSIST		(1u << 0)
#define FERRY_MR_FAST_REG	(1u << 1)	/* no pages yet: invalid until REG_MR; pages.count
						 * is the most it may get */

struct ferry_admin_create_mr {
	struct ferry_admin_head head;
	__le32 pd;
	__u8 access;		/* FERRY_ACCESS_* */
	__u8 flags;		/* FERRY_MR_* */
	__le16 rsvd;
	__le64 iova;		/* the address that names its first byte */
	__le64 length;		/* bytes */
	__le64 offset;		/* of its first byte in the first block */
	struct ferry_page_list pages;
};

struct ferry_admin_create_mw {
	struct ferry_admin_head head;
	__le32 pd;
	__u8 type;		/* 1 or 2 */
	__u8 rsvd[3];
};

struct ferry_admin_set_gid {
	struct ferry_admin_head head;
	__le16 index;
	__u8 valid;		/* 0 takes it away */
	__u8 rsvd0;
	__le16 vlan;		/* 0xffff: untagged; anything else is refused today */
	__le16 rsvd1;
	__u8 gid[16];
};

struct ferry_admin_set_port {
	struct ferry_admin_head head;
	__le16 mtu;		/* of the netdev: largest Ethernet payload, FERRY_MTU_* */
	__u8 up;		/* 0: no frame leaves or enters */
	__u8 promisc;
	__u8 rsvd0[2];
	__u8 mac[6];
	__u8 rsvd1[4];
};

struct ferry_admin_set_assist {
	struct ferry_admin_head head;
	__le32 eq;
	__le32 slots;		/* 0 takes it away */
	__le64 addr;
	__le32 line_size;	/* bytes, power of two, 16..64 */
	__le32 rsvd;
};

struct ferry_admin_mcast {
	struct ferry_admin_head head;
	__le32 qp;
	__le32 rsvd;
	__u8 gid[16];
};

#define FERRY_ADMIN_SQE_SIZE	512

union ferry_admin_sqe {
	struct ferry_admin_head head;
	struct ferry_admin_object object;
	struct ferry_admin_set_page set_page;
	struct ferry_admin_create_eq create_eq;
	struct ferry_admin_set_context_memory set_context_memory;
	struct ferry_admin_create_pd create_pd;
	struct ferry_admin_create_cq create_cq;
	struct ferry_admin_modify_cq modify_cq;
	struct ferry_admin_create_qp create_qp;
	struct ferry_admin_modify_qp modify_qp;
	struct ferry_admin_create_srq create_srq;
	struct ferry_admin_modify_srq modify_srq;
	struct ferry_admin_create_mr create_mr;
	struct ferry_admin_create_mw create_mw;
	struct ferry_admin_set_gid set_gid;
	struct ferry_admin_set_port set_port;
	struct ferry_admin_set_assist set_assist;
	struct ferry_admin_mcast mcast;
	__u8 bytes[FERRY_ADMIN_SQE_SIZE];
};
FERRY_CHECK_SIZE(union ferry_admin_sqe, FERRY_ADMIN_SQE_SIZE);

#define FERRY_CQ_SHIFT_MAX	22	/* log2 of the entries of a CQ */
#define FERRY_WQ_SHIFT_MAX	14	/* log2 of those of an SQ, an RQ, an SRQ */
#define FERRY_MTU_MIN		256	/* of the netdev */
#define FERRY_MTU_MAX		9000

struct ferry_device_limits {	/* QUERY_DEVICE */
	__le64 max_mr_size;	/* bytes */
	__le64 page_sizes;	/* bit n: blocks of 2^n bytes */
	__le64 max_msg_size;	/* bytes */
	__le32 caps;		/* FERRY_CAP_* */
	__le32 max_contexts;	/* doorbell pages, the kernel's included */
	__le32 max_pds;
	__le32 max_eqs;
	__le32 max_cqs;
	__le32 max_qps;
	__le32 max_srqs;
	__le32 max_mrs;
	__le32 max_mws;
	__le32 max_cqe;		/* entries of a CQ */
	__le32 max_sq_depth;
	__le32 max_rq_depth;
	__le32 max_srq_depth;
	__le16 max_sge;		/* of a send or a receive */
	__le16 max_inline;	/* bytes */
	__le16 max_rd_atomic;	/* of a QP, each way */
	__le16 gids;		/* length of the GID table */
	__le32 max_record_pages; /* of a context */
	__le16 max_mtu;		/* Ethernet payload, FERRY_MTU_* */
	__le16 max_mcast;
	__u8 firmware[16];	/* text, NUL-padded */
};

struct ferry_port_info {	/* QUERY_PORT */
	__u8 link;		/* 1: up */
	__u8 rsvd[3];
	__le32 speed_mbps;
	__le16 mtu;
	__le16 rsvd1;
	__u8 mac[6];
	__u8 rsvd2[6];
};

struct ferry_srq_info {		/* QUERY_SRQ */
	__le16 limit;
	__le16 rsvd;
	__le32 left;		/* entries not taken yet */
};

/* QUERY_COUNTERS: since reset, in this order. The names are those of sysfs. */
#define FERRY_COUNTERS(X) \
	X(rx_packets)		/* RoCE frames taken */ \
	X(rx_bytes) \
	X(tx_packets) \
	X(tx_bytes) \
	X(loopback_packets)	/* packets between QPs of this port */ \
	X(loopback_bytes) \
	X(rx_icrc_errors) \
	X(rx_discards)		/* malformed, or for no QP that could take it */ \
	X(tx_errors)		/* the link did not take the frame */ \
	X(duplicate_request)	/* request packets seen again */ \
	X(out_of_sequence)	/* request packets ahead of the expected PSN */ \
	X(packet_seq_err)	/* sequence-error NAKs received */ \
	X(implied_nak_seq_err)	/* READ responses out of order */ \
	X(rnr_nak_sent) \
	X(rnr_nak_retry_err)	/* RNR NAKs received */ \
	X(local_ack_timeout_err) /* timeouts of the requester */ \
	X(retransmits)		/* request packets sent again */ \
	X(resp_local_length_error) \
	X(resp_remote_access_errors) \
	X(req_cqe_error) \
	X(req_cqe_flush_error) \
	X(resp_cqe_error) \
	X(resp_cqe_flush_error) \
	X(cq_overflows) \
	X(eth_rx_frames)	/* to the raw Ethernet QP */ \
	X(eth_rx_dropped)	/* no receive posted */ \
	X(eth_tx_frames) \
	X(doorbells)		/* stores to doorbell pages */ \
	X(interrupts)

#define FERRY_COUNTER_ENUM(name) FERRY_COUNTER_##name,
enum ferry_counter {
	FERRY_COUNTERS(FERRY_COUNTER_ENUM)
	FERRY_COUNTER_COUNT
};

#define FERRY_ADMIN_CQE_SIZE	256

struct ferry_admin_cqe {
	union {
		__le32 number;	/* what was created: EQ, context, PD, CQ, QP, SRQ, or a key */
		struct ferry_device_limits device;
		struct ferry_port_info port;
		struct ferry_qp_attr qp;
		struct ferry_srq_info srq;
		__le64 counters[FERRY_COUNTER_COUNT];
		__u8 bytes[240];
	};
	__le64 rsvd;
	/* the word that is written last */
	__le16 id;
	__u8 status;		/* enum ferry_admin_status */
	__u8 phase;		/* bit 0 */
	__le32 detail;		/* see enum ferry_admin_status */
};
FERRY_CHECK_SIZE(struct ferry_admin_cqe, FERRY_ADMIN_CQE_SIZE);
FERRY_CHECK_OFFSET(struct ferry_admin_cqe, id, 248);

#endif
