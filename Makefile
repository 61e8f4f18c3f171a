# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# For people; each target is a script, and "make help" lists them. kbuild's part is in kernel/.

TARGETS := \
	"run:show data going through the NIC in a guest" \
	"check:build and test everything" \
	"check-all:the same, with all that takes long, and Linux 6.12" \
	"shell:a guest with the NIC, driver and tools, to play with" \
	"bench:Ferry beside Soft-RoCE in one guest" \
	"check-coherence:non-coherent hosts, and omissions that must be found" \
	"count:instructions, fences and cache-block operations of post and poll" \
	"bench-engine:the engine alone, at full speed" \
	"measure:what RDMA costs on this machine, with any NIC" \
	"build:build everything for GUEST" \
	"modules:the driver for your own kernel: KDIR= ARCH= CROSS_COMPILE=" \
	"update:fetch the environment anew" \
	"clean:remove what was built here (the cache stays)" \
	"help:this list"

.PHONY: run check check-all shell bench bench-engine count check-coherence measure build modules update clean help

help:
	@printf 'GUEST=riscv64 (default) or x86_64 chooses the guest.\n\n'
	@for target in $(TARGETS); do printf 'make %-15s %s\n' "$${target%%:*}" "$${target#*:}"; done

run check check-coherence shell bench count measure build update:
	@scripts/$@
check-all:
	@scripts/check --all
bench-engine:
	@scripts/build device
	@scripts/in-root make --no-print-directory -C device O=/ferry/build/device bench-engine

KDIR ?= /lib/modules/$(shell uname -r)/build
modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR)/kernel modules

clean:
	rm -rf build
	find kernel \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' -o -name '.*.cmd' -o -name modules.order \
		-o -name Module.symvers \) -delete
