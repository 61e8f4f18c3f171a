// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The device and its contexts: what libibverbs asks a provider for first.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "memory.h"
#include "noncoherent.h"
#include "sink.h"

static int ferry_query_device(struct ibv_context *ibctx,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct verbs_device *vdev = verbs_get_device(ibctx->device);
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	int err;

	err = ibv_cmd_query_device_any(ibctx, input, attr, attr_size, &resp, &resp_size);
	if (err)
		return err;
	/* A text, which the number in the answer cannot carry. */
	if (ibv_read_ibdev_sysfs_file(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
				      vdev->sysfs, "fw_ver") < 0)
		attr->orig_attr.fw_ver[0] = 0;
	if (to_fctx(ibctx)->cache) {
		attr->orig_attr.max_sge = FERRY_SINK_SGES(attr->orig_attr.max_sge);
		attr->orig_attr.max_sge_rd = FERRY_SINK_SGES(attr->orig_attr.max_sge_rd);
		attr->orig_attr.max_srq_sge = FERRY_SINK_SGES(attr->orig_attr.max_srq_sge);
	}
	return 0;
}

static int ferry_query_port(struct ibv_context *ibctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(ibctx, port, attr, &cmd, sizeof(cmd));
}

static void ferry_free_context(struct ibv_context *ibctx);

static const struct verbs_context_ops ferry_ops = {
	.alloc_parent_domain = ferry_alloc_parent_domain,
	.alloc_pd = ferry_alloc_pd,
	.alloc_td = ferry_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.cq_event = ferry_cq_event,
	.create_ah = ferry_create_ah,
	.create_cq = ferry_create_cq,
	.create_cq_ex = ferry_create_cq_ex,
	.create_qp = ferry_create_qp,
	.create_qp_ex = ferry_create_qp_ex,
	.create_srq = ferry_create_srq,
	.dealloc_pd = ferry_dealloc_pd,
	.dealloc_td = ferry_dealloc_td,
	.dereg_mr = ferry_dereg_mr,
	.destroy_ah = ferry_destroy_ah,
	.destroy_cq = ferry_destroy_cq,
	.destroy_qp = ferry_destroy_qp,
	.destroy_srq = ferry_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = ferry_free_context,
	.modify_cq = ferry_modify_cq,
	.modify_qp = ferry_modify_qp,
	.modify_srq = ferry_modify_srq,
	.poll_cq = ferry_poll_cq,
	.post_recv = ferry_post_recv,
	.post_send = ferry_post_send,
	.post_srq_recv = ferry_post_srq_recv,
	.query_device_ex = ferry_query_device,
	.query_port = ferry_query_port,
	.query_qp = ferry_query_qp,
	.query_srq = ferry_query_srq,
	.reg_mr = ferry_reg_mr,
	.req_notify_cq = ferry_req_notify_cq,
	.resize_cq = ferry_resize_cq,
};

static int ferry_map_context(struct ferry_context *ctx, int fd,
			     const struct ferry_alloc_ucontext_resp *resp)
{
	void *status;

	ctx->doorbell = mmap(NULL, FERRY_PAGE_SIZE, PROT_WRITE, MAP_SHARED, fd,
			     resp->doorbell_offset);
	if (ctx->doorbell == MAP_FAILED)
		return errno;
	status = mmap(NULL, FERRY_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, resp->status_offset);
	if (status == MAP_FAILED) {
		int err = errno;

		munmap(ctx->doorbell, FERRY_PAGE_SIZE);
		return err;
	}
	ctx->status = status;
	return 0;
}

static void ferry_unmap_context(struct ferry_context *ctx)
{
	munmap((void *)ctx->status, FERRY_PAGE_SIZE);
	munmap(ctx->doorbell, FERRY_PAGE_SIZE);
}

static struct verbs_context *ferry_alloc_context(struct ibv_device *ibdev, int cmd_fd,
						 void *private_data)
{
	struct ferry_alloc_ucontext_answer resp = {};
	struct ibv_get_context cmd = {};
	struct ferry_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, ibv_ctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	err = ferry_get_context(&ctx->ibv_ctx, &cmd, sizeof(cmd), &resp.core, sizeof(resp));
	if (err)
		goto err_uninit;
	if (resp.ferry.flags & ~(FERRY_UCTX_POLL | FERRY_UCTX_NONCOHERENT)) {
		verbs_err(&ctx->ibv_ctx, "the driver asks for more than this provider can do\n");
		err = EOPNOTSUPP;
		goto err_uninit;
	}
	if (resp.ferry.flags & FERRY_UCTX_NONCOHERENT) {
		err = ferry_cache_init(ctx, resp.ferry.cache_line);
		if (err)
			goto err_uninit;
	}
	err = ferry_map_context(ctx, cmd_fd, &resp.ferry);
	if (err)
		goto err_cache;
	ctx->poll = resp.ferry.flags & FERRY_UCTX_POLL;
	pthread_mutex_init(&ctx->lock, NULL);
	list_head_init(&ctx->record_pages);
	list_head_init(&ctx->memory);
	verbs_set_ops(&ctx->ibv_ctx, &ferry_ops);
	if (ctx->cache)
		verbs_set_ops(&ctx->ibv_ctx, &ferry_noncoherent_ops);
	return &ctx->ibv_ctx;

err_cache:
	ferry_cache_free(ctx);
err_uninit:
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
	errno = err;
	return NULL;
}

static void ferry_free_context(struct ibv_context *ibctx)
{
	struct ferry_context *ctx = to_fctx(ibctx);

	ferry_unmap_records(ctx);
	ferry_free_memory(ctx);
	ferry_unmap_context(ctx);
	ferry_cache_free(ctx);
	pthread_mutex_destroy(&ctx->lock);
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
}

static struct verbs_device *ferry_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void ferry_uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

/* By PCI ID: the kernel gives driver numbers to what is upstream only. */
static const struct verbs_match_ent ferry_match_table[] = {
	VERBS_PCI_MATCH(FERRY_PCI_VENDOR, FERRY_PCI_DEVICE, NULL),
	{},
};

const struct verbs_device_ops ferry_device_ops = {
	.name = "ferry",
	.match_min_abi_version = FERRY_ABI_VERSION,
	.match_max_abi_version = FERRY_ABI_VERSION,
	.match_table = ferry_match_table,
	.alloc_device = ferry_alloc_device,
	.uninit_device = ferry_uninit_device,
	.alloc_context = ferry_alloc_context,
};

PROVIDER_DRIVER(ferry, ferry_device_ops);
