# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kernel: debug
# timeout: 900
# expect: DMA-API: .* ENOMEM, dma-debug disabled|page allocation failure|Call Trace|Hardware name|FAULT_INJECTION|proc/generic\.c:[0-9]+ at remove_proc_entry|kmemleak: elsewhere:|kmemleak: Cannot allocate a scan area
#
# The kernel has no memory, at each place where the driver asks for some, one after the other: probe and every verb fail cleanly
# and then work again. What was not given back is found by the leak check behind every scenario of this kernel. (An interrupt whose
# files in /proc could not be made is no error to the kernel, but it warns when it removes them. DMA debugging gives up when it
# has no memory itself, so this comes last. Linux loses memory of its own, see "A context that is refused" in doc/use.md; only
# leaks that a module has part in count.)

. /ferry/guest-lib.sh
injectors=/sys/kernel/debug
for name in failslab fail_page_alloc fail_usercopy; do
	echo 0 >$injectors/$name/verbose
	echo 0 >$injectors/$name/probability
done
for name in failslab fail_page_alloc; do
	echo N >$injectors/$name/ignore-gfp-wait
done
echo 0 >$injectors/fail_page_alloc/min-order

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
driver=/sys/bus/pci/drivers/ferry
pci=$(basename "$(readlink -f "/sys/class/infiniband/$FERRY/device")")
bound() { [ -e "$driver/$pci" ]; }

# only_near DEPTH: faults happen only where one of the last DEPTH callers is a function of the driver; 0: everywhere.
only_near() {
	first=0 last=0xffffffffffffffff
	if [ "$1" != 0 ]; then
		sed -n 's/ [tT] .*\[ferry\]$//p' /proc/kallsyms | sort >/tmp/functions
		first=0x$(head -n 1 /tmp/functions)
		last=$(printf '0x%x' $((0x$(tail -n 1 /tmp/functions) + 4096)))
	fi
	for name in failslab fail_page_alloc fail_usercopy; do
		echo "$1" >$injectors/$name/stacktrace-depth
		echo $first >$injectors/$name/require-start
		echo $last >$injectors/$name/require-end
	done
}

# bind_with N: the Nth possible fault of probe happens. Prints the status, and 0 if it did happen.
bind_with() {
	# shellcheck disable=SC2016
	sh -c '
		exec 3>"$1/bind" 4<>/proc/self/fail-nth
		echo "$3" >&4
		echo "$2" >&3
		status=$?
		read -r left <&4
		echo 0 >&4
		echo "$status ${left:-1}"' sh "$driver" "$pci" "$1" 2>/dev/null
}

# probe_with_faults STRIDE: at every place, or (in the long run) at every (1 + 1 / STRIDE)th. Leaves the device bound.
probe_with_faults() {
	n=1 tried=0 refused=0
	while :; do
		! bound || echo "$pci" >$driver/unbind
		# shellcheck disable=SC2046
		set -- "$1" $(bind_with $n)
		[ "$3" = 0 ] || break
		tried=$((tried + 1))
		if ! bound; then
			refused=$((refused + 1))
			[ -z "$(ferry_devices)" ] || { echo "fault $n: a device is left"; return 1; }
		fi
		[ $tried -lt 2000 ] || { echo "no end of faults"; return 1; }
		n=$((n + 1 + ($1 > 0 ? n / $1 : 0)))
	done
	echo "$tried faults, of about $n possible; probe failed for $refused of them"
	bound
}

only_near 12
run "probe, each fault near the driver" probe_with_faults 0
diag "$(tail -n 1 "$OUT")"
only_near 0
run "the device comes up" load_ferry
run "it works" pingpong -n 100 -c
run "probe, faults everywhere" probe_with_faults 12
diag "$(tail -n 1 "$OUT")"
run "the device comes up" load_ferry
run "it works" pingpong -n 100 -c

# A verb opens files, forks and maps in many more places than those of the driver.
only_near 12
before=$(all_resources)
tap "verbs" faults --dev "$FERRY"
is "nothing is left in rdma resource" "$(all_resources)" "$before"

# with_left SPACE COMMAND...: the driver gets that much memory for the command, bytes of $injector failslab or pages of
# fail_page_alloc, and no more.
with_left() {
	echo Y >$injectors/$injector/task-filter
	echo -1 >$injectors/$injector/times
	echo 1 >$injectors/$injector/interval
	echo "$1" >$injectors/$injector/space
	echo 100 >$injectors/$injector/probability
	shift
	(echo 1 >/proc/self/make-it-fail; "$@") >/dev/null 2>&1
	set -- $?
	echo 0 >$injectors/$injector/probability
	return "$1"
}

# running_out UNDO COMMAND...: a single fault is made good by a smaller size that is tried next; this one stays, and comes later each time,
# until the command succeeds. It must have failed before. UNDO comes before each.
running_out() {
	undo=$1 space=0 failures=0
	shift
	while $undo; ! with_left $space "$@"; do
		failures=$((failures + 1))
		[ $failures -lt 300 ] || { echo "still fails with $space left"; return 1; }
		space=$((space + 1 + space / 8))
	done
	echo "failed $failures times, not with $space left"
	[ $failures -gt 0 ]
}
not_bound() { ! bound || echo "$pci" >$driver/unbind; }
# To the kernel a device is registered that has no file for programs, for want of memory.
bind() { echo "$pci" >$driver/bind && [ -d "/sys/bus/pci/devices/$pci/infiniband_verbs" ]; }
netdev_down() { ip link set "$FERRY_NETDEV" down; }

for injector in failslab fail_page_alloc; do
	run "the netdev opens, running out of memory ($injector)" running_out netdev_down ip link set "$FERRY_NETDEV" up
	diag "$(tail -n 1 "$OUT")"
	run "CQ and QPs, running out of memory ($injector)" running_out : timeout 100 extended --dev "$FERRY" --only abort
	diag "$(tail -n 1 "$OUT")"
	is "nothing is left in rdma resource" "$(all_resources)" "$before"
	run "probe, running out of memory ($injector)" running_out not_bound bind
	diag "$(tail -n 1 "$OUT")"
	run "the device comes up" load_ferry
	run "it works" pingpong -n 100 -c
done

only_near 0
# by_chance on|off: one in a thousand allocations fails, of processes without luck.
by_chance() {
	for name in failslab fail_page_alloc; do
		echo Y >$injectors/$name/task-filter
		echo -1 >$injectors/$name/times
		echo 10 >$injectors/$name/interval
		echo $(($1)) >$injectors/$name/probability
	done
}
on=1 off=0
# shellcheck disable=SC2016
unlucky='echo 1 >/proc/self/make-it-fail; exec "$@"'
for round in $(seq 10); do
	by_chance on
	timeout 60 sh -c "$unlucky" sh ibv_rc_pingpong -d "$FERRY" -g "$GID" -n 100 >/tmp/server 2>&1 &
	server=$!
	wait_for 2 listening $server 18515
	timeout 60 sh -c "$unlucky" sh ibv_rc_pingpong -d "$FERRY" -g "$GID" -n 100 127.0.0.1 >/tmp/client 2>&1
	by_chance off
	kill $server 2>/dev/null
	wait $server
done
is "after programs without luck nothing is left in rdma resource" "$(all_resources)" "$before"
run "it works" pingpong -n 100 -c

unload_ferry
for round in $(seq 10); do
	by_chance on
	timeout 60 sh -c "$unlucky" sh modprobe ferry >/dev/null 2>&1
	by_chance off
	[ ! -d /sys/module/ferry ] || rmmod ferry || { not_ok "round $round: the driver can be removed"; return; }
done
ok "the driver loads without luck, and can be removed"
run "the device comes up" load_ferry
run "it works" pingpong -n 100 -c
