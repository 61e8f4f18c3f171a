# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# With stats.awk: all of it as JSON, samples as well, so that others can judge them by other statistics.

function quote(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	gsub(/[\001-\037]/, " ", text)
	return "\"" text "\""
}

function number(x,    text) {
	text = sprintf("%.3f", x)
	sub(/\.?0+$/, "", text)
	return text == "-0" ? "0" : text
}

END {
	if (BROKEN)
		exit 1
	printf "{\n\"format\": 1,\n\"facts\": {"
	for (i = 1; i <= F; i++)
		printf "%s\n  %s: %s", (i > 1 ? "," : ""), quote(FACT_NAME[i]), quote(FACT[FACT_NAME[i]])
	printf "\n},\n\"rows\": ["
	for (i = 1; i <= N; i++) {
		printf "%s\n  {\"group\": %s, \"case\": %s, \"parameter\": %d, \"unit\": %s, \"operations\": %.0f, \"repeats\": %d, ",
			(i > 1 ? "," : ""), quote(GROUP[i]), quote(CASE[i]), PARAMETER[i], quote(UNIT[i]), OPERATIONS[i], REPEATS[i]
		printf "\"median\": %s, \"p10\": %s, \"p90\": %s, \"mad\": %s, \"min\": %s, \"max\": %s,\n   \"samples\": [",
			number(MEDIAN[i]), number(P10[i]), number(P90[i]), number(MAD[i]), number(MIN[i]), number(MAX[i])
		count = split(SAMPLES[i], v, " ")
		for (j = 1; j <= count; j++)
			printf "%s%s", (j > 1 ? ", " : ""), number(v[j])
		printf "]}"
	}
	printf "\n],\n\"missing\": ["
	for (i = 1; i <= M; i++)
		printf "%s\n  {\"group\": %s, \"case\": %s, \"reason\": %s}", (i > 1 ? "," : ""), quote(NONE_GROUP[i]),
			quote(NONE_CASE[i]), quote(NONE_REASON[i])
	printf "\n]\n}\n"
}
