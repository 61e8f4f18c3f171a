# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guests: 2
# nics: 1
# net: 1
# wire: 0.nic0 1.net0
# timeout: 300
#
# A peer that nobody here wrote: the second guest has Soft-RoCE over virtio-net on the other end of the wire. That they
# understand each other proves the frames and the ICRC. (Its own NIC of ours is on no wire, and not used.)

if [ "$GUEST_INDEX" = 0 ]; then
	run "the driver loads and the device comes up" load_ferry || return
	DEV=$FERRY
else
	run "Soft-RoCE comes up" load_rxe "$(virtio_netdev 0)" 10.1.0.2/24 || return
	DEV=rxe0
fi
. /ferry/scenarios/lib/verbs.sh
barrier configured
peer=10.1.0.$((2 - GUEST_INDEX))
run "ping" ping -c 3 -W 5 "$peer"

# Each is the server once.
both "pingpong" 10.1.0.1 "ibv_rc_pingpong -d $DEV -g $GID -n 300 -c"
both "pingpong with events" 10.1.0.1 "ibv_rc_pingpong -d $DEV -g $GID -n 100 -e -c"
for size in 1 1023 4097 65536; do
	both "pingpong, $size bytes" 10.1.0.1 "ibv_rc_pingpong -d $DEV -g $GID -s $size -n 50 -c"
done
GUEST_INDEX=$((1 - GUEST_INDEX))
both "pingpong, the other way round" 10.1.0.2 "ibv_rc_pingpong -d $DEV -g $GID -n 300 -c"
for tool in ib_write ib_read ib_send; do
	# READs under way: perftest wants Soft-RoCE's 128 of both, and we can have 16.
	outs=
	[ $tool != ib_read ] || outs='-o 16'
	both "${tool}_bw" 10.1.0.2 "${tool}_bw -d $DEV -x $GID -F -s 65536 -n 100 $outs"
	both "${tool}_lat" 10.1.0.2 "${tool}_lat -d $DEV -x $GID -F -s 8 -n 100 $outs"
done
GUEST_INDEX=$((1 - GUEST_INDEX))

# Every kind of operation, with every MTU and mixed. Not empty READs and WRITEs: when the last request was one, Soft-RoCE takes an
# earlier READ that is repeated for empty as well (read_reply() of 7.2 asks qp->resp.length, which is the last request's), warns in
# rxe_mr_copy() and breaks the connection. A capture showed just that: READ of 47 bytes, WRITE of 0 with immediate, the READ again.
if [ "$GUEST_INDEX" = 0 ]; then
	tap data data --dev "$DEV" --listen 19002 --memory 300000 --iterations 3 --plain
else
	tap data data --dev "$DEV" --peer 10.1.0.1:19002 --memory 300000 --iterations 3 --plain
fi
