/* Markers with every kind of argument. What each marker should show is a line of the output. */
#include "sdt.h"
#include "zoo.h"

SEMAPHORE(http__client__request);
SEMAPHORE(idle);

namespace {

struct Request {
	long number;
	const char *path;
};

/* The second word is the string: probes follow a pointer to it. */
const Request requests[] = {{1, "/index.html"}, {2, "/animals/lion"}, {3, "/animals/bear?hungry=yes"}};

struct Counters {
	long calls;
	int errors;
	unsigned char level;
};

/* Memory that an argument string may name by symbol. */
volatile Counters counters;
long table[8] = {10, 11, 12, 13, 14, 15, 16, 17};

} // namespace

PROBEABLE void
marker_none()
{
	MARKER(none);
}

PROBEABLE void
marker_counts(long a)
{
	MARKER(args1, a);
	MARKER(args2, a, a + 1);
	MARKER(args3, a, a + 1, a + 2);
	MARKER(args4, a, a + 1, a + 2, a + 3);
	MARKER(args5, a, a + 1, a + 2, a + 3, a + 4);
	MARKER(args6, a, a + 1, a + 2, a + 3, a + 4, a + 5);
}

/* So many that not all of them find a register: constants among them. */
PROBEABLE void
marker_many(long a, const long *place)
{
	MARKER(args7, a, 2, 3L, a + 3, 5, 6, a + 6);
	MARKER(args8, a, 2, 3L, a + 3, 5, 6, 7, 8u);
	MARKER(args9, a, 2, 3L, a + 3, place[4], 6, 7, 8u, place[5]);
	MARKER(args10, a, 2, 3L, a + 3, place[4], 6, 7, 8u, place[5], 10);
	MARKER(args11, a, 2, 3L, a + 3, place[4], 6, 7, 8u, place[5], 10, 11);
	MARKER(args12, a, 2, 3L, a + 3, place[4], 6, 7, 8u, place[5], 10, 11, static_cast<char>(12));
}

PROBEABLE void
marker_types(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f, long g, unsigned long h)
{
	MARKER(types, a, b, c, d, e, f, g, h);
}

PROBEABLE void
marker_constants()
{
	MARKER(constants, static_cast<signed char>(-1), static_cast<unsigned char>(200), static_cast<short>(-300), 70000, -5, 4000000000u,
	       -1234567890123L, true);
}

/* Never optimised: arguments and locals are memory, addressed from the frame. */
PROBEABLE __attribute__((optimize("O0"))) void
marker_memory(int a, const long *place)
{
	char local = 'x';
	unsigned short small = 65000;
	long sum = place[2] + a;
	MARKER(memory, a, local, small, sum, place[3]);
}

PROBEABLE void
marker_indexed(const long *place, long index, const int *narrow)
{
	MARKER(indexed, place[index], narrow[index], place[2], *narrow);
}

PROBEABLE void
marker_globals()
{
	counters.calls = counters.calls + 1;
	MARKER(globals, table[3], &counters);
}

PROBEABLE void
marker_string(const char *text, size_t length)
{
	MARKER(string, text, length);
	MARKER(literal, "a literal");
}

PROBEABLE void
marker_request(const Request *request)
{
	if (MARKER_ENABLED(http__client__request))
		say("  somebody listens");
	GUARDED_MARKER(http__client__request, request, request->number);
	GUARDED_MARKER(idle, request->path);
}

PROBEABLE long
marker_loop(long times)
{
	long sum = 0;
	for (long i = 0; i < times; i++) {
		MARKER(loop__begin, i, times);
		for (long j = 0; j < i; j++) {
			sum += i * j;
			MARKER(loop__inner, i, j, sum);
		}
		MARKER(loop__end, i, sum);
	}
	return sum;
}

/* Two copies of one marker: one probe, two places. */
static inline void
inlined(int value)
{
	MARKER(inlined, value);
}

PROBEABLE void
marker_inlined(int value)
{
	inlined(value);
	if (value > 2)
		inlined(value * 2);
}

int
case_markers(int, char **)
{
	static const int narrow[4] = {-20, -21, -22, -23};
	marker_none();
	say("none: 1 time");
	marker_counts(100);
	say("args1 to args6: 100 and up, 1 time each");
	marker_many(1, table);
	say("args7 to args12: 1 2 3 4 5 (from args9 on: 14) 6 7 8 9 (from args9 on: 15) 10 11 12, 1 time each");
	marker_types(-1, 255, -2, 65535, -3, 4294967295u, -4, ~0ul);
	say("types: -1 255 -2 65535 -3 4294967295 -4 and the largest unsigned long, 1 time");
	marker_constants();
	say("constants: -1 200 -300 70000 -5 4000000000 -1234567890123 1, 1 time");
	marker_memory(7, table);
	say("memory: 7 120 65000 19 13, 1 time");
	marker_indexed(table, 3, narrow);
	say("indexed: 13 -23 12 -20, 1 time");
	marker_globals();
	say("globals: 13, 1 time");
	marker_string("some text", 9);
	say("string: some text, 9, 1 time; literal: a literal, 1 time");
	for (const Request &request : requests) {
		marker_request(&request);
		say("http__client__request: second word %s, %ld", request.path, request.number);
	}
	say("loop__begin and loop__end: 10 times each, loop__inner: 45 times, sum %ld", marker_loop(10));
	for (int i = 0; i < 5; i++)
		marker_inlined(i);
	say("inlined: 0 1 2 3 6 4 8, 7 times from two places");
	return 24;
}
