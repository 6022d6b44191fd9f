// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The bytes of a frame: see header.h. Owns the two tables of checksums and the names of faults.
 */
#include "header.h"

#define DOSTP_VERSION 1
#define DOSTP_COUNTER_BYTES 8

const char *const dostp_fault_names[DOSTP_FAULTS] = {
	"short", "version", "check", "kind", "flags", "address", "port", "fragment", "length",
	"foreign", "sum", "relayed", "auth", "replay", "conflict", "own", "impostor", "unknown",
	"closed", "duplicate", "orphan", "order", "size", "room", "expired", "queue", "unresolved",
	"unanswered",
};

/* CRC-8/AUTOSAR: polynomial 0x2f, not reflected. */
static const u8 dostp_check_table[256] = {
	0x00, 0x2f, 0x5e, 0x71, 0xbc, 0x93, 0xe2, 0xcd, 0x57, 0x78, 0x09, 0x26, 0xeb, 0xc4,
	0xb5, 0x9a, 0xae, 0x81, 0xf0, 0xdf, 0x12, 0x3d, 0x4c, 0x63, 0xf9, 0xd6, 0xa7, 0x88,
	0x45, 0x6a, 0x1b, 0x34, 0x73, 0x5c, 0x2d, 0x02, 0xcf, 0xe0, 0x91, 0xbe, 0x24, 0x0b,
	0x7a, 0x55, 0x98, 0xb7, 0xc6, 0xe9, 0xdd, 0xf2, 0x83, 0xac, 0x61, 0x4e, 0x3f, 0x10,
	0x8a, 0xa5, 0xd4, 0xfb, 0x36, 0x19, 0x68, 0x47, 0xe6, 0xc9, 0xb8, 0x97, 0x5a, 0x75,
	0x04, 0x2b, 0xb1, 0x9e, 0xef, 0xc0, 0x0d, 0x22, 0x53, 0x7c, 0x48, 0x67, 0x16, 0x39,
	0xf4, 0xdb, 0xaa, 0x85, 0x1f, 0x30, 0x41, 0x6e, 0xa3, 0x8c, 0xfd, 0xd2, 0x95, 0xba,
	0xcb, 0xe4, 0x29, 0x06, 0x77, 0x58, 0xc2, 0xed, 0x9c, 0xb3, 0x7e, 0x51, 0x20, 0x0f,
	0x3b, 0x14, 0x65, 0x4a, 0x87, 0xa8, 0xd9, 0xf6, 0x6c, 0x43, 0x32, 0x1d, 0xd0, 0xff,
	0x8e, 0xa1, 0xe3, 0xcc, 0xbd, 0x92, 0x5f, 0x70, 0x01, 0x2e, 0xb4, 0x9b, 0xea, 0xc5,
	0x08, 0x27, 0x56, 0x79, 0x4d, 0x62, 0x13, 0x3c, 0xf1, 0xde, 0xaf, 0x80, 0x1a, 0x35,
	0x44, 0x6b, 0xa6, 0x89, 0xf8, 0xd7, 0x90, 0xbf, 0xce, 0xe1, 0x2c, 0x03, 0x72, 0x5d,
	0xc7, 0xe8, 0x99, 0xb6, 0x7b, 0x54, 0x25, 0x0a, 0x3e, 0x11, 0x60, 0x4f, 0x82, 0xad,
	0xdc, 0xf3, 0x69, 0x46, 0x37, 0x18, 0xd5, 0xfa, 0x8b, 0xa4, 0x05, 0x2a, 0x5b, 0x74,
	0xb9, 0x96, 0xe7, 0xc8, 0x52, 0x7d, 0x0c, 0x23, 0xee, 0xc1, 0xb0, 0x9f, 0xab, 0x84,
	0xf5, 0xda, 0x17, 0x38, 0x49, 0x66, 0xfc, 0xd3, 0xa2, 0x8d, 0x40, 0x6f, 0x1e, 0x31,
	0x76, 0x59, 0x28, 0x07, 0xca, 0xe5, 0x94, 0xbb, 0x21, 0x0e, 0x7f, 0x50, 0x9d, 0xb2,
	0xc3, 0xec, 0xd8, 0xf7, 0x86, 0xa9, 0x64, 0x4b, 0x3a, 0x15, 0x8f, 0xa0, 0xd1, 0xfe,
	0x33, 0x1c, 0x6d, 0x42,
};

/* CRC-32C (Castagnoli): polynomial 0x82f63b78, reflected. */
static const u32 dostp_sum_table[256] = {
	0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c, 0x26a1e7e8,
	0xd4ca64eb, 0x8ad958cf, 0x78b2dbcc, 0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3,
	0xac78bf27, 0x5e133c24, 0x105ec76f, 0xe235446c, 0xf165b798, 0x030e349b, 0xd7c45070,
	0x25afd373, 0x36ff2087, 0xc494a384, 0x9a879fa0, 0x68ec1ca3, 0x7bbcef57, 0x89d76c54,
	0x5d1d08bf, 0xaf768bbc, 0xbc267848, 0x4e4dfb4b, 0x20bd8ede, 0xd2d60ddd, 0xc186fe29,
	0x33ed7d2a, 0xe72719c1, 0x154c9ac2, 0x061c6936, 0xf477ea35, 0xaa64d611, 0x580f5512,
	0x4b5fa6e6, 0xb93425e5, 0x6dfe410e, 0x9f95c20d, 0x8cc531f9, 0x7eaeb2fa, 0x30e349b1,
	0xc288cab2, 0xd1d83946, 0x23b3ba45, 0xf779deae, 0x05125dad, 0x1642ae59, 0xe4292d5a,
	0xba3a117e, 0x4851927d, 0x5b016189, 0xa96ae28a, 0x7da08661, 0x8fcb0562, 0x9c9bf696,
	0x6ef07595, 0x417b1dbc, 0xb3109ebf, 0xa0406d4b, 0x522bee48, 0x86e18aa3, 0x748a09a0,
	0x67dafa54, 0x95b17957, 0xcba24573, 0x39c9c670, 0x2a993584, 0xd8f2b687, 0x0c38d26c,
	0xfe53516f, 0xed03a29b, 0x1f682198, 0x5125dad3, 0xa34e59d0, 0xb01eaa24, 0x42752927,
	0x96bf4dcc, 0x64d4cecf, 0x77843d3b, 0x85efbe38, 0xdbfc821c, 0x2997011f, 0x3ac7f2eb,
	0xc8ac71e8, 0x1c661503, 0xee0d9600, 0xfd5d65f4, 0x0f36e6f7, 0x61c69362, 0x93ad1061,
	0x80fde395, 0x72966096, 0xa65c047d, 0x5437877e, 0x4767748a, 0xb50cf789, 0xeb1fcbad,
	0x197448ae, 0x0a24bb5a, 0xf84f3859, 0x2c855cb2, 0xdeeedfb1, 0xcdbe2c45, 0x3fd5af46,
	0x7198540d, 0x83f3d70e, 0x90a324fa, 0x62c8a7f9, 0xb602c312, 0x44694011, 0x5739b3e5,
	0xa55230e6, 0xfb410cc2, 0x092a8fc1, 0x1a7a7c35, 0xe811ff36, 0x3cdb9bdd, 0xceb018de,
	0xdde0eb2a, 0x2f8b6829, 0x82f63b78, 0x709db87b, 0x63cd4b8f, 0x91a6c88c, 0x456cac67,
	0xb7072f64, 0xa457dc90, 0x563c5f93, 0x082f63b7, 0xfa44e0b4, 0xe9141340, 0x1b7f9043,
	0xcfb5f4a8, 0x3dde77ab, 0x2e8e845f, 0xdce5075c, 0x92a8fc17, 0x60c37f14, 0x73938ce0,
	0x81f80fe3, 0x55326b08, 0xa759e80b, 0xb4091bff, 0x466298fc, 0x1871a4d8, 0xea1a27db,
	0xf94ad42f, 0x0b21572c, 0xdfeb33c7, 0x2d80b0c4, 0x3ed04330, 0xccbbc033, 0xa24bb5a6,
	0x502036a5, 0x4370c551, 0xb11b4652, 0x65d122b9, 0x97baa1ba, 0x84ea524e, 0x7681d14d,
	0x2892ed69, 0xdaf96e6a, 0xc9a99d9e, 0x3bc21e9d, 0xef087a76, 0x1d63f975, 0x0e330a81,
	0xfc588982, 0xb21572c9, 0x407ef1ca, 0x532e023e, 0xa145813d, 0x758fe5d6, 0x87e466d5,
	0x94b49521, 0x66df1622, 0x38cc2a06, 0xcaa7a905, 0xd9f75af1, 0x2b9cd9f2, 0xff56bd19,
	0x0d3d3e1a, 0x1e6dcdee, 0xec064eed, 0xc38d26c4, 0x31e6a5c7, 0x22b65633, 0xd0ddd530,
	0x0417b1db, 0xf67c32d8, 0xe52cc12c, 0x1747422f, 0x49547e0b, 0xbb3ffd08, 0xa86f0efc,
	0x5a048dff, 0x8ecee914, 0x7ca56a17, 0x6ff599e3, 0x9d9e1ae0, 0xd3d3e1ab, 0x21b862a8,
	0x32e8915c, 0xc083125f, 0x144976b4, 0xe622f5b7, 0xf5720643, 0x07198540, 0x590ab964,
	0xab613a67, 0xb831c993, 0x4a5a4a90, 0x9e902e7b, 0x6cfbad78, 0x7fab5e8c, 0x8dc0dd8f,
	0xe330a81a, 0x115b2b19, 0x020bd8ed, 0xf0605bee, 0x24aa3f05, 0xd6c1bc06, 0xc5914ff2,
	0x37faccf1, 0x69e9f0d5, 0x9b8273d6, 0x88d28022, 0x7ab90321, 0xae7367ca, 0x5c18e4c9,
	0x4f48173d, 0xbd23943e, 0xf36e6f75, 0x0105ec76, 0x12551f82, 0xe03e9c81, 0x34f4f86a,
	0xc69f7b69, 0xd5cf889d, 0x27a40b9e, 0x79b737ba, 0x8bdcb4b9, 0x988c474d, 0x6ae7c44e,
	0xbe2da0a5, 0x4c4623a6, 0x5f16d052, 0xad7d5351,
};

static u8 dostp_check(u8 cluster, const u8 *bytes)
{
	u8 state = dostp_check_table[0xff ^ cluster];

	for (int i = 0; i < DOSTP_HEADER_BYTES - 1; i++)
		state = dostp_check_table[state ^ bytes[i]];
	return state ^ 0xff;
}

u32 dostp_sum(u32 state, const u8 *bytes, size_t length)
{
	while (length--)
		state = dostp_sum_table[(state ^ *bytes++) & 0xff] ^ state >> 8;
	return state;
}

static u16 dostp_read_u16(const u8 *bytes)
{
	return (u16)(bytes[0] << 8 | bytes[1]);
}

static u64 dostp_read_u64(const u8 *bytes)
{
	u64 number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | bytes[i];
	return number;
}

static void dostp_write_u16(u8 *bytes, u16 number)
{
	bytes[0] = number >> 8;
	bytes[1] = number & 0xff;
}

static void dostp_write_u64(u8 *bytes, u64 number)
{
	for (int i = 7; i >= 0; i--, number >>= 8)
		bytes[i] = number & 0xff;
}

static bool dostp_is_address_right(const struct dostp_header *header)
{
	u16 destination = header->destination;

	if (!header->source || header->source == DOSTP_EVERYBODY)
		return false;
	switch (header->kind) {
	case DOSTP_DATA:
		return destination;
	case DOSTP_HELLO:
	case DOSTP_BYE:
		return destination == DOSTP_EVERYBODY;
	default:
		return destination && destination != DOSTP_EVERYBODY;
	}
}

static bool dostp_is_port_right(const struct dostp_header *header)
{
	if (dostp_is_control(header->kind))
		return !header->source_port && !header->destination_port && !header->id;
	return header->source_port && header->destination_port;
}

static bool dostp_is_fragment_right(const struct dostp_header *header)
{
	bool first = header->flags & DOSTP_FIRST, final = header->flags & DOSTP_FINAL;

	if (dostp_is_control(header->kind) || header->kind == DOSTP_ACK)
		return first && final && !header->sequence;
	if (first != !header->sequence)
		return false;
	return final || (header->length && header->sequence != DOSTP_FRAGMENTS_MAX - 1);
}

/* Whether other frames may stand before or behind this one: a whole datagram to a node. */
static bool dostp_may_be_joined(const struct dostp_header *header)
{
	return header->kind == DOSTP_DATA && !(~header->flags & DOSTP_WHOLE) &&
	       header->destination != DOSTP_EVERYBODY;
}

bool dostp_header_may_follow(const struct dostp_header *before, const struct dostp_header *header)
{
	return dostp_may_be_joined(header) && header->source == before->source &&
	       header->destination == before->destination && header->source_port == before->source_port &&
	       header->destination_port == before->destination_port;
}

enum dostp_fault dostp_header_decode(const u8 *bytes, u8 cluster, struct dostp_header *header)
{
	if (bytes[0] >> 4 != DOSTP_VERSION)
		return DOSTP_FAULT_VERSION;
	if (dostp_check(cluster, bytes) != bytes[15])
		return DOSTP_FAULT_CHECK;
	header->kind = bytes[0] & 0xf;
	if (header->kind < DOSTP_DATA || header->kind > DOSTP_ACK)
		return DOSTP_FAULT_KIND;
	header->flags = bytes[1];
	if (header->flags & DOSTP_RESERVED || !(~header->flags & (DOSTP_AUTH | DOSTP_SUM)))
		return DOSTP_FAULT_FLAGS;
	header->source = dostp_read_u16(bytes + 2);
	header->destination = dostp_read_u16(bytes + 4);
	header->source_port = dostp_read_u16(bytes + 6);
	header->destination_port = dostp_read_u16(bytes + 8);
	header->id = dostp_read_u16(bytes + 10);
	header->length = dostp_read_u16(bytes + 12);
	header->sequence = bytes[14];
	if (header->flags & DOSTP_MORE && !dostp_may_be_joined(header))
		return DOSTP_FAULT_FLAGS;
	if (!dostp_is_address_right(header))
		return DOSTP_FAULT_ADDRESS;
	if (!dostp_is_port_right(header))
		return DOSTP_FAULT_PORT;
	return dostp_is_fragment_right(header) ? DOSTP_SOUND : DOSTP_FAULT_FRAGMENT;
}

void dostp_header_encode(const struct dostp_header *header, u8 cluster, u8 *bytes)
{
	bytes[0] = DOSTP_VERSION << 4 | header->kind;
	bytes[1] = header->flags;
	dostp_write_u16(bytes + 2, header->source);
	dostp_write_u16(bytes + 4, header->destination);
	dostp_write_u16(bytes + 6, header->source_port);
	dostp_write_u16(bytes + 8, header->destination_port);
	dostp_write_u16(bytes + 10, header->id);
	dostp_write_u16(bytes + 12, header->length);
	bytes[14] = header->sequence;
	bytes[15] = dostp_check(cluster, bytes);
}

unsigned int dostp_header_trailer(const struct dostp_header *header, u8 key)
{
	if (header->flags & DOSTP_AUTH)
		return DOSTP_COUNTER_BYTES + (key & 0x80 ? 16 : 8);
	return header->flags & DOSTP_SUM ? DOSTP_SUM_BYTES : 0;
}

bool dostp_header_is_length_right(const struct dostp_header *header)
{
	if (header->kind == DOSTP_ACK)
		return !header->length;
	if (header->kind == DOSTP_PROBE)
		return header->length >= DOSTP_GREETING_BYTES;
	return !dostp_is_control(header->kind) || header->length == DOSTP_GREETING_BYTES;
}

bool dostp_greeting_decode(const u8 *bytes, struct dostp_greeting *greeting)
{
	greeting->boot = dostp_read_u64(bytes);
	greeting->challenge = dostp_read_u64(bytes + 8);
	greeting->echo = dostp_read_u64(bytes + 16);
	greeting->mtu = dostp_read_u16(bytes + 24);
	memcpy(greeting->link, bytes + 26, DOSTP_LINK_BYTES);
	return greeting->boot && greeting->mtu >= DOSTP_MTU_MIN;
}

void dostp_greeting_encode(const struct dostp_greeting *greeting, u8 *bytes)
{
	dostp_write_u64(bytes, greeting->boot);
	dostp_write_u64(bytes + 8, greeting->challenge);
	dostp_write_u64(bytes + 16, greeting->echo);
	dostp_write_u16(bytes + 24, greeting->mtu);
	memcpy(bytes + 26, greeting->link, DOSTP_LINK_BYTES);
}
