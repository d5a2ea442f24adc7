/*
 * References of all kinds for tests of the linker, with links_other.c: compute(x, y) has the same
 * results on every ISA.  It is built twice, with and without a global offset table (links-pic.o).
 */
extern int helper(int);
extern unsigned long length(const char *);
extern int shared;
extern int absent(int) __attribute__((weak));

int common;
int *pointer = &shared;
static const int table[4] = {1, 2, 3, 4};
static const char *const names[] = {"alpha", "be"};
static int (*const functions[])(int) = {helper, 0};

int
compute(int x, int y)
{
	static int calls;

	calls++;
	common += x;
	switch (x) {
	case 0: return helper(y);
	case 1: return table[y & 3];
	case 2: return names[y & 1][0];
	case 3: return *pointer;
	case 4: return length(names[y & 1]);
	case 5: return calls * 3;
	case 6: return functions[y & 0](x);
	case 7: return absent ? absent(x) : -7;
	}
	return common + shared;
}
