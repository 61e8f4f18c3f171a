# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vcpus: 3
# timeout: 400
#
# What an address space of one's own must not break: MRs over the same memory, large pages, and interrupts that move from CPU to CPU,
# which are writes that the IOMMU translates as well.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
diag "$(dmesg | grep 'DMA [a-z]*.*vectors' | tail -n 1)"
tap overlap overlap --dev "$FERRY"

# irqs NAME: numbers of the interrupts with that name.
irqs() { sed -n "s/^ *\([0-9]*\):.* $1@.*/\1/p" /proc/interrupts; }
# arrived CPU IRQ...: how many of these there.
arrived() {
	_cpu=$1
	shift
	awk -v cpu="$_cpu" -v irqs=" $* " 'NR > 1 && index(irqs, " " $1 + 0 " ") { sum += $(cpu + 2) } END { print sum + 0 }' /proc/interrupts
}
# moves NAME COMMAND...: to each CPU in turn, and there they arrive while the command runs.
moves() {
	_irq_name=$1
	shift
	# shellcheck disable=SC2046
	for cpu in $(seq 0 $((VCPUS - 1))); do
		for irq in $(irqs "$_irq_name"); do echo "$cpu" >"/proc/irq/$irq/smp_affinity_list"; done
		_before=$(arrived "$cpu" $(irqs "$_irq_name"))
		run "$_irq_name on CPU $cpu: $*" "$@"
		_after=$(arrived "$cpu" $(irqs "$_irq_name"))
		run "$((_after - _before)) interrupts came to CPU $cpu" test $((_after - _before)) -ge 10
	done
}
moves 'ferry-comp[0-9]*' pingpong -n 100 -e -c
devinfos() { for _n in $(seq 6); do ibv_devinfo -d "$FERRY" >/dev/null || return; done; }
moves ferry-admin devinfos
run "it works" pingpong -n 100 -c
