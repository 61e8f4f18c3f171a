# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A NIC that has nothing to do sleeps, also while a program has queues open: CPU time of its process.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

# rests: less than 2% of a core over ten seconds.
rests() {
	# shellcheck disable=SC2046
	set -- $(host cpu-usage) && sleep 10 && set -- "$@" $(host cpu-usage) || return
	echo "$(($3 - $1)) us of CPU in $(($4 - $2)) us"
	[ $((($3 - $1) * 50)) -lt $(($4 - $2)) ]
}

run "with the driver loaded" rests
diag "$(cat "$OUT")"
ibv_rc_pingpong -d "$DEV" -g "$GID" >/tmp/holder 2>&1 &
holder=$!
wait_for 10 listening $holder 18515
run "with a program that waits" rests
diag "$(cat "$OUT")"
kill $holder
wait $holder
run "it wakes up" pingpong -n 100 -c
run "and sleeps again" rests
diag "$(cat "$OUT")"
