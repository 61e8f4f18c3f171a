# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guests: 2
# wire: 0.nic0 1.nic0
# nic: --impair loss=0.005,dup=0.005,reorder=0.01,corrupt=0.002,seed=11
# timeout: 300
#
# A wire that loses, repeats, reorders and corrupts frames: no byte is wrong.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
server=10.1.0.1
barrier configured

if [ "$GUEST_INDEX" = 0 ]; then
	tap data data --listen 19002 --memory 1000000 --iterations 10
else
	tap data data --peer $server:19002 --memory 1000000 --iterations 10
fi
barrier data
run "corrupt frames were seen" test "$(counter rx_icrc_errors)" -gt 0
run "repeated requests were seen" test "$(counter duplicate_request)" -gt 0
run "requests were sent again" test "$(counter retransmits)" -gt 0
