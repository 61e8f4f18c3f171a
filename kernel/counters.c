// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "verbs.h"

#define FERRY_COUNTER_DESC(counter) { .name = #counter },
static const struct rdma_stat_desc ferry_counters[] = { FERRY_COUNTERS(FERRY_COUNTER_DESC) };

struct rdma_hw_stats *ferry_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(ferry_counters, FERRY_COUNTER_COUNT,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int ferry_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct ferry_admin_cqe answer;
	int i, err;

	err = ferry_admin_query(to_ferry(ibdev), FERRY_ADMIN_QUERY_COUNTERS, 0, &answer);
	if (err)
		return err;
	for (i = 0; i < FERRY_COUNTER_COUNT; i++)
		stats->value[i] = le64_to_cpu(answer.counters[i]);
	return FERRY_COUNTER_COUNT;
}
