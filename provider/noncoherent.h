/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What takes the place of the usual functions on a host that is not coherent.
 */
#ifndef FERRY_NONCOHERENT_H
#define FERRY_NONCOHERENT_H

#include "ferry.h"

extern const struct verbs_context_ops ferry_noncoherent_ops;

void ferry_noncoherent_wr_ops(struct ibv_qp_ex *ibqp);
int ferry_arrive_run(struct ferry_cq *cq, int max);

#endif
