# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
#
# The driver comes and goes 20 times, is unbound with files open, and the PCI function is reset.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
cycle() { unload_ferry && load_ferry && ibv_devinfo -d "$FERRY" >/tmp/info && grep -q PORT_ACTIVE /tmp/info; }

before=$(grep MemAvailable /proc/meminfo | tr -dc 0-9)
for i in $(seq 20); do
	run "unloaded and loaded, $i" cycle || return
done
after=$(grep MemAvailable /proc/meminfo | tr -dc 0-9)
run "no more than 8 MiB have gone" test $((before - after)) -lt 8192
run "it works" pingpong -n 100 -c

# With a program that has everything open, and goes on.
pci=$(basename "$(readlink -f "/sys/class/infiniband/$FERRY/device")")
ib_write_bw -d "$FERRY" -x "$GID" -F -D 20 -p 19001 >/tmp/bw.server 2>&1 &
server=$!
wait_for 10 listening $server 19001
ib_write_bw -d "$FERRY" -x "$GID" -F -D 20 -p 19001 127.0.0.1 >/tmp/bw.client 2>&1 &
client=$!
sleep 2
run "the driver is unbound under traffic" sh -c "echo $pci >/sys/bus/pci/drivers/ferry/unbind"
ended() { ! kill -0 $server 2>/dev/null || ! kill -0 $client 2>/dev/null; }
run "a program that polls learns of it" wait_for 10 ended
kill $server $client 2>/dev/null
wait $server $client
run "and bound again" sh -c "echo $pci >/sys/bus/pci/drivers/ferry/bind"
run "the device comes up" load_ferry
run "it works" pingpong -n 100 -c

run "the function is reset" sh -c "echo 1 >/sys/bus/pci/devices/$pci/reset"
unload_ferry
run "the driver loads after a reset" load_ferry
run "it works" pingpong -n 100 -c
