# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Host commands of capture.sh.

decode() { tshark -r /tmp/ferry.pcap -T fields -e _ws.col.info -Y infiniband; }

# decoded TEXT...: some packet is one.
host_decoded() {
	shift
	decode >"$SOCKETS/decoded" 2>>"$LOG/tshark.log" || return
	grep -ciF "$*" "$SOCKETS/decoded"
}

# well-formed: all frames are understood, and all of RoCE have a good ICRC where tshark computes it.
host_well_formed() {
	! tshark -r /tmp/ferry.pcap -Y '_ws.malformed' 2>>"$LOG/tshark.log" | grep .
}
