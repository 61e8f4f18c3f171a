# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
#
# Between post and completion there is no system call: a pingpong of 1,000 rounds and one of 100,000 make the same number.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

# calls ROUNDS: of the client, without what libc does for memory.
calls() {
	ibv_rc_pingpong -d "$FERRY" -g "$GID" -n "$1" >/tmp/server 2>&1 &
	_server=$!
	wait_for 10 listening $_server 18515
	strace -f -c -o "/tmp/calls.$1" ibv_rc_pingpong -d "$FERRY" -g "$GID" -n "$1" 127.0.0.1 >/tmp/client 2>&1 || cat /tmp/client
	wait $_server
}
# The table without its times: calls and names.
counts() { awk '$NF != "total" && $4 ~ /^[0-9]+$/ { print $4, $NF }' "/tmp/calls.$1" | sort -k 2; }

run "1,000 rounds" calls 1000
run "100,000 rounds" calls 100000
run "both made system calls at all" test "$(counts 1000 | wc -l)" -gt 5
is "and both the same" "$(counts 100000)" "$(counts 1000)"
