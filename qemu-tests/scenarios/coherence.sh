# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# arch: riscv64
# kernel: newest
# nics: 0
# checker: yes
# reports: \[coherence\]
#
# The coherence checker itself: a program makes right accesses and wrong ones, in which the checker plays the device. Its reports
# name that program, and are what is expected.

. /ferry/scenarios/lib/tap.sh
tap self-test coherence self-test
