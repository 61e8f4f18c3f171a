# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What udev makes of the device: a name that stays, and a wish for the modules of RoCE, which rdma-core's rules have only for
# devices that some rule knows.

ln -s "$(command -v udevadm)" /tmp/systemd-udevd
mkdir -p /run/udev
[ ! -d /sys/module/ferry ] || unload_ferry
run "udevd starts" /tmp/systemd-udevd --daemon
run "the driver loads" modprobe ferry
run "udev has seen the device" udevadm settle --timeout 20
run "it comes up" load_ferry || return
is "with a name made of its place" "${FERRY%%p*}" roce
run "its properties are known" udevadm info -q property -p "/sys/class/infiniband/$FERRY"
cp "$OUT" /tmp/properties
for property in ID_RDMA_ROCE=1 'SYSTEMD_WANTS=.*rdma-load-modules@roce.service' ID_VENDOR_ID=0x1af4; do
	run "$property" grep "^$property" /tmp/properties
done
udevadm control --exit
