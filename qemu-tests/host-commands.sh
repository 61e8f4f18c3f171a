# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by run: what a guest may ask for with "host COMMAND ARGUMENT...". Each is a function host_COMMAND GUEST ARGUMENT... (with
# _ for -): what it prints is the answer, its status the status. One that sets LATER=1 answers by itself, later. NICs are numbered
# within the guest that asks, 0 if it does not say.

# answer GUEST STATUS [TEXT]
answer() {
	local text=${3:-} lines=0
	[ -z "$text" ] || lines=$(wc -l <<<"$text")
	printf '%d %d\n%s' "$2" "$lines" "${text:+$text$'\n'}" >&"${TO_CTL[$1]}"
}

guest_asked() {
	local g=$1 status=0 function
	local -a words
	read -ra words <<<"$2"
	function=host_${words[0]//-/_}
	if ! declare -F "$function" >/dev/null; then
		answer "$g" 1 "no such command: ${words[0]}"
		return
	fi
	LATER=
	"$function" "$g" "${words[@]:1}" >"$SOCKETS/answer" 2>&1 || status=$?
	[ -n "$LATER" ] || answer "$g" $status "$(cat "$SOCKETS/answer")"
}

# next: the next order for this guest; asked by its init. All guests get it at once, but for one that has rebooted.
host_next() {
	LATER=1
	if [ -n "${REBOOTING[$1]:-}" ]; then
		unset "REBOOTING[$1]"
		# The plan will be that of the second run.
		SEEN[$1]=0
		order_run "$1" 2
		return
	fi
	ASKED[$1]=1
	go_on
}

# reboot: when this guest asks for the next order, it has rebooted and runs the script again. (Needs "reboot: yes".)
host_reboot() { REBOOTING[$1]=1; }

host_echo() { shift; printf '%s\n' "$*"; }

# barrier NAME: answered when every guest has asked.
host_barrier() {
	local g
	LATER=1
	WAITING[$2]="${WAITING[$2]:-} $1"
	set -- ${WAITING[$2]} "$2"
	if [ $# -gt "${WANT[guests]}" ]; then
		unset "WAITING[${!#}]"
		for g in "${@:1:$#-1}"; do answer "$g" 0; done
	fi
}

# set NAME VALUE..., get NAME: get waits until some guest has set it.
host_set() {
	local name=$2 g
	shift 2
	VALUE[$name]=$*
	for g in ${WAITING[get $name]:-}; do answer "$g" 0 "$*"; done
	unset "WAITING[get $name]"
}
host_get() {
	if [ -n "${VALUE[$2]+set}" ]; then
		printf '%s\n' "${VALUE[$2]}"
	else
		LATER=1
		WAITING[get $2]="${WAITING[get $2]:-} $1"
	fi
}

# nic-kill [N]: at once, as a crash would. nic-signal SIGNAL [N].
host_nic_kill() { stop_nic "$1" "${2:-0}" KILL; }
host_nic_signal() { kill -"$2" "${PID[nic$1.${3:-0}]}"; }
# nic-start [N [OPTION...]]: a process again, for a guest that will plug it. nic-restart [N [OPTION...]].
host_nic_start() { start_nic "$1" "${2:-0}" "${@:3}"; }
host_nic_restart() { host_nic_kill "$1" "${2:-0}" && start_nic "$1" "${2:-0}" "${@:3}"; }
# nic-plug [N]: a PCI device for the running ferry-vnic N, in the next spare slot (needs "hotplug: SLOTS"). Where the kernel has no
# PCIe hotplug (Debian's for riscv64) the guest must rescan the bus. There is no nic-unplug: device_del of any vfio-user device makes
# QEMU 11.1.2 abort. The guest removes the old device by sysfs, and it stays in its slot.
host_nic_plug() {
	local slot=${NEXT_SLOT[$1]:-${WANT[nics]}}
	[ "$slot" -lt $((WANT[nics] + WANT[hotplug])) ] || { echo "no spare slot is left"; return 1; }
	NEXT_SLOT[$1]=$((slot + 1))
	qmp "$1" device_add "$(nic_device "$1" "${2:-0}" "$slot")"
}
# cpu-usage [N]: the CPU time that ferry-vnic has used, and the time now, in microseconds.
host_cpu_usage() {
	local file used total=0
	for file in /proc/"${PID[nic$1.${2:-0}]}"/task/*/schedstat; do
		read -r used _ <"$file"
		total=$((total + used))
	done
	printf '%d %d\n' $((total / 1000)) "${EPOCHREALTIME/[.,]/}"
}
# nic-log [N]: what it has written.
host_nic_log() { cat "$LOG/nic$1.${2:-0}.log"; }

# nic-raw ORDER...: NIC 0 carries it out, past all its checks (needs "raw: yes"; device/vnic/raw.h has the orders). Prints the result.
host_nic_raw() {
	local g=$1 log=$LOG/nic$1.0.log before tries
	shift
	before=$(grep -c ' raw: ' "$log" || [ $? = 1 ])
	printf '%s\n' "$*" >"$SOCKETS/raw$g.0"
	for ((tries = 0; tries < 500; tries++)); do
		if [ "$(grep -c ' raw: ' "$log" || [ $? = 1 ])" -gt "$before" ]; then
			sed -n 's/.* raw: .* = //p' "$log" | tail -n 1
			return
		fi
		read -r -t 0.02 -u "$NEVER" || continue
	done
	echo "no answer"
	return 1
}

# qmp COMMAND [ARGUMENTS]: as JSON; the answer is QEMU's.
host_qmp() { qmp "$@"; }

# qmp GUEST COMMAND [ARGUMENTS]
qmp() {
	local arguments=${3:-} DEADLINE=$((SECONDS + 30))
	QMP_ANSWER=
	QMP_ID=$((${QMP_ID:-0} + 1))
	qmp_send "$1" "{\"execute\":\"$2\",\"arguments\":${arguments:-"{}"},\"id\":$QMP_ID}"
	until [ -n "$QMP_ANSWER" ]; do pump || return; done
	printf '%s\n' "$QMP_ANSWER"
	[[ $QMP_ANSWER != *'"error"'* ]]
}

qemu_said() {
	local g=$1 line=$2
	printf '%s\n' "$line" >>"$LOG/qmp$g.log"
	[[ $line != *"\"id\": ${QMP_ID:-none}"[,}]* ]] || QMP_ANSWER=$line
}
