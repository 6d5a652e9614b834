/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): the MAC of what nodes send to each other (wire.h, prefetch.h).
 *
 * It takes whole words. The caller pads its text as SipHash does: zeroes, and the length in the last byte.
 */
#ifndef COSCHED_SIPHASH_H
#define COSCHED_SIPHASH_H

#include "policy.h"

#define SIPHASH_ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

static inline void siphash_round(u64 *v)
{
	v[0] += v[1]; v[1] = SIPHASH_ROTATE(v[1], 13); v[1] ^= v[0]; v[0] = SIPHASH_ROTATE(v[0], 32);
	v[2] += v[3]; v[3] = SIPHASH_ROTATE(v[3], 16); v[3] ^= v[2];
	v[0] += v[3]; v[3] = SIPHASH_ROTATE(v[3], 21); v[3] ^= v[0];
	v[2] += v[1]; v[1] = SIPHASH_ROTATE(v[1], 17); v[1] ^= v[2]; v[2] = SIPHASH_ROTATE(v[2], 32);
}

static inline u64 siphash_little_endian(u64 word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(word);
#else
	return word;
#endif
}

/* The hash of the padded text in @words, @count of them, under @key, which is two words. */
static inline u64 siphash_2_4(const u64 *words, u32 count, const u64 *key)
{
	u64 v[4] = {
		key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
		key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL,
	};
	u32 i;

	for (i = 0; i < count; i++) {
		u64 word = siphash_little_endian(words[i]);

		v[3] ^= word;
		siphash_round(v);
		siphash_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
