# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=sh
#
# For scenarios that run programs which report in TAP: sourced by them.

# tap NAME PROGRAM...: each of its tests is one of ours; that it keeps its plan is another.
tap() {
	_name=$1
	shift
	"$@" >/tmp/tap.out 2>&1
	_status=$?
	_seen=0
	_plan=none
	while IFS= read -r _line; do
		case $_line in
		'ok '*)
			ok "$_name: ${_line#ok * - }"
			_seen=$((_seen + 1))
			;;
		'not ok '*)
			not_ok "$_name: ${_line#not ok * - }"
			_seen=$((_seen + 1))
			;;
		1..*) _plan=${_line#1..} ;;
		*) diag "$_line" ;;
		esac
	done </tmp/tap.out
	is "$_name: all tests ran" "$_seen of $_plan, status $((_status > 1))" "$_plan of $_plan, status 0"
}
