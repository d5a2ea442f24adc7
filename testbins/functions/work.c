/*
 * Work like a program's: a sieve, a hash over text, a sort of records, calls through a table.
 * For speed measurements; work(n) does n rounds and returns a checksum that does not depend on the ISA.
 */
#include <stdint.h>

#define LIMIT 512
#define RECORDS 64

struct record {
	uint32_t key;
	uint32_t value;
};

static uint8_t composite[LIMIT];
static struct record records[RECORDS];
static const char text[] = "How much wood would a woodchuck chuck if a woodchuck could chuck wood?";

static uint64_t
sieve(uint64_t seed)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < LIMIT; i++)
		composite[i] = 0;
	for (unsigned i = 2; i < LIMIT; i++) {
		if (composite[i])
			continue;
		sum += i ^ seed;
		for (unsigned j = i * i; j < LIMIT; j += i)
			composite[j] = 1;
	}
	return sum;
}

static uint64_t
hash(uint64_t seed)
{
	uint64_t h = seed ^ 0xcbf29ce484222325;
	for (const char *p = text; *p; p++) {
		if (*p == ' ')
			continue;
		h = (h ^ (uint8_t)*p) * 0x100000001b3;
	}
	return h;
}

static uint64_t
sort(uint64_t seed)
{
	uint64_t x = seed | 1;
	for (unsigned i = 0; i < RECORDS; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		records[i] = (struct record){(uint32_t)x, i};
	}
	for (unsigned gap = RECORDS / 2; gap; gap /= 2)
		for (unsigned i = gap; i < RECORDS; i++) {
			struct record r = records[i];
			unsigned j = i;
			for (; j >= gap && records[j - gap].key > r.key; j -= gap)
				records[j] = records[j - gap];
			records[j] = r;
		}
	return records[0].value * 31 + records[RECORDS - 1].value;
}

static uint64_t (*const steps[])(uint64_t) = {sieve, hash, sort, hash};

uint64_t
work(uint64_t rounds)
{
	uint64_t sum = 1;
	for (uint64_t i = 0; i < rounds; i++)
		sum = sum * 31 + steps[i % 4](sum);
	return sum;
}
