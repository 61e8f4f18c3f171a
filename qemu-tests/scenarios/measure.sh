# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
# host: measure.host.sh
#
# The measuring kit, in its quick form. Its times mean nothing here; that every row comes does. The results are left in build/measure/
# on the host. measure-pair is the same between two machines.

run "the device comes up" load_ferry || return
. /ferry/scenarios/lib/measure.sh
PCI=$(basename "$(readlink -f "/sys/class/infiniband/$FERRY/device")")

RUN_LIMIT=400 run "measures" collect
check_results

# Bad arguments, each with an answer.
fails "the module wants a device" insmod "$KO"
for bad in device=nonsense device=0000:00:00 device=0000:00:00.0x device=0000:ff:1f.7 "device=$PCI repeats=2" "device=$PCI repeats=202" \
	"device=$PCI sample_us=0" "device=$PCI sample_us=4000000000" "device=$PCI repeats=x"; do
	# shellcheck disable=SC2086
	fails "the module refuses $bad" insmod "$KO" $bad
done
is "it has said what it wants" "$(dmesg | grep -q 'ferry_measure: device= must name a PCI device'; echo $?)" 0
link() { /ferry/measure/measure-link "$@"; }
fails "measure-link without a part" link
fails "measure-link with a part that is none" link sever
fails "measure-link with a device that is none" link -d nobody post
fails "measure-link with a GID that is none" link -d "$FERRY" -g 9999 post
fails "measure-link where nobody serves" link -d "$FERRY" client 127.0.0.1
fails "measure-link with a port that is none" link -d "$FERRY" -p 70000 server
fails "measure-host on a CPU that is none" /ferry/measure/measure-host -c 1000 barriers
fails "collect without its programs" /ferry/measure/collect -b /nowhere

# Whoever connects to a server and says nonsense ends it with a message.
/ferry/measure/measure-link -d "$FERRY" server 2>/tmp/server &
server=$!
wait_for 20 grep -q ready /tmp/server
head -c 4096 /dev/urandom | nc 127.0.0.1 18777 >/dev/null
wait $server
is "a server that hears nonsense says so" "$?, $(grep -c 'no measure-link of this version' /tmp/server)" "1, 1"

# The module: who may read, and how it ends. As slow as can be: it must end at once when its reader is killed.
run "the module loads" insmod "$KO" "device=$PCI" repeats=201 sample_us=100000
fails "reading needs CAP_SYS_ADMIN" setpriv --bounding-set -sys_admin cat $DEBUGFS/map
timeout 1 cat $DEBUGFS/map >/dev/null &
reader=$!
sleep 0.3
fails "the module stays while somebody reads" rmmod ferry_measure
wait $reader
is "a reader can be stopped" $? 143
run "the module unloads" rmmod ferry_measure

# A device that nobody drives: the DMA API is not measured, and the IOMMU with the domain attached.
rmmod ferry
run "the module loads, for a device without driver" insmod "$KO" "device=$PCI" repeats=3 sample_us=200
for file in facts map sync iommu; do
	run "reads $file" cat $DEBUGFS/$file
	cat "$OUT" >>/tmp/bare.tsv
done
ROWS=/tmp/bare.tsv
is "the DMA API is not measured then" "$(rows none 'DMA map')" 1
[ "$IOMMU" = none ] || is "the IOMMU is, attached" "$(rows row IOMMU '^(un)?map$')" 6
run "the module unloads" rmmod ferry_measure
