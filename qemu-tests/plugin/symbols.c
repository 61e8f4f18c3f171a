// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE		4096
#define MAX_OBJECTS	64
#define MAX_FUNCTION	65536

void code_take(struct code *code, uint64_t pc, const uint8_t *host)
{
	unsigned int in_page = pc % PAGE, after = PAGE - in_page;

	memset(code, 0, sizeof(*code));
	code->pc = pc;
	if (!host)
		return;
	code->before = in_page < 32 ? in_page : 32;
	code->len = code->before + (after < 32 ? after : 32);
	memcpy(code->bytes, host - code->before, code->len);
}

/* --------------------------------------------------------------------------- kernel */

struct symbol {
	uint64_t addr;
	char name[56];
	char module[24];
};

static struct symbol *kernel;
static size_t kernel_count;

static int by_addr(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* "ffffffff80001234 t name [module]" */
void symbols_kernel(const char *text)
{
	size_t room = 0, count = 0;
	struct symbol *list = NULL;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		struct symbol symbol = { 0 };
		char type, line[256];

		/* sscanf() would look for the end of all of the text. */
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
		if (sscanf(line, "%" SCNx64 " %c %55s", &symbol.addr, &type, symbol.name) != 3 ||
		    !strchr("tTwW", type) || symbol.name[0] == '$')
			continue;
		sscanf(line, "%*x %*c %*s%*[ \t][%23[^]\n]", symbol.module);
		if (count == room) {
			room = room ? 2 * room : 65536;
			list = realloc(list, room * sizeof(*list));
			if (!list)
				abort();
		}
		list[count++] = symbol;
	}
	qsort(list, count, sizeof(*list), by_addr);
	free(kernel);
	kernel = list;
	kernel_count = count;
}

static const struct symbol *find_kernel(uint64_t pc)
{
	size_t low = 0, high = kernel_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kernel[middle].addr <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	/* Farther from a symbol than any function is long: a module that was not there yet. */
	return low && pc - kernel[low - 1].addr < MAX_FUNCTION ? &kernel[low - 1] : NULL;
}

/* -------------------------------------------------------------------------- objects */

static struct object {
	const char *name;
	const uint8_t *file;
	size_t size;
	const Elf64_Shdr *sections;
	unsigned int count;
} objects[MAX_OBJECTS];
static unsigned int object_count;

static bool in_file(const struct object *object, uint64_t offset, uint64_t len)
{
	return offset <= object->size && len <= object->size - offset;
}

bool symbols_object(const char *path)
{
	struct object *object = &objects[object_count];
	const char *slash = strrchr(path, '/');
	const Elf64_Ehdr *head;
	struct stat st;
	int fd;

	if (object_count == MAX_OBJECTS)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		goto bad;
	object->size = (size_t)st.st_size;
	object->file = mmap(NULL, object->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (object->file == MAP_FAILED)
		goto bad;
	close(fd);
	fd = -1;
	head = (const Elf64_Ehdr *)object->file;
	if (object->size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    !in_file(object, head->e_shoff, head->e_shnum * sizeof(Elf64_Shdr)))
		goto bad;
	object->sections = (const Elf64_Shdr *)(object->file + head->e_shoff);
	object->count = head->e_shnum;
	object->name = strdup(slash ? slash + 1 : path);
	object_count++;
	return true;
bad:
	fprintf(stderr, "%s: not an ELF file that can be read\n", path);
	if (fd >= 0)
		close(fd);
	return false;
}

/* Where @code lies in the object's code: its address there, or 0. Pages stay pages. */
static uint64_t find_code(const struct object *object, const struct code *code)
{
	unsigned int i;

	for (i = 0; i < object->count; i++) {
		const Elf64_Shdr *section = &object->sections[i];
		uint64_t first, at;

		if (!(section->sh_flags & SHF_EXECINSTR) || section->sh_type != SHT_PROGBITS ||
		    !in_file(object, section->sh_offset, section->sh_size))
			continue;
		first = (code->pc - code->before - section->sh_addr) % PAGE;
		for (at = first; at + code->len <= section->sh_size; at += PAGE)
			if (!memcmp(object->file + section->sh_offset + at, code->bytes, code->len))
				return section->sh_addr + at + code->before;
	}
	return 0;
}

/* The function that @addr is in, by one table. */
static const Elf64_Sym *find_in_table(const struct object *object, const Elf64_Shdr *table,
				      uint64_t addr)
{
	const Elf64_Sym *best = NULL, *symbol;
	uint64_t i;

	if (!in_file(object, table->sh_offset, table->sh_size))
		return NULL;
	symbol = (const Elf64_Sym *)(object->file + table->sh_offset);
	for (i = 0; i < table->sh_size / sizeof(*symbol); i++, symbol++)
		if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
		    symbol->st_value <= addr && addr - symbol->st_value < symbol->st_size)
			best = symbol;
	return best;
}

static void name_in_object(const struct object *object, uint64_t addr, char *buf, size_t size)
{
	unsigned int i;
	uint32_t type;

	for (type = SHT_SYMTAB; type; type = type == SHT_SYMTAB ? SHT_DYNSYM : 0) {
		for (i = 0; i < object->count; i++) {
			const Elf64_Shdr *table = &object->sections[i], *strings;
			const Elf64_Sym *symbol;

			if (table->sh_type != type || table->sh_link >= object->count)
				continue;
			strings = &object->sections[table->sh_link];
			symbol = find_in_table(object, table, addr);
			if (!symbol || !in_file(object, strings->sh_offset, strings->sh_size) ||
			    symbol->st_name >= strings->sh_size)
				continue;
			snprintf(buf, size, "%s+0x%" PRIx64 " [%s]",
				 (const char *)object->file + strings->sh_offset + symbol->st_name,
				 addr - symbol->st_value, object->name);
			return;
		}
	}
	snprintf(buf, size, "0x%" PRIx64 " [%s]", addr, object->name);
}

bool symbols_known(uint64_t pc)
{
	return !(pc >> 63) || find_kernel(pc);
}

const char *symbols_name(const struct code *code, char *buf, size_t size)
{
	const struct symbol *symbol;
	unsigned int i;

	if (code->pc >> 63) {
		symbol = find_kernel(code->pc);
		if (symbol) {
			snprintf(buf, size, "%s+0x%" PRIx64 " [%s]", symbol->name,
				 code->pc - symbol->addr,
				 symbol->module[0] ? symbol->module : "kernel");
			return buf;
		}
	} else if (code->len >= 16) {
		for (i = 0; i < object_count; i++) {
			uint64_t addr = find_code(&objects[i], code);

			if (addr) {
				name_in_object(&objects[i], addr, buf, size);
				return buf;
			}
		}
	}
	snprintf(buf, size, "0x%" PRIx64, code->pc);
	return buf;
}
