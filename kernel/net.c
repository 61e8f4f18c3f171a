// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The Ethernet port: a netdev over the raw Ethernet QP. It is there so that the RDMA
 * port has addresses and neighbours; bulk data takes RDMA. So it is simple: frames are
 * copied from and to memory that the device always sees, in every DMA regime, and no
 * other kernel memory is shown to the device.
 *
 * A slot of that memory holds a frame; the slot's number is the place in the ring for
 * sends, and the id of the work request for receives.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/log2.h>
#include <linux/rtnetlink.h>
#include <net/netdev_queues.h>

#include "kqueue.h"
#include "net.h"
#include "verbs.h"

#define FERRY_NET_TX_SHIFT	8
#define FERRY_NET_RX_SHIFT	9
#define FERRY_NET_CQ_SHIFT	10	/* holds both */
#define FERRY_NET_TX_DEPTH	(1u << FERRY_NET_TX_SHIFT)
#define FERRY_NET_RX_DEPTH	(1u << FERRY_NET_RX_SHIFT)

struct ferry_net {
	struct ferry_dev *dev;
	struct net_device *netdev;
	struct napi_struct napi;
	u32 speed_mbps;

	bool open;			/* under RTNL; a netdev that runs may have failed to */
	/* While open. */
	struct ferry_kcq cq;
	struct ferry_kqp qp;
	struct ferry_ring *tx;		/* slots of 1 << slot_shift bytes */
	struct ferry_ring *rx;
	unsigned int slot_shift;
	u32 tx_ci;			/* sends completed; written by NAPI */

	struct mutex port_lock;		/* one SET_PORT at a time */
	bool up;
	struct work_struct rx_mode;
	struct work_struct restart;
};

struct net_device *ferry_net_device(struct ferry_dev *dev)
{
	return dev->net->netdev;
}

u32 ferry_net_speed(struct ferry_dev *dev)
{
	return dev->net->speed_mbps;
}

/* ------------------------------------------------------------------ port and link */

/* Makes the port what the netdev says it is. */
static int ferry_net_set_port(struct ferry_net *net)
{
	struct net_device *netdev = net->netdev;
	struct ferry_admin_set_port cmd = {};
	int err;

	mutex_lock(&net->port_lock);
	cmd.mtu = cpu_to_le16(netdev->mtu);
	cmd.up = net->up;
	cmd.promisc = !!(netdev->flags & IFF_PROMISC);
	ether_addr_copy(cmd.mac, netdev->dev_addr);
	err = ferry_admin_exec(net->dev, FERRY_ADMIN_SET_PORT, &cmd);
	mutex_unlock(&net->port_lock);
	return err;
}

/*
 * The carrier. Under the lock of the queue whose events tell of it, so that nobody says again
 * what was true before the last of them.
 */
void ferry_net_link(struct ferry_dev *dev, bool up)
{
	struct ferry_net *net = READ_ONCE(dev->net);

	if (!net)
		return;
	if (up && !ferry_is_lost(dev))
		netif_carrier_on(net->netdev);
	else
		netif_carrier_off(net->netdev);
	ferry_port_changed(dev, netif_running(net->netdev) && netif_carrier_ok(net->netdev));
}

/* After dev->lost was set: no later event takes it back. */
void ferry_net_lost(struct ferry_dev *dev)
{
	/* Without a netdev there need not be a queue. */
	if (!READ_ONCE(dev->net))
		return;
	spin_lock_irq(&dev->eqs[0].lock);
	ferry_net_link(dev, false);
	spin_unlock_irq(&dev->eqs[0].lock);
}

static void ferry_net_rx_mode(struct work_struct *work)
{
	ferry_net_set_port(container_of(work, struct ferry_net, rx_mode));
}

/* ------------------------------------------------------------------------ receive */

static void ferry_net_post_rx(struct ferry_net *net, u16 id)
{
	ferry_kqp_recv(&net->qp, ferry_ring_dma(net->rx, (size_t)id << net->slot_shift),
		       1u << net->slot_shift, id);
}

static void ferry_net_receive(struct ferry_net *net, u16 id, u32 length)
{
	struct net_device *netdev = net->netdev;
	struct sk_buff *skb;

	if (length < ETH_HLEN || length > 1u << net->slot_shift) {
		netdev->stats.rx_length_errors++;
		return;
	}
	skb = napi_alloc_skb(&net->napi, length);
	if (!skb) {
		dev_core_stats_rx_dropped_inc(netdev);
		return;
	}
	skb_put_data(skb, ferry_ring_at(net->rx, (size_t)id << net->slot_shift), length);
	skb->protocol = eth_type_trans(skb, netdev);
	dev_sw_netstats_rx_add(netdev, length);
	napi_gro_receive(&net->napi, skb);
}

/* ----------------------------------------------------------------------- transmit */

static unsigned int ferry_net_tx_room(const struct ferry_net *net)
{
	return FERRY_NET_TX_DEPTH - (net->qp.sq_pi - READ_ONCE(net->tx_ci));
}

static netdev_tx_t ferry_net_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct netdev_queue *txq = netdev_get_tx_queue(netdev, 0);
	struct ferry_net *net = netdev_priv(netdev);
	size_t offset;

	if (skb_put_padto(skb, ETH_ZLEN)) {
		dev_core_stats_tx_dropped_inc(netdev);
		goto ring;
	}
	/* A frame above the MTU would be an error of the QP. */
	if (skb->len > netdev->mtu + VLAN_ETH_HLEN || !ferry_net_tx_room(net)) {
		dev_core_stats_tx_dropped_inc(netdev);
		dev_kfree_skb_any(skb);
		goto ring;
	}
	offset = (size_t)(net->qp.sq_pi & (FERRY_NET_TX_DEPTH - 1)) << net->slot_shift;
	skb_copy_bits(skb, 0, ferry_ring_at(net->tx, offset), skb->len);
	ferry_kqp_send(&net->qp, ferry_ring_dma(net->tx, offset), skb->len);
	dev_sw_netstats_tx_add(netdev, 1, skb->len);
	dev_consume_skb_any(skb);

	netif_txq_maybe_stop(txq, ferry_net_tx_room(net), 1, FERRY_NET_TX_DEPTH / 4);
ring:
	/* Those before a frame that was dropped may wait for it. */
	if (!netdev_xmit_more() || netif_xmit_stopped(txq))
		ferry_kqp_ring_send(&net->qp);
	return NETDEV_TX_OK;
}

/* ---------------------------------------------------------------------------- NAPI */

static void ferry_net_complete(struct ferry_kcq *cq)
{
	napi_schedule_irqoff(&container_of(cq, struct ferry_net, cq)->napi);
}

/* Takes a completion; whether it was a receive. */
static bool ferry_net_take(struct ferry_net *net, const struct ferry_cqe *cqe)
{
	u16 index = le16_to_cpu(cqe->wqe_index);

	if (cqe->status != FERRY_WC_SUCCESS) {
		/* Nothing that we post may fail; whatever it is, begin anew. */
		schedule_work(&net->restart);
		return false;
	}
	if (FERRY_CQE_OP(cqe->op) < FERRY_WC_RECV) {
		WRITE_ONCE(net->tx_ci, net->tx_ci + (u16)(index + 1 - net->tx_ci));
		return false;
	}
	if (index < FERRY_NET_RX_DEPTH) {
		ferry_net_receive(net, index, le32_to_cpu(cqe->byte_len));
		ferry_net_post_rx(net, index);
	}
	return true;
}

static int ferry_net_poll(struct napi_struct *napi, int budget)
{
	struct ferry_net *net = container_of(napi, struct ferry_net, napi);
	struct netdev_queue *txq = netdev_get_tx_queue(net->netdev, 0);
	const struct ferry_cqe *cqe;
	int received = 0, taken = 0;

	/* Sends cost little and are as many as the ring holds: only receives count. */
	while (received < budget && taken++ < (1 << FERRY_NET_CQ_SHIFT)) {
		cqe = ferry_kcq_next(&net->cq);
		if (!cqe)
			break;
		received += ferry_net_take(net, cqe);
	}
	if (received)
		ferry_kqp_publish_recv(&net->qp);
	ferry_kcq_publish(&net->cq);
	/* Pairs with the barrier in netif_txq_maybe_stop(): index, then look whether it stopped. */
	smp_mb();
	if (netif_tx_queue_stopped(txq) && ferry_net_tx_room(net) >= FERRY_NET_TX_DEPTH / 4)
		netif_tx_wake_queue(txq);

	if (received < budget && napi_complete_done(napi, received))
		ferry_kcq_arm(&net->cq);
	return received;
}

/* -------------------------------------------------------------------- open and stop */

static int ferry_net_alloc_slots(struct ferry_net *net)
{
	net->slot_shift = order_base_2(net->netdev->mtu + VLAN_ETH_HLEN);
	net->tx = ferry_ring_alloc(net->dev, NULL, (size_t)FERRY_NET_TX_DEPTH << net->slot_shift);
	if (!net->tx)
		return -ENOMEM;
	net->rx = ferry_ring_alloc(net->dev, NULL, (size_t)FERRY_NET_RX_DEPTH << net->slot_shift);
	if (!net->rx) {
		ferry_ring_free(net->tx);
		return -ENOMEM;
	}
	return 0;
}

static void ferry_net_free_slots(struct ferry_net *net)
{
	ferry_ring_free(net->rx);
	ferry_ring_free(net->tx);
}

static int ferry_net_open(struct net_device *netdev)
{
	struct ferry_net *net = netdev_priv(netdev);
	u16 id;
	int err;

	err = ferry_net_alloc_slots(net);
	if (err)
		return err;
	err = ferry_kcq_create(net->dev, &net->cq, FERRY_NET_CQ_SHIFT, 0, ferry_net_complete);
	if (err)
		goto err_slots;
	err = ferry_kqp_create_eth(net->dev, &net->qp, &net->cq, FERRY_NET_TX_SHIFT,
				   FERRY_NET_RX_SHIFT);
	if (err)
		goto err_cq;
	net->tx_ci = 0;
	for (id = 0; id < FERRY_NET_RX_DEPTH; id++)
		ferry_net_post_rx(net, id);
	ferry_kqp_publish_recv(&net->qp);

	net->up = true;
	err = ferry_net_set_port(net);
	if (err)
		goto err_qp;
	napi_enable(&net->napi);
	ferry_kcq_arm(&net->cq);
	netif_start_queue(netdev);
	net->open = true;
	spin_lock_irq(&net->dev->eqs[0].lock);
	ferry_net_link(net->dev, ferry_read(net->dev, FERRY_REG_STATUS) & FERRY_STATUS_LINK);
	spin_unlock_irq(&net->dev->eqs[0].lock);
	return 0;

err_qp:
	net->up = false;
	ferry_kqp_destroy(&net->qp);
err_cq:
	ferry_kcq_destroy(&net->cq);
err_slots:
	ferry_net_free_slots(net);
	return err;
}

static int ferry_net_stop(struct net_device *netdev)
{
	struct ferry_net *net = netdev_priv(netdev);

	if (!net->open)
		return 0;
	net->open = false;
	/* In this order: a poll that runs would wake the queue again, as it has room. */
	napi_disable(&net->napi);
	netif_tx_disable(netdev);
	net->up = false;
	ferry_net_set_port(net);
	ferry_kqp_destroy(&net->qp);
	ferry_kcq_destroy(&net->cq);
	ferry_net_free_slots(net);
	spin_lock_irq(&net->dev->eqs[0].lock);
	ferry_port_changed(net->dev, false);
	spin_unlock_irq(&net->dev->eqs[0].lock);
	return 0;
}

/* The QP has failed: a new one. */
static void ferry_net_restart(struct work_struct *work)
{
	struct ferry_net *net = container_of(work, struct ferry_net, restart);
	struct net_device *netdev = net->netdev;

	rtnl_lock();
	if (netif_running(netdev) && !ferry_is_lost(net->dev)) {
		dev_close(netdev);
		dev_open(netdev, NULL);
	}
	rtnl_unlock();
}

/* ------------------------------------------------------------------- settings */

static int ferry_net_change_mtu(struct net_device *netdev, int mtu)
{
	struct ferry_net *net = netdev_priv(netdev);
	bool running = netif_running(netdev);
	unsigned int old = netdev->mtu;
	int err;

	/* Slots are as large as the MTU demands. One that did not come up last time tries again. */
	if (running)
		ferry_net_stop(netdev);
	WRITE_ONCE(netdev->mtu, mtu);
	err = running ? ferry_net_open(netdev) : ferry_net_set_port(net);
	if (!err)
		return 0;
	WRITE_ONCE(netdev->mtu, old);
	if (running && ferry_net_open(netdev))
		netdev_err(netdev, "does not come up again after a failed change of the MTU\n");
	return err;
}

static int ferry_net_set_mac(struct net_device *netdev, void *addr)
{
	struct ferry_net *net = netdev_priv(netdev);
	u8 old[ETH_ALEN];
	int err;

	ether_addr_copy(old, netdev->dev_addr);
	err = eth_mac_addr(netdev, addr);
	if (err)
		return err;
	err = ferry_net_set_port(net);
	if (err)
		eth_hw_addr_set(netdev, old);
	return err;
}

/* All multicast passes anyway. Called in atomic context. */
static void ferry_net_set_rx_mode(struct net_device *netdev)
{
	struct ferry_net *net = netdev_priv(netdev);

	schedule_work(&net->rx_mode);
}

static const struct net_device_ops ferry_net_ops = {
	.ndo_open = ferry_net_open,
	.ndo_stop = ferry_net_stop,
	.ndo_start_xmit = ferry_net_xmit,
	.ndo_change_mtu = ferry_net_change_mtu,
	.ndo_set_mac_address = ferry_net_set_mac,
	.ndo_set_rx_mode = ferry_net_set_rx_mode,
	.ndo_validate_addr = eth_validate_addr,
};

static void ferry_net_get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct ferry_net *net = netdev_priv(netdev);

	strscpy(info->driver, FERRY_DRIVER_NAME);
	strscpy(info->fw_version, net->dev->limits.firmware);
	strscpy(info->bus_info, pci_name(net->dev->pdev));
}

static int ferry_net_get_link_ksettings(struct net_device *netdev,
					struct ethtool_link_ksettings *settings)
{
	struct ferry_net *net = netdev_priv(netdev);

	settings->base.speed = netif_carrier_ok(netdev) ? net->speed_mbps : SPEED_UNKNOWN;
	settings->base.duplex = netif_carrier_ok(netdev) ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

#define FERRY_COUNTER_NAME(counter) #counter,
static const char ferry_net_counters[][ETH_GSTRING_LEN] = { FERRY_COUNTERS(FERRY_COUNTER_NAME) };

static int ferry_net_get_sset_count(struct net_device *netdev, int set)
{
	return set == ETH_SS_STATS ? FERRY_COUNTER_COUNT : -EOPNOTSUPP;
}

static void ferry_net_get_strings(struct net_device *netdev, u32 set, u8 *data)
{
	if (set == ETH_SS_STATS)
		memcpy(data, ferry_net_counters, sizeof(ferry_net_counters));
}

static void ferry_net_get_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *data)
{
	struct ferry_net *net = netdev_priv(netdev);
	struct ferry_admin_cqe answer = {};
	int i;

	/* Zeros when the device is lost. */
	ferry_admin_query(net->dev, FERRY_ADMIN_QUERY_COUNTERS, 0, &answer);
	for (i = 0; i < FERRY_COUNTER_COUNT; i++)
		data[i] = le64_to_cpu(answer.counters[i]);
}

static const struct ethtool_ops ferry_net_ethtool_ops = {
	.get_drvinfo = ferry_net_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = ferry_net_get_link_ksettings,
	.get_sset_count = ferry_net_get_sset_count,
	.get_strings = ferry_net_get_strings,
	.get_ethtool_stats = ferry_net_get_stats,
};

/* ----------------------------------------------------------------------- life cycle */

static int ferry_net_query_port(struct ferry_net *net)
{
	struct ferry_admin_cqe answer;
	int err;

	err = ferry_admin_query(net->dev, FERRY_ADMIN_QUERY_PORT, 0, &answer);
	if (err)
		return err;
	if (!is_valid_ether_addr(answer.port.mac)) {
		dev_err(&net->dev->pdev->dev, "no valid MAC address\n");
		return -EINVAL;
	}
	eth_hw_addr_set(net->netdev, answer.port.mac);
	ether_addr_copy(net->netdev->perm_addr, answer.port.mac);
	net->speed_mbps = le32_to_cpu(answer.port.speed_mbps);
	return 0;
}

static void ferry_net_setup(struct ferry_net *net)
{
	struct net_device *netdev = net->netdev;

	SET_NETDEV_DEV(netdev, &net->dev->pdev->dev);
	netdev->netdev_ops = &ferry_net_ops;
	netdev->ethtool_ops = &ferry_net_ethtool_ops;
	netdev->min_mtu = FERRY_MTU_MIN;
	netdev->max_mtu = net->dev->limits.max_mtu;
	netdev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	netdev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	netif_napi_add(netdev, &net->napi, ferry_net_poll);
	netif_carrier_off(netdev);
}

/* Neither the interrupt nor the end of the device finds it any more. */
static void ferry_net_hide(struct ferry_dev *dev)
{
	mutex_lock(&dev->lost_lock);
	WRITE_ONCE(dev->net, NULL);
	mutex_unlock(&dev->lost_lock);
	ferry_eq_flush(&dev->eqs[0]);
}

int ferry_net_create(struct ferry_dev *dev)
{
	struct net_device *netdev;
	struct ferry_net *net;
	int err;

	if (!ferry_has(dev, FERRY_CAP_ETH)) {
		dev_err(&dev->pdev->dev, "no Ethernet QP: nothing to get addresses from\n");
		return -EOPNOTSUPP;
	}
	netdev = alloc_etherdev(sizeof(*net));
	if (!netdev)
		return -ENOMEM;
	net = netdev_priv(netdev);
	net->dev = dev;
	net->netdev = netdev;
	mutex_init(&net->port_lock);
	INIT_WORK(&net->rx_mode, ferry_net_rx_mode);
	INIT_WORK(&net->restart, ferry_net_restart);
	ferry_net_setup(net);

	err = ferry_net_query_port(net);
	if (err)
		goto err_free;
	WRITE_ONCE(dev->net, net);
	err = register_netdev(netdev);
	if (err)
		goto err_hide;
	return 0;

err_hide:
	ferry_net_hide(dev);
err_free:
	free_netdev(netdev);
	return err;
}

void ferry_net_destroy(struct ferry_dev *dev)
{
	struct ferry_net *net = dev->net;

	unregister_netdev(net->netdev);
	ferry_net_hide(dev);
	cancel_work_sync(&net->restart);
	cancel_work_sync(&net->rx_mode);
	free_netdev(net->netdev);
}
