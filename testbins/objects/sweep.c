/*
 * The loops of sweeps, which are linked with the user's objects and run beside them.
 *
 * trapline_sweep (trapline/lab/objects/decoder/word_sweep.py) asks a decoder about instruction words, finds the row
 * of a table that matches each, and counts by row and decision, so no word needs the host.
 *
 * trapline_batch (trapline/lab/objects/decoder/batches.py) asks about instructions of any size, which the host
 * has written down, and writes the answers down for the host.
 */
#include <stdint.h>

enum decision { REFUSED, SIMULATED, COPIED, DECISIONS };

struct row {
	uint32_t mask, value;
};

/* All members are machine words, for the host that writes them. */
struct trapline_sweep {
	int (*decode)(unsigned long, unsigned long, unsigned long);
	unsigned long arguments[3];
	unsigned char *structure;	/* zeroed before each call */
	unsigned long size;
	uint32_t *instruction;
	unsigned char *simulated;
	const struct row *rows;		/* the last one matches everything */
	unsigned long word, stride, left;
	unsigned long (*counts)[DECISIONS];
	unsigned long (*examples)[DECISIONS];	/* the first word of each */
};

void
trapline_sweep(struct trapline_sweep *sweep)
{
	const struct row *rows = sweep->rows;
	unsigned long size = sweep->size;

	while (sweep->left) {
		uint32_t word = sweep->word;
		enum decision decision;
		unsigned long at, row;

		for (at = 0; at < size; at++)
			sweep->structure[at] = 0;
		*sweep->instruction = word;
		if (sweep->decode(sweep->arguments[0], sweep->arguments[1], sweep->arguments[2]))
			decision = REFUSED;
		else
			decision = *sweep->simulated ? SIMULATED : COPIED;
		for (row = 0; (word & rows[row].mask) != rows[row].value; row++)
			;
		if (!sweep->counts[row][decision]++)
			sweep->examples[row][decision] = word;
		sweep->word = (uint32_t)(word + sweep->stride);
		sweep->left--;
	}
}

/* Bytes that are given to the decoder: no instruction is longer. */
#define LONGEST 16

/* A part of a decision. */
struct member {
	const unsigned char *place;
	unsigned long size;
};

/* All members are machine words, for the host that writes them. */
struct trapline_batch {
	int (*decode)(unsigned long, unsigned long, unsigned long, unsigned long);
	unsigned long arguments[4];
	unsigned char *structure;	/* as `empty` before each call */
	const unsigned char *empty;
	unsigned long size;
	unsigned char *instruction;	/* the place of the instruction, for the decoder */
	const struct member *members;
	unsigned long member_count;
	const unsigned char *encodings;	/* LONGEST bytes each */
	unsigned char *answers;		/* each has the result, 4 bytes, and the members; they are 0 if it is refused */
	unsigned long left;
};

void
trapline_batch(struct trapline_batch *batch)
{
	while (batch->left) {
		unsigned char *answer = batch->answers;
		unsigned long at, member;
		int result;

		for (at = 0; at < batch->size; at++)
			batch->structure[at] = batch->empty[at];
		for (at = 0; at < LONGEST; at++)
			batch->instruction[at] = *batch->encodings++;
		result = batch->decode(batch->arguments[0], batch->arguments[1], batch->arguments[2], batch->arguments[3]);
		for (at = 0; at < 4; at++)
			*answer++ = result >> 8 * at;
		for (member = 0; member < batch->member_count; member++)
			for (at = 0; at < batch->members[member].size; at++)
				*answer++ = result ? 0 : batch->members[member].place[at];
		batch->answers = answer;
		batch->left--;
	}
}
