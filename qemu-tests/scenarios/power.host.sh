# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Host commands of power.sh.

# pcie-error ID ERROR: the PCIe port of that name reports it, as QEMU's monitor calls errors.
host_pcie_error() {
	qmp "$1" human-monitor-command "{\"command-line\":\"pcie_aer_inject_error $2 $3\"}" | grep 'OK'
}
