# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nics: 0
# net: 1
#
# The guest itself: what all other scenarios stand on.

run "the kernel is the one we built for" test -d "/lib/modules/$(uname -r)/kernel"
is "every CPU is there" "$(grep -c '^processor' /proc/cpuinfo)" "$VCPUS"
run "the runner answers" host echo hello
is "and what it says arrives" "$(cat "$OUT")" hello
fails "an unknown question is refused" host no-such-command
run "verbs over Soft-RoCE come up" load_rxe "$(virtio_netdev 0)" 10.2.0.1/24
gid=$(gid_index rxe0)
run "and two processes exchange data" pair "ibv_rc_pingpong -d rxe0 -g $gid -n 100" "ibv_rc_pingpong -d rxe0 -g $gid -n 100 127.0.0.1"
run "the device goes away again" rdma link delete rxe0
