/*
 * The generator (FreeBSD sys/dev/random/fortuna.c): events are spread over pools, the pools make
 * a key now and then, and the key makes the numbers, with a new key after each request.
 */
#include "sys/random.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(random);
SDT_PROBE_DEFINE2(random, fortuna, event_processor, debug, "u_int", "struct fs_pool *");

#define RANDOM_FORTUNA_NPOOLS 32
#define RANDOM_FORTUNA_DEFPOOLSIZE 64	/* bytes in pool 0 before it may make a key */
#define RANDOM_KEYSIZE 32
#define RANDOM_BLOCKSIZE 64
#define RANDOM_FORTUNA_MAX_READ 4096	/* bytes from one key */

static struct fortuna_state {
	struct fs_pool {
		uint32_t fsp_length;
		struct sha256_ctx fsp_hash;
	} fs_pool[RANDOM_FORTUNA_NPOOLS];
	u_int fs_reseedcount;
	uint32_t fs_counter[4];
	uint8_t fs_key[RANDOM_KEYSIZE];
	struct mtx fs_mtx;
} fortuna_state;

/* The seed is always the same: a run can be done again. Nothing here keeps a secret. */
static const char fortuna_seed[] = "the teaching kernel has no secrets";

static void
random_fortuna_reseed_internal(const uint8_t *data, size_t size)
{
	struct sha256_ctx context;

	SHA256_Init(&context);
	SHA256_Update(&context, fortuna_state.fs_key, sizeof(fortuna_state.fs_key));
	SHA256_Update(&context, data, size);
	SHA256_Final(fortuna_state.fs_key, &context);
	fortuna_state.fs_counter[0]++;
}

static void
random_fortuna_init_alg(const void *unused __unused)
{
	mtx_init(&fortuna_state.fs_mtx, "reseed mutex", NULL, MTX_DEF);
	for (int i = 0; i < RANDOM_FORTUNA_NPOOLS; i++)
		SHA256_Init(&fortuna_state.fs_pool[i].fsp_hash);
	random_fortuna_reseed_internal((const uint8_t *)fortuna_seed, sizeof(fortuna_seed));
	fortuna_state.fs_reseedcount = 0;
}
SYSINIT(random_fortuna_init_alg, SI_SUB_RANDOM, SI_ORDER_FIRST, random_fortuna_init_alg, NULL);

/* An event joins its pool; from the process that gathers them. */
void
random_fortuna_process_event(struct harvest_event *event)
{
	struct fs_pool *pool = &fortuna_state.fs_pool[event->he_destination % RANDOM_FORTUNA_NPOOLS];

	mtx_lock(&fortuna_state.fs_mtx);
	SHA256_Update(&pool->fsp_hash, &event->he_somecounter, sizeof(event->he_somecounter));
	SHA256_Update(&pool->fsp_hash, event->he_entropy, event->he_size);
	pool->fsp_length += event->he_size;
	mtx_unlock(&fortuna_state.fs_mtx);
}

/* Pool n takes part in every 2^n-th key: an attacker who knows the fast pools does not know the slow ones. */
void
random_fortuna_pre_read(void)
{
	uint8_t digests[RANDOM_FORTUNA_NPOOLS * SHA256_DIGEST_LENGTH];
	struct fs_pool *pool;
	int n = 0;

	mtx_lock(&fortuna_state.fs_mtx);
	if (fortuna_state.fs_pool[0].fsp_length < RANDOM_FORTUNA_DEFPOOLSIZE) {
		mtx_unlock(&fortuna_state.fs_mtx);
		return;
	}
	fortuna_state.fs_reseedcount++;
	for (int i = 0; i < RANDOM_FORTUNA_NPOOLS && fortuna_state.fs_reseedcount % (1U << i) == 0; i++) {
		pool = &fortuna_state.fs_pool[i];
		SHA256_Final(digests + n++ * SHA256_DIGEST_LENGTH, &pool->fsp_hash);
		SHA256_Init(&pool->fsp_hash);
		pool->fsp_length = 0;
	}
	SDT_PROBE2(random, fortuna, event_processor, debug, fortuna_state.fs_reseedcount, fortuna_state.fs_pool);
	random_fortuna_reseed_internal(digests, n * SHA256_DIGEST_LENGTH);
	mtx_unlock(&fortuna_state.fs_mtx);
}

static void
random_fortuna_genblocks(uint8_t *buf, size_t bytecount)
{
	uint8_t block[RANDOM_BLOCKSIZE];
	size_t n;

	for (; bytecount > 0; bytecount -= n, buf += n) {
		n = MIN(bytecount, RANDOM_BLOCKSIZE);
		chacha_block(fortuna_state.fs_key, fortuna_state.fs_counter, block);
		memcpy(buf, block, n);
		fortuna_state.fs_counter[0]++;
	}
}

static void
random_fortuna_genrandom(uint8_t *buf, size_t bytecount)
{
	uint8_t newkey[RANDOM_KEYSIZE];

	mtx_assert(&fortuna_state.fs_mtx, MA_OWNED);
	random_fortuna_genblocks(buf, bytecount);
	random_fortuna_genblocks(newkey, sizeof(newkey));
	memcpy(fortuna_state.fs_key, newkey, sizeof(newkey));
}

void
random_fortuna_read(uint8_t *buf, size_t bytecount)
{
	size_t n;

	mtx_lock(&fortuna_state.fs_mtx);
	for (; bytecount > 0; bytecount -= n, buf += n) {
		n = MIN(bytecount, RANDOM_FORTUNA_MAX_READ);
		random_fortuna_genrandom(buf, n);
	}
	mtx_unlock(&fortuna_state.fs_mtx);
}

bool
random_fortuna_seeded(void)
{
	return (fortuna_state.fs_counter[0] != 0);
}
