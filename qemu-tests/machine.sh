# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by run: starts and stops ferry-vnic and QEMU as the array WANT says, and turns all that they and the guests say into
# events, lines "SOURCE TEXT" in one FIFO.

MACHINE_OUT=$BUILD/$GUEST-$GUEST_KERNEL
# What bash starts in the background would have /dev/null.
exec {INPUT}<&0

# ---------------------------------------------------------------- events

# forward SOURCE FIFO: what arrives there line by line becomes events.
forward() {
	local source=$1 fifo=$2 line
	while IFS= read -r line; do
		printf '%s %s\n' "$source" "${line:0:2000}" >&"$EVENTS"
	done <"$fifo" &
	PID[$source]=$!
}

# pump: handles one event; fails when none came until the deadline.
pump() {
	local line source rest left=$((DEADLINE - SECONDS))
	[ "$left" -gt 0 ] || return 1
	IFS= read -r -t "$left" -u "$EVENTS" line || return 1
	source=${line%% *} rest=${line#* }
	case $source in
	out?) script_said "${source#out}" "$rest" ;;
	kmsg?) kernel_said "${source#kmsg}" "$rest" ;;
	ctl?) guest_asked "${source#ctl}" "$rest" ;;
	qmp?) qemu_said "${source#qmp}" "$rest" ;;
	gone?) guest_gone "${source#gone}" "$rest" ;;
	esac
}

guest_gone() {
	GONE[$1]=$2
	[ -n "$FINISHED" ] && [ "$2" = 0 ] || [ -n "$LOST" ] || lost "guest $1 stays alive (QEMU ended with status $2)"
}

# ---------------------------------------------------------------- NICs

# The socket path of an end of a wire.
end_socket() { printf '%s/%s.wire' "$SOCKETS" "$1"; }

# Prints the other end of the wire that END is on, if there is one.
peer_of() {
	local -a ends
	local i
	read -ra ends <<<"${WANT[wire]}"
	for ((i = 0; i < ${#ends[@]}; i += 2)); do
		[ "${ends[i]}" != "$1" ] || printf '%s' "${ends[i + 1]}"
		[ "${ends[i + 1]}" != "$1" ] || printf '%s' "${ends[i]}"
	done
}

nic_socket() { printf '%s/nic%d.%d' "$SOCKETS" "$1" "$2"; }

# start_nic GUEST NUMBER [OPTION...]
start_nic() {
	local g=$1 n=$2 peer link=loopback
	local socket
	local -a raw=()
	socket=$(nic_socket "$g" "$n")
	shift 2
	[ "${WANT[checker]}" = no ] || set -- --coherence-shadow "$SOCKETS/shadow$g" "$@"
	peer=$(peer_of "$g.nic$n")
	[ -z "$peer" ] || link=unix:$(end_socket "$g.nic$n"),$(end_socket "$peer")
	rm -f "$socket" "$(end_socket "$g.nic$n")"
	if [ "${WANT[raw]}" = yes ]; then
		raw=(--raw "$SOCKETS/raw$g.$n")
		[ -p "${raw[1]}" ] || mkfifo "${raw[1]}"
	fi
	# shellcheck disable=SC2086
	"$BUILD/device/ferry-vnic" --socket "$socket" --link "$link" --mac "52:54:00:fe:0$g:0$n" --dma "${WANT[dma]}" \
		${WANT[nic]} ${WANT[nic$g]} "${raw[@]}" "$@" >>"$LOG/nic$g.$n.log" 2>&1 &
	PID[nic$g.$n]=$!
	unset "KILLED[nic$g.$n]"
	appears "$socket" "${PID[nic$g.$n]}"
}

# appears SOCKET PID: the process makes its socket within 10 s.
appears() {
	local tries
	for ((tries = 0; tries < 500; tries++)); do
		[ ! -S "$1" ] || return 0
		kill -0 "$2" 2>>"$LOG/runner.log" || return 1
		# Only for its time limit: nothing ever writes there.
		read -r -t 0.02 -u "$NEVER" || continue
	done
	return 1
}
mkfifo "/tmp/never.$$"
exec {NEVER}<>"/tmp/never.$$"
rm "/tmp/never.$$"

# stop_nic GUEST NUMBER SIGNAL: and waits for its end. Its status is left in STATUS.
stop_nic() {
	local name=nic$1.$2
	KILLED[$name]=1
	kill -"$3" "${PID[$name]}" || say "# $name had ended already"
	STATUS=0
	wait "${PID[$name]}" || STATUS=$?
	unset "PID[$name]"
}

# ---------------------------------------------------------------- QEMU

# nic_device GUEST NUMBER SLOT
nic_device() {
	local place=
	[ "${WANT[hotplug]}" = 0 ] || place=",\"id\":\"in-slot$3\",\"bus\":\"slot$3\""
	[ "${WANT[functions]}" = no ] || place=",\"addr\":\"10.$2\",\"multifunction\":true"
	printf '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"%s"}%s}' "$(nic_socket "$1" "$2")" "$place"
}

choose_accelerator() {
	ACCELERATOR=tcg
	[ "$GUEST" = "$(uname -m)" ] && [ -z "${FERRY_NO_KVM:-}" ] || return 0
	# Other modules offer /dev/kvm as well, without what an unmodified guest needs.
	[ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ] || return 0
	[ -w /dev/kvm ] && : </dev/kvm && ACCELERATOR=kvm
}
choose_accelerator

# machine_arguments: into ARGUMENTS, what the device tree depends on.
machine_arguments() {
	ARGUMENTS=(-object "memory-backend-memfd,id=mem,size=${WANT[memory]},share=on" -m "${WANT[memory]}" -smp "${WANT[vcpus]}")
	case $GUEST in
	riscv64) ARGUMENTS+=(-M virt,aia=aplic-imsic,memory-backend=mem -cpu "${WANT[cpu]}") ;;
	x86_64)
		ARGUMENTS+=(-M "q35,accel=$ACCELERATOR,memory-backend=mem,kernel-irqchip=split")
		case $ACCELERATOR in
		kvm) ARGUMENTS+=(-cpu host) ;;
		*) ARGUMENTS+=(-cpu "${WANT[cpu]}") ;;
		esac
		;;
	esac
}

# A device tree that says PCI is not coherent, and with zicbom=first that harts but the first have no cache operations.
non_coherent_tree() {
	local tree=$SOCKETS/tree harts=none
	[ "${WANT[zicbom]}" != first ] || harts='[1-9][0-9]*'
	"qemu-system-$GUEST" "${ARGUMENTS[@]/%memory-backend=mem/memory-backend=mem,dumpdtb=$tree.dtb}" -display none >&2
	dtc -q -I dtb -O dts "$tree.dtb" |
		sed -e '/pci@/,/^\t\t};/s/dma-coherent/dma-noncoherent/' -e "/cpu@$harts {/,/mmu-type/s/, \"zicbom\"\|_zicbom//" |
		dtc -q -I dts -O dtb -o "$tree.dtb.new" -
	printf '%s' "$tree.dtb.new"
}

# add_slots: for every NIC, and the spare ones.
add_slots() {
	local n always_on=
	# Slots as the hardware has them: with those of ACPI, QEMU never says that the link is active, and no error is recovered from.
	[ "$GUEST" = riscv64 ] || ARGUMENTS+=(-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off)
	# A kernel without PCIe hotplug would not switch a slot on.
	[ "$GUEST" = x86_64 ] || always_on=',"power_controller_present":false'
	for ((n = 0; n < WANT[nics] + WANT[hotplug]; n++)); do
		ARGUMENTS+=(-device "$(printf '{"driver":"pcie-root-port","id":"slot%d","chassis":%d,"addr":"%x.%x","multifunction":true%s}' \
			$n $((n + 1)) $((16 + n / 8)) $((n % 8)) "$always_on")")
	done
}

# coherence_plugin GUEST: its argument, with all programs whose places are to be named.
coherence_plugin() {
	local user file
	user=$BUILD/$GUEST-$(userland_of "$GUEST_KERNEL")
	printf '%s,shadow=%s,log=%s,suppress=%s,size=%d' "$BUILD/plugins/coherence.so" "$SOCKETS/shadow$1" "${LOG//,/,,}/coherence$1.log" \
		"$TOP/qemu-tests/plugin/suppressions" "$(numfmt --from=iec "${WANT[memory]}")"
	for file in "$user"/rdma-core/lib/libferry-*.so "$user"/programs/* "/env/userland-${user##*/}"/usr/lib/*/{libibverbs.so.1,librdmacm.so.1,libc.so.6} \
		"/env/userland-${user##*/}"/usr/bin/{ib_*,ibv_*}; do
		printf ',object=%s' "$file"
	done
}

start_guest() {
	local g=$1 n peer port kernel=/env/kernel-$GUEST-$GUEST_KERNEL append
	append="console=ttyS0 quiet panic=-1 ${WANT[append]}"
	machine_arguments
	[ "${WANT[coherent]}" = yes ] || ARGUMENTS+=(-dtb "$(non_coherent_tree)")
	[ "${WANT[reboot]}" = yes ] || ARGUMENTS+=(-no-reboot)
	[ -z "${WANT[plugin]}" ] || ARGUMENTS+=(-plugin "$BUILD/plugins/${WANT[plugin]}")
	[ "${WANT[checker]}" = no ] || ARGUMENTS+=(-plugin "$(coherence_plugin "$g")")

	ARGUMENTS+=(-device virtio-serial-pci)
	for port in out kmsg ctl qmp; do
		mkfifo "$SOCKETS/$port$g.in" "$SOCKETS/$port$g.out"
		case $port in
		qmp) ARGUMENTS+=(-qmp "pipe:$SOCKETS/qmp$g") ;;
		*) ARGUMENTS+=(-chardev "pipe,id=$port,path=$SOCKETS/$port$g" -device "virtserialport,chardev=$port,name=$port") ;;
		esac
		forward "$port$g" "$SOCKETS/$port$g.out"
	done
	exec {fd}<>"$SOCKETS/ctl$g.in"
	TO_CTL[g]=$fd
	exec {fd}<>"$SOCKETS/qmp$g.in"
	TO_QMP[g]=$fd

	for ((n = 0; n < WANT[net]; n++)); do
		peer=$(peer_of "$g.net$n")
		ARGUMENTS+=(
			-netdev "dgram,id=net$n,local.type=unix,local.path=$(end_socket "$g.net$n"),remote.type=unix,remote.path=$(end_socket "${peer:-nobody}")"
			-device "virtio-net-pci,netdev=net$n,mac=52:54:00:fd:0$g:0$n"
		)
	done

	# QEMU creates what is given in JSON last, in this order; the NIC must come before a riscv-iommu, which it would never get over.
	case ${WANT[iommu]} in
	intel)
		ARGUMENTS+=(-device '{"driver":"intel-iommu","caching-mode":true,"intremap":"off"}')
		append="$append intel_iommu=on iommu.strict=1"
		;;
	virtio) ARGUMENTS+=(-device '{"driver":"virtio-iommu-pci"}') ;;
	esac
	[ "${WANT[hotplug]}" = 0 ] || add_slots
	for ((n = 0; n < WANT[nics]; n++)); do
		ARGUMENTS+=(-device "$(nic_device "$g" "$n" "$n")")
	done
	[ "${WANT[iommu]}" != riscv ] || ARGUMENTS+=(-device '{"driver":"riscv-iommu-pci"}')

	if [ -n "$TERMINAL" ]; then
		ARGUMENTS+=(-serial mon:stdio)
	else
		ARGUMENTS+=(-serial "file:$LOG/console$g.log")
	fi
	cat /env/base-"$GUEST-$GUEST_KERNEL"/base.cpio "$MACHINE_OUT/overlay.cpio" ${WANT[extra]:+"$MACHINE_OUT/${WANT[extra]}.cpio"} \
		>"$SOCKETS/initrd$g"
	# shellcheck disable=SC2206
	ARGUMENTS+=(-nodefaults -display none -kernel "$kernel/vmlinuz" -initrd "$SOCKETS/initrd$g" -append "$append" ${WANT[qemu]})
	printf '%q ' "qemu-system-$GUEST" "${ARGUMENTS[@]}" >"$LOG/qemu$g.command"
	(
		set +e
		[ -n "$TERMINAL" ] || exec >"$LOG/qemu$g.log" 2>&1
		"qemu-system-$GUEST" "${ARGUMENTS[@]}" <&"$INPUT" &
		printf '%d\n' $! >"$SOCKETS/qemu$g.pid"
		wait $!
		printf 'gone%d %d\n' "$g" $? >&"$EVENTS"
	) &
	PID[guest$g]=$!
	qmp_send "$g" '{"execute":"qmp_capabilities"}'
}

qmp_send() { printf '%s\n' "$2" >&"${TO_QMP[$1]}"; }

# stop_all SPEC...: ends what is left, and finds out how ferry-vnic ended.
stop_all() {
	local name g n
	for ((g = 0; g < WANT[guests]; g++)); do
		[ -n "${GONE[$g]:-}" ] || [ ! -f "$SOCKETS/qemu$g.pid" ] || kill -KILL "$(cat "$SOCKETS/qemu$g.pid")"
	done
	for name in "${!PID[@]}"; do
		case $name in
		nic*)
			[ -z "${KILLED[$name]:-}" ] || continue
			n=${name#nic}
			stop_nic "${n%.*}" "${n#*.}" TERM
			case $STATUS in
			0 | 143) ;;
			*) result 'not ok' "$*: ferry-vnic ends well" "status $STATUS"$'\n'"$(tail -n 40 "$LOG/$name.log")" ;;
			esac
			;;
		*) ;;
		esac
	done
	for ((g = 0; g < WANT[guests]; g++)); do
		[ -z "${TO_CTL[g]:-}" ] || eval "exec ${TO_CTL[g]}>&- ${TO_QMP[g]}>&-"
	done
	for name in "${!PID[@]}"; do
		kill "${PID[$name]}" 2>>"$LOG/runner.log" || continue
	done
	for name in "${!PID[@]}"; do
		wait "${PID[$name]}" 2>>"$LOG/runner.log" || continue
	done
	exec {EVENTS}>&-
	remove_tree "$SOCKETS"
}
