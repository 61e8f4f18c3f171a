// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts what a program of a RISC-V guest executes in user mode between two marks:
 * instructions, fences, cache-block operations, and stores to I/O memory. The guest
 * program (qemu-tests/guest/count.c) gets them at the second mark.
 */
#include "registers.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

/* As the guest has it. */
struct counts {
	uint64_t insns;
	uint64_t fences;
	uint64_t cbos;
	uint64_t io_stores;
};

/* Each touched by its own vCPU alone. */
static struct {
	bool on;
	struct counts counts;
} cpus[MAX_VCPUS];

static void on_insn(unsigned int vcpu, void *unused)
{
	cpus[vcpu].counts.insns += cpus[vcpu].on;
}

static void on_fence(unsigned int vcpu, void *unused)
{
	cpus[vcpu].counts.fences += cpus[vcpu].on;
}

static void on_cbo(unsigned int vcpu, void *unused)
{
	cpus[vcpu].counts.cbos += cpus[vcpu].on;
}

static void on_store(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
	const struct qemu_plugin_hwaddr *where;

	if (!cpus[vcpu].on)
		return;
	where = qemu_plugin_get_hwaddr(info, vaddr);
	cpus[vcpu].counts.io_stores += where && qemu_plugin_hwaddr_is_io(where);
}

static void on_begin(unsigned int vcpu, void *unused)
{
	cpus[vcpu].counts = (struct counts){ 0 };
	cpus[vcpu].on = true;
}

static void on_end(unsigned int vcpu, void *reg)
{
	GByteArray *bytes = g_byte_array_new();

	cpus[vcpu].on = false;
	g_byte_array_append(bytes, (const guint8 *)&cpus[vcpu].counts, sizeof(struct counts));
	/* Where it cannot be written the guest goes without, and says so. */
	qemu_plugin_write_memory_vaddr(register_value((uintptr_t)reg), bytes);
	g_byte_array_free(bytes, TRUE);
}

/*
 * Linux has the upper half of the addresses, so what lies in the lower half is user mode,
 * or the firmware, which runs from the first megabytes of RAM without translation.
 */
static bool is_user(uint64_t vaddr)
{
	return !(vaddr >> 63) && (vaddr < 0x80000000 || vaddr >= 0x80200000);
}

static void on_translate(struct qemu_plugin_tb *tb, void *unused)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint32_t word = insn_word(insn);

		if (!is_user(qemu_plugin_insn_vaddr(insn)))
			continue;
		switch (insn_mark(word)) {
		case MARK_BEGIN:
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
			continue;
		case MARK_END:
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, QEMU_PLUGIN_CB_R_REGS,
							       (void *)(uintptr_t)insn_rs1(word));
			continue;
		default:
			break;
		}
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_insn, QEMU_PLUGIN_CB_NO_REGS, NULL);
		qemu_plugin_register_vcpu_mem_cb(insn, on_store, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_W, NULL);
		if (insn_cbo(word) != CBO_NONE)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_cbo,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		else if (insn_opcode(word) == OPCODE_MISC_MEM && insn_funct3(word) == FUNCT3_FENCE)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fence,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

static void on_vcpu(unsigned int vcpu, void *unused)
{
	registers_find();
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
					   char **argv)
{
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu, NULL);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate, NULL);
	return 0;
}
