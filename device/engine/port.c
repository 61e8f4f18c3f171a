// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The Ethernet port: MAC, MTU, carrier, GIDs.
 */
#include "admin.h"
#include "state.h"

#define ROCE_OVERHEAD	60	/* IP (version 4), UDP, BTH, the longest extension, ICRC */
#define MTU_MIN		256
#define MTU_DEFAULT	1500

void port_reset(struct ferry_engine *e)
{
	e->up = false;
	e->promisc = false;
	e->mtu = MTU_DEFAULT;
	memcpy(e->mac, e->config.mac, sizeof(e->mac));
	memset(e->gids, 0, sizeof(e->gids));
	event_source_init(&e->port_events, 0);
}

bool port_is_up(const struct ferry_engine *e)
{
	return e->link && e->up;
}

bool gid_is_ours(const struct ferry_engine *e, const uint8_t *gid)
{
	unsigned int i;

	for (i = 0; i < MAX_GIDS; i++) {
		if (e->gids[i].valid && !memcmp(e->gids[i].raw, gid, 16))
			return true;
	}
	return false;
}

/* The largest message of a datagram. */
uint32_t port_roce_mtu(const struct ferry_engine *e)
{
	uint32_t mtu = 4096;

	while (mtu > 256 && mtu + ROCE_OVERHEAD > e->mtu)
		mtu /= 2;
	return mtu;
}

void ferry_engine_link(struct ferry_engine *e, bool up)
{
	uint32_t status;

	if (e->link == up)
		return;
	e->link = up;
	status = __atomic_load_n(&e->status, __ATOMIC_RELAXED) & ~FERRY_STATUS_LINK;
	__atomic_store_n(&e->status, up ? status | FERRY_STATUS_LINK : status, __ATOMIC_RELAXED);
	eq_raise(e, NULL, &e->port_events, FERRY_EVENT_PORT);
}

enum ferry_admin_status admin_set_gid(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
				      struct ferry_admin_cqe *answer)
{
	static const uint8_t zero[16];
	const struct ferry_admin_set_gid *c = &cmd->set_gid;
	struct gid *gid;

	if (le16(c->index) >= MAX_GIDS)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_gid, index));
	if (c->valid > 1)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_gid, valid));
	gid = &e->gids[le16(c->index)];
	if (!c->valid) {
		memset(gid, 0, sizeof(*gid));
		return FERRY_ADMIN_OK;
	}
	if (le16(c->vlan) != 0xffff)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_gid, vlan));
	if (!memcmp(c->gid, zero, sizeof(zero)) || c->gid[0] == 0xff)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_gid, gid));
	memcpy(gid->raw, c->gid, sizeof(gid->raw));
	gid->valid = true;
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_query_port(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
					 struct ferry_admin_cqe *answer)
{
	(void)cmd;
	answer->port.link = e->link;
	answer->port.speed_mbps = le32(e->config.speed_mbps);
	answer->port.mtu = le16(e->mtu);
	memcpy(answer->port.mac, e->mac, sizeof(answer->port.mac));
	return FERRY_ADMIN_OK;
}

enum ferry_admin_status admin_set_port(struct ferry_engine *e, const union ferry_admin_sqe *cmd,
				       struct ferry_admin_cqe *answer)
{
	static const uint8_t zero[6];
	const struct ferry_admin_set_port *c = &cmd->set_port;

	if (le16(c->mtu) < MTU_MIN || le16(c->mtu) > MAX_MTU)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_port, mtu));
	if (c->up > 1)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_port, up));
	if (c->promisc > 1)
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_port, promisc));
	if (c->mac[0] & 1 || !memcmp(c->mac, zero, sizeof(zero)))
		return admin_bad_param(answer, offsetof(struct ferry_admin_set_port, mac));
	e->mtu = le16(c->mtu);
	e->up = c->up;
	e->promisc = c->promisc;
	memcpy(e->mac, c->mac, sizeof(e->mac));
	return FERRY_ADMIN_OK;
}
