# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the parameter isolation says is done: required binds behind an IOMMU only, off leaves the memory open where the kernel does.

modprobe ib_uverbs
modprobe rdma_ucm
regime() { cat "/sys/class/infiniband/$FERRY/dma_regime"; }
passthrough() { grep -q 'iommu=pt' /proc/cmdline; }
case $IOMMU in
riscv) with=isolated without=direct ;;
none) with=direct without=direct ;;
*) passthrough && with=direct || with=translated; without=$with ;;
esac

modprobe ferry isolation=sometimes 2>/dev/null
run "what the parameter does not know is refused" test ! -d /sys/module/ferry
run "auto" load_ferry isolation=auto || return
. /ferry/scenarios/lib/verbs.sh
is "the regime" "$(regime)" $with
run "it works" pingpong -n 100 -c
run "the driver is removed" unload_ferry

if [ $with = direct ]; then
	modprobe ferry isolation=required
	is "required: no device without isolation" "$(ferry_devices)" ""
	run "and a line that says so" sh -c "dmesg | grep 'isolation=required, but'"
	diag "$(dmesg | grep 'isolation=required, but' | tail -n 1)"
else
	run "required" load_ferry isolation=required
	is "the regime" "$(regime)" $with
	DEV=$FERRY GID=$(gid_index "$FERRY")
	run "it works" pingpong -n 100 -c
fi
is "the parameter can be read" "$(cat /sys/module/ferry/parameters/isolation)" required
run "the driver is removed" unload_ferry

run "off" load_ferry isolation=off
is "the regime" "$(regime)" $without
DEV=$FERRY GID=$(gid_index "$FERRY")
run "it works" pingpong -n 100 -c
