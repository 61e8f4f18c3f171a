# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guests: 2
# wire: 0.nic0 1.nic0
# nic0: --pcap /tmp/ferry.pcap
# host: capture.host.sh
# timeout: 120
#
# What crosses the link is written down in a form that tshark decodes.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
barrier configured

both "send" 10.1.0.1 "ibv_rc_pingpong -d $DEV -g $GID -n 20 -s 5000 -m 1024 -c"
both "write" 10.1.0.1 "ib_write_bw -d $DEV -x $GID -F -s 5000 -n 5"
both "read" 10.1.0.1 "ib_read_bw -d $DEV -x $GID -F -s 5000 -n 5"
if [ "$GUEST_INDEX" = 0 ]; then
	for opcode in 'SEND First' 'SEND Middle' 'SEND Last' 'RDMA WRITE First' 'RDMA WRITE Last' 'RDMA READ Request' \
		'RDMA READ response First' 'RDMA READ response Last' 'Acknowledge'; do
		run "decoded: $opcode" host decoded "$opcode"
	done
	run "nothing malformed" host well-formed
fi
