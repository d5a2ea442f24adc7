/* Every function counts its own calls, and the program prints the counts: what probes must count, too. */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#if defined __clang__ && defined __riscv
/* clang 14 cannot write the operands of a marker for RISC-V. */
#undef DTRACE_PROBE1
#undef DTRACE_PROBE2
#define DTRACE_PROBE1(provider, name, one) DTRACE_PROBE(provider, name)
#define DTRACE_PROBE2(provider, name, one, two) DTRACE_PROBE(provider, name)
#endif

#if defined __clang__
#define WHOLE __attribute__((noinline))
#else
#define WHOLE __attribute__((noipa))
#endif

struct count {
	const char *name;
	long calls;
	struct count *next;
};
extern struct count *counts;

/* The first call puts the count into the list. */
#define COUNTED(text) \
	do { \
		static struct count own = { text, 0, 0 }; \
		if (!own.calls++) { \
			own.next = counts; \
			counts = &own; \
		} \
	} while (0)

struct pair {
	long first, second;
	double third;
};

int leaf(int n);
int recurse(int n);
int tail(int n);
int choose(int n);
int indirect(int (*function)(int), int n);
struct pair make(int n);
double half(double x);
int later(int n);
int from_one(int n);
int from_two(int n);
