# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# arch: riscv64
# coherent: no
#
# Who maintains the caches of what work requests name: the provider, by instructions, where user mode may execute them, else the
# driver, by calls. (That these are made is shown under the coherence checker, by the omissions sink-cleaned-instead and
# user-call-flush-forgotten.)

run "the driver loads and the device comes up" load_ferry || return
. /ferry/scenarios/lib/verbs.sh

case $(uname -r) in
6.*) wanted=0 ;;	# user mode may execute cbo.zero alone
*) wanted=1 ;;
esac
# It compares what the provider says with what happens to a program that cleans a line.
tap dv dv --only query
is "user mode maintains them" "$(grep -c 'user mode maintains them' /tmp/tap.out)" $wanted
run "and data arrives" pingpong -n 100 -c
