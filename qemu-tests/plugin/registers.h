/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registers of a RISC-V guest, and its instructions' fields. */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdint.h>

#include "qemu_plugin.h"

#define MAX_VCPUS	64

enum { REG_X0, REG_SATP = 32, REG_COUNT };

/* In a vCPU's init callback. */
void registers_find(void);
/* In a callback that may read registers. */
uint64_t register_value(unsigned int reg);

/* The 32 bits of an instruction, or 0 for a compressed one. */
uint32_t insn_word(const struct qemu_plugin_insn *insn);

static inline unsigned int insn_opcode(uint32_t word) { return word & 0x7f; }
static inline unsigned int insn_funct3(uint32_t word) { return word >> 12 & 7; }
static inline unsigned int insn_rd(uint32_t word) { return word >> 7 & 31; }
static inline unsigned int insn_rs1(uint32_t word) { return word >> 15 & 31; }
static inline unsigned int insn_imm(uint32_t word) { return word >> 20; }

#define OPCODE_OP_IMM	0x13
#define OPCODE_MISC_MEM	0x0f
#define OPCODE_SYSTEM	0x73

enum { FUNCT3_SLTI = 2, FUNCT3_FENCE = 0, FUNCT3_CBO = 2 };
enum cbo { CBO_INVAL, CBO_CLEAN, CBO_FLUSH, CBO_ZERO = 4, CBO_NONE = -1 };

enum cbo insn_cbo(uint32_t word);

/*
 * Hints that no compiler makes: "slti zero, REG, MARK". Outside of a guest with a plugin
 * they do nothing.
 */
enum mark {
	MARK_BEGIN = 0x7f1,		/* count from here on */
	MARK_END = 0x7f2,		/* what was counted goes to where REG points */
	MARK_SYMBOLS = 0x7f3,		/* REG points to where kallsyms is, and how long: two words */
	MARK_FOUND = 0x7f4,		/* what was found goes to where REG points: a word an event */
	MARK_DEVICE_READ = 0x7f5,	/* as if a device read the line that REG points into */
	MARK_DEVICE_WRITE = 0x7f6,
	MARK_WRITE = 0x7f7,		/* all that was found so far is in the log when this is over */
	MARK_FORGET = 0x7f8,		/* the same; then nothing counts as said, or as stale */
	MARK_STALL = 0x7f9,		/* REG says for how many microseconds stores stall */
	MARK_NONE = 0,
};

enum mark insn_mark(uint32_t word);

#endif
