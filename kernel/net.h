/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Ethernet port.
 */
#ifndef FERRY_NET_H
#define FERRY_NET_H

#include <linux/netdevice.h>

struct ferry_dev;

int ferry_net_create(struct ferry_dev *dev);
void ferry_net_destroy(struct ferry_dev *dev);
struct net_device *ferry_net_device(struct ferry_dev *dev);
u32 ferry_net_speed(struct ferry_dev *dev);
void ferry_net_link(struct ferry_dev *dev, bool up);
void ferry_net_lost(struct ferry_dev *dev);

#endif
