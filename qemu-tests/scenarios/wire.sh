# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guests: 2
# nics: 0
# net: 1
# wire: 0.net0 1.net0
#
# Two guests on one wire, with nothing of ours between them.

peer=10.2.0.$((2 - GUEST_INDEX))
load_rxe "$(virtio_netdev 0)" "10.2.0.$((GUEST_INDEX + 1))/24"
barrier configured
run "ping" ping -c 3 -W 5 "$peer"
run "a value goes from one guest to the other" host set "name$GUEST_INDEX" "guest $GUEST_INDEX"
is "and arrives" "$(host get "name$((1 - GUEST_INDEX))")" "guest $((1 - GUEST_INDEX))"

gid=$(gid_index rxe0)
if [ "$GUEST_INDEX" = 0 ]; then
	ibv_rc_pingpong -d rxe0 -g "$gid" -n 100 >/tmp/server 2>&1 &
	server=$!
	wait_for 10 listening $server 18515
	barrier listening
	wait $server
	is "pingpong between the guests, server" $? 0
else
	barrier listening
	run "pingpong between the guests, client" ibv_rc_pingpong -d rxe0 -g "$gid" -n 100 "$peer"
fi
