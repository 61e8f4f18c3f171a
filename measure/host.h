/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What measure-host measures: the CPU and its caches, without any device. */
#ifndef MEASURE_HOST_H
#define MEASURE_HOST_H

void measure_barriers(void);
void measure_cache(void);
/* Facts that only instructions and system calls tell. */
void print_facts(void);

#endif
