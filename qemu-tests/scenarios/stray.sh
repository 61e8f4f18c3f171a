# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# dma: message
# raw: yes
# timeout: 180
#
# The NIC reaches for memory that was not given to it, past all its own checks. An IOMMU refuses each time and names the address,
# and the guest goes on. Without one the same accesses succeed: so the test can fail.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
case $IOMMU in
none) regime=direct ;;
riscv)
	# As the kernel leaves it: the IOMMU is there, and lets everything through.
	grep -q ferry.isolation=off /proc/cmdline && regime=direct || regime=isolated
	;;
*) regime=translated ;;
esac
is "the regime" "$(cat "/sys/class/infiniband/$FERRY/dma_regime")" $regime

mkfifo /tmp/stray.in /tmp/stray.out
stray --dev "$FERRY" </tmp/stray.in >/tmp/stray.out 2>&1 &
holder=$!
exec 5>/tmp/stray.in 6</tmp/stray.out
# ask ORDER...: of the program that has the memory.
ask() {
	echo "$*" >&5
	read -r answer <&6
	echo "$answer"
}
# raw ORDER...: of the NIC.
raw() { host nic-raw "$@"; }
add() { printf '0x%x\n' $(($1 + $2)); }

pattern=0x5a5a5a5a5a5a5a5a
mark=0x0123456789abcdef

# fault_names ADDRESS: a line of the kernel's log since the last look is about a fault at that address.
marks=0
fault_names() {
	marks=$((marks + 1))
	echo "stray: look $marks" >/dev/kmsg
	wait_for 5 fault_line "$(printf '%x' "$1")"
}
fault_line() {
	dmesg | sed -n "/stray: look $((marks - 1))\$/,\$p" | grep -i 'fault' | grep -qiE "(0x|[^0-9a-f])0*$1([^0-9a-f]|\$)"
}
echo "stray: look 0" >/dev/kmsg

# out_of_reach WHAT read|write ADDRESS [VALUE]
out_of_reach() {
	_what=$1
	shift
	# The kernel prints 10 lines about faults in 5 s, and QEMU may make two accesses of one.
	[ $regime = direct ] || sleep 1.5
	_got=$(raw "$@")
	if [ $regime = direct ]; then
		run "$1 of $_what succeeds, as nobody forbids it" test "$_got" != refused
	else
		is "$1 of $_what is refused" "$_got" refused
		run "and the fault names the address $2" fault_names "$2" || diag "$(dmesg | tail -n 5)"
	fi
}

# A page of the process that was never registered.
page=$(ask page)
out_of_reach "a page that was never registered" read "$page"
out_of_reach "a page that was never registered" write "$page" $mark
[ $regime = direct ] && expected=$mark || expected=$pattern
is "what the page holds" "$(ask look page)" $expected

# An MR: within reach as long as it is one.
mr=$(ask mr)
key=${mr% *}
mr_page=${mr#* }
place=$(raw mr "$key")
if [ $regime = direct ]; then
	is "its address is the physical one" "$place" "$mr_page"
else
	run "its address is not the physical one" test "$place" != "$mr_page"
fi
is "an MR can be read" "$(raw read "$place")" $pattern
if [ $regime = translated ]; then
	skip "the page behind an MR is refused" "the DMA API leaves no gap: it may be another mapping of this NIC"
else
	out_of_reach "the page behind an MR" read "$(add "$place" 4096)"
fi
[ $regime != isolated ] || out_of_reach "the page behind an MR" write "$(add "$place" 4096)" $mark
[ $regime = direct ] || out_of_reach "the MR's page by its physical address" read "$mr_page"
is "the MR is deregistered" "$(ask dereg)" "done"
is "the NIC has forgotten it" "$(raw mr "$key")" none
out_of_reach "an MR's page after dereg" read "$place"
out_of_reach "an MR's page after dereg" write "$place" $mark
is "what the page holds" "$(ask look mr)" $expected

# A ring. What was freed is not written to where that would succeed.
qpn=$(ask qp)
ring=$(raw sq "$qpn")
run "a ring can be read" test "$(raw read "$ring")" != refused
is "the QP is destroyed" "$(ask destroy)" "done"
is "the NIC has forgotten it" "$(raw sq "$qpn")" none
out_of_reach "a ring after destroy" read "$ring"
[ $regime = direct ] || out_of_reach "a ring after destroy" write "$ring" $mark

exec 5>&- 6<&-
wait $holder
is "the program ends well" $? 0
run "it works" pingpong -n 100 -c
