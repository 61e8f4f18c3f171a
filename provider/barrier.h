/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fences of the data path, each named for what it orders: first what comes before
 * it, then what comes after. rdma-core's own barriers know "to the device" and "from the
 * device"; a handshake that also reads what the device may overwrite, or that looks at
 * what the device has just written, needs more than the first and less than both.
 *
 * Each is the least that RISC-V's memory model allows. qemu-tests/litmus takes the
 * operands from here and shows that they suffice and that nothing weaker does. All of it
 * is normal memory, except that the doorbell page, and what an application has written
 * or read before it posts, may be I/O: there the operands carry i and o.
 *
 * x86 keeps loads in order, stores in order, and loads before later stores, so a
 * compiler barrier does for all but one.
 */
#ifndef FERRY_BARRIER_H
#define FERRY_BARRIER_H

#if defined(__riscv)
#define FERRY_FENCE(before, after)	__asm__ volatile("fence " #before "," #after : : : "memory")
#define ferry_fence_work_record()	FERRY_FENCE(iorw, ow)
#define ferry_fence_record_look()	FERRY_FENCE(w, rw)
#define ferry_fence_valid_body()	FERRY_FENCE(r, r)
#define ferry_fence_valid_flush()	FERRY_FENCE(r, rw)
#define ferry_fence_body_index()	FERRY_FENCE(r, w)
#define ferry_fence_moved_index()	FERRY_FENCE(rw, w)
#elif defined(__x86_64__)
#define FERRY_FENCE(instruction)	__asm__ volatile(instruction : : : "memory")
#define ferry_fence_work_record()	FERRY_FENCE("")
#define ferry_fence_record_look()	FERRY_FENCE("mfence")
#define ferry_fence_valid_body()	FERRY_FENCE("")
#define ferry_fence_valid_flush()	FERRY_FENCE("")
#define ferry_fence_body_index()	FERRY_FENCE("")
#define ferry_fence_moved_index()	FERRY_FENCE("")
#elif defined(__aarch64__)
#define FERRY_FENCE(domain)		__asm__ volatile("dmb " #domain : : : "memory")
#define ferry_fence_work_record()	FERRY_FENCE(osh)
#define ferry_fence_record_look()	FERRY_FENCE(osh)
#define ferry_fence_valid_body()	FERRY_FENCE(oshld)
#define ferry_fence_valid_flush()	FERRY_FENCE(osh)
#define ferry_fence_body_index()	FERRY_FENCE(oshld)
#define ferry_fence_moved_index()	FERRY_FENCE(osh)
#else
#define ferry_fence_work_record()	__sync_synchronize()
#define ferry_fence_record_look()	__sync_synchronize()
#define ferry_fence_valid_body()	__sync_synchronize()
#define ferry_fence_valid_flush()	__sync_synchronize()
#define ferry_fence_body_index()	__sync_synchronize()
#define ferry_fence_moved_index()	__sync_synchronize()
#endif

/*
 * ferry_fence_work_record() - before the record or the doorbell that announces work.
 *
 * Orders stores, so that the device finds the WQE and the data behind it, cleans and
 * flushes, which count as stores; and loads: an
 * application may have read a buffer and post it again at once, and the device's next
 * message must not be what that load returns. udma_to_device_barrier() is too weak for
 * that on RISC-V. It orders all that the queue's lock guards before the release of that lock as
 * well, but for the record. (litmus: repost-rww, work-unlock)
 *
 * ferry_fence_record_look() - between a record and the look at group word and status page.
 *
 * The device clears the word, or says that it sleeps, and then looks at the records. Both
 * sides store first and look second, so at least one sees the other. On x86 it must be
 * mfence: under emulation a locked instruction may not order anything. An arm
 * needs no more: its index tells the device what the host has seen. The later stores are for
 * the release of the queue's lock, so that the record of whoever takes it next stays. (litmus:
 * group-word, doorbell-sleep, grp3-recs, look-unlock)
 *
 * ferry_fence_valid_body() - between the phase bit of a CQE and all that it announces: the
 * rest of the CQE, and the data of a receive or a READ. (litmus: cqe-valid-body)
 *
 * ferry_fence_valid_flush() - the same where the device does not snoop the caches: the data
 * must not be flushed from them before they have come, and for fences a flush is a store.
 * (litmus: valid-flush)
 *
 * ferry_fence_body_index() - between reading CQEs and wr_ids, and the index that gives
 * their places back. The branch on the phase bit orders that word alone. (litmus:
 * ci-body-rw)
 *
 * ferry_fence_moved_index() - the same where entries have been moved: a store to a place must
 * not come after the device's next entry there. The lock of a CQ would see to it, but not
 * every CQ has one. (litmus: cq-moved)
 */

#endif
