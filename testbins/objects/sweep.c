/*
 * The loop of a sweep (trapline/lab/objects/sweep.py): it asks a decoder about instruction words, finds
 * the row of a table that matches each, and counts by row and decision.  It is linked with the user's
 * objects and runs beside them, so no word needs the host.
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
