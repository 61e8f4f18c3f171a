/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server's side of the vfio-user protocol, version 0.0: framing, checks, replies. What
 * the device is, it learns from a table of functions; what the bytes travel on, from
 * another.
 *
 * One thread serves; any thread may send DMA messages. Errors are negative errnos here and
 * positive ones on the wire.
 */
#ifndef VNIC_VFIO_USER_H
#define VNIC_VFIO_USER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum vfio_user_command {
	VFIO_USER_VERSION = 1,
	VFIO_USER_DMA_MAP,
	VFIO_USER_DMA_UNMAP,
	VFIO_USER_DEVICE_GET_INFO,
	VFIO_USER_DEVICE_GET_REGION_INFO,
	VFIO_USER_DEVICE_GET_REGION_IO_FDS,
	VFIO_USER_DEVICE_GET_IRQ_INFO,
	VFIO_USER_DEVICE_SET_IRQS,
	VFIO_USER_REGION_READ,
	VFIO_USER_REGION_WRITE,
	VFIO_USER_DMA_READ,	/* this and the next: from us to the client */
	VFIO_USER_DMA_WRITE,
	VFIO_USER_DEVICE_RESET,
	VFIO_USER_COMMAND_COUNT
};

/* Everything on the wire is in host byte order: the socket never leaves the machine. */
struct vfio_user_header {
	uint16_t id;		/* the sender's, comes back in the reply */
	uint16_t command;
	uint32_t size;		/* bytes, with this header */
	uint32_t flags;
	uint32_t error;		/* an errno, with VFIO_USER_ERROR */
};

#define VFIO_USER_TYPE_MASK	0x0fu
#define VFIO_USER_REQUEST	0x00u
#define VFIO_USER_REPLY		0x01u
#define VFIO_USER_NO_REPLY	0x10u
#define VFIO_USER_ERROR		0x20u
#define VFIO_USER_FLAGS		0x3fu

struct vfio_user_version {
	uint16_t major;
	uint16_t minor;		/* JSON text and a NUL may follow */
};

struct vfio_user_dma_map {
	uint32_t argsz;
	uint32_t flags;		/* as DMA_READ and DMA_WRITE in dma.h */
	uint64_t offset;
	uint64_t addr;
	uint64_t size;
};

struct vfio_user_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t addr;
	uint64_t size;
};

#define VFIO_USER_UNMAP_ALL	0x2u

struct vfio_user_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t regions;
	uint32_t irqs;
};

struct vfio_user_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};

struct vfio_user_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};

struct vfio_user_set_irqs {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;		/* a byte for each may follow, with DATA_BOOL */
};

struct vfio_user_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;		/* so many bytes follow a write and the reply to a read */
};

struct vfio_user_dma {
	uint64_t addr;
	uint64_t count;		/* so many bytes follow a write and the reply to a read */
};

#define VFIO_USER_MAX_TRANSFER	(1u << 20)	/* bytes of data in one message */
#define VFIO_USER_MAX_MESSAGE	(VFIO_USER_MAX_TRANSFER + 64)
#define VFIO_USER_MAX_FDS	16

/* What an interrupt index is told to do with vectors [start, start + count). */
enum vfio_user_irq_action {
	VFIO_USER_IRQ_ASSIGN,	/* take over the descriptors, or drop those there are */
	VFIO_USER_IRQ_TRIGGER,	/* raise, where selected */
	VFIO_USER_IRQ_MASK,
	VFIO_USER_IRQ_UNMASK,
};

struct vfio_user_irqs {
	uint32_t index;
	uint32_t start;
	uint32_t count;
	enum vfio_user_irq_action action;
	const int *fds;		/* ASSIGN: one each, or NULL */
	const uint8_t *selected; /* others: nonzero bytes choose; NULL chooses all */
};

struct vfio_user_ops {
	/* Both: 0 and *result, or -EINVAL for an index that does not exist. */
	int (*region_info)(void *device, uint32_t index, uint64_t *size, uint32_t *flags);
	int (*irq_info)(void *device, uint32_t index, uint32_t *count, uint32_t *flags);

	/* [offset, offset + count) lies in the region. 0 or a negative errno. */
	int (*region_read)(void *device, uint32_t index, uint64_t offset, void *to,
			   uint32_t count);
	int (*region_write)(void *device, uint32_t index, uint64_t offset, const void *from,
			    uint32_t count);

	/* @fd is -1 or borrowed for the call. */
	int (*dma_map)(void *device, const struct vfio_user_dma_map *map, int fd);
	/* Bytes taken away, or a negative errno. */
	int64_t (*dma_unmap)(void *device, uint64_t addr, uint64_t last);

	/* Takes over irqs->fds when it returns 0. */
	int (*set_irqs)(void *device, const struct vfio_user_irqs *irqs);
	void (*reset)(void *device);

	/* The client has agreed on the version and takes messages of so much data. */
	void (*opened)(void *device, uint32_t max_transfer);
	void (*closed)(void *device);
	void (*dma_reply)(void *device, uint16_t command, uint16_t id, int error,
			  const void *data, size_t len);

	uint32_t regions;
	uint32_t irqs;
	uint32_t device_flags;
};

struct vfio_user_transport {
	/*
	 * Receives exactly @len bytes. Descriptors that come with them are added to
	 * @fds[*nfds]; those beyond VFIO_USER_MAX_FDS are closed, and *nfds counts them.
	 * -ECONNRESET at an orderly end, another negative errno when it fails.
	 */
	int (*receive)(void *link, void *to, size_t len, int *fds, unsigned int *nfds);
	/* Sends all of it; one caller at a time. */
	int (*send)(void *link, const struct iovec *iov, int count);
	/* Makes receive and send fail from now on. Any thread. */
	void (*hang_up)(void *link);
};

struct vfio_user {
	const struct vfio_user_ops *ops;
	void *device;
	const struct vfio_user_transport *transport;
	void *link;
	pthread_mutex_t send_lock;
	bool negotiated;
	uint8_t *message;	/* what is being received: VFIO_USER_MAX_MESSAGE bytes */
	uint8_t *reply;		/* the data of a read */
};

/* 0 or -ENOMEM. */
int vfio_user_init(struct vfio_user *vu, const struct vfio_user_ops *ops, void *device);
void vfio_user_destroy(struct vfio_user *vu);

/*
 * Serves the client at the other end of @link until it leaves, misbehaves, or the
 * transport ends. -ECONNRESET when it has left, else why it was dropped.
 */
int vfio_user_serve(struct vfio_user *vu, const struct vfio_user_transport *transport,
		    void *link);

int vfio_user_dma_read(struct vfio_user *vu, uint16_t id, uint64_t addr, uint32_t len);
int vfio_user_dma_write(struct vfio_user *vu, uint16_t id, uint64_t addr, const void *from,
			uint32_t len);

/* Ends the session, from any thread while there is one. */
void vfio_user_hang_up(struct vfio_user *vu);

#endif
