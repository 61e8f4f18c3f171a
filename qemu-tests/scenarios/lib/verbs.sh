# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=sh
#
# For scenarios that use verbs: sourced by them. Needs load_ferry first, or DEV and GID set.

DEV=${DEV:-$FERRY}
GID=${GID:-$(gid_index "$DEV")}

. /ferry/scenarios/lib/tap.sh

# Of the port, by the name that sysfs gives it.
counter() { cat "/sys/class/infiniband/${2:-$DEV}/ports/1/hw_counters/$1"; }

# Both ends here, client over localhost.
pingpong() { pair "ibv_rc_pingpong -d $DEV -g $GID $*" "ibv_rc_pingpong -d $DEV -g $GID $* 127.0.0.1"; }
# perf TOOL ARGUMENT...: of perftest.
perf() {
	_tool=$1
	shift
	pair "$_tool -d $DEV -x $GID -F $*" "$_tool -d $DEV -x $GID -F $* 127.0.0.1"
}

# After load_ferry has found another device, or the same one anew.
set_device() {
	DEV=$FERRY
	GID=$(gid_index "$DEV")
}

# traffic_start: two processes that poll, until traffic_stop; traffic_ended: one of them has come to an end.
traffic_start() {
	ib_write_bw -d "$DEV" -x "$GID" -F -D 60 -p 19001 >/tmp/bw.server 2>&1 &
	TRAFFIC_SERVER=$!
	wait_for 10 listening $TRAFFIC_SERVER 19001
	ib_write_bw -d "$DEV" -x "$GID" -F -D 60 -p 19001 127.0.0.1 >/tmp/bw.client 2>&1 &
	TRAFFIC_CLIENT=$!
	sleep 2
	! traffic_ended
}
traffic_ended() { ! kill -0 $TRAFFIC_SERVER 2>/dev/null || ! kill -0 $TRAFFIC_CLIENT 2>/dev/null; }
traffic_stop() {
	kill $TRAFFIC_SERVER $TRAFFIC_CLIENT 2>/dev/null
	wait $TRAFFIC_SERVER $TRAFFIC_CLIENT
}

# What `rdma resource` counts of the kind, processes' and kernel's together.
resources() { rdma resource show "$DEV" | sed -n "s/.* $1 \([0-9]*\).*/\1/p"; }
all_resources() { rdma resource show "$DEV" | sed 's/^[0-9]*: //'; }

# both NAME ADDRESS COMMAND...: in two guests, the command as server in the first and as client in the second, where the address
# of the server stands behind it.
BOTH=0
both() {
	BOTH=$((BOTH + 1))
	_both=$1 _address=$2
	shift 2
	if [ "$GUEST_INDEX" = 0 ]; then
		sh -c "exec $*" >/tmp/both.server 2>&1 &
		_server=$!
		wait_for 20 listening $_server "${PORT:-18515}"
		barrier "both$BOTH"
		wait $_server
		_status=$?
		is "$_both, server" $_status 0
		[ $_status = 0 ] || diag "$(tail -n 20 /tmp/both.server)"
	else
		barrier "both$BOTH"
		run "$_both, client" sh -c "exec $* $_address"
	fi
	barrier "both$BOTH"
}
