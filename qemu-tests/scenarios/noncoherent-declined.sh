# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# arch: riscv64
# coherent: no
# cpu: rv64,svpbmt=false
# net: 1
# expect: arch_setup_dma_ops.0x|DMA is not coherent with the CPUs' caches, and the host has no |probe with driver ferry failed with error -95
#
# A host without Svpbmt: what dma_alloc_coherent() returns there is cached, and no ring in it would ever be right. Or (with
# zicbom=first) one some of whose harts have no cache operations: the kernel uses them on none then, nor lets programs. The driver
# says so and leaves the device alone; nothing else breaks.

# harts EXTENSION: how many have it.
harts() { grep -c "^hart isa.*$1" /proc/cpuinfo; }
missing="no non-cached memory (Svpbmt)"
[ "$(harts zicbom)" = "$(nproc)" ] || missing="no cache operations"
declined() { dmesg | grep -qF "DMA is not coherent with the CPUs' caches, and the host has $missing: not supported"; }

modprobe ib_uverbs
run "the module loads" modprobe ferry
run "the driver says what is missing" wait_for 20 declined
is "there is no device" "$(ferry_devices)" ""
is "nothing is bound" "$(ls -d /sys/bus/pci/drivers/ferry/0000:* 2>/dev/null)" ""
run "the driver can be removed" rmmod ferry
run "other RDMA goes on" load_rxe "$(virtio_netdev 0)" 10.2.0.1/24
gid=$(gid_index rxe0)
run "and exchanges data" pair "ibv_rc_pingpong -d rxe0 -g $gid -n 100" "ibv_rc_pingpong -d rxe0 -g $gid -n 100 127.0.0.1"
run "until it is taken away" rdma link delete rxe0
