# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Host commands of loss.sh.

# lost-frames: prints what its NIC has lost of what it sent, fails if that is nothing.
host_lost_frames() {
	local tries
	kill -USR1 "${PID[nic$1.0]}"
	for ((tries = 0; tries < 50; tries++)); do
		! sed -n 's/.*impaired out\/in: lost \([0-9]*\).*/\1/p' "$LOG/nic$1.0.log" | grep . || break
		read -r -t 0.1 -u "$NEVER" || continue
	done | grep -v '^0$'
}
