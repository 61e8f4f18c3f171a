# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# net: 1
# timeout: 200
# output: shown
#
# The short form of the benchmark.

ROUNDS=1000
. /ferry/scenarios/lib/bench.sh
benchmark write_bw_64k write_rate_8 write_lat_8
