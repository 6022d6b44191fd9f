/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The interface by which programs carry transactions (docs/dostp.md, "Transactions") over a socket of this
 * family. The module passes messages of these kinds on as they are: numbers, repetitions and what is
 * remembered are the program's.
 *
 *	int one = 1;
 *	setsockopt(fd, SOL_DOSTP, DOSTP_TRANSACTIONS, &one, sizeof(one));
 *
 * From then on the socket takes REQUEST, REPLY and ACK as well, recvmsg() tells of each message its name (a
 * control message of level SOL_DOSTP and type DOSTP_MESSAGE_NAME), and sendmsg() takes one; without, the
 * message is DATA. The id of DATA is the socket's to count, whatever a name says.
 */
#ifndef DOSTP_TRANSACT_H
#define DOSTP_TRANSACT_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#define SOL_DOSTP 0x88b5

/* An option of the level SOL_DOSTP: an int, 0 or not. */
#define DOSTP_TRANSACTIONS 1

/* A control message of the level SOL_DOSTP. */
#define DOSTP_MESSAGE_NAME 1

struct dostp_message_name {
#ifdef __KERNEL__
	__u8 kind; /* 1 DATA, 7 REQUEST, 8 REPLY, 9 ACK */
	__u8 unused; /* 0 */
	__u16 id;  /* in the host's order */
#else
	uint8_t kind;
	uint8_t unused;
	uint16_t id;
#endif
};

#endif
