# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=sh
#
# Ferry beside Soft-RoCE: the same perftest, in one boot, each by loopback. For each case a line
#   bench CASE ferry VALUE rxe VALUE ratio R UNIT
# where R says how many times better Ferry is, and at the end a table for people.

MTU=4096

setup() {
	load_ferry || return
	# Room for packets of that size on both.
	ip link set "$FERRY_NETDEV" mtu 4200 || return
	_virtio=$(virtio_netdev 0)
	ip link set "$_virtio" mtu 4200 && load_rxe "$_virtio" 10.2.0.1/24 || return
	FERRY_GID=$(gid_index "$FERRY")
	RXE_GID=$(gid_index rxe0)
	wait_for 10 mtu_is "$FERRY" && wait_for 10 mtu_is rxe0
}
mtu_is() { ibv_devinfo -d "$1" | grep -q "active_mtu:.*$MTU"; }

# perftest DEVICE GID TOOL ARGUMENT...
perftest() {
	_common="$3 -d $1 -x $2 -m $MTU -F"
	shift 3
	pair "$_common $*" "$_common $* 127.0.0.1"
}

# The line of numbers in perftest's output, by column.
column() { awk -v column="$1" '/^ *[0-9]+ +[0-9]+ /{ print $column }' "$OUT" | tail -n 1; }

# measured COLUMN FACTOR: VALUE from perftest's output. On a busy machine perftest may fail to find the clock's rate; then it prints 0
# or inf where a time is wanted.
measured() {
	VALUE=$(column "$1" | awk -v factor="$2" '{ printf "%.2f", $1 * factor }')
	case $VALUE in '' | 0.00 | *inf* | *nan*) return 1 ;; esac
}

# measure COLUMN FACTOR DEVICE GID TOOL ARGUMENT...: leaves VALUE, and P99 where there is one.
measure() {
	_column=$1 _factor=$2
	shift 2
	run "$3 on $1" perftest "$@" || return
	for _try in 2 3; do
		measured "$_column" "$_factor" && break
		diag "$3 on $1 could not tell the time, try $_try"
		run "$3 on $1, try $_try" perftest "$@" || return
	done
	measured "$_column" "$_factor" || { not_ok "$3 on $1 says how much"; diag "$(cat "$OUT")"; return 1; }
	P99=$(column 8)
}

# better_is less|more: how many times FERRY_VALUE is better than RXE_VALUE.
ratio() {
	awk -v better="$1" -v ferry="$FERRY_VALUE" -v rxe="$RXE_VALUE" \
		'BEGIN { printf "%.1f", better == "less" ? rxe / ferry : ferry / rxe }'
}

# bench CASE: what bench_CASE says: unit, column, factor, less or more, tool and arguments.
bench() {
	_case=$1
	shift
	# shellcheck disable=SC2046
	set -- $(bench_case "$_case")
	_unit=$1 _col=$2 _fac=$3 _better=$4
	shift 4
	measure "$_col" "$_fac" "$FERRY" "$FERRY_GID" "$@" || return
	FERRY_VALUE=$VALUE FERRY_P99=$P99
	measure "$_col" "$_fac" rxe0 "$RXE_GID" "$@" || return
	RXE_VALUE=$VALUE RXE_P99=$P99
	echo "bench $_case ferry $FERRY_VALUE rxe $RXE_VALUE ratio $(ratio "$_better") $_unit"
	[ "$_better" = more ] && FERRY_P99='' RXE_P99=''
	printf '%-14s %-6s %12s %12s %9sx %10s %10s   %s\n' "$_case" "$_unit" "$FERRY_VALUE" "$RXE_VALUE" "$(ratio "$_better")" \
		"$FERRY_P99" "$RXE_P99" "$*" >>/tmp/table
}

# TIMED is for what is measured by time, ROUNDS for what is measured by rounds. With TIMED perftest counts what completes between two
# alarms that are a second apart, so that rates come from this count, which needs no clock, and not from perftest's own columns.
TIMED='-D 3 -f 1'
bench_case() {
	case $1 in
	write_bw_64k) echo MiB/s 2 0.0625 more ib_write_bw -s 65536 $TIMED ;;
	read_bw_64k) echo MiB/s 2 0.0625 more ib_read_bw -s 65536 $TIMED ;;
	send_bw_64k) echo MiB/s 2 0.0625 more ib_send_bw -s 65536 $TIMED ;;
	write_rate_8) echo k/s 2 0.001 more ib_write_bw -s 8 $TIMED ;;
	send_rate_8) echo k/s 2 0.001 more ib_send_bw -s 8 $TIMED ;;
	write_lat_8) echo us 5 1 less ib_write_lat -s 8 -n $ROUNDS ;;
	send_lat_8) echo us 5 1 less ib_send_lat -s 8 -n $ROUNDS ;;
	read_lat_8) echo us 5 1 less ib_read_lat -s 8 -n $ROUNDS ;;
	esac
}

# benchmark CASE...
benchmark() {
	run "both devices come up with MTU $MTU" setup || return
	: >/tmp/table
	_cores=$(bounce)
	for _each in "$@"; do bench "$_each"; done
	_after=$(bounce)
	printf '\n%-14s %-6s %12s %12s %10s %10s %10s   %s\n' case unit ferry Soft-RoCE better 'p99 ferry' 'p99 rxe' 'perftest, both'
	cat /tmp/table
	echo
	echo "$MACHINE guest of $VCPUS CPUs, Linux $(uname -r), MTU $MTU on both, loopback, DMA $DMA;"
	echo "a cache line from CPU to CPU and back: $_cores ns before, $_after ns after."
}
