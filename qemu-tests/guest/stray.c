// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Has memory and queues, and gives them up, as standard input says, so that a scenario can
 * have the NIC reach for them meanwhile. For each line an answer of one line:
 *
 *   page			a page that is not registered: its physical address
 *   mr			registers another page: key and physical address
 *   dereg		it is registered no longer, but stays the process's
 *   qp			creates a QP: its number
 *   destroy		no longer
 *   look page, look mr	the first 8 bytes of that page
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

#define PAGE	4096u
#define PATTERN	0x5a5a5a5a5a5a5a5aull

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint64_t *page, *mr_page;

/* A page that stays where it is. */
static uint64_t *page_alloc(void)
{
	uint64_t *new = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);

	need(new != MAP_FAILED);
	*new = PATTERN;
	return new;
}

static uint64_t physical(const void *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	need(fd >= 0);
	need(pread(fd, &entry, sizeof(entry), (uintptr_t)at / PAGE * sizeof(entry)) ==
	     sizeof(entry));
	close(fd);
	/* Bit 63: present; 54:0: the frame, which only root sees. */
	need(entry >> 63 && entry << 9);
	return (entry & ((1ull << 55) - 1)) * PAGE;
}

static void do_page(void)
{
	page = page_alloc();
	printf("0x%" PRIx64 "\n", physical(page));
}

static void do_mr(void)
{
	mr_page = page_alloc();
	mr = ibv_reg_mr(pd, mr_page, PAGE, IBV_ACCESS_LOCAL_WRITE);
	need(mr);
	printf("0x%x 0x%" PRIx64 "\n", mr->lkey, physical(mr_page));
}

static void do_dereg(void)
{
	need_ok(ibv_dereg_mr(mr));
	puts("done");
}

static void do_qp(void)
{
	struct rig_attr attr = rig_defaults();

	qp = qp_create(pd, cq, &attr);
	printf("0x%x\n", qp->qp_num);
}

static void do_destroy(void)
{
	qp_destroy(&qp);
	puts("done");
}

static void look(const uint64_t *at)
{
	printf("0x%016" PRIx64 "\n", *(const volatile uint64_t *)at);
}

static void do_look_page(void) { look(page); }
static void do_look_mr(void) { look(mr_page); }

static const struct {
	const char *order;
	void (*run)(void);
} orders[] = {
	{ "page", do_page }, { "mr", do_mr }, { "dereg", do_dereg },
	{ "qp", do_qp }, { "destroy", do_destroy },
	{ "look page", do_look_page }, { "look mr", do_look_mr },
};

static void execute(const char *line)
{
	size_t i;

	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		if (!strcmp(line, orders[i].order)) {
			orders[i].run();
			fflush(stdout);
			return;
		}
	}
	need_that(0, "no such order: %s", line);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;
	char line[64];

	options_parse(argc, argv, "Holds what a NIC may reach for, as standard input says.");
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	need(pd);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	need(cq);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		execute(line);
	}
	return 0;
}
