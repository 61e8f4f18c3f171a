# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
# expect: rmap\.h:[0-9]+ at folio_(add_file|remove)_rmap_ptes|memory\.c:[0-9]+ at vm_normal_page
#
# The driver comes and goes 20 times, is unbound with files open, and the PCI function is reset.
#
# A debug kernel warns of ib_core there, not of us: see "The zero page of a disassociated mapping" in doc/use.md.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
cycle() { unload_ferry && load_ferry && ibv_devinfo -d "$FERRY" >/tmp/info && grep -q PORT_ACTIVE /tmp/info; }

available() { grep MemAvailable /proc/meminfo | tr -dc 0-9; }
before=$(available)
for i in $(seq 20); do
	run "unloaded and loaded, $i" cycle || return
done
# KASAN holds back what was freed; there kmemleak looks for what is lost.
case $(uname -r) in
*-debug) ;;
*) run "no more than 8 MiB have gone" test $((before - $(available))) -lt 8192 ;;
esac
run "it works" pingpong -n 100 -c

# With a program that has everything open, and goes on.
pci=$(basename "$(readlink -f "/sys/class/infiniband/$FERRY/device")")
run "there is traffic" traffic_start
run "the driver is unbound under traffic" sh -c "echo $pci >/sys/bus/pci/drivers/ferry/unbind"
run "a program that polls learns of it" wait_for 10 traffic_ended
traffic_stop
run "and bound again" sh -c "echo $pci >/sys/bus/pci/drivers/ferry/bind"
run "the device comes up" load_ferry
run "it works" pingpong -n 100 -c

run "the function is reset" sh -c "echo 1 >/sys/bus/pci/devices/$pci/reset"
unload_ferry
run "the driver loads after a reset" load_ferry
run "it works" pingpong -n 100 -c

has_gid() { grep -qs "$1" "/sys/class/infiniband/$FERRY/ports/1/gids/"*; }
run "the MAC address changes while the netdev is up" ip link set "$FERRY_NETDEV" address 52:54:00:fe:ca:fe
run "the default GID follows" wait_for 10 has_gid 5054:00ff:fefe:cafe
run "it works" pingpong -n 100 -c
