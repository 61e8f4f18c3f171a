/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a client is left. When a socket is closed while something that QEMU 11.1 has sent lies
 * there unread, QEMU meets ECONNRESET and aborts, guest and all; and a request without
 * reply holds the guest up for 5 s. So nobody closes a client's socket without a farewell,
 * and a second process sees to it when this one is killed or crashes.
 */
#ifndef VNIC_GUARD_H
#define VNIC_GUARD_H

/*
 * Starts the process that guards this one: with signals blocked, before there are threads
 * or descriptors that it must not share. Returns the descriptor that leads to it, or -1
 * after an error line: then there is no guard.
 */
int guard_start(void);

/* Tells the guard which client there is, or with -1 that there is none. */
void guard_client(int guard_fd, int client_fd);

/* Answers with an error what the client still waits for, and hangs up. The caller closes. */
void guard_farewell(int client_fd);

#endif
