/* The random device (FreeBSD sys/dev/random). */
#ifndef SYS_RANDOM_H
#define SYS_RANDOM_H

#include "sys/types.h"

enum random_entropy_source { RANDOM_CACHED, RANDOM_ATTACH, RANDOM_KEYBOARD, RANDOM_INTERRUPT, RANDOM_SWI, RANDOM_FS_ATIME, ENTROPYSOURCE };

#define HARVESTSIZE 2 /* words of an event */

struct harvest_event {
	uint32_t he_somecounter;
	uint32_t he_entropy[HARVESTSIZE];
	uint8_t he_size;	/* bytes of it */
	uint8_t he_destination; /* pool */
	uint8_t he_source;
};

void random_harvest_queue(const void *entropy, size_t size, enum random_entropy_source origin);
void random_fortuna_process_event(struct harvest_event *event);
void random_fortuna_pre_read(void);
void random_fortuna_read(uint8_t *buf, size_t bytecount);
bool random_fortuna_seeded(void);
void read_random(void *buf, unsigned len);

#define SHA256_DIGEST_LENGTH 32
struct sha256_ctx {
	uint32_t state[8];
	uint64_t count;
	uint8_t buf[64];
};
void SHA256_Init(struct sha256_ctx *ctx);
void SHA256_Update(struct sha256_ctx *ctx, const void *data, size_t size);
void SHA256_Final(uint8_t digest[SHA256_DIGEST_LENGTH], struct sha256_ctx *ctx);
void chacha_block(const uint8_t key[32], const uint32_t counter[4], uint8_t out[64]);

#endif
