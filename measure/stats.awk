# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Reads what collect has written, for the programs that show it. POSIX awk.
#
# FACT[name]; N rows in their order: GROUP[n], CASE[n], PARAMETER[n], UNIT[n], OPERATIONS[n], SAMPLES[n], and of the samples REPEATS[n],
# MEDIAN[n], P10[n], P90[n], MAD[n] (median absolute deviation from the median), MIN[n], MAX[n]; ROW[group, case, parameter] is n. What is
# missing, M times: NONE_GROUP[m], NONE_CASE[m], NONE_REASON[m].

BEGIN { FS = "\t" }

# Into v[1] to v[count], in order.
function sort_values(v, count,    i, j, x) {
	for (i = 2; i <= count; i++) {
		x = v[i]
		for (j = i - 1; j >= 1 && v[j] > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
}

# Between the values on both sides of it, in proportion.
function quantile(v, count, q,    place, low) {
	place = 1 + (count - 1) * q
	low = int(place)
	return low >= count ? v[count] : v[low] + (place - low) * (v[low + 1] - v[low])
}

function take_row(n,    v, away, count, i) {
	count = split(SAMPLES[n], v, " ")
	for (i = 1; i <= count; i++)
		v[i] += 0
	sort_values(v, count)
	REPEATS[n] = count
	MIN[n] = v[1]
	MAX[n] = v[count]
	P10[n] = quantile(v, count, 0.1)
	MEDIAN[n] = quantile(v, count, 0.5)
	P90[n] = quantile(v, count, 0.9)
	for (i = 1; i <= count; i++)
		away[i] = v[i] < MEDIAN[n] ? MEDIAN[n] - v[i] : v[i] - MEDIAN[n]
	sort_values(away, count)
	MAD[n] = quantile(away, count, 0.5)
}

$1 == "fact" {
	if (!($2 in FACT))
		FACT_NAME[++F] = $2
	FACT[$2] = $3
	next
}

$1 == "none" {
	M++
	NONE_GROUP[M] = $2
	NONE_CASE[M] = $3
	NONE_REASON[M] = $4
	next
}

$1 == "row" && NF == 7 && $7 != "" {
	N++
	GROUP[N] = $2
	CASE[N] = $3
	PARAMETER[N] = $4
	UNIT[N] = $5
	OPERATIONS[N] = $6
	SAMPLES[N] = $7
	ROW[$2, $3, $4] = N
	take_row(N)
	next
}

{
	printf "line %d is no row: %.60s\n", NR, $0 >"/dev/stderr"
	BROKEN = 1
}
