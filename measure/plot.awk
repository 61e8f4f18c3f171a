# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# With stats.awk: for each group of rows by size or batch a data file and a gnuplot script in the directory DIR, and one of bars for the
# barriers. A line for each case: the median, with bars from p10 to p90.

function file_name(group) {
	group = tolower(group)
	gsub(/[^a-z0-9]+/, "-", group)
	return group
}

function head(base, group, unit) {
	printf "set terminal svg size 900,600 dynamic\nset output '%s.svg'\nset title '%s%s'\nset ylabel '%s'\nset grid\n",
		base, group, EMULATED, unit >(DIR "/" base ".gp")
	printf "set key outside below\n" >(DIR "/" base ".gp")
}

function plot_lines(group,    base, data, i, j, blocks, unit, label) {
	base = file_name(group)
	data = base ".dat"
	for (i = 1; i <= N; i++) {
		if (GROUP[i] != group || (CASE[i] in seen_case))
			continue
		seen_case[CASE[i]] = 1
		printf "%s\"%s\"\n", blocks++ ? "\n\n" : "", CASE[i] >(DIR "/" data)
		unit = UNIT[i]
		for (j = 1; j <= N; j++)
			if (GROUP[j] == group && CASE[j] == CASE[i])
				print PARAMETER[j], MEDIAN[j], P10[j], P90[j] >(DIR "/" data)
	}
	for (i in seen_case)
		delete seen_case[i]
	close(DIR "/" data)
	head(base, group, unit)
	label = group ~ /post|poll/ ? "work requests in one call" : group == "DMA map" ? "bytes, or pages" : "bytes"
	printf "set xlabel '%s'\nset logscale x 2\nset logscale y\n", label >(DIR "/" base ".gp")
	printf "plot for [i=0:%d] '%s' index i using 1:2:3:4 with yerrorlines title columnheader(1)\n",
		blocks - 1, data >(DIR "/" base ".gp")
	close(DIR "/" base ".gp")
}

# Bars, clustered by barrier: one colour for each of what is pending.
function plot_barriers(    i, j, part, names, pendings, name, pending, data) {
	data = DIR "/barrier.dat"
	for (i = 1; i <= N; i++) {
		if (GROUP[i] != "barrier")
			continue
		split(CASE[i], part, ": ")
		if (!(part[1] in seen_name)) { seen_name[part[1]] = 1; name[++names] = part[1] }
		if (!(part[2] in seen_pending)) { seen_pending[part[2]] = 1; pending[++pendings] = part[2] }
	}
	if (!names)
		return
	printf "barrier" >data
	for (j = 1; j <= pendings; j++)
		printf "\t%s", pending[j] >data
	for (i = 1; i <= names; i++) {
		printf "\n%s", name[i] >data
		for (j = 1; j <= pendings; j++)
			printf "\t%s", MEDIAN[ROW["barrier", name[i] ": " pending[j], 0]] >data
	}
	printf "\n" >data
	close(data)
	head("barrier", "barrier, beyond the accesses themselves", "ns")
	printf "set datafile separator '\\t'\nset style data histograms\nset style fill solid\nset xtics rotate by -30\n" >(DIR "/barrier.gp")
	printf "plot for [i=2:%d] 'barrier.dat' using i:xtic(1) title columnheader(i)\n", pendings + 1 >(DIR "/barrier.gp")
	close(DIR "/barrier.gp")
}

END {
	EMULATED = FACT["emulated"] == "yes" ? " (emulated: the times mean nothing)" : ""
	for (row = 1; row <= N; row++) {
		if (GROUP[row] ~ /^barrier/ || GROUP[row] in drawn)
			continue
		drawn[GROUP[row]] = 1
		plot_lines(GROUP[row])
	}
	plot_barriers()
}
