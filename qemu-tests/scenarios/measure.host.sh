# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Host commands of measure.sh: they take its results, in pieces, make a report of them, and check that.

# results TEXT: of rows.tsv, compressed, in base64.
host_results() { printf '%s\n' "$2" >>"$SCENARIO_LOG/results$1"; }

host_results_end() {
	MEASURED=$BUILD/measure/${SCENARIO_LOG##*/}
	mkdir -p "$MEASURED"
	base64 -d "$SCENARIO_LOG/results$1" | gzip -d >"$MEASURED/rows.tsv" && "$TOP/scripts/measure" --report "$MEASURED"
}

# What JSON says is what was measured, in an order that makes sense.
host_json_holds() {
	jq -e --argjson rows "$(grep -c '^row' "$MEASURED/rows.tsv")" --argjson missing "$(grep -c '^none' "$MEASURED/rows.tsv" || [ $? = 1 ])" '
		.format == 1 and (.rows | length) == $rows and (.missing | length) == $missing and (.facts.kernel | length) > 0 and
		all(.rows[]; .repeats == (.samples | length) and .repeats >= 3 and .operations >= 1 and (.unit | length) > 0 and
			.min <= .p10 and .p10 <= .median and .median <= .p90 and .p90 <= .max and .mad >= 0 and
			.min == (.samples | min) and .max == (.samples | max) and
			((.samples | sort) as $s | .repeats % 2 == 0 or .median == $s[(.repeats - 1) / 2]))' "$MEASURED/results.json"
}

# A plot for each group with sizes or batches, one for what counts pages, one for the barriers, and no other.
host_plots_are_there() {
	local wanted drawn
	wanted=$(jq -r '.rows[] | select(.group != "barrier loop") |
		.group + (if .case | test("scattered") then ", scattered pages" else "" end) | ascii_downcase | gsub("[^a-z0-9]+"; "-") + ".svg"' "$MEASURED/results.json" | sort -u)
	drawn=$(cd "$MEASURED" && ls ./*.svg | sed 's,^\./,,')
	printf 'wanted:\n%s\ndrawn:\n%s\n' "$wanted" "$drawn"
	[ "$wanted" = "$drawn" ] && ! grep -L '</svg>' "$MEASURED"/*.svg | grep .
}
