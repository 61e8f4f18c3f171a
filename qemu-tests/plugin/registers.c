// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "registers.h"

#include <pthread.h>
#include <string.h>

static const char *const names[REG_COUNT] = {
	"zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4",
	"a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
	"t5", "t6", [REG_SATP] = "satp",
};

/* The same for all vCPUs of a machine. */
static struct qemu_plugin_register *handles[REG_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void registers_find(void)
{
	GArray *regs = qemu_plugin_get_registers();
	unsigned int i, r;

	pthread_mutex_lock(&lock);
	for (i = 0; i < regs->len; i++) {
		const struct qemu_plugin_reg_descriptor *reg =
			&g_array_index(regs, struct qemu_plugin_reg_descriptor, i);

		for (r = 0; r < REG_COUNT; r++)
			if (!strcmp(reg->name, names[r]))
				handles[r] = reg->handle;
	}
	pthread_mutex_unlock(&lock);
	g_array_free(regs, TRUE);
}

uint64_t register_value(unsigned int reg)
{
	static _Thread_local GByteArray *bytes;
	uint64_t value = 0;

	if (!bytes)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	if (handles[reg] && qemu_plugin_read_register(handles[reg], bytes) && bytes->len == 8)
		memcpy(&value, bytes->data, 8);
	return value;
}

uint32_t insn_word(const struct qemu_plugin_insn *insn)
{
	uint32_t word = 0;

	return qemu_plugin_insn_data(insn, &word, 4) == 4 ? word : 0;
}

enum cbo insn_cbo(uint32_t word)
{
	if (insn_opcode(word) != OPCODE_MISC_MEM || insn_funct3(word) != FUNCT3_CBO || insn_rd(word))
		return CBO_NONE;
	switch (insn_imm(word)) {
	case CBO_INVAL:
	case CBO_CLEAN:
	case CBO_FLUSH:
	case CBO_ZERO:
		return insn_imm(word);
	default:
		return CBO_NONE;
	}
}

enum mark insn_mark(uint32_t word)
{
	if (insn_opcode(word) != OPCODE_OP_IMM || insn_funct3(word) != FUNCT3_SLTI || insn_rd(word))
		return MARK_NONE;
	return insn_imm(word);
}
