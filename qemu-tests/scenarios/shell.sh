# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 2592000
# net: 1
#
# For people, on the guest's console (make shell): leave it with "exit".

cat >/tmp/profile <<'END'
. /ferry/guest-lib.sh
export PS1="$MACHINE# "
load_ferry && echo "NIC $FERRY, $FERRY_NETDEV; ibv_devinfo -d $FERRY, perftest and /ferry/bin are here; exit to leave"
END
ENV=/tmp/profile setsid -c sh -i <>/dev/ttyS0 >&0 2>&1
