/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of ferrydv_alloc_memory().
 */
#ifndef FERRY_MEMORY_H
#define FERRY_MEMORY_H

#include "ferry.h"

void ferry_find_memory(struct ferry_context *ctx, const void *addr, size_t length,
		       struct ferry_reg_mr_req *req);
void ferry_free_memory(struct ferry_context *ctx);

#endif
