# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# hotplug: 1
# reboot: yes
# host: power.host.sh
# timeout: 600
#
# What befalls the function from outside while a program uses it: sleep, reset, PCI errors, the end of the kernel. The program is
# told, and afterwards all works again.

. /ferry/scenarios/lib/verbs.sh
if [ "$BOOT" = 2 ]; then
	run "after a reboot under traffic the device comes up" load_ferry
	set_device
	run "and works" pingpong -n 100 -c
	return
fi

run "the driver loads and the device comes up" load_ferry || return
set_device
pci=$(basename "$(readlink -f "/sys/class/infiniband/$FERRY/device")")
sleeps() {
	echo devices >/sys/power/pm_test
	echo freeze >/sys/power/state
}

# Another netdev than before says that it is another device.
ifindex() { cat "/sys/class/infiniband/$FERRY/device/net/"*/ifindex; }
renewed() { _now=$(ifindex 2>/dev/null) && [ "$_now" != "$_before" ]; }

# under_traffic WHAT COMMAND...
under_traffic() {
	_what=$1
	shift
	_before=$(ifindex)
	traffic_start || { not_ok "$_what: there is traffic"; return; }
	run "$_what" "$@"
	run "$_what: a program that polls learns of it" wait_for 10 traffic_ended
	traffic_stop
	run "$_what: there is a device again" wait_for 20 renewed
	run "$_what: the device comes up" load_ferry
	set_device
	run "$_what: it works" pingpong -n 100 -c
}

under_traffic "sleep and wake-up" sleeps
under_traffic "reset of the function" sh -c "echo 1 >/sys/bus/pci/devices/$pci/reset"
under_traffic "PCI error, not fatal" host pcie-error slot0 COMP_TIME
under_traffic "PCI error, fatal" host pcie-error slot0 DLP

traffic_start
host reboot && reboot -f
