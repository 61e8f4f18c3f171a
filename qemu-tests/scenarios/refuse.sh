# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# hotplug: yes
# timeout: 300
#
# The NIC refuses the first admin command, then the second, and so on, until probe gets through: each failure is clean.

. /ferry/guest-lib.sh
modprobe ib_uverbs
bound() { ls /sys/bus/pci/drivers/ferry/ 2>/dev/null | grep -q '^0000:'; }

# probe N: with a NIC that refuses its Nth command; true once the driver holds it.
probe() {
	host nic-unplug >/dev/null && host nic-restart 0 --refuse "$1" >/dev/null && host nic-plug >/dev/null || return 2
	wait_for 10 plugged || return 2
	modprobe ferry || return 2
	udevadm settle 2>/dev/null
	sleep 0.2
	bound
}
plugged() { grep -lsx 0x10f0 /sys/bus/pci/devices/*/device >/dev/null; }

n=1
while [ $n -lt 100 ]; do
	limit 20 probe $n
	status=$?
	[ $status -lt 2 ] || { not_ok "command $n: the NIC is exchanged"; return; }
	if [ $status = 0 ] && [ -n "$(ferry_devices)" ]; then
		break
	fi
	run "command $n refused: the driver can be removed" unload_ferry || return
	is "command $n refused: no device is left" "$(ferry_devices)" ""
	n=$((n + 1))
done
run "there were some" test $n -gt 5
run "and in the end it gets through" test $n -lt 100
run "the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
run "it works" pingpong -n 100 -c
