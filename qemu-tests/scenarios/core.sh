# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 180
#
# One of each: what runs on every architecture and in every arrangement.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

run "pingpong by polling" pingpong -n 1000 -c
run "pingpong with events" pingpong -n 200 -e -c
run "pingpong, 1 MiB, MTU 4096" pingpong -n 10 -s 1048576 -m 4096 -c
for tool in ib_send ib_write ib_read; do
	run "${tool}_lat" perf ${tool}_lat -s 8 -n 200
	run "${tool}_bw" perf ${tool}_bw -s 65536 -n 500
done
run "16 QPs, bidirectional" perf ib_write_bw -s 4096 -n 500 -q 16 -b
run "inline" perf ib_write_lat -s 64 -I 64 -n 200
run "with events" perf ib_send_lat -s 8 -n 100 -e

tap errors errors
tap data data --memory 300000 --iterations 2
tap events events --iterations 5
tap srq srq
tap extended extended
