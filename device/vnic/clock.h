/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VNIC_CLOCK_H
#define VNIC_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_USEC	1000ull
#define NSEC_PER_MSEC	1000000ull
#define NSEC_PER_SEC	1000000000ull

/* Nanoseconds of the monotonic clock: the clock that the engine is given. */
static inline uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};
}

#endif
