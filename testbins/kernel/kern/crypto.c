/* SHA-256 (FIPS 180-4) and the ChaCha20 block (RFC 8439), for the random device. */
#include "sys/random.h"
#include "sys/systm.h"

#define ROR32(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define ROL32(x, n) ((x) << (n) | (x) >> (32 - (n)))

static const uint32_t sha256_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void
SHA256_Transform(uint32_t state[8], const uint8_t block[64])
{
	uint32_t w[64], s[8], t0, t1;

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (ROR32(w[i - 15], 7) ^ ROR32(w[i - 15], 18) ^ w[i - 15] >> 3) +
		    (ROR32(w[i - 2], 17) ^ ROR32(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		t0 = s[7] + (ROR32(s[4], 6) ^ ROR32(s[4], 11) ^ ROR32(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha256_k[i] + w[i];
		t1 = (ROR32(s[0], 2) ^ ROR32(s[0], 13) ^ ROR32(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += t0;
		s[0] = t0 + t1;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

void
SHA256_Init(struct sha256_ctx *ctx)
{
	static const uint32_t initial[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(ctx->state, initial, sizeof(initial));
	ctx->count = 0;
}

void
SHA256_Update(struct sha256_ctx *ctx, const void *data, size_t size)
{
	const uint8_t *from = data;
	size_t at, n;

	for (; size > 0; size -= n, from += n) {
		at = ctx->count % 64;
		n = MIN(size, 64 - at);
		memcpy(ctx->buf + at, from, n);
		ctx->count += n;
		if (at + n == 64)
			SHA256_Transform(ctx->state, ctx->buf);
	}
}

void
SHA256_Final(uint8_t digest[SHA256_DIGEST_LENGTH], struct sha256_ctx *ctx)
{
	static const uint8_t padding[64] = { 0x80 };
	uint64_t bits = ctx->count * 8;
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = bits >> (56 - 8 * i);
	SHA256_Update(ctx, padding, 1 + (119 - ctx->count % 64) % 64);
	SHA256_Update(ctx, length, sizeof(length));
	for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
		digest[i] = ctx->state[i / 4] >> (24 - 8 * (i % 4));
}

#define QUARTERROUND(a, b, c, d)                    \
	do {                                        \
		x[a] += x[b], x[d] = ROL32(x[d] ^ x[a], 16); \
		x[c] += x[d], x[b] = ROL32(x[b] ^ x[c], 12); \
		x[a] += x[b], x[d] = ROL32(x[d] ^ x[a], 8);  \
		x[c] += x[d], x[b] = ROL32(x[b] ^ x[c], 7);  \
	} while (0)

/* counter: the last row of the state, block counter and nonce. */
void
chacha_block(const uint8_t key[32], const uint32_t counter[4], uint8_t out[64])
{
	uint32_t state[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }, x[16];

	for (int i = 0; i < 8; i++)
		state[4 + i] = key[4 * i] | key[4 * i + 1] << 8 | key[4 * i + 2] << 16 | (uint32_t)key[4 * i + 3] << 24;
	memcpy(state + 12, counter, 16);
	memcpy(x, state, sizeof(x));
	for (int i = 0; i < 10; i++) {
		QUARTERROUND(0, 4, 8, 12);
		QUARTERROUND(1, 5, 9, 13);
		QUARTERROUND(2, 6, 10, 14);
		QUARTERROUND(3, 7, 11, 15);
		QUARTERROUND(0, 5, 10, 15);
		QUARTERROUND(1, 6, 11, 12);
		QUARTERROUND(2, 7, 8, 13);
		QUARTERROUND(3, 4, 9, 14);
	}
	for (int i = 0; i < 64; i++)
		out[i] = (x[i / 4] + state[i / 4]) >> (8 * (i % 4));
}
