# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nic: --refuse each
# timeout: 900
#
# Behind its first reset the NIC refuses the first admin command, behind the next the second, and so on: probe fails at each of its
# steps, then the netdev's coming up or a program does. Each time what is left can be removed, and in the end all works.

modprobe ib_uverbs
modprobe rdma_ucm
bound() { [ -n "$(ls -d /sys/bus/pci/drivers/ferry/0000:* 2>/dev/null)" ]; }
refused() { host nic-log | grep -c 'command was refused'; }
attempt() { modprobe ferry && bound && load_ferry && . /ferry/scenarios/lib/verbs.sh && pingpong -n 100 -c; }

probed=0
for n in $(seq 200); do
	before=$(refused)
	attempt >"$OUT" 2>&1
	status=$?
	! bound || probed=$((probed + 1))
	[ "$(refused)" != "$before" ] || break
	run "command $n refused: the driver can be removed" rmmod ferry || return
	is "command $n refused: no device is left" "$(ferry_devices)" ""
done
run "probe met some of them" test $((n - probed)) -gt 5
run "and what comes later met some" test $probed -gt 5
is "without a refusal all works" $status 0
[ $status = 0 ] || diag "$(cat "$OUT")"
