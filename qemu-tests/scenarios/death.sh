# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# hotplug: 3
# timeout: 240
# expect: ferry .*(lost|dead|fatal|stopped)
#
# The NIC dies under traffic; a new one takes its place. Twice, since the first time must not have used anything up.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

exists() { [ -e "$1" ]; }
gone() { [ -z "$(ferry_devices)" ]; }

for time in first second; do
	rm -f /tmp/ready
	pollwait --ready /tmp/ready >/tmp/pollwait 2>&1 &
	traffic=$!
	wait_for 30 exists /tmp/ready || { not_ok "$time: traffic runs"; diag "$(cat /tmp/pollwait)"; return; }
	run "$time: the NIC is killed" host nic-kill
	wait $traffic
	is "$time: programs that poll and programs that wait are told in time" $? 0
	diag "$(cat /tmp/pollwait)"
	run "$time: ibv_devices does not hang" ibv_devices
	run "$time: the driver can be removed" unload_ferry
	is "$time: and no device is left" "$(ferry_devices)" ""
	run "$time: what is left of the NIC is removed" remove_nics
	run "$time: a new one is plugged" plug_nic
	run "$time: the driver takes it" load_ferry
	run "$time: and traffic runs again" pingpong -n 200 -c
done

# The driver stays, and the NIC is changed under it. Its netdev cannot be opened anew, and can be closed.
run "the NIC is killed" host nic-kill
fails "the MTU of its netdev does not change" ip link set "$FERRY_NETDEV" mtu 1400
run "its netdev goes down" ip link set "$FERRY_NETDEV" down
run "and removed with the driver loaded" remove_nics
run "the device goes" wait_for 20 gone
run "a new one is plugged" plug_nic
run "the driver takes it by itself" load_ferry
run "and traffic runs again" pingpong -n 200 -c
