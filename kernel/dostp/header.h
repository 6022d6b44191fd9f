/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The bytes of a frame: docs/dostp.md, sections "Header" to "What is dropped".
 *
 * Freestanding: compiles in the kernel and in user space, keeps no state, allocates nothing, and
 * never reads more than it is given.
 */
#ifndef DOSTP_HEADER_H
#define DOSTP_HEADER_H

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#define DOSTP_HEADER_BYTES 16
#define DOSTP_GREETING_BYTES 32
#define DOSTP_SUM_BYTES 4
#define DOSTP_LINK_BYTES 6
#define DOSTP_FRAGMENTS_MAX 256
#define DOSTP_MTU_MIN 128
#define DOSTP_EVERYBODY 0xffff

enum dostp_kind {
	DOSTP_DATA = 1,
	DOSTP_HELLO,
	DOSTP_HELLO_REPLY,
	DOSTP_PROBE,
	DOSTP_BYE,
	DOSTP_CONFLICT,
	DOSTP_REQUEST,
	DOSTP_REPLY,
	DOSTP_ACK,
};

enum dostp_flags {
	DOSTP_FIRST = 1,
	DOSTP_FINAL = 2,
	DOSTP_WHOLE = DOSTP_FIRST | DOSTP_FINAL,
	DOSTP_AUTH = 4,
	DOSTP_SUM = 8,
	DOSTP_PRIORITY = 16,
	DOSTP_MORE = 32,
	DOSTP_RESERVED = 0xc0,
};

/* Why a frame or a message is dropped. Each has a name and a count. */
enum dostp_fault {
	DOSTP_FAULT_SHORT,
	DOSTP_FAULT_VERSION,
	DOSTP_FAULT_CHECK,
	DOSTP_FAULT_KIND,
	DOSTP_FAULT_FLAGS,
	DOSTP_FAULT_ADDRESS,
	DOSTP_FAULT_PORT,
	DOSTP_FAULT_FRAGMENT,
	DOSTP_FAULT_LENGTH,
	DOSTP_FAULT_FOREIGN,
	DOSTP_FAULT_SUM,
	DOSTP_FAULT_RELAYED,
	DOSTP_FAULT_AUTH,
	DOSTP_FAULT_REPLAY,
	DOSTP_FAULT_CONFLICT,
	DOSTP_FAULT_OWN,
	DOSTP_FAULT_IMPOSTOR,
	DOSTP_FAULT_UNKNOWN,
	DOSTP_FAULT_CLOSED,
	DOSTP_FAULT_DUPLICATE,
	DOSTP_FAULT_ORPHAN,
	DOSTP_FAULT_ORDER,
	DOSTP_FAULT_SIZE,
	DOSTP_FAULT_ROOM,
	DOSTP_FAULT_EXPIRED,
	DOSTP_FAULT_QUEUE,
	DOSTP_FAULT_UNRESOLVED,
	DOSTP_FAULT_UNANSWERED,
	DOSTP_FAULTS,
	DOSTP_SOUND = DOSTP_FAULTS, /* no fault */
};

extern const char *const dostp_fault_names[DOSTP_FAULTS];

struct dostp_header {
	u8 kind, flags, sequence;
	u16 source, destination, source_port, destination_port, id, length;
};

struct dostp_greeting {
	u64 boot, challenge, echo;
	u16 mtu;
	u8 link[DOSTP_LINK_BYTES];
};

static inline bool dostp_is_control(u8 kind)
{
	return kind >= DOSTP_HELLO && kind <= DOSTP_CONFLICT;
}

/* The first fault that the sixteen bytes show, all but `short` and `length`. */
enum dostp_fault dostp_header_decode(const u8 *bytes, u8 cluster, struct dostp_header *header);
/*
 * Whether a frame may stand right behind another one, which bears MORE. Both were decoded and are sound.
 */
bool dostp_header_may_follow(const struct dostp_header *before, const struct dostp_header *header);
void dostp_header_encode(const struct dostp_header *header, u8 cluster, u8 *bytes);
/*
 * Bytes of the trailer. `key` is the byte behind the payload, and matters with AUTH alone.
 */
unsigned int dostp_header_trailer(const struct dostp_header *header, u8 key);
/* Whether a payload may have this length in a frame of this kind. */
bool dostp_header_is_length_right(const struct dostp_header *header);
/* False: a boot number or an MTU that no node has. */
bool dostp_greeting_decode(const u8 *bytes, struct dostp_greeting *greeting);
void dostp_greeting_encode(const struct dostp_greeting *greeting, u8 *bytes);
/*
 * CRC-32C in steps: begin with ~0, and complement the last result.
 */
u32 dostp_sum(u32 state, const u8 *bytes, size_t length);

#endif
