/* query [n]: asks n questions (3) of an imaginary data base, and has probes for them */
#include "libc.h"
#include "usdt.h"

const char usdt_module[] = "query";

static int __probed
answer(const char *question, int number)
{
	int rows = strlen(question) % 7 + number;

	/* This is computed only for a tracer. */
	if (USDT_ENABLED(answer, myprov, query__plan)) {
		char plan[64];

		snprintf(plan, sizeof(plan), "scan %s", strstr(question, "from ") + 5);
		USDT1(answer, myprov, query__plan, char *, plan);
	}
	return (rows);
}

static int __probed
query(const char *question, int number)
{
	int rows;

	USDT2(query, myprov, query__start, char *, question, int, number);
	rows = answer(question, number);
	USDT2(query, myprov, query__done, int, number, int, rows);
	return (rows);
}

int
main(int argc, char *argv[])
{
	static const char *const questions[] = { "select name from animals", "select * from cages", "select food from stores" };
	int n = argc > 1 ? atol(argv[1]) : 3, rows = 0;

	for (int i = 0; i < n; i++)
		rows += query(questions[i % nitems(questions)], i);
	printf("query: %d queries, %d rows\n", n, rows);
	return (0);
}
