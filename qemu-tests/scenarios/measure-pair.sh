# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guests: 2
# wire: 0.nic0 1.nic0
# timeout: 1200
# host: measure.host.sh
#
# The measuring kit between two machines, as on real ones: a server here, there what measures, one wire between them for RDMA and TCP. The
# results are left in build/measure/ on the host.

run "the device comes up" load_ferry || return
. /ferry/scenarios/lib/measure.sh
frames() { cat "/sys/class/net/$FERRY_NETDEV/statistics/rx_packets"; }
link() { /ferry/measure/measure-link -d "$FERRY" -r 31 -t 2000 "$@"; }
serve() {
	/ferry/measure/measure-link -c 1 -d "$FERRY" server 2>/tmp/server &
	server=$!
	run "the server waits for a client" wait_for 60 grep -q ready /tmp/server
	barrier "$1"
}

if [ "$GUEST_INDEX" = 0 ]; then
	serve measure
	wait $server
	is "the server ends with its client" $? 0
	is "and has nothing to complain of" "$(grep -v ready /tmp/server)" ''

	serve kill
	sleep 3
	kill -KILL $server
	return
fi

barrier measure
before=$(frames)
RUN_LIMIT=900 run "measures, with a server on the other machine" collect -s 10.1.0.1
cat "$OUT"
is "it says that there are two machines" "$(measured_fact mode)" 'two machines'
# TCP's, of which a stream alone has hundreds.
run "frames of the netdev came over the wire" test $(($(frames) - before)) -gt 1000
check_results

barrier kill
fails "a client whose server is killed ends" link client 10.1.0.1
diag "$(tail -n 1 "$OUT")"
