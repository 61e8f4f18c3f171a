# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# arch: riscv64
# kernel: newest
# plugin: count.so
# timeout: 120
#
# What posting and polling costs in instructions, fences, cache-block operations and doorbells: no more than scenarios/lib/counts
# says. "make count" shows the table, and "scripts/count --update" writes it anew.

run "the driver loads and the device comes up" load_ferry || return
run "all is counted" count --dev "$FERRY" || return
sed -n 's/^count /count coherent='"$COHERENT"' /p' "$OUT"
sed -n "s/^count /$COHERENT /p" "$OUT" >/tmp/counts
grep "^$COHERENT " /ferry/scenarios/lib/counts >/tmp/limits
is "what is counted has a limit" "$(cut -d ' ' -f 1-4 /tmp/counts)" "$(cut -d ' ' -f 1-4 /tmp/limits)"

# within GOT... LIMIT...: four of each.
within() { [ $# = 8 ] && [ "$1" -le "$5" ] && [ "$2" -le "$6" ] && [ "$3" -le "$7" ] && [ "$4" -le "$8" ]; }

while read -r _ operation batch call limits; do
	got=$(sed -n "s/^$COHERENT $operation $batch $call //p" /tmp/counts)
	# shellcheck disable=SC2086
	if within $got $limits; then
		ok "$call of $operation, batch $batch: $got"
	else
		not_ok "$call of $operation, batch $batch: $got"
		diag "more than $limits (instructions, fences, cache-block operations, doorbells)." \
			"If that is meant: scripts/count --update, and say why in the commit."
	fi
done </tmp/limits
