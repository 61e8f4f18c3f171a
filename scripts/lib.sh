# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by every script here: where things are, how to speak, and the cache.
#
# The cache holds pieces. A piece is a directory NAME-KEY, where KEY is a hash of all that the piece is made from, so a changed
# recipe makes a new piece and leaves the old one alone. What a piece is made from and how is in pieces.sh.

set -euo pipefail
shopt -s inherit_errexit nullglob

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$TOP/build
TOP_IN_ROOT=/ferry

# One name for each architecture we serve, and what the others call it.
GUEST=${GUEST:-riscv64}
GUEST_KERNEL=${GUEST_KERNEL:-newest}
declare -A DEB_ARCH=([riscv64]=riscv64 [x86_64]=amd64)
declare -A KBUILD_ARCH=([riscv64]=riscv [x86_64]=x86)
declare -A CROSS=([riscv64]=riscv64-linux-gnu- [x86_64]=x86_64-linux-gnu-)

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }
seconds_since() { printf '%d' $((SECONDS - $1)); }

# attempt COMMAND...: runs it with errexit and leaves its status in STATUS. (In the condition of an if, errexit would not work.)
attempt() {
	set +e
	(set -e; "$@")
	STATUS=$?
	set -e
}

in_root() { [ -e /etc/ferry-root ]; }
need_root() { [ "$(id -u)" = 0 ] || die "needs root, to build and enter its own root directory (try: sudo $0)"; }

check_guest() {
	[ -n "${DEB_ARCH[$GUEST]:-}" ] || die "GUEST=$GUEST: riscv64 or x86_64"
	case $GUEST_KERNEL in newest | 6.12 | debug) ;; *) die "GUEST_KERNEL=$GUEST_KERNEL: newest, 6.12 or debug" ;; esac
}

# The release that a kernel's userland is of.
userland_of() {
	case $1 in
	debug) printf 'newest' ;;
	*) printf '%s' "$1" ;;
	esac
}

# ---------------------------------------------------------------- the cache

# FERRY_CACHE has the final word; root's HOME may be missing or be "/".
cache_dir() {
	if [ -n "${FERRY_CACHE:-}" ]; then
		printf '%s' "$FERRY_CACHE"
	elif [ -n "${XDG_CACHE_HOME:-}" ]; then
		printf '%s/ferry' "$XDG_CACHE_HOME"
	elif [ -n "${HOME:-}" ] && [ "$HOME" != / ]; then
		printf '%s/.cache/ferry' "$HOME"
	else
		printf '/var/cache/ferry'
	fi
}
CACHE=$(cache_dir)

# Nothing is ever removed while something is mounted inside.
remove_tree() {
	[ -e "$1" ] || return 0
	if grep -qF " $(readlink -f "$1")/" /proc/self/mountinfo; then
		die "something is mounted inside $1: not removing it"
	fi
	rm -rf --one-file-system "$1"
}

# piece_id NAME: NAME-KEY
piece_id() {
	local key
	key=$(piece_inputs "$1" | sha256sum)
	printf '%s-%.12s' "$1" "$key"
}

piece_path() { printf '%s/%s' "$CACHE" "$(piece_id "$1")"; }

# A piece counts only when its stamp says so and what it is for is really there.
piece_ok() { [ -f "$1/.stamp" ] && [ -f "$1/.contents" ] && piece_verify "$1"; }

# piece NAME: makes the piece if it is missing or broken, and shows it as build/pieces/NAME, which is /env/NAME inside the root.
# Where FERRY_UPDATE names a file, pieces older than that are made anew.
piece() {
	local name=$1 id dir
	id=$(piece_id "$name")
	dir=$CACHE/$id
	mkdir -p "$CACHE/lock" "$CACHE/log" "$BUILD/pieces"
	case " ${FERRY_SEEN:-} " in *" $id "*) return ;; esac
	if piece_wanted_anew "$dir" || ! piece_ok "$dir"; then
		make_piece "$name" "$id" "$dir"
	fi
	touch "$dir" "$CACHE/lock/$id"
	ln -sfn "/cache/$id" "$BUILD/pieces/$name"
	# What this run has looked at need not be looked at again.
	export FERRY_SEEN="${FERRY_SEEN:-} $id"
}

piece_wanted_anew() { [ -n "${FERRY_UPDATE:-}" ] && ! [ "$1/.stamp" -nt "$FERRY_UPDATE" ]; }

make_piece() {
	local name=$1 id=$2 dir=$3 work=$CACHE/$2.making began=$SECONDS lock
	exec {lock}>"$CACHE/lock/$id"
	if ! flock -n "$lock"; then
		say "$name: another run is making it or using it, waiting"
		flock -w 3600 "$lock" || die "$name: still locked after an hour"
	fi
	if piece_wanted_anew "$dir" || ! piece_ok "$dir"; then
		if [ -e "$dir" ] && ! piece_ok "$dir"; then
			say "$name: incomplete or damaged in the cache, making it again"
		fi
		remove_tree "$work"
		mkdir -p "$work"
		say "$name: making it in ${dir%/*}"
		attempt piece_make "$name" "$work" 2> >(tee "$CACHE/log/$name.log" | sed -un 's/^[IE]: /    /p' >&2)
		if [ "$STATUS" != 0 ]; then
			tail -n 20 "$CACHE/log/$name.log" >&2
			die "$name: could not be made; the whole log is $CACHE/log/$name.log"
		fi
		piece_verify "$work" || die "$name: made, but not what it should be"
		touch "$work/.stamp"
		remove_tree "$dir"
		mv "$work" "$dir"
		forget_old "$name" "$id"
		say "$(cat "$dir/versions") ($(seconds_since "$began") s)"
		cat "$CACHE"/*/versions >"$CACHE/versions"
	fi
	exec {lock}>&-
}

# Other keys of a piece that no run has used for two weeks.
forget_old() {
	local old
	for old in "$CACHE/$1"-????????????{,.making}; do
		[ "$old" = "$CACHE/$2" ] && continue
		[ -z "$(find "$old" -maxdepth 0 -mtime +14)" ] || remove_tree "$old"
	done
}

source "$TOP/scripts/pieces.sh"

# All that a guest of GUEST and GUEST_KERNEL is made from.
guest_pieces() {
	local userland
	userland=$(userland_of "$GUEST_KERNEL")
	need_host_packages
	piece root
	piece "kernel-$GUEST-$GUEST_KERNEL"
	piece "userland-$GUEST-$userland"
	piece "base-$GUEST-$GUEST_KERNEL"
	piece "rdmacore-$userland"
}

# Inside the root: link_sources DIR [FROM]: links in DIR to a module's sources, the driver's if not told otherwise, since kernels
# before 6.13 cannot build outside of them. (What "make modules" may have left beside the sources stays out.)
link_sources() {
	mkdir -p "$1"
	find "$1" -xtype l -delete
	ln -sfn "$TOP/uapi" "$1/../uapi"
	find "$TOP/${2:-kernel}" -type f \( -name '*.[chS]' ! -name '*.mod.c' -o -name Kbuild -o -name Kconfig \) -exec ln -sft "$1" {} +
}

# Inside the root: kbuild DIR ARGUMENT..., for GUEST and GUEST_KERNEL, or with the kernel headers that KBUILD_HEADERS names.
kbuild() {
	local dir=$1
	shift
	# Headers name the compiler that built the kernel; the root has one, newer or the same.
	make -j"$(nproc)" -C "${KBUILD_HEADERS:-/env/kernel-$GUEST-$GUEST_KERNEL/headers}" M="$dir" ARCH="${KBUILD_ARCH[$GUEST]}" \
		CROSS_COMPILE="${CROSS[$GUEST]}" CC="${CROSS[$GUEST]}gcc" "$@"
}

# debug_options GUEST: what qemu-tests/debug.config asks for.
debug_options() {
	awk -v guest="$1" '
		/^# only / { other = $3 != guest }
		/^# all$/ { other = 0 }
		!other && (/^CONFIG_/ || /^# CONFIG_[A-Z0-9_]* is not set$/)' "$TOP/qemu-tests/debug.config"
}
