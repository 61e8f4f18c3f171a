/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which attributes a QP needs, and may be given, from state to state.
 */
#ifndef FERRY_QP_STATE_H
#define FERRY_QP_STATE_H

#include "qp.h"

/* Checks a change before anything is done. *@to is the state it leads to. */
enum ferry_admin_status qp_attr_check(const struct qp *qp, const struct ferry_qp_attr *attr,
				      enum ferry_qp_state *to, struct ferry_admin_cqe *answer);

/* Takes the attributes over; the state aside. */
void qp_attr_set(struct qp *qp, const struct ferry_qp_attr *attr);

#endif
