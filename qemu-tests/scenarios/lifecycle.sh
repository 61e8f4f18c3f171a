# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 1200
#
# Objects come and go, programs are killed and hostile, and nothing is left behind.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

# Cleaning and flushing memory line by line is slow under emulation.
[ "$COHERENT" = yes ] || PATIENCE=5
before=$(all_resources)
iterations=$((200 / PATIENCE))
tap lifecycle lifecycle --iterations $iterations
tap hostile hostile --iterations $iterations --seconds 20
tap events events --only acknowledged
is "rdma resource shows what it did before" "$(all_resources)" "$before"
run "the driver goes" unload_ferry
run "and comes again" load_ferry
run "and works" pingpong -n 100 -c
