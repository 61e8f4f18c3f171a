# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guests: 2
# wire: 0.nic0 1.nic0
# nic: --impair loss=0.01,seed=7
# host: loss.host.sh
# timeout: 600
#
# Two guests on a wire that loses one frame in a hundred: all arrives, and it is seen that some had to be sent again.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
server=10.1.0.1
# By messages a queue full of requests takes longer than 67 ms, and what is lost is sent again with all that follows: so less of it.
MUCH="-s 65536 -n 200" ROUNDS=5
ACK_TIMEOUT=14
[ "$DMA" = direct ] || MUCH="-s 65536 -n 50 -t 4" ROUNDS=2 ACK_TIMEOUT=17
barrier configured

both "pingpong" $server "ibv_rc_pingpong -d $DEV -g $GID -n 300 -c"
both "ib_write_bw" $server "ib_write_bw -d $DEV -x $GID -F $MUCH -u $ACK_TIMEOUT"
both "ib_read_bw" $server "ib_read_bw -d $DEV -x $GID -F $MUCH -u $ACK_TIMEOUT"
both "ib_send_bw" $server "ib_send_bw -d $DEV -x $GID -F $MUCH -u $ACK_TIMEOUT"
if [ "$GUEST_INDEX" = 0 ]; then
	tap data data --listen 19002 --memory 1000000 --iterations $ROUNDS --ack-timeout $ACK_TIMEOUT
else
	tap data data --peer $server:19002 --memory 1000000 --iterations $ROUNDS --ack-timeout $ACK_TIMEOUT
fi
barrier data
run "requests were sent again" test "$(counter retransmits)" -gt 0
run "gaps were seen" test $(($(counter out_of_sequence) + $(counter implied_nak_seq_err) + $(counter local_ack_timeout_err))) -gt 0
run "the NIC says how many frames it dropped" host lost-frames
