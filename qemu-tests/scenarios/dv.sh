# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Direct verbs of the provider.

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

tap dv dv
