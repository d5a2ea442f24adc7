/* What links.c refers to. */
int shared = 77;
int common;

int
helper(int x)
{
	return x * 2 + shared;
}
