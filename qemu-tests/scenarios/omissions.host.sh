# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Host commands of the scenario omissions, about what the coherence checker has reported since the last of them.

host_nothing_found() {
	new_reports "$1"
	printf '%s\n' "$NEW_REPORTS"
	[ -z "$NEW_REPORTS" ]
}

# found OMISSION: prints the report that its patch names.
host_found() {
	local wanted
	wanted=$(sed -n 's/^Found by: //p' "$TOP/qemu-tests/omissions/$2.patch")
	new_reports "$1"
	grep -m 1 -E "${wanted:?}" <<<"$NEW_REPORTS" && return
	printf 'no report is like %s, of these:\n%s\n' "$wanted" "$(head -n 10 <<<"$NEW_REPORTS")"
	return 1
}
