/* zcat [file ...]: writes what gzip has packed (RFC 1952, the format; RFC 1951, deflate). */
#include "libc.h"

#define WINDOW 32768  /* how far back a copy may reach */
#define MAXBITS 15    /* of a code */
#define MAXLITERALS 288
#define MAXDISTANCES 30

/* The codes of one alphabet, by their lengths: the symbols of each length in order. */
struct huffman {
	short count[MAXBITS + 1];
	short symbol[MAXLITERALS];
};

static struct reader in;
static const char *name;
static unsigned bit_buffer, bit_count;
static unsigned char window[WINDOW];
static size_t produced;
static uint32_t crc_table[256], crc;

static void __dead2
corrupt(const char *why)
{
	errx(1, "%s: %s", name, why);
}

static int
getbyte(void)
{
	if (in.next == in.end) {
		ssize_t got = read(in.fd, in.buffer, sizeof(in.buffer));

		if (got <= 0)
			return (-1);
		in.next = 0;
		in.end = got;
	}
	return ((unsigned char)in.buffer[in.next++]);
}

static unsigned
byte(void)
{
	int c = getbyte();

	if (c < 0)
		corrupt("unexpected end of file");
	return (c);
}

/* Bits come with the lowest first. */
static unsigned
bits(unsigned n)
{
	unsigned value;

	while (bit_count < n) {
		bit_buffer |= byte() << bit_count;
		bit_count += 8;
	}
	value = bit_buffer & ((1u << n) - 1);
	bit_buffer >>= n;
	bit_count -= n;
	return (value);
}

static uint32_t
little(int bytes)
{
	uint32_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint32_t)byte() << 8 * i;
	return (value);
}

static void
crc_init(void)
{
	for (unsigned n = 0; n < 256; n++) {
		uint32_t c = n;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
		crc_table[n] = c;
	}
}

static void
produce(unsigned char c)
{
	window[produced++ % WINDOW] = c;
	crc = crc_table[(crc ^ c) & 0xff] ^ crc >> 8;
	putchar(c);
}

/* Sorts the symbols by the length of their code, and within one length by their number. */
static void
huffman_build(struct huffman *h, const unsigned char *lengths, int n)
{
	short offset[MAXBITS + 1];
	int left = 1;

	memset(h->count, 0, sizeof(h->count));
	for (int i = 0; i < n; i++)
		h->count[lengths[i]]++;
	offset[1] = 0;
	for (int length = 1; length <= MAXBITS; length++) {
		left = left * 2 - h->count[length];
		if (left < 0)
			corrupt("more codes than bits allow");
		if (length < MAXBITS)
			offset[length + 1] = offset[length] + h->count[length];
	}
	for (int i = 0; i < n; i++)
		if (lengths[i] != 0)
			h->symbol[offset[lengths[i]]++] = i;
}

/* Codes of one length are consecutive numbers: first is that of the first, index its place among the symbols. */
static int
huffman_decode(const struct huffman *h)
{
	int code = 0, first = 0, index = 0;

	for (int length = 1; length <= MAXBITS; length++) {
		code |= bits(1);
		if (code - h->count[length] < first)
			return (h->symbol[index + code - first]);
		index += h->count[length];
		first = (first + h->count[length]) * 2;
		code *= 2;
	}
	corrupt("a code that stands for nothing");
}

static void
inflate_codes(const struct huffman *literals, const struct huffman *distances)
{
	static const short base[] = { 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
		131, 163, 195, 227, 258 };
	static const unsigned char extra[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5,
		5, 0 };
	int symbol;

	while ((symbol = huffman_decode(literals)) != 256) {
		unsigned length, code, distance;

		if (symbol < 256) {
			produce(symbol);
			continue;
		}
		if ((symbol -= 257) >= (int)nitems(base))
			corrupt("a length that is not one");
		length = base[symbol] + bits(extra[symbol]);
		if ((code = huffman_decode(distances)) >= MAXDISTANCES)
			corrupt("a distance that is not one");
		/* From 4 on each pair of codes covers twice as far as the pair before, with one bit more. */
		distance = code < 4 ? code + 1 : ((2 + (code & 1)) << (code / 2 - 1)) + 1 + bits(code / 2 - 1);
		if (distance > produced)
			corrupt("a copy from before the beginning");
		while (length-- > 0)
			produce(window[(produced - distance) % WINDOW]);
	}
}

static void
inflate_stored(void)
{
	unsigned length;

	bit_buffer = bit_count = 0; /* a stored block begins at a byte */
	length = little(2);
	if (length != (~little(2) & 0xffff))
		corrupt("a stored block whose length is damaged");
	while (length-- > 0)
		produce(byte());
}

static void
inflate_fixed(void)
{
	static struct huffman literals, distances;
	unsigned char lengths[MAXLITERALS];

	for (int i = 0; i < MAXLITERALS; i++)
		lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
	huffman_build(&literals, lengths, MAXLITERALS);
	memset(lengths, 5, MAXDISTANCES);
	huffman_build(&distances, lengths, MAXDISTANCES);
	inflate_codes(&literals, &distances);
}

/* The lengths of the codes come first, themselves packed with a code whose lengths come before them. */
static void
inflate_dynamic(void)
{
	static const unsigned char order[] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
	static struct huffman literals, distances;
	unsigned char lengths[MAXLITERALS + 32] = { 0 };
	int nliterals = bits(5) + 257, ndistances = bits(5) + 1, ncodes = bits(4) + 4;

	if (nliterals > 286 || ndistances > MAXDISTANCES)
		corrupt("more codes than there are");
	for (int i = 0; i < ncodes; i++)
		lengths[order[i]] = bits(3);
	huffman_build(&literals, lengths, nitems(order));
	memset(lengths, 0, sizeof(lengths));
	for (int i = 0; i < nliterals + ndistances;) {
		int symbol = huffman_decode(&literals), value = 0, repeat = 1;

		if (symbol < 16)
			value = symbol;
		else if (symbol == 16) {
			if (i == 0)
				corrupt("a length is repeated before the first");
			value = lengths[i - 1];
			repeat = 3 + bits(2);
		} else
			repeat = symbol == 17 ? 3 + bits(3) : 11 + bits(7);
		if (i + repeat > nliterals + ndistances)
			corrupt("more lengths than codes");
		while (repeat-- > 0)
			lengths[i++] = value;
	}
	huffman_build(&literals, lengths, nliterals);
	huffman_build(&distances, lengths + nliterals, ndistances);
	inflate_codes(&literals, &distances);
}

static void
inflate(void)
{
	bool last;

	do {
		last = bits(1);
		switch (bits(2)) {
		case 0:
			inflate_stored();
			break;
		case 1:
			inflate_fixed();
			break;
		case 2:
			inflate_dynamic();
			break;
		default:
			corrupt("a block of no kind");
		}
	} while (!last);
}

static void
skip_string(void)
{
	while (byte() != 0)
		continue;
}

/* One member of a file; false at its end. */
static bool
gunzip(void)
{
	int first = getbyte();
	unsigned flags;

	if (first < 0)
		return (false);
	if (first != 0x1f || byte() != 0x8b || byte() != 8)
		corrupt("not in gzip format");
	flags = byte();
	little(4); /* when it was packed */
	little(2); /* how hard, and on what */
	if (flags & 4)
		for (unsigned n = little(2); n > 0; n--)
			byte();
	if (flags & 8)
		skip_string();
	if (flags & 16)
		skip_string();
	if (flags & 2)
		little(2);
	crc = 0xffffffff;
	produced = bit_buffer = bit_count = 0;
	inflate();
	if (little(4) != ~crc)
		corrupt("crc error");
	if (little(4) != (uint32_t)produced)
		corrupt("length error");
	return (true);
}

int
main(int argc, char *argv[])
{
	crc_init();
	for (int i = 1; i == 1 || i < argc; i++) {
		name = i < argc ? argv[i] : "stdin";
		in = (struct reader){ .fd = 0 };
		if (i < argc && (in.fd = open(name, O_RDONLY)) < 0)
			err(1, "%s", name);
		while (gunzip())
			continue;
		if (in.fd != 0)
			close(in.fd);
	}
	return (0);
}
