// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The slow way into a queue's lock.
 */
#include "lock.h"

void ferry_lock_wait(struct ferry_lock *lock)
{
	unsigned int spins = 0;

	do {
		while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
			if (++spins % FERRY_LOCK_SPINS == 0)
				sched_yield();
	} while (!ferry_trylock(lock));
}
