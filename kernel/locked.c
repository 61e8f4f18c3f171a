// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "locked.h"

/* Of the calling process. 0; or -ENOMEM, and nothing is charged. */
int ferry_locked_charge(struct ferry_locked *locked, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;

	if (atomic64_add_return(pages, &mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	locked->mm = mm;
	locked->pages = pages;
	return 0;
}

/* From any process. Nothing happens where nothing is charged. */
void ferry_locked_uncharge(struct ferry_locked *locked)
{
	if (!locked->mm)
		return;
	atomic64_sub(locked->pages, &locked->mm->pinned_vm);
	mmdrop(locked->mm);
	locked->mm = NULL;
}

/* @pages of what @from has been charged are @to's from now on, which is not charged yet. */
void ferry_locked_split(struct ferry_locked *from, struct ferry_locked *to, unsigned long pages)
{
	mmgrab(from->mm);
	to->mm = from->mm;
	to->pages = pages;
	from->pages -= pages;
}
