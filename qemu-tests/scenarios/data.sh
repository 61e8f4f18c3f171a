# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
#
# Every error as the right status; every byte where it belongs; events; over all sizes.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

tap errors errors
tap data data --memory 67108864 --iterations 20
for seed in 2 3 4 5; do
	tap "data, seed $seed" data --memory 2097152 --iterations 20 --seed $seed --only mix
	tap "data, seed $seed" data --memory 2097152 --iterations 10 --seed $seed --only receives
done
tap events events --iterations 1000
