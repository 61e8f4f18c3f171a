# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# net: 1
# timeout: 600
# output: shown
#
# How Ferry compares with Soft-RoCE.

ROUNDS=5000
. /ferry/scenarios/lib/bench.sh
benchmark write_bw_64k read_bw_64k send_bw_64k write_rate_8 send_rate_8 write_lat_8 send_lat_8 read_lat_8
