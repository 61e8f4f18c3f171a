/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Version 7 of the interface between QEMU's TCG and a plugin, as far as the plugins here
 * use it: distributions ship QEMU without the header.
 */
#ifndef QEMU_PLUGIN_H
#define QEMU_PLUGIN_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_API		7
#define QEMU_PLUGIN_EXPORT	__attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_register;

struct qemu_plugin_reg_descriptor {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
	bool is_readonly;
};

/* Whether a callback may read registers. */
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, void (*cb)(unsigned int vcpu, void *),
				       void *userdata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(struct qemu_plugin_tb *, void *),
					   void *userdata);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*cb)(void *), void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int vcpu, void *),
					    enum qemu_plugin_cb_flags flags, void *userdata);
/* Called after the access; for an atomic access once as a load and once as a store. */
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int vcpu, qemu_plugin_meminfo_t info,
						 uint64_t vaddr, void *),
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw,
				      void *userdata);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
/* Copies the encoding, up to @len bytes, and tells how many those were. */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
/* Where the host has it; NULL if not in RAM. */
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);

/* Only in a memory callback. */
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *haddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *haddr);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

/* Of the vCPU whose callback runs. */
bool qemu_plugin_translate_vaddr(uint64_t vaddr, uint64_t *paddr);
bool qemu_plugin_read_memory_vaddr(uint64_t vaddr, GByteArray *data, size_t len);
bool qemu_plugin_write_memory_vaddr(uint64_t vaddr, GByteArray *data);
/* 0 is success. */
int qemu_plugin_read_memory_hwaddr(uint64_t paddr, GByteArray *data, size_t len);

/* In a vCPU's init callback: an array of struct qemu_plugin_reg_descriptor. */
GArray *qemu_plugin_get_registers(void);
/* Appends the value; true where it did. */
bool qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *value);

#endif
