# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nic: --refuse each
# timeout: 300
#
# After its first reset the NIC refuses the first admin command, after the second the second, and so on, until probe gets
# through: each failure before that is clean.

modprobe ib_uverbs
modprobe rdma_ucm
bound() { [ -n "$(ls -d /sys/bus/pci/drivers/ferry/0000:* 2>/dev/null)" ]; }

n=1
until modprobe ferry && bound && [ -n "$(ferry_devices)" ] || [ $n = 100 ]; do
	run "command $n refused: the driver can be removed" rmmod ferry || return
	is "command $n refused: no device is left" "$(ferry_devices)" ""
	n=$((n + 1))
done
run "there were some" test $n -gt 5
run "and in the end it gets through" test $n -lt 100
run "the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
run "it works" pingpong -n 100 -c
