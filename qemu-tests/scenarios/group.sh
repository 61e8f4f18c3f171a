# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nics: 2
# functions: yes
# iommu: riscv
# arch: riscv64
#
# Two NICs in one IOMMU group: only one of them can have an address space of its own. The other is refused, and says why.

modprobe ib_uverbs
modprobe rdma_ucm
group_of() { basename "$(readlink -f "/sys/bus/pci/devices/$1/iommu_group")"; }
bound() { ls -d /sys/bus/pci/drivers/ferry/0000:* 2>/dev/null; }
# shellcheck disable=SC2046
set -- $(grep -l 0x10f0 /sys/bus/pci/devices/*/device | sed 's|/device$||; s|.*/||')
is "there are two NICs" $# 2
is "in one group" "$(group_of "$1")" "$(group_of "$2")"

run "the driver loads" modprobe ferry
is "one of them is bound" "$(bound | wc -l)" 1
first=$(basename "$(bound)")
[ "$first" = "$1" ] && second=$2 || second=$1
run "the other says why" sh -c "dmesg | grep '$second.*IOMMU group is taken'"
NICS=1
run "the one works" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
run "and exchanges data" pingpong -n 100 -c

driver=/sys/bus/pci/drivers/ferry
run "it goes" sh -c "echo $first >$driver/unbind"
run "then the other can be bound" sh -c "echo $second >$driver/bind"
run "it comes up" load_ferry
is "isolated" "$(cat "/sys/class/infiniband/$FERRY/dma_regime")" isolated
DEV=$FERRY GID=$(gid_index "$FERRY")
run "and exchanges data" pingpong -n 100 -c
