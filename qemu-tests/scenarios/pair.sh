# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guests: 2
# wire: 0.nic0 1.nic0
# timeout: 240
#
# Two guests, their NICs on one wire: frames of the netdev and of RoCE.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
server=10.1.0.1
# Nothing is lost here: a peer that is late has no core, or a queue full of messages before it.
ACK_TIMEOUT=18
peer=10.1.0.$((2 - GUEST_INDEX))
barrier configured

run "ping" ping -c 3 -W 5 "$peer"
run "ping over IPv6" ping -c 2 -W 5 "ff02::1%$FERRY_NETDEV"
run "the largest frame is allowed" ip link set "$FERRY_NETDEV" mtu 9000
barrier mtu
run "ping with 9,000 bytes" ping -c 3 -W 5 -s 8972 "$peer"

both "pingpong" $server "ibv_rc_pingpong -d $DEV -g $GID -n 500 -c"
both "pingpong with events" $server "ibv_rc_pingpong -d $DEV -g $GID -n 200 -e -c"
for tool in ib_write ib_read ib_send; do
	both "${tool}_bw" $server "${tool}_bw -d $DEV -x $GID -F -s 65536 -n 200 -u $ACK_TIMEOUT"
	both "${tool}_lat" $server "${tool}_lat -d $DEV -x $GID -F -s 8 -n 100"
done
both "ib_write_bw, MTU 4096" $server "ib_write_bw -d $DEV -x $GID -F -s 65536 -n 200 -m 4096 -u $ACK_TIMEOUT"
both "ib_write_bw, 16 QPs, both ways" $server "ib_write_bw -d $DEV -x $GID -F -s 4096 -n 100 -q 16 -b -u $ACK_TIMEOUT"

if [ "$GUEST_INDEX" = 0 ]; then
	tap data data --listen 19002 --memory 300000 --iterations 3 --ack-timeout $ACK_TIMEOUT
else
	tap data data --peer $server:19002 --memory 300000 --iterations 3 --ack-timeout $ACK_TIMEOUT
fi
barrier data
run "packets were sent" test "$(counter tx_packets)" -gt 1000
is "none of them was bad" "$(counter rx_icrc_errors)" 0
