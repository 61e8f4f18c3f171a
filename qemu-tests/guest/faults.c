// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each allocation and each copy from or to user memory that the kernel does for a verb
 * fails once, one at a time: the verb either fails or does without, nothing is left
 * behind, and the next one works. Needs a kernel with fault injection, and root.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

/* What takes longer to count through is broken: a loop that the faults keep alive. */
#define MAX_FAULTS	5000
/* How far to go where it cannot be seen whether a fault was used. */
#define MANY_FAULTS	10

/* ------------------------------------------------------------------------- the injector */

static int injector = -1;

static void injector_open(void)
{
	injector = open("/proc/thread-self/fail-nth", O_RDWR);
	need_that(injector >= 0, "/proc/thread-self/fail-nth: %s", tap_error(errno));
}

/* The @nth possible fault of this thread from now on happens. */
static void arm(unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	need_eq(pwrite(injector, text, len, 0), len);
}

/* Whether it did happen. Both calls copy, so that a fault still to come may strike them. */
static bool disarm(void)
{
	char left[16] = "";
	bool happened = pread(injector, left, sizeof(left), 0) > 0 && !atoi(left);

	if (pwrite(injector, "0", 1, 0) != 1)
		need_eq(errno, EFAULT);
	return happened;
}

/* -------------------------------------------------------------------------------- steps */

/* All that a process comes to have, in the order in which it gets it. */
struct belongings {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	void *mem;
	size_t len;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	int gid_index;
};

/* Each makes one thing and returns 0 or an errno value; and undoes that. */
struct step {
	const char *name;
	int (*make)(struct belongings *own);
	int (*undo)(struct belongings *own);
};

static int result(const void *made)
{
	return made ? 0 : errno ? errno : EIO;
}

static int make_context(struct belongings *own)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i, err = ENODEV;

	if (!list)
		return result(list);
	for (i = 0; list[i]; i++) {
		if (options.dev && strcmp(ibv_get_device_name(list[i]), options.dev))
			continue;
		own->ctx = ibv_open_device(list[i]);
		err = result(own->ctx);
		break;
	}
	ibv_free_device_list(list);
	return err;
}

static int undo_context(struct belongings *own)
{
	return ibv_close_device(own->ctx);
}

static int make_pd(struct belongings *own)
{
	own->pd = ibv_alloc_pd(own->ctx);
	return result(own->pd);
}

static int undo_pd(struct belongings *own)
{
	return ibv_dealloc_pd(own->pd);
}

static int make_channel(struct belongings *own)
{
	own->channel = ibv_create_comp_channel(own->ctx);
	return result(own->channel);
}

static int undo_channel(struct belongings *own)
{
	return ibv_destroy_comp_channel(own->channel);
}

static int make_cq(struct belongings *own)
{
	own->cq = ibv_create_cq(own->ctx, 1000, NULL, own->channel, 0);
	return result(own->cq);
}

static int undo_cq(struct belongings *own)
{
	return ibv_destroy_cq(own->cq);
}

static int make_srq(struct belongings *own)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 1 } };

	own->srq = ibv_create_srq(own->pd, &init);
	return result(own->srq);
}

static int undo_srq(struct belongings *own)
{
	return ibv_destroy_srq(own->srq);
}

static int make_mr(struct belongings *own)
{
	own->mr = ibv_reg_mr(own->pd, own->mem, own->len, ACCESS_ALL);
	return result(own->mr);
}

static int undo_mr(struct belongings *own)
{
	return ibv_dereg_mr(own->mr);
}

static int make_qp(struct belongings *own)
{
	struct ibv_qp_init_attr init = {
		.send_cq = own->cq,
		.recv_cq = own->cq,
		.cap = {
			.max_send_wr = 500, .max_recv_wr = 500,
			.max_send_sge = 4, .max_recv_sge = 4,
		},
		.qp_type = IBV_QPT_RC,
	};

	own->qp = ibv_create_qp(own->pd, &init);
	return result(own->qp);
}

static int undo_qp(struct belongings *own)
{
	return ibv_destroy_qp(own->qp);
}

/* The QP with itself: RESET to RTS. */
static int make_connection(struct belongings *own)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS_ALL,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = own->qp->qp_num, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = own->gid, .sgid_index = own->gid_index, .hop_limit = 64,
			},
		},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	int err;

	err = ibv_modify_qp(own->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS);
	if (!err)
		err = ibv_modify_qp(own->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (!err)
		err = ibv_modify_qp(own->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN |
				    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC);
	return err;
}

static int undo_connection(struct belongings *own)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(own->qp, &reset, IBV_QP_STATE);
}

static const struct step steps[] = {
	{ "open the device", make_context, undo_context },
	{ "allocate a PD", make_pd, undo_pd },
	{ "create a completion channel", make_channel, undo_channel },
	{ "create a CQ", make_cq, undo_cq },
	{ "create an SRQ", make_srq, undo_srq },
	{ "register memory", make_mr, undo_mr },
	{ "create a QP", make_qp, undo_qp },
	{ "connect a QP", make_connection, undo_connection },
};

#define STEPS	(sizeof(steps) / sizeof(steps[0]))

/* The first @count steps, without faults. */
static void make_first(struct belongings *own, size_t count)
{
	size_t i;

	memset(own, 0, sizeof(*own));
	own->len = 6 << 20;
	own->mem = mmap(NULL, own->len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	need(own->mem != MAP_FAILED);
	for (i = 0; i < count; i++) {
		need_ok(steps[i].make(own));
		if (steps[i].make == make_context)
			own->gid_index = find_gid(own->ctx, &own->gid);
	}
}

static int undo_first(struct belongings *own, size_t count)
{
	int err = 0;

	while (count--)
		err = steps[count].undo(own) ?: err;
	return err;
}

/* -------------------------------------------------------------------------------- tests */

/* @arg: the step in which faults happen. */
static void test_step(const void *arg)
{
	const struct step *step = arg;
	unsigned int nth, refused = 0;
	struct belongings own;
	bool happened = true;
	int err;

	injector_open();
	make_first(&own, step - steps);
	for (nth = 1; happened; nth++) {
		need_that(nth < MAX_FAULTS, "no end of faults");
		arm(nth);
		err = step->make(&own);
		happened = disarm();
		need_that(happened || !err, "fails without a fault: %s", tap_error(err));
		refused += !!err;
		/* A half connected QP must start over as well. */
		if (!err || step->undo == undo_connection)
			need_ok(step->undo(&own));
	}
	tap_note("%s: %u possible faults, the call failed for %u of them", step->name, nth - 2,
		 refused);
	need_ok(undo_first(&own, step - steps));
	need_device();
}

#define NO_FAULT_LEFT	2

/* The status of a process that has come as far as it should. */
static int status_of(pid_t pid)
{
	int status;

	need(waitpid(pid, &status, 0) == pid);
	need_that(WIFEXITED(status), "the process was ended by signal %d", WTERMSIG(status));
	status = WEXITSTATUS(status);
	need(!status || status == NO_FAULT_LEFT);
	return status;
}

/* A process that has everything, and whose @nth possible fault from now on happens; 0 in it. */
static pid_t fork_armed(struct belongings *own, unsigned int nth)
{
	pid_t pid = fork();

	need(pid >= 0);
	if (!pid) {
		injector_open();
		make_first(own, STEPS);
		arm(nth);
	}
	return pid;
}

/* A process for each fault: the kernel refuses halfway, and the end of the process does the rest. */
static void test_destroy(const void *arg)
{
	struct belongings own;
	bool happened;
	unsigned int nth;
	pid_t pid;
	int err;

	(void)arg;
	for (nth = 1; ; nth++) {
		need_that(nth < MAX_FAULTS, "no end of faults");
		pid = fork_armed(&own, nth);
		if (!pid) {
			err = undo_first(&own, STEPS);
			happened = disarm();
			need_that(happened || !err, "fails without a fault: %s", tap_error(err));
			_exit(happened ? 0 : NO_FAULT_LEFT);
		}
		if (status_of(pid))
			break;
	}
	tap_note("destroy everything: %u possible faults", nth - 1);
	need_device();
}

/*
 * The kernel cleans up after a process, and an allocation fails in the middle of that. Nobody can
 * say how many there are.
 */
static void test_exit(const void *arg)
{
	struct belongings own;
	unsigned int nth;
	pid_t pid;

	(void)arg;
	for (nth = 1; nth <= MANY_FAULTS; nth++) {
		pid = fork_armed(&own, nth);
		if (!pid)
			_exit(0);
		need(!status_of(pid));
	}
	need_device();
}

/* ------------------------------------------------------------------------------- netdev */

static void name_netdev(struct ifreq *ifr)
{
	char path[300];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/net", options.dev);
	dir = need_ptr(opendir(path));
	while ((entry = readdir(dir)) && entry->d_name[0] == '.')
		;
	need_that(entry, "%s has no netdev", options.dev);
	memset(ifr, 0, sizeof(*ifr));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%.15s", entry->d_name);
	closedir(dir);
}

/* Down and up again until up meets no fault any more. */
static void test_netdev(const void *arg)
{
	unsigned int nth, refused = 0;
	int err, sock = socket(AF_INET, SOCK_DGRAM, 0);
	bool happened = true;
	struct ifreq ifr;

	(void)arg;
	need_that(options.dev, "needs --dev");
	need(sock >= 0);
	injector_open();
	name_netdev(&ifr);
	need_ok(ioctl(sock, SIOCGIFFLAGS, &ifr));
	for (nth = 1; happened; nth++) {
		need_that(nth < MAX_FAULTS, "no end of faults");
		ifr.ifr_flags &= ~IFF_UP;
		need_ok(ioctl(sock, SIOCSIFFLAGS, &ifr));
		ifr.ifr_flags |= IFF_UP;
		arm(nth);
		err = ioctl(sock, SIOCSIFFLAGS, &ifr) ? errno : 0;
		happened = disarm();
		need_that(happened || !err, "fails without a fault: %s", tap_error(err));
		refused += !!err;
	}
	tap_note("netdev up: %u possible faults, it failed for %u of them", nth - 2, refused);
}

static const struct tap_test tests[] = {
	TEST("open the device", test_step, &steps[0], .seconds = 1200),
	TEST("allocate a PD", test_step, &steps[1], .seconds = 600),
	TEST("create a completion channel", test_step, &steps[2], .seconds = 600),
	TEST("create a CQ", test_step, &steps[3], .seconds = 600),
	TEST("create an SRQ", test_step, &steps[4], .seconds = 600),
	TEST("register memory", test_step, &steps[5], .seconds = 600),
	TEST("create a QP", test_step, &steps[6], .seconds = 600),
	TEST("connect a QP", test_step, &steps[7], .seconds = 600),
	TEST("destroy everything", test_destroy, .seconds = 1200),
	TEST("exit with everything open", test_exit, .seconds = 1200),
	TEST("netdev up", test_netdev, .seconds = 600),
};

int main(int argc, char **argv)
{
	options_parse(argc, argv, "Every allocation of the kernel for a verb fails once.");
	if (options.list) {
		tap_list(tests, sizeof(tests) / sizeof(tests[0]));
		return 0;
	}
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]), options.only, 0);
}
