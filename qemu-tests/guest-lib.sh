# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=sh
#
# For scenarios: sourced before each. Prints TAP. The runner sets GUEST_INDEX, BOOT, GUESTS, NICS, DMA, IOMMU, COHERENT, VCPUS, MACHINE,
# and PATIENCE, by which all limits of time are multiplied.

TESTS=0
COMPLETE=
FAILED=0
RUN_LIMIT=${RUN_LIMIT:-60}

# Before a module is loaded, and once more when ours is: the checker names places in the kernel.
tell_symbols() { [ "${CHECKER:-no}" = no ] || coherence symbols; }
tell_symbols

# ---------------------------------------------------------------- results

ok() { TESTS=$((TESTS + 1)); echo "ok $TESTS - $*"; }
not_ok() { TESTS=$((TESTS + 1)); FAILED=$((FAILED + 1)); echo "not ok $TESTS - $*"; }
skip() { TESTS=$((TESTS + 1)); echo "ok $TESTS - $1 # SKIP $2"; }
diag() { echo "$*" | sed 's/^/# /'; }

# run NAME COMMAND...: one test, passed when the command succeeds within RUN_LIMIT seconds. Its output is left in $OUT.
OUT=/tmp/run.out
run() {
	_name=$1
	shift
	if limit "$RUN_LIMIT" "$@" >"$OUT" 2>&1; then
		ok "$_name"
	else
		_status=$?
		not_ok "$_name"
		diag "status $_status: $*"
		tail -n 30 "$OUT" | sed 's/^/# /'
		return $_status
	fi
}

# fails NAME COMMAND...: one test, passed when the command fails, but in time.
fails() {
	_name=$1
	shift
	limit "$RUN_LIMIT" "$@" >"$OUT" 2>&1
	_status=$?
	case $_status in
	0 | 143) not_ok "$_name"; diag "status $_status: $*"; tail -n 30 "$OUT" | sed 's/^/# /' ;;
	*) ok "$_name" ;;
	esac
}

# is NAME GOT WANTED
is() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1"
		diag "got '$2', wanted '$3'"
	fi
}

# The end of every scenario (by a trap): the plan. A script may end early by return, but not by exit.
finish() {
	_status=$?
	[ -n "$COMPLETE" ] || not_ok "the script runs to its end (it broke off with status $_status)"
	echo "1..$TESTS"
	exit $((FAILED > 0))
}

# ---------------------------------------------------------------- waiting

# limit SECONDS COMMAND...: status 143 when it took longer. Functions of the shell work as well.
limit() {
	_seconds=$1
	shift
	if [ "$(command -v "$1")" = "$1" ]; then
		"$@"
	else
		timeout $((_seconds * ${PATIENCE:-1})) "$@"
	fi
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
	_until=$(($(cut -d . -f 1 /proc/uptime) + $1 * ${PATIENCE:-1}))
	shift
	until "$@"; do
		[ "$(cut -d . -f 1 /proc/uptime)" -lt $_until ] || return 1
		sleep 0.05
	done
}

# ---------------------------------------------------------------- the runner on the host

# host COMMAND...: asks the runner to do something, prints its answer, has its status. See "host commands" in qemu-tests/run.
host() {
	(
		flock 9
		echo "$*" >&8
		read -r _status _lines <&8
		while [ "$_lines" -gt 0 ]; do
			read -r _line <&8
			printf '%s\n' "$_line"
			_lines=$((_lines - 1))
		done
		exit "$_status"
	) 9>/tmp/host.lock
}

# barrier NAME: waits until every guest has come here.
barrier() { host barrier "$1"; }

# ---------------------------------------------------------------- the NIC

# The RDMA devices of our driver, one a line.
ferry_devices() {
	for _dev in /sys/class/infiniband/*; do
		[ "$(basename "$(readlink -f "$_dev/device/driver")")" = ferry ] && basename "$_dev"
	done
}
netdev_of() { ls "/sys/class/infiniband/$1/device/net"; }
ferry_count() { [ "$(ferry_devices | wc -l)" -ge "$1" ]; }
has_ipv4_gid() { grep -qs 'ffff:' "/sys/class/infiniband/$1/ports/1/gids/"*; }

# load_ferry [MODULE PARAMETER...]: the driver, with every NIC configured: NIC n of guest g has 10.1.n.(g+1)/24.
# Sets FERRY and FERRY_NETDEV, the first NIC's names.
load_ferry() {
	modprobe ib_uverbs
	modprobe rdma_ucm
	modprobe ferry "$@" || return
	tell_symbols
	wait_for 20 ferry_count "${NICS:-1}" || { diag "no RDMA device of ours appeared"; return 1; }
	_n=0
	for _dev in $(ferry_devices); do
		net_up "$(netdev_of "$_dev")" "10.1.$_n.$((${GUEST_INDEX:-0} + 1))/24" || return
		wait_for 10 has_ipv4_gid "$_dev" || { diag "$_dev: no GID for its address"; return 1; }
		_n=$((_n + 1))
	done
	FERRY=$(ferry_devices | head -n 1)
	FERRY_NETDEV=$(netdev_of "$FERRY")
}
# modprobe -r would go on to the modules below it, and fail where those are in use.
unload_ferry() { rmmod ferry; }

# What is left of NICs of ours whose process is gone leaves the PCI bus (or all of them, if some are alive).
remove_nics() {
	for _dev in /sys/bus/pci/devices/*; do
		[ "$(cat "$_dev/vendor" "$_dev/device" | tr '\n' ' ')" = "0x1af4 0x10f0 " ] && echo 1 >"$_dev/remove"
	done
}

# plug_nic [N [OPTION...]]: a new ferry-vnic N in a spare slot, until the PCI bus has it.
plug_nic() {
	host nic-start "$@" && host nic-plug "${1:-0}" || return
	echo 1 >/sys/bus/pci/rescan
	wait_for 20 nic_on_bus
}
nic_on_bus() { grep -qs 0x10f0 /sys/bus/pci/devices/*/device; }

# net_up NETDEV ADDRESS/BITS
net_up() {
	ip link set "$1" up || return
	ip addr replace "$2" dev "$1"
}

# virtio-net of this guest, by number.
virtio_netdev() {
	modprobe virtio_net
	for _dev in /sys/class/net/*; do
		[ "$(basename "$(readlink -f "$_dev/device/driver")")" = virtio_net ] && basename "$_dev"
	done | sed -n "$(($1 + 1))p"
}

# load_rxe NETDEV ADDRESS/BITS: Soft-RoCE as device rxe0.
load_rxe() {
	modprobe rdma_rxe
	net_up "$1" "$2" || return
	rdma link add rxe0 type rxe netdev "$1" || return
	wait_for 10 has_ipv4_gid rxe0
}

# gid_index DEVICE: of the RoCEv2 GID of its IPv4 address.
gid_index() {
	for _gid in "/sys/class/infiniband/$1/ports/1/gids/"*; do
		_index=${_gid##*/}
		case $(cat "$_gid") in
		0000:0000:0000:0000:0000:ffff:*)
			grep -qs v2 "/sys/class/infiniband/$1/ports/1/gid_attrs/types/$_index" && echo "$_index" && return
			;;
		esac
	done
	return 1
}

# pair SERVER CLIENT: two commands (strings) on this machine, the second when the first listens, and both must succeed.
# For programs that exchange their addresses over TCP, such as ibv_rc_pingpong and perftest. PORT is where they listen.
pair() {
	_port=${PORT:-18515}
	sh -c "exec $1" >/tmp/pair.server 2>&1 &
	_server=$!
	if ! wait_for 20 listening $_server "$_port"; then
		cat /tmp/pair.server
		kill $_server
		wait $_server
		return 1
	fi
	sh -c "exec $2"
	_client=$?
	[ $_client = 0 ] || kill $_server
	wait $_server
	_served=$?
	[ $_client = 0 ] && [ $_served = 0 ] && return
	echo "client: status $_client; server: status $_served, and it said:"
	cat /tmp/pair.server
	return 1
}
# True as well when the process has ended: its status tells more.
listening() {
	_hex=$(printf ':%04X ' "$2")
	grep -q "$_hex.* 0A " /proc/net/tcp /proc/net/tcp6 || ! kill -0 "$1" 2>/dev/null
}
