// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The parts of the virtual NIC one by one: DMA table, links, impairments, capture, options. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "dma.h"
#include "engine.h"
#include "impair.h"
#include "link.h"
#include "log.h"
#include "options.h"
#include "pcap.h"
#include "raw.h"
#include "rng.h"
#include "tap.h"

#define PAGE	4096u

static int memory_file(uint64_t size)
{
	int fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	need(fd >= 0);
	need_eq(ftruncate(fd, (off_t)size), 0);
	return fd;
}

/* ------------------------------------------------------------------------- DMA table */

#define MODEL_PAGES	64u

/* Against a table of pages, the simplest that is right. */
struct model {
	int page[MODEL_PAGES];		/* of the file; -1: not mapped, -2: mapped without file */
	unsigned int rights[MODEL_PAGES];
};

static bool model_free(const struct model *m, unsigned int first, unsigned int count)
{
	unsigned int i;

	for (i = first; i < first + count; i++)
		if (m->page[i] != -1)
			return false;
	return true;
}

/* Where a look-up must lead, as an offset in the file; -1: nowhere. */
static int64_t model_lookup(const struct model *m, uint64_t addr, uint64_t len,
			    unsigned int rights)
{
	unsigned int first = (unsigned int)(addr / PAGE), i;
	unsigned int last = (unsigned int)((addr + len - 1) / PAGE);

	for (i = first; i <= last; i++)
		if (i >= MODEL_PAGES || m->page[i] < 0 || (m->rights[i] & rights) != rights ||
		    m->page[i] != m->page[first] + (int)(i - first))
			return -1;
	return (int64_t)m->page[first] * PAGE + (int64_t)(addr % PAGE);
}

static void change(struct dma_table *table, struct model *m, struct rng *rng, int fd)
{
	unsigned int first = (unsigned int)rng_below(rng, MODEL_PAGES), i;
	unsigned int count = (unsigned int)rng_range(rng, 1, 8);
	unsigned int file_page = (unsigned int)rng_below(rng, MODEL_PAGES);
	unsigned int rights = rng_chance(rng, 70) ? DMA_READ | DMA_WRITE : DMA_READ;
	bool with_file = rng_chance(rng, 90);
	int64_t bytes = 0, ret;

	if (first + count > MODEL_PAGES)
		count = MODEL_PAGES - first;
	if (rng_chance(rng, 50)) {
		ret = dma_unmap(table, (uint64_t)first * PAGE,
				(uint64_t)(first + count) * PAGE - 1);
		for (i = first; i < first + count; i++) {
			bytes += m->page[i] != -1 ? PAGE : 0;
			m->page[i] = -1;
		}
		need_eq(ret, bytes);
		return;
	}
	ret = dma_map(table, (uint64_t)first * PAGE, (uint64_t)count * PAGE, rights,
		      with_file ? fd : -1, (uint64_t)file_page * PAGE);
	if (!model_free(m, first, count)) {
		need_eq(ret, -EEXIST);
		return;
	}
	if (with_file && file_page + count > MODEL_PAGES) {
		need_eq(ret, -EINVAL);
		return;
	}
	need_eq(ret, 0);
	for (i = 0; i < count; i++) {
		m->page[first + i] = with_file ? (int)(file_page + i) : -2;
		m->rights[first + i] = rights;
	}
}

static void look(struct dma_table *table, const struct model *m, struct rng *rng,
		 uint8_t *memory)
{
	uint64_t addr = rng_below(rng, MODEL_PAGES * PAGE);
	uint64_t len = rng_range(rng, 1, rng_chance(rng, 50) ? 64 : 4 * PAGE);
	unsigned int rights = rng_chance(rng, 50) ? DMA_READ : DMA_READ | DMA_WRITE;
	int64_t where = model_lookup(m, addr, len, rights);
	uint8_t *at = dma_lookup(table, addr, len, rights);

	need_eq(at != NULL, where >= 0);
	if (!at)
		return;
	/* The same byte, though mapped at another place. */
	memory[where] = (uint8_t)~*at;
	need_eq(*at, memory[where]);
}

static void test_dma_model(void)
{
	int fd = memory_file(MODEL_PAGES * PAGE);
	uint8_t *memory = mmap(NULL, MODEL_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	static struct dma_table table;
	struct model m;
	struct rng rng;
	unsigned int i;

	need(memory != MAP_FAILED);
	dma_init(&table);
	rng_init(&rng, 1);
	for (i = 0; i < MODEL_PAGES; i++)
		m.page[i] = -1;
	for (i = 0; i < 20000; i++) {
		if (rng_chance(&rng, 30))
			change(&table, &m, &rng, fd);
		else
			look(&table, &m, &rng, memory);
	}
	dma_clear(&table);
	need(!dma_lookup(&table, 0, 1, DMA_READ));
}

static void test_dma_copy(void)
{
	uint8_t out[3 * PAGE], in[3 * PAGE];
	static struct dma_table table;
	int fd = memory_file(8 * PAGE);
	struct rng rng;
	uint64_t word;

	dma_init(&table);
	rng_init(&rng, 2);
	/* Three pages side by side for the device, and nowhere near each other. */
	need_eq(dma_map(&table, 0, PAGE, 3, fd, 4 * PAGE), 0);
	need_eq(dma_map(&table, PAGE, PAGE, 3, fd, 2 * PAGE), 0);
	need_eq(dma_map(&table, 2 * PAGE, PAGE, 3, fd, 7 * PAGE), 0);
	need(!dma_lookup(&table, PAGE - 1, 2, DMA_READ));
	rng_fill(&rng, out, sizeof(out));
	need_eq(dma_write(&table, 0, out, sizeof(out)), 0);
	need_eq(dma_read(&table, 0, in, sizeof(in)), 0);
	need(!memcmp(in, out, sizeof(in)));
	need_eq(dma_read(&table, PAGE - 3, &word, 8), 0);
	need(!memcmp(&word, out + PAGE - 3, 8));
	need_eq(dma_read(&table, 2 * PAGE, in, PAGE + 1), -EFAULT);
	need_eq(dma_write(&table, UINT64_MAX - 3, out, 8), -EFAULT);
	need_eq(dma_read(&table, 0, in, 0), 0);
	need(!dma_lookup(&table, 0, 0, DMA_READ));
	need(!dma_lookup(&table, 8, UINT64_MAX, DMA_READ));
	dma_clear(&table);
}

static void test_dma_limits(void)
{
	static struct dma_table table;
	int fds[DMA_MAX_FILES + 1], ro;
	char path[64];
	uint64_t i;

	dma_init(&table);
	for (i = 0; i <= DMA_MAX_FILES; i++) {
		fds[i] = memory_file(PAGE);
		need_eq(dma_map(&table, i * PAGE, PAGE, 3, fds[i], 0),
			i < DMA_MAX_FILES ? 0 : -ENOSPC);
	}
	/* Files without ranges make room for others. */
	need_eq(dma_unmap(&table, 0, 10 * PAGE - 1), 10 * PAGE);
	need_eq(dma_map(&table, 0, PAGE, 3, fds[DMA_MAX_FILES], 0), 0);
	need_eq(dma_unmap(&table, 0, UINT64_MAX), (DMA_MAX_FILES - 10 + 1) * PAGE);

	for (i = 0; i < DMA_MAX_RANGES; i++)
		need_eq(dma_map(&table, i * PAGE, PAGE, 3, fds[0], 0), 0);
	need_eq(dma_map(&table, i * PAGE, PAGE, 3, fds[0], 0), -ENOSPC);
	need_eq(dma_unmap(&table, 0, 0xfff), PAGE);
	need_eq(dma_map(&table, i * PAGE, 2 * PAGE, 3, -1, 0), 0);
	/* To take a part away needs an entry more. */
	need_eq(dma_unmap(&table, i * PAGE, (i + 1) * PAGE - 1), -ENOSPC);
	need(dma_lookup(&table, 9 * PAGE, PAGE, 3));
	dma_clear(&table);

	/* Sealed, so that it cannot shrink under us. */
	need_eq(dma_map(&table, 0, PAGE, 3, fds[1], 0), 0);
	need(ftruncate(fds[1], 0) && errno == EPERM);
	/* A file opened for reading is not written through another's mapping. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
	ro = open(path, O_RDONLY);
	need_eq(dma_map(&table, PAGE, PAGE, 3, ro, 0), -EACCES);
	need_eq(dma_map(&table, PAGE, PAGE, DMA_READ, ro, 0), 0);
	need(!dma_lookup(&table, PAGE, 8, DMA_WRITE));
	dma_clear(&table);
}

/* ----------------------------------------------------------------------- impairments */

struct sink {
	unsigned int count;
	unsigned int order[8192];
	uint64_t sum;
};

static void take(void *to, const void *frame, size_t len)
{
	struct sink *sink = to;
	const uint8_t *bytes = frame;
	unsigned int number;
	size_t i;

	memcpy(&number, frame, sizeof(number));
	sink->order[sink->count++ % 8192] = number;
	for (i = 0; i < len; i++)
		sink->sum = sink->sum * 31 + bytes[i];
}

static void impair_run(const char *text, struct sink *sink, struct impair *impair)
{
	struct impair_config config;
	uint8_t frame[64] = { 0 };
	unsigned int i;

	need(impair_parse(text, &config));
	impair_init(impair, &config, 0);
	memset(sink, 0, sizeof(*sink));
	for (i = 0; i < 4096; i++) {
		memcpy(frame, &i, sizeof(i));
		impair_pass(impair, i, frame, sizeof(frame), take, sink);
	}
	impair_flush(impair, UINT64_MAX, take, sink);
}

static void test_impair(void)
{
	static const char *bad[] = {
		"", "loss", "loss=", "loss=2", "loss=-1", "loss=0.1x", "loss=101%", "speed=1",
		"seed=x", "seed=-1", "loss=0.1,,dup=nan", "loss=nan",
	};
	static struct impair impair;
	static struct sink one, two;
	struct impair_config config;
	unsigned int i, swaps = 0;

	impair_run("seed=3", &one, &impair);
	need_eq(one.count, 4096);
	impair_run("loss=25%,seed=3", &one, &impair);
	need(one.count > 2900 && one.count < 3250 && one.count == 4096 - impair.lost);
	impair_run("loss=25%,seed=3", &two, &impair);
	need(one.count == two.count && one.sum == two.sum);
	impair_run("loss=25%,seed=4", &two, &impair);
	need(one.sum != two.sum);
	impair_run("loss=1", &one, &impair);
	need_eq(one.count, 0);
	impair_run("dup=0.5", &one, &impair);
	need(one.count == 4096 + impair.repeated && impair.repeated > 1900);
	impair_run("corrupt=0.01", &two, &impair);
	need(two.count == 4096 && impair.corrupted > 10 && impair.corrupted < 100);
	impair_run("reorder=0.1", &one, &impair);
	need_eq(one.count, 4096);
	for (i = 1; i < one.count; i++)
		swaps += one.order[i] < one.order[i - 1];
	need(swaps == impair.reordered && swaps > 300);

	log_quiet(true);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		need_that(!impair_parse(bad[i], &config), "\"%s\" is taken", bad[i]);
}

/* ----------------------------------------------------------------------------- links */

static char directory[] = "/tmp/ferry-test-XXXXXX";

static const char *in_directory(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static struct link *open_pair(const char *from, const char *to)
{
	char spec[300];
	struct link *link;

	snprintf(spec, sizeof(spec), "unix:%s,%s", in_directory(from), in_directory(to));
	link = link_open(spec);
	need(link);
	return link;
}

static void test_link_unix(void)
{
	static struct sink sink;
	uint8_t frame[LINK_FRAME_MAX] = { 0 };
	unsigned int sent = 0, count = 20000, len;
	struct link *a, *b;
	uint64_t until;

	need(mkdtemp(directory));
	a = open_pair("a", "b");
	need(!a->ops->probe(a));
	/* Nobody there: frames go nowhere, and that is no error. */
	need(a->ops->send(a, frame, 64));
	need(!a->ops->flush(a, 1));
	need(a->lost);
	need_eq(a->dropped, 1);

	b = open_pair("b", "a");
	need(a->ops->probe(a) && b->ops->probe(b));
	/* As fast as it goes, with sizes that make the queue wrap: all arrive, in order. */
	until = clock_now() + 20 * NSEC_PER_SEC;
	while (sink.count < count) {
		need_that(clock_now() < until, "%u of %u frames arrived", sink.count, count);
		for (; sent < count; sent++) {
			len = 64 + sent * 4099 % (LINK_FRAME_MAX - 63);
			memcpy(frame, &sent, sizeof(sent));
			if (!a->ops->send(a, frame, len))
				break;
		}
		a->ops->flush(a, clock_now());
		while (b->ops->receive(b, 7, take, &sink))
			if (sink.count % 8192 == 0 && sink.count)
				need_eq(sink.order[8191], sink.count - 1);
	}
	need_eq(a->dropped, 1);
	need_eq(b->oversize, 0);

	/* A receiver that has stopped costs its frames, and no more than so much time. */
	while (a->ops->send(a, frame, sizeof(frame)))
		;
	need(a->ops->flush(a, 1000));
	need(a->ops->flush(a, 100 * NSEC_PER_MSEC));
	need(!a->ops->flush(a, 300 * NSEC_PER_MSEC));
	need(a->dropped > 400);
	need(a->ops->send(a, frame, 64));

	/* Gone, and back again. */
	link_close(b);
	a->ops->flush(a, 301 * NSEC_PER_MSEC);
	need(a->lost && !a->ops->probe(a));
	b = open_pair("b", "a");
	sink.count = 0;
	need(a->ops->probe(a) && a->ops->send(a, frame, 64));
	need(!a->ops->flush(a, 302 * NSEC_PER_MSEC));
	need_eq(b->ops->receive(b, 32, take, &sink), 1);
	link_close(a);
	link_close(b);
	need_eq(rmdir(directory), 0);
}

static void test_link_refused(void)
{
	static const char *bad[] = {
		"", "eth0", "unix:", "unix:a", "unix:a,", "unix:,b", "unix:a,b,c", "tap:",
		"tap:a-name-that-is-too-long", "unix:/dev/null,/tmp/x", "unix:/nonexistent/a,b",
	};
	size_t i;

	log_quiet(true);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		need_that(!link_open(bad[i]), "\"%s\" is taken", bad[i]);
}

static void test_pcap(void)
{
	uint8_t frame[100], file[4096];
	char path[] = "/tmp/ferry-test-XXXXXX";
	struct pcap *pcap;
	uint32_t word;
	int fd = mkstemp(path);

	need(fd >= 0);
	memset(frame, 7, sizeof(frame));
	pcap = pcap_open(path);
	need(pcap);
	pcap_frame(pcap, frame, sizeof(frame));
	pcap_flush(pcap);
	need_eq(read(fd, file, sizeof(file)), 24 + 16 + 100);
	memcpy(&word, file, 4);
	need_eq(word, 0xa1b23c4d);
	memcpy(&word, file + 20, 4);
	need_eq(word, 1);
	memcpy(&word, file + 28, 4);
	need(word < 1000000000);
	memcpy(&word, file + 36, 4);
	need_eq(word, 100);
	need(!memcmp(file + 40, frame, 100));
	pcap_frame(pcap, frame, 14);
	pcap_close(pcap);
	need_eq(read(fd, file, sizeof(file)), 16 + 14);
	unlink(path);
	log_quiet(true);
	need(!pcap_open("/nonexistent/file"));
	/* A full disk ends the capture and nothing else. */
	pcap = pcap_open("/dev/full");
	need(!pcap);
}

/* --------------------------------------------------------------------------- options */

static enum options_result parse(const char *line, struct options *options)
{
	static char copy[512];
	char *argv[32] = { "ferry-vnic" }, *at;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (at = strtok(copy, " "); at && argc < 31; at = strtok(NULL, " "))
		argv[argc++] = at;
	optind = 0;
	return options_parse(argc, argv, options);
}

static void test_raw(void)
{
	char path[] = "/tmp/raw.XXXXXX", fifo[32];
	struct raw raw;
	int fd;

	log_quiet(true);
	fd = mkstemp(path);
	need(fd >= 0);
	need(raw_open(&raw, "/nonexistent/fifo") && raw.fd < 0);
	need(raw_open(&raw, path) && raw.fd < 0);
	snprintf(fifo, sizeof(fifo), "%s.f", path);
	need_eq(mkfifo(fifo, 0600), 0);
	need_eq(raw_open(&raw, fifo), 0);
	raw_close(&raw);
	need(raw.fd < 0);
	unlink(fifo);
	unlink(path);
}

static void test_options(void)
{
	static const char *bad[] = {
		"", "--socket", "--socket s extra", "--socket s --dma fast", "--socket s --bogus",
		"--socket s --vectors 0", "--socket s --vectors 257", "--socket s --vectors 1x",
		"--socket s --refuse 0", "--socket s --refuse -1", "--socket s --refuse all",
		"--socket s --mac 1:2:3:4:5:6",
		"--socket s --mac 01:00:00:00:00:01", "--socket s --mac 00:00:00:00:00:00",
		"--socket s --mac 02:00:00:00:00:0g", "--socket s --impair loss",
		"--socket s --raw f", "--socket s --dma direct --raw f",
	};
	struct options o, other;
	size_t i;

	log_quiet(true);
	need(!freopen("/dev/null", "w", stderr) || true);
	need_eq(parse("--socket /run/s", &o), OPTIONS_RUN);
	need(!strcmp(o.socket, "/run/s") && !strcmp(o.link, "loopback") && !o.message && !o.pcap);
	need_eq(o.mac[0], 2);
	need_eq(parse("--socket /run/s", &other), OPTIONS_RUN);
	need(!memcmp(o.mac, other.mac, 6));
	need_eq(parse("--socket /run/t", &other), OPTIONS_RUN);
	need(memcmp(o.mac, other.mac, 6));
	need_eq(parse("--socket s --dma message --vectors 7 --mac 02:aa:bb:cc:dd:ee --refuse 3 "
		      "--impair loss=1%,seed=9 --pcap f --verbose --raw r --link tap:t0", &o),
		OPTIONS_RUN);
	need(o.message && o.vectors == 7 && o.refuse == 3 && o.impaired && o.verbose);
	need(!memcmp(o.mac, "\x02\xaa\xbb\xcc\xdd\xee", 6) && o.impair.seed == 9);
	need(!strcmp(o.pcap, "f") && !strcmp(o.raw, "r") && !strcmp(o.link, "tap:t0"));
	need_eq(parse("--socket s --refuse each", &o), OPTIONS_RUN);
	need_eq(o.refuse, FERRY_REFUSE_EACH);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		need_that(parse(bad[i], &o) == OPTIONS_BAD, "\"%s\" is taken", bad[i]);
}

static const struct tap_test tests[] = {
	TAP_TEST(test_dma_model, "DMA table against a model, 20,000 steps"),
	TAP_TEST(test_dma_copy, "DMA copies across scattered pages"),
	TAP_TEST(test_dma_limits, "DMA table: limits, seals, rights"),
	TAP_TEST(test_impair, "impairments: rates, order, seeds, syntax"),
	TAP_TEST(test_link_unix, "unix link: nobody there, full, stopped, gone and back"),
	TAP_TEST(test_link_refused, "links that cannot be are refused"),
	TAP_TEST(test_pcap, "capture files"),
	TAP_TEST(test_raw, "raw accesses are ordered by a FIFO and nothing else"),
	TAP_TEST(test_options, "options"),
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
