/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of a queue. pthread_spin_lock() would do, but costs two calls, releases by a
 * fence on RISC-V, and never gives the CPU away, which in a guest may keep the holder
 * from running. Queues that the application promised to use from one thread only (thread
 * domains, single-threaded CQs) have no lock at all.
 */
#ifndef FERRY_LOCK_H
#define FERRY_LOCK_H

#include <sched.h>
#include <stdbool.h>
#include <util/compiler.h>

#define FERRY_LOCK_SPINS	1000

/* Not to be inlined: see where they are used. */
#define FERRY_APART	__attribute__((noinline))
#define FERRY_COLD	__attribute__((noinline, cold))

struct ferry_lock {
	int held;
	bool none;		/* one thread only */
};

void ferry_lock_wait(struct ferry_lock *lock);

static inline bool ferry_trylock(struct ferry_lock *lock)
{
	return !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE);
}

/* False where another thread holds it. */
static inline bool ferry_lock_at_once(struct ferry_lock *lock)
{
	return unlikely(lock->none) || likely(ferry_trylock(lock));
}

static inline void ferry_lock(struct ferry_lock *lock)
{
	if (unlikely(!ferry_lock_at_once(lock)))
		ferry_lock_wait(lock);
}

static inline void ferry_unlock(struct ferry_lock *lock)
{
	if (unlikely(lock->none))
		return;
#if defined(__riscv)
	/* amoswap.rl; a plain release store would be a fence and a store. */
	__atomic_exchange_n(&lock->held, 0, __ATOMIC_RELEASE);
#else
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
#endif
}

/*
 * The same behind ferry_fence_work_record() and ferry_ring_index(), whose fences order all that
 * the lock guards before this store already. (litmus: work-unlock, look-unlock)
 */
static inline void ferry_unlock_fenced(struct ferry_lock *lock)
{
	*(volatile int *)&lock->held = 0;
}

#endif
