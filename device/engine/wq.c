// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pages.h"
#include "state.h"

enum ferry_admin_status wq_create(struct ferry_engine *e, struct wq *wq, struct context *context,
				  const struct wq_params *params, enum wq_field *field,
				  uint32_t *detail)
{
	enum ferry_admin_status status;
	uint32_t depth;

	*detail = 0;
	*field = WQ_DEPTH;
	if (params->depth_shift > MAX_WQ_SHIFT)
		return FERRY_ADMIN_BAD_PARAM;
	*field = WQ_STRIDE;
	if (params->wqe_shift < params->wqe_shift_min || params->wqe_shift > FERRY_WQE_SHIFT_MAX)
		return FERRY_ADMIN_BAD_PARAM;
	depth = 1u << params->depth_shift;
	wq->shift = params->wqe_shift;
	*field = WQ_SLOT;
	if (!record_take(context, params->slot_addr, &wq->slot))
		return FERRY_ADMIN_BAD_PARAM;
	*field = WQ_PAGES;
	status = pages_region(e, &wq->ring, params->pages, (uint64_t)depth << wq->shift, false,
			      detail);
	if (status)
		goto err_slot;
	if (!region_mapped(&wq->ring)) {
		wq->cache = engine_alloc(e, WQ_CACHE_SIZE);
		if (!wq->cache)
			goto err_ring;
	}
	wq->depth = depth;
	return FERRY_ADMIN_OK;

err_ring:
	status = FERRY_ADMIN_NO_RESOURCES;
	region_release(e, &wq->ring);
err_slot:
	record_put(&wq->slot);
	return status;
}

void wq_destroy(struct ferry_engine *e, struct wq *wq)
{
	if (!wq->depth)
		return;
	record_put(&wq->slot);
	region_release(e, &wq->ring);
	engine_free(e, wq->cache);
}

/* The host starts again at index 0, in this slot. */
void wq_reset(struct wq *wq)
{
	wq->pi = 0;
	wq->ci = 0;
	wq->cache_count = 0;
	record_renew(&wq->slot);
}

bool wq_take_index(struct wq *wq, uint32_t index)
{
	uint32_t ahead = index - wq->pi;

	if (!ahead || ahead > wq->depth - (wq->pi - wq->ci))
		return false;
	wq->pi = index;
	return true;
}

void wq_refresh(struct ferry_engine *e, struct wq *wq, enum ferry_db type, uint32_t number)
{
	uint64_t word;

	if (record_load(e, &wq->slot, &word) && FERRY_DB_TYPE(word) == type &&
	    FERRY_DB_NUMBER(word) == number)
		wq_take_index(wq, FERRY_DB_INDEX(word));
}

/* As many entries as fit, up to the end of what was posted and of the ring. */
static bool wq_fetch(struct ferry_engine *e, struct wq *wq, uint32_t index)
{
	uint32_t slot = index & (wq->depth - 1);
	uint32_t n = min_u32(wq->pi - index, min_u32(wq->depth - slot, WQ_CACHE_SIZE >> wq->shift));

	wq->cache_count = 0;
	if (!region_read(e, &wq->ring, (uint64_t)slot << wq->shift, wq->cache,
			 (uint64_t)n << wq->shift))
		return false;
	wq->cache_first = index;
	wq->cache_count = n;
	return true;
}

const uint8_t *wq_entry(struct ferry_engine *e, struct wq *wq, uint32_t index)
{
	uint64_t offset = (uint64_t)(index & (wq->depth - 1)) << wq->shift;
	struct place p;

	if (likely(!wq->cache)) {
		p = region_place(e, &wq->ring, offset, 1ull << wq->shift);
		if (likely(p.host))
			return p.host;
		/* It was mapped once, and is no more: one entry at a time will do. */
		return region_read(e, &wq->ring, offset, e->scratch, 1ull << wq->shift) ?
		       e->scratch : NULL;
	}
	if (index - wq->cache_first >= wq->cache_count && !wq_fetch(e, wq, index))
		return NULL;
	return wq->cache + ((uint64_t)(index - wq->cache_first) << wq->shift);
}

static bool recv_parse(const struct wq *wq, const uint8_t *entry, struct recv *recv)
{
	unsigned int i, most = (unsigned int)(((1u << wq->shift) - sizeof(struct ferry_rqe)) /
					      sizeof(struct ferry_sge));
	uint64_t len = 0;
	struct ferry_rqe head;

	copy_once(&head, entry, sizeof(head));
	recv->id = le16(head.id);
	recv->num_sge = (uint8_t)min_u32(le16(head.num_sge), MAX_SGE);
	if (le16(head.num_sge) > most || le16(head.num_sge) > MAX_SGE)
		return false;
	for (i = 0; i < recv->num_sge; i++) {
		struct ferry_sge sge;

		copy_once(&sge, entry + sizeof(head) + i * sizeof(sge), sizeof(sge));
		recv->sge[i] = (struct sge) { le64(sge.addr), le32(sge.length), le32(sge.lkey) };
		len += recv->sge[i].len;
	}
	recv->len = (uint32_t)min_u64(len, UINT32_MAX);
	return true;
}

void recv_read(struct ferry_engine *e, struct wq *wq, struct recv *recv)
{
	const uint8_t *entry = wq_entry(e, wq, wq->ci);

	recv->id = 0;
	recv->len = 0;
	recv->bad = !entry || !recv_parse(wq, entry, recv);
	wq->ci++;
}
