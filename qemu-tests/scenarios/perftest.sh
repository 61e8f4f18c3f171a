# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
#
# perftest over all sizes, with several QPs, in both directions, with events, inline.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

for tool in ib_send ib_write ib_read; do
	for size in 2 8 64 1024 4096 65536 1048576 8388608; do
		count=1000
		[ $size -lt 65536 ] || count=100
		[ $size -lt 1048576 ] || count=10
		run "${tool}_lat, $size bytes" perf ${tool}_lat -s $size -n $count
		run "${tool}_bw, $size bytes" perf ${tool}_bw -s $size -n $count
	done
	run "${tool}_bw, 16 QPs" perf ${tool}_bw -s 4096 -n 500 -q 16
	run "${tool}_bw, both ways" perf ${tool}_bw -s 65536 -n 500 -b
	run "${tool}_bw, 16 QPs, both ways" perf ${tool}_bw -s 1024 -n 500 -q 16 -b
	run "${tool}_bw, one completion for each 64" perf ${tool}_bw -s 64 -n 6400 -Q 64
	run "${tool}_bw, lists of 16" perf ${tool}_bw -s 64 -n 6400 -l 16
	run "${tool}_lat, MTU 256" perf ${tool}_lat -s 4096 -n 100 -m 256
	run "${tool}_bw, queue of 2" perf ${tool}_bw -s 64 -n 1000 -t 2
done
for tool in ib_send ib_write; do
	run "${tool}_lat, inline" perf ${tool}_lat -s 128 -I 128 -n 1000
	run "${tool}_bw, inline" perf ${tool}_bw -s 32 -I 64 -n 5000
done
run "ib_send_lat with events" perf ib_send_lat -s 8 -n 200 -e
run "ib_send_bw with events" perf ib_send_bw -s 4096 -n 500 -e
run "ib_read_lat with events" perf ib_read_lat -s 8 -n 200 -e
run "ib_send_bw, receive queue of 4" perf ib_send_bw -s 1024 -n 500 -r 4
run "ib_write_bw, all sizes" perf ib_write_bw -a -n 10
