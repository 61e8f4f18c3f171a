# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
#
# A program is killed 50 times in the middle of traffic.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

before=$(all_resources)
tap killed lifecycle --iterations 100 --only killed
is "nothing is left in rdma resource" "$(all_resources)" "$before"
run "and it goes on working" pingpong -n 100 -c
