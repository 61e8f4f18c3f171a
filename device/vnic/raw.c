// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "raw.h"
#include "shard.h"

int raw_open(struct raw *raw, const char *path)
{
	struct stat st;

	raw->len = 0;
	/* For writing too: so it never ends. */
	raw->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (raw->fd < 0) {
		log_error("--raw %s: %s", path, strerror(errno));
		return -1;
	}
	if (fstat(raw->fd, &st) || !S_ISFIFO(st.st_mode)) {
		log_error("--raw %s: not a FIFO", path);
		raw_close(raw);
		return -1;
	}
	return 0;
}

void raw_close(struct raw *raw)
{
	if (raw->fd >= 0)
		close(raw->fd);
	raw->fd = -1;
}

/* A posted write is known to be done, or refused, when nothing is under way any more. */
static int raw_write(struct shard *shard, uint64_t addr, uint64_t value)
{
	int ret = dma_message_write(shard->messages, addr, &value, sizeof(value));

	return ret ? ret : dma_message_flush(shard->messages);
}

static void raw_execute(struct shard *shard, const char *line)
{
	uint64_t addr, value = 0;
	uint32_t number;
	bool found;

	if (sscanf(line, "read %" SCNx64, &addr) == 1) {
		if (dma_message_read(shard->messages, addr, &value, sizeof(value)))
			log_info("raw: %s = refused", line);
		else
			log_info("raw: %s = 0x%016" PRIx64, line, value);
		return;
	}
	if (sscanf(line, "write %" SCNx64 " %" SCNx64, &addr, &value) == 2) {
		log_info("raw: %s = %s", line, raw_write(shard, addr, value) ? "refused" : "done");
		return;
	}
	if (sscanf(line, "mr %" SCNx32, &number) == 1)
		found = ferry_engine_where_mr(shard->engine, number, &addr);
	else if (sscanf(line, "sq %" SCNx32, &number) == 1)
		found = ferry_engine_where_sq(shard->engine, number, &addr);
	else
		found = false;
	if (found)
		log_info("raw: %s = 0x%" PRIx64, line, addr);
	else
		log_info("raw: %s = none", line);
}

bool raw_take(struct shard *shard)
{
	struct raw *raw = &shard->raw;
	bool did = false;
	char c;

	while (raw->fd >= 0 && read(raw->fd, &c, 1) == 1) {
		did = true;
		if (c != '\n') {
			if (raw->len < sizeof(raw->line) - 1)
				raw->line[raw->len++] = c;
			continue;
		}
		raw->line[raw->len] = '\0';
		raw->len = 0;
		raw_execute(shard, raw->line);
	}
	return did;
}
