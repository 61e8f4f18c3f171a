# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# With stats.awk: the report, in Markdown. PLOTS: names of the plots there are, parted by spaces.

function figure(x) {
	if (x == 0)
		return "0"
	if (x < 10 && x > -10)
		return sprintf("%.2f", x)
	if (x < 100 && x > -100)
		return sprintf("%.1f", x)
	return sprintf("%.0f", x)
}

function size_name(bytes) {
	if (bytes >= 1048576 && bytes % 1048576 == 0)
		return bytes / 1048576 " MiB"
	if (bytes >= 1024 && bytes % 1024 == 0)
		return bytes / 1024 " KiB"
	return bytes " B"
}

function parameter_name(n) {
	if (GROUP[n] == "post" || GROUP[n] == "poll")
		return PARAMETER[n]
	if (CASE[n] ~ /scattered/)
		return PARAMETER[n] (PARAMETER[n] == 1 ? " page" : " pages")
	return PARAMETER[n] == 0 ? "" : size_name(PARAMETER[n])
}

function find(group, name, parameter) {
	return (group SUBSEP name SUBSEP parameter) in ROW ? ROW[group, name, parameter] : 0
}

function plot(name) {
	if (index(" " PLOTS " ", " " name " "))
		printf "![%s](%s.svg)\n\n", name, name
}

function file_name(group) {
	group = tolower(group)
	gsub(/[^a-z0-9]+/, "-", group)
	return group
}

# All rows of a group.
function table(group, column,    i, any) {
	for (i = 1; i <= N; i++) {
		if (GROUP[i] != group)
			continue
		if (!any++)
			printf "| case | %s | median | p10 | p90 | MAD | unit | samples x operations |\n|---|---|---|---|---|---|---|---|\n", column
		printf "| %s | %s | %s | %s | %s | %s | %s | %d x %d |\n", CASE[i], parameter_name(i), figure(MEDIAN[i]), figure(P10[i]),
			figure(P90[i]), figure(MAD[i]), UNIT[i], REPEATS[i], OPERATIONS[i]
	}
	if (any)
		print ""
	for (i = 1; i <= M; i++)
		if (NONE_GROUP[i] == group)
			printf "- not measured: %s: %s\n", (NONE_CASE[i] == "all" ? group : NONE_CASE[i]), NONE_REASON[i]
	print ""
}

function section(title, text) { printf "## %s\n\n%s\n\n", title, text }

# ---------------------------------------------------------------- what to know first

function warnings(    i, noisy, any, governor) {
	if (FACT["emulated"] == "yes")
		print "> **This machine is emulated. The times below mean nothing**: they show that the kit runs, and no more.\n"
	governor = FACT["cpufreq governor"]
	if (governor != "" && governor !~ /^performance \([0-9]+ CPUs\)$/)
		printf "> The cpufreq governor is not `performance` everywhere (%s): clocks may have changed while measuring.\n\n", governor
	if (FACT["mode"] == "one machine" && find("latency", "TCP", 8))
		print "> Both ends ran on one machine. TCP then never leaves the kernel's loopback, and RDMA may take a short way inside the NIC: " \
			"their comparison says little about a wire. Two machines: `scripts/measure --server`, `--connect`.\n"
	for (i = 1; i <= N; i++)
		if (MEDIAN[i] > 0 && GROUP[i] != "barrier" && MAD[i] > MEDIAN[i] / 10)
			noisy++
	if (noisy)
		printf "> %d of %d rows have a MAD above a tenth of their median: the machine was not quiet (load %s at the start, %s at the end).\n\n",
			noisy, N, FACT["load at the start"], FACT["load at the end"]
}

function facts(    i) {
	section("The machine", "All numbers are of this machine and this configuration.")
	print "| what | value |\n|---|---|"
	for (i = 1; i <= F; i++) {
		if (FACT[FACT_NAME[i]] !~ /^[ ]*$/) {
			gsub(/\|/, "\\|", FACT[FACT_NAME[i]])
			printf "| %s | %s |\n", FACT_NAME[i], FACT[FACT_NAME[i]]
		}
	}
	print ""
}

# ---------------------------------------------------------------- where RDMA pays

# Of two rows: how many times the first is better, or that nobody can tell: their spans from p10 to p90 overlap.
function compare(a, b, more,    good, bad) {
	if (!a || !b)
		return "-"
	if (P10[a] <= P90[b] && P10[b] <= P90[a])
		return "same"
	good = more ? MEDIAN[a] : MEDIAN[b]
	bad = more ? MEDIAN[b] : MEDIAN[a]
	return bad > 0 ? sprintf("%.2f", good / bad) : "-"
}

# What a WRITE of that size takes when its memory is registered for it and deregistered again, in us; 0 if not known.
function registering_each_time(size,    write, reg, dereg, region) {
	region = size < 4096 ? 4096 : size
	write = find("latency", "RDMA write", size)
	reg = find("registration", "ibv_reg_mr", region)
	dereg = find("registration", "ibv_dereg_mr", region)
	return write && reg && dereg ? MEDIAN[write] + MEDIAN[reg] + MEDIAN[dereg] : 0
}

function cpu_of(name, size,    client, server) {
	client = find("CPU time", name ": client", size)
	server = find("CPU time", name ": server", size)
	return client && server ? MEDIAN[client] + MEDIAN[server] : 0
}

function verdict(what, better, worse, same) {
	printf "- %s: RDMA is better at %s; worse at %s; no difference that can be told at %s.\n", what, better == "" ? "no size" : better,
		(worse == "" ? "no size" : worse), (same == "" ? "no size" : same)
}

# A line for each size that has a WRITE, and a summary of three columns.
function where_it_pays(    i, size, result, k, each, cpu, tcp_cpu, better, worse, same, what) {
	if (!find("latency", "RDMA write", 8)) {
		section("Where RDMA pays", "Not measured.")
		return
	}
	section("Where RDMA pays", "How many times better RDMA is than TCP: above 1 RDMA wins, \"same\" is where the spans from p10 to p90 " \
		"overlap. Latency is a round trip of that size both ways; a READ is compared with asking for the data by TCP. The last two columns: a " \
		"WRITE whose memory is registered for it alone, as a program must that does not keep its buffers, beside the time of a TCP round trip; " \
		"and CPU time of both ends for each message of a stream, TCP over RDMA WRITE.")
	what[1] = "send, sleeping, against TCP: round trip"
	what[2] = "send, polling, against TCP, polling: round trip"
	what[3] = "READ against TCP fetch"
	what[4] = "WRITE against TCP: bandwidth"
	print "| size | send, sleeping / TCP | send, polling / TCP, polling | READ / TCP fetch | bandwidth, WRITE / TCP | WRITE + registration, us | TCP, us | CPU, TCP / WRITE |"
	print "|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= N; i++) {
		if (GROUP[i] != "latency" || CASE[i] != "RDMA write")
			continue
		size = PARAMETER[i]
		result[1] = compare(find("latency", "RDMA send, sleeping", size), find("latency", "TCP", size), 0)
		result[2] = compare(find("latency", "RDMA send", size), find("latency", "TCP, polling", size), 0)
		result[3] = compare(find("latency", "RDMA read", size), find("latency", "TCP, fetch", size), 0)
		result[4] = compare(find("bandwidth", "RDMA write", size), find("bandwidth", "TCP", size), 1)
		each = registering_each_time(size)
		cpu = cpu_of("RDMA write", size)
		tcp_cpu = cpu_of("TCP", size)
		printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", size_name(size), result[1], result[2], result[3], result[4],
			(each ? figure(each) : "-"), (find("latency", "TCP", size) ? figure(MEDIAN[find("latency", "TCP", size)]) : "-"),
			(cpu > 0 ? figure(tcp_cpu / cpu) : "-")
		for (k = 1; k <= 4; k++) {
			if (result[k] == "same")
				same[k] = same[k] (same[k] == "" ? "" : ", ") size_name(size)
			else if (result[k] + 0 > 1)
				better[k] = better[k] (better[k] == "" ? "" : ", ") size_name(size)
			else if (result[k] != "-")
				worse[k] = worse[k] (worse[k] == "" ? "" : ", ") size_name(size)
		}
	}
	print ""
	for (k = 1; k <= 4; k++)
		verdict(what[k], better[k], worse[k], same[k])
	print ""
}

# ---------------------------------------------------------------- barriers

# What stands for whom: rdma-core's util/udma_barrier.h, and provider/barrier.h.
function used_as(name) {
	if (name == "fence ow,ow") return "`udma_to_device_barrier()`, `mmio_flush_writes()`"
	if (name == "fence ir,ir") return "`udma_from_device_barrier()`"
	if (name == "fence iorw,ow") return "Ferry: work, then record"
	if (name == "fence w,r") return "Ferry: record, then look; the kernel's `smp_mb` is more"
	if (name == "fence r,r") return "Ferry: valid bit, then body"
	if (name == "fence r,w") return "Ferry: body, then index"
	if (name == "fence w,o") return "record, then doorbell page"
	if (name == "fence rw,rw") return "`smp_mb()`"
	if (name == "fence iorw,iorw") return "`mb()`"
	if (name == "lfence") return "`udma_from_device_barrier()`"
	if (name == "sfence") return "`mmio_flush_writes()`"
	if (name == "mfence") return "Ferry: record, then look"
	if (name == "lock addl") return "`smp_mb()`"
	return ""
}

function barrier_table(    i, j, part, count, name, pendings, pending, seen, n) {
	for (i = 1; i <= N; i++) {
		if (GROUP[i] != "barrier")
			continue
		split(CASE[i], part, ": ")
		if (!(part[1] in seen)) { seen[part[1]] = 1; name[++count] = part[1] }
		if (!(part[2] in seen)) { seen[part[2]] = 1; pending[++pendings] = part[2] }
	}
	if (!count)
		return
	printf "| median, ns |"
	for (j = 1; j <= pendings; j++)
		printf " %s |", pending[j]
	printf " used as |\n|---|"
	for (j = 1; j <= pendings + 1; j++)
		printf "---|"
	print ""
	for (i = 1; i <= count; i++) {
		printf "| %s |", name[i]
		for (j = 1; j <= pendings; j++) {
			n = find("barrier", name[i] ": " pending[j], 0)
			printf " %s |", (n ? figure(MEDIAN[n]) : "-")
		}
		printf " %s |\n", used_as(name[i])
	}
	print ""
}

# What share of posting is the fence.
function barrier_share(    fence, post, share) {
	fence = find("barrier", "fence ow,ow: 8 stores that hit", 0)
	post = find("post", "WRITE of 8 B, inline", 1)
	if (!fence || !post || MEDIAN[post] <= 0)
		return
	share = MEDIAN[fence] / MEDIAN[post] * 100
	printf "One `udma_to_device_barrier()` behind the stores of a WQE takes %s ns: %.0f %% of posting one 8-byte WRITE (%s ns). A list of 64 " \
		"pays it once.\n\n", figure(MEDIAN[fence]), share, figure(MEDIAN[post])
}

# ---------------------------------------------------------------- all of it

END {
	if (BROKEN)
		exit 1
	printf "# RDMA, measured: %s, %s, Linux %s\n\n", FACT["architecture"], (FACT["RDMA device"] == "" ? "no RDMA device" : FACT["RDMA device"]),
		FACT["kernel"]
	warnings()
	facts()

	where_it_pays()
	plot("latency")
	plot("bandwidth")
	plot("cpu-time")

	section("Barriers", "Time that a barrier adds to a loop of the accesses named: the median of differences of two loops, so it may be less than " \
		"nothing where a barrier costs nothing. On x86 `udma_to_device_barrier()` is no instruction and costs nothing by itself.")
	barrier_table()
	barrier_share()
	plot("barrier")
	table("barrier", "")
	print "The loops without barrier:\n"
	table("barrier loop", "")

	section("Posting and polling", "CPU time of the calls, for each work request or completion, by how many one call takes. Nothing is waited for.")
	plot("post")
	table("post", "batch")
	plot("poll")
	table("poll", "batch")

	section("Memory registration", "By the size of the memory, which has been touched before.")
	plot("registration")
	table("registration", "size")

	section("Cache maintenance", "User mode: instructions over the whole range with the barrier that must follow. Kernel: what the DMA API does for " \
		"this device, next to nothing where it is coherent, and a write-back whether needed or not.")
	plot("cache-user")
	table("cache, user", "size")
	plot("cache-kernel")
	table("cache, kernel", "size")

	section("Mapping", "The DMA API as this device's driver meets it, and the IOMMU by itself. \"Page table only\": the domain was attached to no " \
		"device, so nothing had to be invalidated.")
	plot("dma-map")
	plot("dma-map-scattered-pages")
	table("DMA map", "size")
	plot("iommu")
	table("IOMMU", "size")

	section("Latency", "Round trips; a WRITE or READ until its own completion. p99 within each sample, then the median of samples.")
	table("latency", "size")
	table("latency, p99", "size")
	section("Rate and bandwidth", "A stream of messages one way, up to 64 under way.")
	table("bandwidth", "size")
	plot("rate")
	table("rate", "size")
	section("CPU time of a stream", "Of each process, for each message. What the kernel does in interrupts for TCP is not in it.")
	table("CPU time", "size")
}
