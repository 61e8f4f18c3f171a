// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shadow.h"

#include <stdlib.h>

#include "coherence_shadow.h"
#include "engine.h"
#include "log.h"

struct shadow {
	struct coherence state;
	struct ferry_engine *engine;
	char who[96];
	bool write;
};

struct shadow *shadow_open(const char *path, struct ferry_engine *engine)
{
	struct shadow *shadow = calloc(1, sizeof(*shadow));

	if (!shadow) {
		log_error("out of memory");
		return NULL;
	}
	if (!coherence_open(&shadow->state, path)) {
		log_error("coherence shadow %s: %s", path, strerror(errno));
		free(shadow);
		return NULL;
	}
	shadow->engine = engine;
	return shadow;
}

void shadow_close(struct shadow *shadow)
{
	if (!shadow)
		return;
	coherence_close(&shadow->state);
	free(shadow);
}

static const char *who(void *arg, uint64_t addr)
{
	struct shadow *shadow = arg;
	struct ferry_where where;
	int n;

	ferry_engine_where(shadow->engine, addr, &where);
	n = snprintf(shadow->who, sizeof(shadow->who), "the NIC, %s %s",
		     shadow->write ? "writing to" : "reading from", where.what);
	if (where.number)
		n += snprintf(shadow->who + n, sizeof(shadow->who) - (size_t)n, " 0x%x",
			      where.number);
	if (where.qp)
		snprintf(shadow->who + n, sizeof(shadow->who) - (size_t)n, " for QP 0x%x",
			 where.qp);
	return shadow->who;
}

void shadow_reads(struct shadow *shadow, uint64_t addr, size_t len)
{
	shadow->write = false;
	coherence_device_reads(&shadow->state, addr, len, who, shadow);
}

/* The note that lines keep is the QP. */
void shadow_writes(struct shadow *shadow, uint64_t addr, size_t len)
{
	shadow->write = true;
	coherence_device_writes(&shadow->state, addr, len,
				ferry_engine_serves(shadow->engine), who, shadow);
}
