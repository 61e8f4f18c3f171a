# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the usual tools show of the device and its netdev, and that an ordinary user can use it.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

# shows NAME PATTERN COMMAND...: its output has such a line.
shows() {
	_what=$1 _pattern=$2
	shift 2
	run "$_what" "$@" || return
	grep -qE "$_pattern" "$OUT" && ok "$_what: $_pattern" && return
	not_ok "$_what: $_pattern"
	diag "$(cat "$OUT")"
}

shows ibv_devices "$FERRY" ibv_devices
shows "ibv_devinfo" 'state:[[:space:]]+PORT_ACTIVE' ibv_devinfo -d "$FERRY"
shows "ibv_devinfo -v" 'max_qp:[[:space:]]+[0-9]{5}' ibv_devinfo -v -d "$FERRY"
for line in 'transport:[[:space:]]+InfiniBand' 'fw_ver:[[:space:]]+[0-9]' 'vendor_id:[[:space:]]+0x1af4' 'vendor_part_id:[[:space:]]+4336' \
	'node_guid:[[:space:]]+[0-9a-f]{4}:' 'max_mr_size:[[:space:]]+0x' 'max_qp_wr:[[:space:]]+16384' 'max_sge:[[:space:]]+(1[6-9]|[2-9][0-9])' \
	'completion timestamp_mask:[[:space:]]+0xf{16}' 'hca_core_clock:[[:space:]]+1000000' 'num_comp_vectors:[[:space:]]+[1-9]' 'link_layer:[[:space:]]+Ethernet' 'active_mtu:[[:space:]]+[0-9]+' 'GID\[ *[0-9]+\].*ffff:10\.1\.0\.1.*RoCE v2|GID\[ *[0-9]+\].*RoCE v2'; do
	shows "ibv_devinfo -v" "$line" ibv_devinfo -v -d "$FERRY"
done

shows "rdma link" "link $FERRY/1 state ACTIVE physical_state LINK_UP netdev $FERRY_NETDEV" rdma link show
shows "rdma dev" "$FERRY: node_type ca .*fw [0-9]" rdma dev show
shows "rdma statistic" "rx_packets" rdma statistic show link "$FERRY/1"

shows "ethtool -i" '^driver: ferry' ethtool -i "$FERRY_NETDEV"
shows "ethtool -i" '^bus-info: [0-9a-f]{4}:' ethtool -i "$FERRY_NETDEV"
shows "ethtool" 'Link detected: yes' ethtool "$FERRY_NETDEV"
shows "ethtool -S" '[a-z_]+: [0-9]+' ethtool -S "$FERRY_NETDEV"

# While a process holds objects, rdma resource says which, whose and in which state.
PORT=19000
ibv_rc_pingpong -d "$FERRY" -g "$GID" -p $PORT >/tmp/holder 2>&1 &
holder=$!
wait_for 10 listening $holder $PORT
shows "rdma resource" "$FERRY: .*pd [1-9].*cq [1-9].*qp [1-9].*mr [1-9]" rdma resource show "$FERRY"
shows "rdma resource show qp" "link $FERRY/1 lqpn [0-9]+ .*type RC state INIT .*pdn [0-9]+ pid $holder comm ibv_rc_pingpong" rdma resource show qp
shows "rdma resource show cq" "dev $FERRY cqn [0-9]+ cqe [0-9]+ users [0-9]+ .*pid $holder" rdma resource show cq
shows "rdma resource show mr" "dev $FERRY mrn [0-9]+ .*mrlen 4096 .*pid $holder" rdma resource show mr
shows "rdma resource show pd" "dev $FERRY pdn [0-9]+ .*pid $holder" rdma resource show pd
shows "rdma -dd resource show qp" "lqpn" rdma -dd resource show qp
kill $holder
wait $holder
is "and nothing once it has ended" "$(rdma resource show qp | grep -c 'type RC')" 0

# as_user COMMAND: an ordinary user with 8 MiB of lockable memory.
as_user() { su user -c "ulimit -l 8192 && $*"; }
shows "an ordinary user may use it" "hca_id:[[:space:]]+$FERRY" as_user "ibv_devinfo -d $FERRY"
cat >/tmp/user.sh <<END
ibv_rc_pingpong -d $FERRY -g $GID -s 1048576 -n 10 -c >/tmp/user.server 2>&1 &
sleep 2
ibv_rc_pingpong -d $FERRY -g $GID -s 1048576 -n 10 -c 127.0.0.1 && wait \$!
END
run "and exchange data" as_user sh /tmp/user.sh
fails "but has only so much memory to lock" as_user "ibv_rc_pingpong -d $FERRY -g $GID -s 16777216"
