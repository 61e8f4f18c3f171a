/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that a process keeps from being swapped: it counts against RLIMIT_MEMLOCK, as
 * what the core pins does.
 */
#ifndef FERRY_LOCKED_H
#define FERRY_LOCKED_H

struct mm_struct;

struct ferry_locked {
	struct mm_struct *mm;		/* whose limit it counts against; NULL: nobody's */
	unsigned long pages;
};

int ferry_locked_charge(struct ferry_locked *locked, unsigned long pages);
void ferry_locked_uncharge(struct ferry_locked *locked);
void ferry_locked_split(struct ferry_locked *from, struct ferry_locked *to, unsigned long pages);

#endif
