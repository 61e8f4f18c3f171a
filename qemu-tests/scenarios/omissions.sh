# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# arch: riscv64
# coherent: no
# checker: yes
# extra: omissions
# host: omissions.host.sh
# reports: .
# timeout: 1500
#
# Drivers and providers from which scripts/check-coherence has taken something that keeps memory coherent: each runs the one test
# that needs it, and the coherence checker must report what the patch says. What is not changed runs first, and nothing is reported.

STALL=2000 # microseconds
provider=$(echo /usr/lib/*/libibverbs/libferry-rdmav*.so)
module=/usr/lib/modules/$(uname -r)/extra/ferry.ko

# silent TEXT COMMAND...: one test, passed when the command succeeds and nothing is found meanwhile.
silent() {
	_text=$1
	shift
	run "$_text" "$@"
	coherence forget
	run "$_text: nothing is reported" host nothing_found
}

# with_stall USEC COMMAND...: a hart waits so long after what may tell the device something.
with_stall() {
	coherence stall "$1"
	shift
	"$@"
	_status=$?
	coherence stall 0
	return $_status
}

# finds NAME USEC: its test runs, and the report comes.
finds() {
	with_stall "$2" limit 60 dirty --dev "$FERRY" --only "$(cat "/ferry/omissions/$1/test")" || return
	coherence forget
	host found "$1"
}

# plant NAME: a provider, or a driver.
plant() {
	_dir=/ferry/omissions/$1
	_stall=0
	[ ! -e "$_dir/stall" ] || _stall=$STALL
	if [ -e "$_dir/ferry.ko" ]; then
		unload_ferry && mount --bind "$_dir/ferry.ko" "$module" && load_ferry || return
	else
		mount --bind "$_dir/provider.so" "$provider" || return
	fi
	# What has been found up to now is not this one's.
	coherence forget
	host nothing_found >/dev/null
	run "$1" finds "$1" $_stall && diag "$(grep '^coherence: ' "$OUT")"
	umount "$module" 2>/dev/null || umount "$provider"
}

silent "the driver loads and the device comes up" load_ferry || return
silent "nothing is missing" dirty --dev "$FERRY"
silent "nothing is missing, with a stall" with_stall $STALL dirty --dev "$FERRY"
# Drivers last: to the end there is another one then.
for each in /ferry/omissions/*/provider.so /ferry/omissions/*/ferry.ko; do
	[ -e "$each" ] || continue
	each=${each%/*}
	plant "${each##*/}" || not_ok "${each##*/} can be planted"
done
