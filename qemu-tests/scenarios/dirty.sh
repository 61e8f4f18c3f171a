# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# arch: riscv64
# coherent: no
# checker: yes
#
# Transfers between buffers that were stored to just before, on a non-coherent host under the coherence checker. make
# check-coherence plants omissions and wants this to find each.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh
tap dirty dirty --dev "$FERRY"
