# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
#
# ibv_rc_pingpong at every size and MTU, by polling and by waiting; -c makes it look at the data.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

for size in 1 2 64 256 1024 4095 4096 4097 65536 1048576 8388608; do
	count=1000
	[ $size -lt 65536 ] || count=20
	run "polling, $size bytes" pingpong -s $size -n $count -c
	[ $count -le 200 ] || count=200
	run "events, $size bytes" pingpong -s $size -n $count -e -c
done
for mtu in 256 512 1024 2048 4096; do
	run "MTU $mtu" pingpong -m $mtu -s 65537 -n 50 -c
	run "MTU $mtu, events" pingpong -m $mtu -s 65537 -n 50 -e -c
done
run "500 receives posted" pingpong -r 500 -n 2000
