# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by run for the scenario measure: takes its results, in pieces, and makes a report of them.

# results TEXT: of a file, compressed, in base64.
host_results() { printf '%s\n' "$2" >>"$SCENARIO_LOG/results$1"; }

host_results_end() {
	local dir=$BUILD/measure/${SCENARIO_LOG##*/}
	mkdir -p "$dir"
	base64 -d "$SCENARIO_LOG/results$1" | gzip -d >"$dir/rows.tsv" && "$TOP/scripts/measure" --report "$dir"
}
