# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=sh
#
# For scenarios that run the measuring kit, in its quick form: sourced by them, after load_ferry. They need "host: measure.host.sh". The
# times mean nothing here; that every row comes does.

KO=/usr/lib/modules/$(uname -r)/extra/ferry_measure.ko
DEBUGFS=/sys/kernel/debug/ferry_measure
ROWS=/tmp/rows.tsv

collect() { /ferry/measure/collect -q -b /ferry/measure -d "$FERRY" -m "$KO" "$@" >$ROWS; }
# How many rows there are of a group and case, or reasons why not.
rows() { awk -F '\t' -v kind="$1" -v group="$2" -v name="${3:-}" '$1 == kind && $2 == group && (name == "" || $3 ~ name)' $ROWS | wc -l; }
# has GROUP [CASE]: rows, and that each has seven samples.
has() {
	is "rows of $*" "$(($(rows row "$@") > 0))" 1
	is "rows of $* have all samples" "$(awk -F '\t' -v group="$1" '$1 == "row" && $2 == group && split($7, v, " ") != 7' $ROWS)" ''
}
measured_fact() { awk -F '\t' -v name="$1" '$1 == "fact" && $2 == name { print $3 }' $ROWS; }

# To the host, since the guest keeps nothing.
send_results() {
	gzip -c $ROWS | base64 >/tmp/rows.b64
	while read -r _line; do
		host results "$_line" || return
	done </tmp/rows.b64
	host results-end
}

# What every run must have brought.
check_results() {
	diag "$(grep '^none' $ROWS)"
	is "it says that this is emulated" "$(measured_fact emulated)" yes
	is "the module tells its facts" "$(measured_fact coherent)" "$COHERENT"
	for group in barrier 'barrier loop' post poll registration latency bandwidth rate 'CPU time' 'DMA map' 'cache, kernel'; do
		has "$group"
	done
	for group in post registration latency; do is "no row of $group is missing" "$(rows none $group)" 0; done
	for name in send write read sleeping; do has latency "RDMA.*$name"; done
	for name in TCP 'TCP, polling' 'TCP, fetch'; do has latency "^$name$"; done
	has bandwidth TCP
	is "TCP goes over the same link" "$(measured_fact 'TCP over')" 'the addresses of the RDMA devices'
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
}
