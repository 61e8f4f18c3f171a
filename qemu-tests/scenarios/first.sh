# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# net: 1
# timeout: 120
# output: shown
#
# For whoever sees it for the first time: the device, two processes that exchange data, and that no system call is on the way.

title() { printf '\n%s\n' "$*"; }

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

title "The device, as ibv_devinfo sees it:"
ibv_devinfo -d "$FERRY" | grep -E 'hca_id|fw_ver|state|active_mtu|link_layer'

title "Two processes, one guest: ibv_rc_pingpong, 1000 messages of 4096 bytes each way, contents checked (-c)."
run "two processes exchange data" pingpong -n 1000 -c
grep -E 'Mbit|iters' "$OUT"

# The client's system calls: as many for 100 rounds as for 2,000.
traced() {
	pair "ibv_rc_pingpong -d $DEV -g $GID -n $1" "strace -f -c -o /tmp/calls.$1 ibv_rc_pingpong -d $DEV -g $GID -n $1 127.0.0.1"
}
total() { awk '$NF == "total" { print $4 }' "/tmp/calls.$1"; }
title "System calls that the client makes, counted by strace:"
run "strace counts 100 rounds" traced 100
run "strace counts 2,000 rounds" traced 2000
echo "  100 rounds: $(total 100)     2,000 rounds: $(total 2000)"
is "no system call is between post and completion" "$(total 2000)" "$(total 100)"
