// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The coherence checker: follows what a RISC-V guest's CPUs load, store and do to their
 * cache lines, shares the state of each line with the device model, and reports every
 * access that a machine with caches the device does not see would get wrong.
 *
 *	-plugin coherence.so,shadow=FILE,log=FILE[,base=ADDR][,size=BYTES][,suppress=FILE]
 *		[,object=ELF]...
 *
 * base and size are the guest's RAM.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "registers.h"
#include "shadow.h"
#include "symbols.h"
#include "walk.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

#define WRITE_EVERY_US	20000
#define CSR_SATP	0x180
#define FUNCT7_SFENCE_VMA	0x09
#define FUNCT7_SINVAL_VMA	0x0b
#define FUNCT7_SFENCE_INVAL	0x0c

/* An instruction that was translated; kept forever. */
struct site {
	uint64_t pc;
	const uint8_t *host;
	uint32_t word;
	uint64_t said;		/* the epoch, and what was reported from here in it, a bit an event */
};

static struct coherence shadow;
static unsigned int stall_us;

/* ------------------------------------------------------------------------ reporting */

/* A line's storer: hart and site in one word. */
static uint64_t storer_of(unsigned int hart, const struct site *site)
{
	return (uint64_t)hart << 56 | (uintptr_t)site;
}

static const struct site *site_of(uint64_t storer)
{
	return (const struct site *)(uintptr_t)(storer << 8 >> 8);
}

static const struct code *storer_code(uint64_t storer, struct code *code)
{
	const struct site *site = site_of(storer);

	if (!site)
		return NULL;
	code_take(code, site->pc, site->host);
	return code;
}

/* Once an epoch is enough to say that @event happens at @site. */
static bool is_said(struct site *site, enum coherence_event event)
{
	uint64_t epoch = __atomic_load_n(&shadow.header->epoch, __ATOMIC_RELAXED);
	uint64_t old = __atomic_load_n(&site->said, __ATOMIC_RELAXED), new;

	do {
		new = (old >> 32 == epoch ? old : epoch << 32) | 1u << event;
		if (new == old)
			return true;
	} while (!__atomic_compare_exchange_n(&site->said, &old, new, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return false;
}

static void report(unsigned int hart, struct site *site, uint64_t addr,
		   const struct finding *finding)
{
	const struct coherence_line *line = coherence_line(&shadow, addr);
	struct code at, storer;

	if (!finding->bytes || is_said(site, finding->event))
		return;
	code_take(&at, site->pc, site->host);
	log_cpu(finding, addr, hart, &at, storer_code(line->storer, &storer), line->writer);
}

/* Takes what the device has reported. */
static void collect(void)
{
	unsigned int i, lost = __atomic_exchange_n(&shadow.header->lost, 0, __ATOMIC_RELAXED);

	if (lost)
		log_lost(lost);

	for (i = 0; i < COHERENCE_REPORTS; i++) {
		struct coherence_report *report = &shadow.header->reports[i];
		struct code storer;

		if (__atomic_load_n(&report->state, __ATOMIC_ACQUIRE) != COHERENCE_READY)
			continue;
		log_device(report, storer_code(report->storer, &storer));
		__atomic_store_n(&report->state, COHERENCE_FREE, __ATOMIC_RELEASE);
	}
}

static void collect_alone(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	collect();
	pthread_mutex_unlock(&lock);
}

static void *writer(void *unused)
{
	for (;;) {
		usleep(WRITE_EVERY_US);
		collect_alone();
		log_write(false);
	}
	return NULL;
}

/* All that was found, whether its place can be named or not. */
static void write_all(void)
{
	collect_alone();
	log_write(true);
}

static void on_end(void *unused)
{
	write_all();
}

/* ------------------------------------------------------------------------- accesses */

/* Bytes [paddr, paddr + len) of one line. */
static void access_line(unsigned int hart, struct site *site, uint64_t paddr, unsigned int len,
			bool store, bool uncached)
{
	struct finding finding = { 0 };

	if (uncached)
		finding = shadow_uncached(&shadow, paddr);
	else if (store)
		shadow_store(&shadow, paddr, len, storer_of(hart, site));
	else
		finding = shadow_load(&shadow, paddr, len);
	if (finding.bytes)
		report(hart, site, paddr, &finding);
}

/* The page of @vaddr, that an access to it has just touched; NULL for I/O. */
static const struct page *find_page(unsigned int hart, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
	const struct page *page = walk_find(hart, vaddr);
	const struct qemu_plugin_hwaddr *where;

	if (page)
		return page;
	where = qemu_plugin_get_hwaddr(info, vaddr);
	if (!where || qemu_plugin_hwaddr_is_io(where))
		return NULL;
	return walk_learn(hart, vaddr, qemu_plugin_hwaddr_phys_addr(where));
}

/* What goes over the end of a line may go over the end of a page as well. */
static void access_second(unsigned int hart, struct site *site, uint64_t vaddr, unsigned int len,
			  bool store)
{
	const struct page *page = walk_find(hart, vaddr);
	uint64_t paddr;

	if (!page) {
		if (!qemu_plugin_translate_vaddr(vaddr, &paddr))
			return;
		page = walk_learn(hart, vaddr, paddr);
	}
	access_line(hart, site, page->paddr + vaddr % COHERENCE_PAGE, len, store, page->uncached);
}

/*
 * With a stall, stores that may tell a device something take long: to I/O, and by programs
 * to uncached memory. (The kernel's are too many: it clears pages that way.)
 */
static void stall(const struct site *site, const struct page *page)
{
	unsigned int us = __atomic_load_n(&stall_us, __ATOMIC_RELAXED);

	if (us && (!page || (page->uncached && !(site->pc >> 63))))
		usleep(us);
}

static void on_access(unsigned int hart, qemu_plugin_meminfo_t info, uint64_t vaddr, void *arg)
{
	const struct page *page = find_page(hart, info, vaddr);
	unsigned int len = 1u << qemu_plugin_mem_size_shift(info);
	unsigned int first = COHERENCE_LINE - vaddr % COHERENCE_LINE;
	bool store = qemu_plugin_mem_is_store(info);

	if (page) {
		access_line(hart, arg, page->paddr + vaddr % COHERENCE_PAGE,
			    len < first ? len : first, store, page->uncached);
		if (len > first)
			access_second(hart, arg, vaddr + first, len - first, store);
	}
	if (store)
		stall(arg, page);
}

static void on_cbo(unsigned int hart, void *arg)
{
	struct site *site = arg;
	struct finding finding = { 0 };
	uint64_t paddr;

	/* Where there is no page the instruction comes again. */
	if (!qemu_plugin_translate_vaddr(register_value(insn_rs1(site->word)), &paddr))
		return;
	switch (insn_cbo(site->word)) {
	case CBO_CLEAN:
		shadow_clean(&shadow, paddr);
		break;
	case CBO_FLUSH:
		finding = shadow_flush(&shadow, paddr);
		break;
	case CBO_INVAL:
		finding = shadow_inval(&shadow, paddr);
		break;
	default:			/* CBO_ZERO is a store, and comes as one */
		break;
	}
	report(hart, site, paddr, &finding);
}

/* --------------------------------------------------------------------- translations */

/* The callback comes before the instruction: the new value is worked out. */
static void on_satp(unsigned int hart, void *arg)
{
	const struct site *site = arg;
	unsigned int funct3 = insn_funct3(site->word), rs1 = insn_rs1(site->word);
	uint64_t value = funct3 & 4 ? rs1 : register_value(rs1), old = walk_satp(hart);

	switch (funct3 & 3) {
	case 1:
		walk_set_satp(hart, value);
		break;
	case 2:
		walk_set_satp(hart, old | value);
		break;
	case 3:
		walk_set_satp(hart, old & ~value);
		break;
	}
}

static void on_fence_vma(unsigned int hart, void *unused)
{
	walk_forget(hart);
}

static bool is_satp(uint32_t word)
{
	return insn_opcode(word) == OPCODE_SYSTEM && insn_funct3(word) & 3 &&
	       insn_imm(word) == CSR_SATP;
}

static bool is_fence_vma(uint32_t word)
{
	unsigned int funct7 = word >> 25;

	return insn_opcode(word) == OPCODE_SYSTEM && !insn_funct3(word) &&
	       (funct7 == FUNCT7_SFENCE_VMA || funct7 == FUNCT7_SINVAL_VMA ||
		funct7 == FUNCT7_SFENCE_INVAL);
}

/* ---------------------------------------------------------------------------- marks */

static void mark_symbols(uint64_t where)
{
	GByteArray *bytes = g_byte_array_new();
	uint64_t text[2];

	if (!qemu_plugin_read_memory_vaddr(where, bytes, sizeof(text)) ||
	    bytes->len != sizeof(text))
		goto out;
	memcpy(text, bytes->data, sizeof(text));
	g_byte_array_set_size(bytes, 0);
	if (!qemu_plugin_read_memory_vaddr(text[0], bytes, text[1]))
		goto out;
	g_byte_array_append(bytes, (const guint8 *)"", 1);
	log_symbols((const char *)bytes->data);
out:
	g_byte_array_free(bytes, TRUE);
}

static void mark_found(uint64_t where)
{
	GByteArray *bytes = g_byte_array_new();
	uint64_t counts[COHERENCE_EVENTS];

	collect_alone();
	log_counts(counts);
	g_byte_array_append(bytes, (const guint8 *)counts, sizeof(counts));
	qemu_plugin_write_memory_vaddr(where, bytes);
	g_byte_array_free(bytes, TRUE);
}

static void mark_forget(void)
{
	write_all();
	log_forget();
	__atomic_add_fetch(&shadow.header->epoch, 1, __ATOMIC_RELAXED);
	shadow_forget(&shadow);
}

static const char *guest_plays(void *arg, uint64_t addr)
{
	return arg;
}

static void on_mark(unsigned int hart, void *arg)
{
	const struct site *site = arg;
	uint64_t vaddr = register_value(insn_rs1(site->word)), paddr;
	static char who[] = "the guest, playing a device";

	switch (insn_mark(site->word)) {
	case MARK_SYMBOLS:
		mark_symbols(vaddr);
		break;
	case MARK_FOUND:
		mark_found(vaddr);
		break;
	case MARK_WRITE:
		write_all();
		break;
	case MARK_FORGET:
		mark_forget();
		break;
	case MARK_STALL:
		__atomic_store_n(&stall_us, (unsigned int)vaddr, __ATOMIC_RELAXED);
		break;
	case MARK_DEVICE_READ:
		if (qemu_plugin_translate_vaddr(vaddr, &paddr))
			coherence_device_reads(&shadow, paddr, 8, guest_plays, who);
		break;
	case MARK_DEVICE_WRITE:
		if (qemu_plugin_translate_vaddr(vaddr, &paddr))
			coherence_device_writes(&shadow, paddr, 8, 1, guest_plays, who);
		break;
	default:
		break;
	}
}

/* ------------------------------------------------------------------------- plumbing */

static void watch(struct qemu_plugin_insn *insn, struct site *site)
{
	qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, site);
	if (!site->word)
		return;
	if (insn_cbo(site->word) != CBO_NONE)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_cbo, QEMU_PLUGIN_CB_R_REGS, site);
	else if (is_satp(site->word))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_satp, QEMU_PLUGIN_CB_R_REGS, site);
	else if (is_fence_vma(site->word))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fence_vma, QEMU_PLUGIN_CB_NO_REGS,
						       NULL);
	else if (insn_mark(site->word) >= MARK_SYMBOLS && insn_mark(site->word) <= MARK_STALL)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_R_REGS, site);
}

static void on_translate(struct qemu_plugin_tb *tb, void *unused)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);
	struct site *sites = calloc(n, sizeof(*sites));

	if (!sites)
		abort();
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		sites[i].pc = qemu_plugin_insn_vaddr(insn);
		sites[i].host = qemu_plugin_insn_haddr(insn);
		sites[i].word = insn_word(insn);
		watch(insn, &sites[i]);
	}
}

static void on_vcpu(unsigned int vcpu, void *unused)
{
	if (vcpu >= MAX_VCPUS) {
		fprintf(stderr, "coherence.so: no more than %u vCPUs\n", MAX_VCPUS);
		exit(1);
	}
	walk_forget(vcpu);
	registers_find();
}

struct options {
	const char *shadow;
	const char *log;
	const char *suppress;
	uint64_t base;
	uint64_t size;
};

static bool take_option(struct options *options, const char *name, const char *value)
{
	if (!strcmp(name, "shadow"))
		options->shadow = value;
	else if (!strcmp(name, "log"))
		options->log = value;
	else if (!strcmp(name, "suppress"))
		options->suppress = value;
	else if (!strcmp(name, "base"))
		options->base = strtoull(value, NULL, 0);
	else if (!strcmp(name, "size"))
		options->size = strtoull(value, NULL, 0);
	else if (!strcmp(name, "object"))
		return symbols_object(value);
	else
		return false;
	return true;
}

static bool take_options(struct options *options, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = 0;
		if (!value || !take_option(options, argv[i], value)) {
			fprintf(stderr, "coherence.so: %s: not an option that can be used\n", argv[i]);
			return false;
		}
	}
	if (options->shadow && options->log)
		return true;
	fprintf(stderr, "coherence.so: needs shadow=FILE and log=FILE\n");
	return false;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
					   char **argv)
{
	struct options options = { .base = 0x80000000, .size = 1 << 30 };
	pthread_t thread;

	if (!take_options(&options, argc, argv) || !log_open(options.log, options.suppress))
		return -1;
	if (!shadow_create(&shadow, options.shadow, options.base, options.size)) {
		perror(options.shadow);
		return -1;
	}
	if (pthread_create(&thread, NULL, writer, NULL))
		return -1;
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu, NULL);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate, NULL);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	return 0;
}
