// SPDX-License-Identifier: GPL-2.0
/*
 * Tags of frames, by SipHash-2-4 and ChaCha20-Poly1305, and the keys of nodes for both.
 *
 * The kernel's chacha20poly1305_encrypt takes a nonce of 64 bits, and a frame has one of 96 (RFC 8439): so
 * ChaCha20 and Poly1305 are put together here, as the RFC says.
 */
#include <crypto/chacha.h>
#include <crypto/poly1305.h>
/* Where crypto_memneq stands: in older kernels with much else. */
#if __has_include(<crypto/utils.h>)
#include <crypto/utils.h>
#else
#include <crypto/algapi.h>
#endif

#include "keys.h"

/* Older kernels have no type for the state of ChaCha20: their functions take an array. */
#ifdef HAVE_CHACHA_STATE
#define DOSTP_STATE(state) (state)
#else
struct chacha_state {
	u32 x[CHACHA_STATE_WORDS];
};
#define DOSTP_STATE(state) ((state)->x)
#endif

/* Bytes that a tag is over beside the payload: those of the header and of the counter word. */
#define DOSTP_SEAL_BESIDE_BYTES (DOSTP_HEADER_BYTES + DOSTP_WORD_BYTES)

static const u8 dostp_seal_zeros[CHACHA_BLOCK_SIZE];

/* Derives the key of a node in a mode: HChaCha20 of the secret, boot number and address. */
static void dostp_seal_derive_one(const u8 *secret, u64 boot, u16 source, bool is_aead, u32 *key)
{
	u8 input[16] = { 'd', 's', 't', 'p' };
	__be64 boot_bytes = cpu_to_be64(boot);
	struct chacha_state state;
	u32 words[8];

	memcpy(input + 4, &boot_bytes, 8);
	input[12] = source >> 8;
	input[13] = source & 0xff;
	input[15] = is_aead;
	memcpy(words, secret, sizeof(words));
	le32_to_cpu_array(words, ARRAY_SIZE(words));
	chacha_init(DOSTP_STATE(&state), words, input);
	hchacha_block_generic(DOSTP_STATE(&state), key, 20);
	memzero_explicit(words, sizeof(words));
	memzero_explicit(&state, sizeof(state));
}

void dostp_seal_derive(const u8 *secret, u64 boot, u16 source, struct dostp_node_key *key)
{
	u32 words[8];

	dostp_seal_derive_one(secret, boot, source, false, words);
	key->mac[0] = words[0] | (u64)words[1] << 32;
	key->mac[1] = words[2] | (u64)words[3] << 32;
	dostp_seal_derive_one(secret, boot, source, true, key->aead);
	memzero_explicit(words, sizeof(words));
}

/*
 * SipHash-2-4, word by word: the kernel's siphash takes its input in one piece, and the counter word comes
 * before the payload in what is hashed and behind it in a frame.
 */
struct dostp_sip {
	u64 v0, v1, v2, v3;
};

static inline void dostp_sip_round(struct dostp_sip *sip)
{
	sip->v0 += sip->v1;
	sip->v2 += sip->v3;
	sip->v1 = rol64(sip->v1, 13) ^ sip->v0;
	sip->v3 = rol64(sip->v3, 16) ^ sip->v2;
	sip->v0 = rol64(sip->v0, 32);
	sip->v2 += sip->v1;
	sip->v0 += sip->v3;
	sip->v1 = rol64(sip->v1, 17) ^ sip->v2;
	sip->v3 = rol64(sip->v3, 21) ^ sip->v0;
	sip->v2 = rol64(sip->v2, 32);
}

static inline void dostp_sip_word(struct dostp_sip *sip, u64 word)
{
	sip->v3 ^= word;
	dostp_sip_round(sip);
	dostp_sip_round(sip);
	sip->v0 ^= word;
}

static inline void dostp_sip_bytes(struct dostp_sip *sip, const u8 *bytes, unsigned int words)
{
	__le64 word;

	for (; words; words--, bytes += 8) {
		memcpy(&word, bytes, 8);
		dostp_sip_word(sip, le64_to_cpu(word));
	}
}

/* The tag of mode `mac` over header, counter word and payload. */
static void dostp_seal_mac(const struct dostp_node_key *key, const u8 *frame, unsigned int length, u8 *tag)
{
	const u8 *payload = frame + DOSTP_HEADER_BYTES, *word = payload + length;
	struct dostp_sip sip = {
		.v0 = key->mac[0] ^ 0x736f6d6570736575ULL,
		.v1 = key->mac[1] ^ 0x646f72616e646f6dULL,
		.v2 = key->mac[0] ^ 0x6c7967656e657261ULL,
		.v3 = key->mac[1] ^ 0x7465646279746573ULL,
	};
	__le64 last = 0;

	dostp_sip_bytes(&sip, frame, DOSTP_HEADER_BYTES / 8);
	dostp_sip_bytes(&sip, word, 1);
	dostp_sip_bytes(&sip, payload, length / 8);
	memcpy(&last, payload + length / 8 * 8, length % 8);
	dostp_sip_word(&sip, le64_to_cpu(last) | (u64)(DOSTP_SEAL_BESIDE_BYTES + length) << 56);
	sip.v2 ^= 0xff;
	for (int round = 0; round < 4; round++)
		dostp_sip_round(&sip);
	last = cpu_to_le64(sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3);
	memcpy(tag, &last, DOSTP_TAG_MAC_BYTES);
}

/* Sets ChaCha20 to block 1, where the payload begins, and Poly1305 to its key, which block 0 holds. */
static void dostp_seal_aead_begin(const struct dostp_node_key *key, const u8 *frame, const u8 *word,
				  struct chacha_state *state, struct poly1305_desc_ctx *tagger)
{
	u8 block[CHACHA_BLOCK_SIZE], iv[CHACHA_IV_SIZE] = {};

	memcpy(iv + 4, frame + 2, 2); /* source address */
	memcpy(iv + 6, frame + 6, 2); /* source port */
	memcpy(iv + 8, word, DOSTP_WORD_BYTES);
	chacha_init(DOSTP_STATE(state), key->aead, iv);
	chacha20_crypt(DOSTP_STATE(state), block, dostp_seal_zeros, sizeof(block));
	poly1305_init(tagger, block);
	memzero_explicit(block, sizeof(block));
}

/* The tag of mode `aead` over header, counter word and the encrypted payload. */
static void dostp_seal_aead_tag(struct poly1305_desc_ctx *tagger, const u8 *frame, unsigned int length,
				u8 *tag)
{
	const u8 *payload = frame + DOSTP_HEADER_BYTES;
	__le64 lengths[2] = { cpu_to_le64(DOSTP_SEAL_BESIDE_BYTES), cpu_to_le64(length) };

	poly1305_update(tagger, frame, DOSTP_HEADER_BYTES);
	poly1305_update(tagger, payload + length, DOSTP_WORD_BYTES);
	poly1305_update(tagger, dostp_seal_zeros, -DOSTP_SEAL_BESIDE_BYTES & 15);
	poly1305_update(tagger, payload, length);
	poly1305_update(tagger, dostp_seal_zeros, -length & 15);
	poly1305_update(tagger, (const u8 *)lengths, sizeof(lengths));
	poly1305_final(tagger, tag);
}

u64 dostp_seal_word(const u8 *frame, unsigned int length)
{
	__be64 word;

	memcpy(&word, frame + DOSTP_HEADER_BYTES + length, DOSTP_WORD_BYTES);
	return be64_to_cpu(word);
}

void dostp_seal(const struct dostp_node_key *key, u8 *frame, unsigned int length, u64 word)
{
	u8 *payload = frame + DOSTP_HEADER_BYTES, *trailer = payload + length;
	__be64 word_bytes = cpu_to_be64(word);
	struct poly1305_desc_ctx tagger;
	struct chacha_state state;

	memcpy(trailer, &word_bytes, DOSTP_WORD_BYTES);
	if (!(trailer[0] & DOSTP_KEY_AEAD)) {
		dostp_seal_mac(key, frame, length, trailer + DOSTP_WORD_BYTES);
		return;
	}
	dostp_seal_aead_begin(key, frame, trailer, &state, &tagger);
	chacha20_crypt(DOSTP_STATE(&state), payload, payload, length);
	dostp_seal_aead_tag(&tagger, frame, length, trailer + DOSTP_WORD_BYTES);
	memzero_explicit(&state, sizeof(state));
}

bool dostp_seal_open(const struct dostp_node_key *key, u8 *frame, unsigned int length)
{
	u8 *payload = frame + DOSTP_HEADER_BYTES, *trailer = payload + length, tag[DOSTP_TAG_AEAD_BYTES];
	struct poly1305_desc_ctx tagger;
	struct chacha_state state;
	bool is_right;

	if (!(trailer[0] & DOSTP_KEY_AEAD)) {
		dostp_seal_mac(key, frame, length, tag);
		return !crypto_memneq(tag, trailer + DOSTP_WORD_BYTES, DOSTP_TAG_MAC_BYTES);
	}
	dostp_seal_aead_begin(key, frame, trailer, &state, &tagger);
	dostp_seal_aead_tag(&tagger, frame, length, tag);
	is_right = !crypto_memneq(tag, trailer + DOSTP_WORD_BYTES, DOSTP_TAG_AEAD_BYTES);
	if (is_right)
		chacha20_crypt(DOSTP_STATE(&state), payload, payload, length);
	memzero_explicit(&state, sizeof(state));
	return is_right;
}
