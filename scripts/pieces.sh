# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the cache is made of. For each kind of piece: inputs_KIND says what it depends on, make_KIND makes it in a directory,
# and the text of make_KIND is an input as well. Names are KIND-ARGUMENTS, such as kernel-riscv64-newest.
#
#   root                    amd64 system with QEMU, compilers and checkers: everything of ours runs inside it
#   kernel-GUEST-RELEASE    kernel image, modules, and headers to build against
#   kernel-GUEST-debug      the same, configured to find faults, and compiled here; its userland is the newest
#   userland-GUEST-RELEASE  packages of the guest, unpacked
#   base-GUEST-RELEASE      the initramfs made of the two
#   rdmacore-RELEASE        source of the rdma-core that the userland has
#
# RELEASE is newest or 6.12: the kernel's line, with the userland of the same Debian suite.

# Suites to try, best first. Mirrors lag, and a suite may be in the middle of an update.
suites_for() {
	case $1 in
	6.12) printf 'trixie' ;;
	*) printf '%s' "${FERRY_SUITES:-forky trixie-backports}" ;;
	esac
}

ROOT_PACKAGES='
	qemu-system-riscv qemu-system-x86 device-tree-compiler
	make flex bison libelf-dev gcc libc6-dev gcc-riscv64-linux-gnu libc6-dev-riscv64-cross clang libclang-rt-dev sparse
	cmake ninja-build pkgconf libglib2.0-dev libelf1t64 python3
	pahole cpio zstd xz-utils kmod bc busybox iproute2 herdtools7 tshark shellcheck gnuplot-nox jq'
GUEST_PACKAGES='
	busybox-static util-linux kmod iproute2 iputils-ping ethtool strace udev
	rdma-core ibverbs-utils rdmacm-utils perftest ibverbs-providers'
# With what they depend on, as modules.dep has it. A name that a kernel has not is passed over.
GUEST_MODULES='
	ib_core ib_uverbs ib_umad rdma_cm rdma_ucm rdma_rxe ib_ipoib
	virtio_pci virtio_net virtio_console virtio_iommu tun dummy veth
	crc32_generic crc32c_generic'

# ---------------------------------------------------------------- dispatch

piece_kind() {
	case $1 in
	kernel-*-debug) printf 'debugkernel' ;;
	*) printf '%s' "${1%%-*}" ;;
	esac
}
piece_args() { case $1 in *-*) printf '%s' "${1#*-}" ;; esac; }
guest_of() { printf '%s' "${1%-*}"; }
release_of() { printf '%s' "${1##*-}"; }

piece_inputs() {
	local kind
	kind=$(piece_kind "$1")
	declare -f "make_$kind" "fill_$kind" unpack_debs
	"inputs_$kind" "$(piece_args "$1")"
}

piece_make() {
	local kind
	kind=$(piece_kind "$1")
	"make_$kind" "$2" "$(piece_args "$1")"
	contents "$2" >"$2/.contents"
}

# Names and sizes of all files: cheap, and finds what was lost or cut short.
piece_verify() { [ "$(contents "$1")" = "$(cat "$1/.contents")" ]; }
contents() {
	find "$1" -xdev \( -path "$1/.contents" -o -path "$1/.stamp" \) -prune -o -type f -printf '%P %s\n' | LC_ALL=C sort | sha256sum
}

# What the people who ask where a piece came from get to see.
record() {
	local dir=$1 name=$2
	shift 2
	printf '%s: from %s: %s\n' "$name" "$(cat "$dir/.suite")" "$*" >"$dir/versions"
}

# ---------------------------------------------------------------- getting packages

need_host_packages() {
	local missing=()
	[ "$(dpkg --print-architecture)" = amd64 ] || die "the machine must be amd64"
	command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
	[ -n "$(keyring)" ] || missing+=(debian-archive-keyring)
	[ ${#missing[@]} = 0 ] && return
	say "installing on this machine: ${missing[*]}"
	apt-get update -qq >&2
	apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2
}

keyring() {
	local file
	for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
		[ -s "$file" ] && { printf '%s' "$file"; return; }
	done
}

# The mirror that this machine already uses.
mirror() {
	local uri=${FERRY_MIRROR:-}
	[ -n "$uri" ] || uri=$(configured_mirrors)
	[ -n "$uri" ] || { apt-get update -qq >&2; uri=$(configured_mirrors); }
	[ -n "$uri" ] || die "apt knows no Debian mirror here: set FERRY_MIRROR"
	printf '%s' "${uri%%$'\n'*}"
}
configured_mirrors() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u
}

# The lines of sources.list for a suite; backports need what they were built on.
sources() {
	local suite=$1 kind=$2 from
	from=$(mirror)
	printf '%s [signed-by=%s] %s %s main\n' "$kind" "$(keyring)" "$from" "$suite"
	case $suite in
	*-backports) printf '%s [signed-by=%s] %s %s main\n' "$kind" "$(keyring)" "$from" "${suite%-backports}" ;;
	esac
}

# Settings for every apt that we start.
apt_settings() {
	local scheme
	printf '%s\n' 'Acquire::Check-Valid-Until "false";' 'Acquire::Retries "3";' 'APT::Sandbox::User "root";' \
		'APT::Install-Recommends "false";' 'APT::Update::Error-Mode "any";' "APT::Default-Release \"$1\";"
	for scheme in http https; do
		apt-config dump --format '%f "%v";%n' "Acquire::$scheme::Proxy"
	done
}

# from_suites RELEASE DIR COMMAND ARGUMENT...: COMMAND SUITE DIR ARGUMENT... for each suite in turn until one succeeds.
from_suites() {
	local release=$1 dir=$2 command=$3 suite try
	shift 3
	for suite in $(suites_for "$release"); do
		for try in 1 2; do
			attempt "$command" "$suite" "$dir" "$@"
			if [ "$STATUS" = 0 ]; then
				printf '%s\n' "$suite" >"$dir/.suite"
				return
			fi
			say "E: $suite: try $try failed"
			rm -f "$CACHE/apt/$suite/fresh"
			remove_tree "$dir"
			mkdir -p "$dir"
		done
	done
	die "no suite of '$(suites_for "$release")' would do"
}

# An apt of our own, which leaves this machine's alone: own_apt ARCHITECTURE SUITE get|cache ARGUMENT...
own_apt() {
	local arch=$1 suite=$2 tool=$3
	shift 3
	APT_CONFIG=$CACHE/apt/$suite/$arch.conf "apt-$tool" "$@"
}

# Its package lists, at most an hour old.
refresh_own_apt() {
	local suite=$1 dir=$CACHE/apt/$1 lock arch
	mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" "$dir/none"
	exec {lock}>"$dir/lock"
	flock "$lock"
	if ! [ -f "$dir/fresh" ] || [ -n "$(find "$dir/fresh" -mmin +60)" ]; then
		say "I: reading the package lists of $suite"
		{ sources "$suite" deb; sources "$suite" deb-src; } >"$dir/sources.list"
		: >"$dir/status"
		for arch in amd64 riscv64; do
			{
				apt_settings "$suite"
				printf '%s\n' "Dir::Etc::SourceList \"$dir/sources.list\";" "Dir::Etc::SourceParts \"$dir/none\";" \
					"Dir::Etc::Preferences \"$dir/none/preferences\";" "Dir::Etc::PreferencesParts \"$dir/none\";" \
					"Dir::State \"$dir/state\";" "Dir::State::status \"$dir/status\";" "Dir::Cache \"$dir/cache\";" \
					"APT::Architecture \"$arch\";" 'Acquire::Languages "none";'
				case $arch in
				amd64) printf 'APT::Architectures { "amd64"; "riscv64"; };\n' ;;
				*) printf 'APT::Architectures { "%s"; };\n' "$arch" ;;
				esac
			} >"$dir/$arch.conf"
		done
		own_apt amd64 "$suite" get -q update >&2
		touch "$dir/fresh"
	fi
	exec {lock}>&-
}

# Unpacks what is in DIR/.debs, and notes what that was. Nothing of a foreign architecture runs.
unpack_debs() {
	local dir=$1 deb
	for deb in "$dir"/.debs/*.deb; do
		dpkg-deb -x "$deb" "$dir"
		dpkg-deb -f "$deb" Package Version Architecture | sed 's/^[^ ]* //' | tr '\n' ' '
		printf '\n'
	done >"$dir/packages"
	remove_tree "$dir/.debs"
}
version_in() { awk -v name="$2" '$1 == name { print $2 }' "$1/packages"; }

# ---------------------------------------------------------------- root

inputs_root() { suites_for newest; printf '%s' "$ROOT_PACKAGES"; }

make_root() {
	local dir=$1
	from_suites newest "$dir" fill_root
	# Places for the checkout, the cache and the pieces.
	mkdir "$dir/ferry" "$dir/cache" "$dir/env"
	: >"$dir/etc/ferry-root"
	version() { chroot "$dir" dpkg-query -W -f '${Package}=${Version} ' "$@"; }
	record "$dir" root "$(version qemu-system-riscv gcc clang herdtools7)"
}

fill_root() {
	local suite=$1 dir=$2 setting options=() include
	while read -r setting; do options+=(--aptopt="$setting"); done < <(apt_settings "$suite")
	include=$(tr -s ' \t\n' , <<<"$ROOT_PACKAGES")
	# In namespaces of its own, so that nothing it mounts or starts outlives it, however it ends.
	sources "$suite" deb |
		unshare --mount --propagation private --pid --fork --kill-child mmdebstrap --mode=root --variant=apt \
			--architectures=amd64,riscv64 "${options[@]}" --include="$include" "$suite" "$dir"
}

# ---------------------------------------------------------------- kernel

inputs_kernel() { suites_for "$(release_of "$1")"; }

make_kernel() {
	local dir=$1 name=$2
	from_suites "$(release_of "$name")" "$dir" fill_kernel "${DEB_ARCH[$(guest_of "$name")]}" "kernel-$name"
	record "$dir" "kernel-$name" "linux=$(cat "$dir/version")"
}

fill_kernel() {
	local suite=$1 dir=$2 arch=$3 name=$4 image headers version rest
	refresh_own_apt "$suite"
	# depends PACKAGE PATTERN: those packages it depends on whose names match.
	depends() {
		own_apt amd64 "$suite" cache show --no-all-versions "$1:$arch" | sed -n 's/^Depends: //p' | tr ', ' '\n\n' | sed -nE "/^($2)\$/p"
	}
	image=$(depends "linux-image-$arch" 'linux-image-.*')
	headers=$(depends "linux-headers-$arch" 'linux-headers-.*')
	version=${image#linux-image-}
	# The image package of 7.x has only dependencies.
	rest=$(
		depends "$image" 'linux-(base|binary|modules)-.*' | sed "s/\$/:$arch/"
		depends "$headers" 'linux-(headers-.*-common|kbuild-.*)'
	)
	say "I: fetching $version"
	mkdir "$dir/.debs"
	# shellcheck disable=SC2086
	(cd "$dir/.debs" && own_apt amd64 "$suite" get -q download "$image:$arch" "$headers:$arch" $rest >&2)
	unpack_debs "$dir"
	printf '%s\n' "$version" >"$dir/version"
	for image in "$dir"/boot/vmlinu?-"$version" "$dir/usr/lib/modules/$version/vmlinuz"; do
		[ ! -f "$image" ] || ln -srf "$image" "$dir/vmlinuz"
	done
	[ -f "$dir/vmlinuz" ] || die "no kernel image in the packages of $version"
	ln -sr "$dir/usr/src/$headers" "$dir/headers"
	# Debian's header Makefiles name each other by absolute path: make it the place where the root shows this piece.
	sed -i "s,/usr/src/,/env/$name/usr/src/," "$dir/headers/Makefile"
}

# ---------------------------------------------------------------- debug kernel

# The compiler is one of them, since what is built for a kernel wants the one that built the kernel.
inputs_debugkernel() {
	suites_for newest
	debug_options "$(guest_of "$1")"
	cat "$TOP/scripts/make-debug-kernel"
	grep -o ' gcc=[^ ]*' "$(piece_path root)/versions"
}

make_debugkernel() {
	local dir=$1 name=$2
	from_suites newest "$dir" fill_debugkernel
	FERRY_CACHE_WRITABLE=1 nice -n 19 "$TOP/scripts/in-root" scripts/make-debug-kernel "$(guest_of "$name")" "/cache/${dir##*/}" >&2
	record "$dir" "kernel-$name" "linux=$(cat "$dir/version"), $(cut -d ' ' -f 1,2 --output-delimiter='=' "$dir/packages")"
}

fill_debugkernel() {
	local suite=$1 dir=$2 package
	refresh_own_apt "$suite"
	package=$(own_apt amd64 "$suite" cache show --no-all-versions linux-source | sed -n 's/^Depends: \(linux-source-[^ ,]*\).*/\1/p')
	say "I: fetching $package"
	mkdir "$dir/.debs"
	(cd "$dir/.debs" && own_apt amd64 "$suite" get -q download "$package" >&2)
	unpack_debs "$dir"
}

# ---------------------------------------------------------------- userland

inputs_userland() { suites_for "$(release_of "$1")"; printf '%s' "$GUEST_PACKAGES"; }

make_userland() {
	local dir=$1 name=$2
	from_suites "$(release_of "$name")" "$dir" fill_userland "${DEB_ARCH[$(guest_of "$name")]}"
	record "$dir" "userland-$name" "rdma-core=$(version_in "$dir" rdma-core) perftest=$(version_in "$dir" perftest)"
}

fill_userland() {
	local suite=$1 dir=$2 arch=$3
	refresh_own_apt "$suite"
	say "I: fetching packages of $arch"
	mkdir -p "$dir/.debs/partial"
	# shellcheck disable=SC2086
	own_apt "$arch" "$suite" get -q -y -o Dir::Cache::Archives="$dir/.debs" --download-only install $GUEST_PACKAGES >&2
	# /bin and its like are symbolic links into /usr, whatever packages bring.
	mkdir -p "$dir"/usr/{bin,sbin,lib,lib64}
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$dir"
	unpack_debs "$dir"
}

# ---------------------------------------------------------------- source of rdma-core

# The provider interface is private to a release: the source must be of the version that the guest has.
inputs_rdmacore() { version_in "$(piece_path "userland-$GUEST-$1")" rdma-core; }

make_rdmacore() {
	local dir=$1 release=$2 version
	version=$(version_in "$(piece_path "userland-$GUEST-$release")" rdma-core)
	from_suites "$release" "$dir" fill_rdmacore "${version%-*}"
	record "$dir" "rdmacore-$release" "rdma-core=${version%-*}"
}

fill_rdmacore() {
	local suite=$1 dir=$2 version=$3
	refresh_own_apt "$suite"
	mkdir "$dir/.source"
	# The tarball alone: a mirror that lags may not have the .dsc.
	(cd "$dir/.source" && own_apt amd64 "$suite" get -q --download-only --tar-only source rdma-core >&2)
	tar -xf "$dir/.source/rdma-core_$version.orig.tar."* --strip-components=1 -C "$dir"
	remove_tree "$dir/.source"
}

# ---------------------------------------------------------------- base of the guest's initramfs

inputs_base() {
	local userland
	userland=userland-$(guest_of "$1")-$(userland_of "$(release_of "$1")")
	piece_id "kernel-$1"
	cat "$(piece_path "kernel-$1")/packages" "$(piece_path "$userland")/packages" "$TOP/scripts/make-base"
	printf '%s' "$GUEST_MODULES"
}

make_base() {
	local dir=$1 name=$2 userland
	userland=userland-$(guest_of "$name")-$(userland_of "$(release_of "$name")")
	# shellcheck disable=SC2086
	FERRY_CACHE_WRITABLE=1 "$TOP/scripts/in-root" scripts/make-base "/env/kernel-$name" "/env/$userland" "/cache/${dir##*/}" $GUEST_MODULES >&2
	printf 'base-%s: %s MiB\n' "$name" "$(du -m "$dir/base.cpio" | cut -f 1)" >"$dir/versions"
}
fill_base() { :; }
