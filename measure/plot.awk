# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# With stats.awk: for each group of rows by size, number of pages or batch a data file and a gnuplot script in the directory DIR, and one of
# bars for the barriers. A line for each case: the median, with bars from p10 to p90.

# What a row is drawn in: its group, and apart from the others what is counted in pages.
function plot_of(i) { return GROUP[i] (CASE[i] ~ /scattered/ ? ", scattered pages" : "") }

function file_name(name) {
	name = tolower(name)
	gsub(/[^a-z0-9]+/, "-", name)
	return name
}

# Names of cases may have underscores, which are none of markup. The default yellow is hard to see.
function head(base, title, unit) {
	printf "set terminal svg size 1000,500 dynamic noenhanced\nset output '%s.svg'\nset title '%s%s'\nset ylabel '%s'\nset grid\n",
		base, title, EMULATED, unit >(DIR "/" base ".gp")
	printf "set key outside right top vertical Left reverse\nset format y '%%g'\nset linetype 5 linecolor '#808080'\n" >(DIR "/" base ".gp")
}

function axis_of(name) {
	if (name ~ /^(post|poll)$/)
		return "work requests in one call"
	return name ~ /pages/ ? "pages" : "size"
}

function tick_name(axis, n) {
	if (axis != "size")
		return n
	if (n >= 1048576 && n % 1048576 == 0)
		return n / 1048576 " MiB"
	if (n >= 1024 && n % 1024 == 0)
		return n / 1024 " KiB"
	return n " B"
}

function plot_lines(name,    base, data, i, j, blocks, unit, least, most, axis, ticks) {
	base = file_name(name)
	data = base ".dat"
	axis = axis_of(name)
	for (i = 1; i <= N; i++) {
		if (plot_of(i) != name)
			continue
		if (!least || PARAMETER[i] < least)
			least = PARAMETER[i]
		if (PARAMETER[i] > most)
			most = PARAMETER[i]
		if (!(PARAMETER[i] in seen_size)) {
			seen_size[PARAMETER[i]] = 1
			ticks = ticks (ticks == "" ? "" : ", ") "'" tick_name(axis, PARAMETER[i]) "' " PARAMETER[i]
		}
		if (CASE[i] in seen_case)
			continue
		seen_case[CASE[i]] = 1
		printf "%s\"%s\"\n", blocks++ ? "\n\n" : "", CASE[i] >(DIR "/" data)
		unit = UNIT[i]
		for (j = 1; j <= N; j++)
			if (plot_of(j) == name && CASE[j] == CASE[i])
				print PARAMETER[j], MEDIAN[j], P10[j], P90[j] >(DIR "/" data)
	}
	for (i in seen_case)
		delete seen_case[i]
	for (i in seen_size)
		delete seen_size[i]
	close(DIR "/" data)
	head(base, name, unit)
	# With room at both ends, since the first and the last size have bars as well.
	printf "set xlabel '%s'\nset xtics (%s)\nset xrange [%g:%g]\nset logscale x 2\nset logscale y\n", axis, ticks, least / 1.3,
		most * 1.3 >(DIR "/" base ".gp")
	printf "plot for [i=0:%d] '%s' index i using 1:2:3:4 with yerrorlines linewidth 1.5 title columnheader(1)\n",
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
		if (GROUP[row] ~ /^barrier/ || plot_of(row) in drawn)
			continue
		drawn[plot_of(row)] = 1
		plot_lines(plot_of(row))
	}
	plot_barriers()
}
