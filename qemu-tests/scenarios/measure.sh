# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
# host: measure.host.sh
#
# The measuring kit, in its quick form. Its times mean nothing here; that every row comes does. The results are left in build/measure/
# on the host. In one guest, or with guests=2 as it is between two machines.

KO=/usr/lib/modules/$(uname -r)/extra/ferry_measure.ko
DEBUGFS=/sys/kernel/debug/ferry_measure
ROWS=/tmp/rows.tsv

run "the device comes up" load_ferry || return
PCI=$(basename "$(readlink -f "/sys/class/infiniband/$FERRY/device")")

collect() { /ferry/measure/collect -q -b /ferry/measure -d "$FERRY" -m "$KO" "$@" >$ROWS; }
# How many rows there are of a group and case, or reasons why not.
rows() { awk -F '\t' -v kind="$1" -v group="$2" -v name="${3:-}" '$1 == kind && $2 == group && (name == "" || $3 ~ name)' $ROWS | wc -l; }
# has GROUP [CASE]: rows, and that each has seven samples.
has() {
	is "rows of $*" "$(($(rows row "$@") > 0))" 1
	is "rows of $* have all samples" "$(awk -F '\t' -v group="$1" '$1 == "row" && $2 == group && split($7, v, " ") != 7' $ROWS)" ''
}

# To the host, since the guest keeps nothing.
send_results() {
	gzip -c $ROWS | base64 >/tmp/rows.b64
	while read -r _line; do
		host results "$_line" || return
	done </tmp/rows.b64
	host results-end
}

if [ "$GUESTS" = 2 ]; then
	if [ "$GUEST_INDEX" = 0 ]; then
		/ferry/measure/measure-link -c 1 -d "$FERRY" server 2>/tmp/server &
		server=$!
		wait_for 20 grep -q ready /tmp/server
		barrier server
		wait $server
		is "the server ends with its client" $? 0
		return
	fi
	barrier server
	RUN_LIMIT=400 run "measures between two machines" collect -s 10.1.0.1
else
	RUN_LIMIT=400 run "measures" collect
fi
diag "$(grep '^none' $ROWS)"

is "it says that this is emulated" "$(awk -F '\t' '$2 == "emulated" { print $3 }' $ROWS)" yes
is "the module tells its facts" "$(awk -F '\t' '$2 == "coherent" { print $3 }' $ROWS)" "$COHERENT"
for group in barrier 'barrier loop' post poll registration latency bandwidth rate 'CPU time' 'DMA map' 'cache, kernel'; do
	has "$group"
done
for name in send write read sleeping; do has latency "RDMA.*$name"; done
has latency TCP
has latency 'TCP, polling'
has bandwidth TCP
case $MACHINE-$(uname -r) in
# User mode may not, before 7.0 or so.
riscv64-6.*) is "why user mode does no cache maintenance" "$(rows none 'cache, user')" 2 ;;
*) has 'cache, user' ;;
esac
case $IOMMU in
none) is "there is no IOMMU to measure" "$(rows none IOMMU)" 1 ;;
*) has IOMMU 'page table only' ;;
esac
run "the host makes a report of it" send_results
diag "$(cat "$OUT")"
run "its JSON holds what was measured" host json-holds
run "its plots are there" host plots-are-there
is "nothing stays behind" "$(ls -d /sys/module/ferry_measure $DEBUGFS 2>/dev/null)" ''
[ "$GUESTS" = 1 ] || return

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
