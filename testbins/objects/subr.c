/*
 * What FreeBSD's dtrace_subr.c has beside the emulation: the list of handlers of breakpoints, and the traps that end
 * a probe; for tests of `trapline check --object` with scanner.c and trap.S.
 *
 * BUGGY adds mistakes: the first handler cannot be removed, and a fault in a probe happens again.
 */
#include "trapframe.h"

typedef int handler(word, struct trapframe *, word);

typedef struct {
	uint16_t cpuc_dtrace_flags;
	word cpuc_dtrace_illval;
} cpu_core_t;
extern cpu_core_t cpu_core[];
extern unsigned rcr2(void);
extern int dtrace_instr_size(uint8_t *);

#define NOFAULT 0x1
#define BADADDR 0x4
#define ILLOP 0x20

#if defined(__x86_64__)
#define PC tf_rip
#define FAULTS type == 12
#define ILLEGAL type == 9
#define ADDRESS frame->tf_addr
#elif defined(__i386__)
#define PC tf_eip
#define FAULTS type == 12
#define ILLEGAL type == 9
#define ADDRESS rcr2()
#elif defined(__aarch64__)
#define PC tf_elr
#define FAULTS type == 0x25
#define ILLEGAL 0
#define ADDRESS frame->tf_far
#else
#define PC tf_sepc
#define FAULTS type == 1 || type == 5 || type == 7 || type == 12 || type == 13 || type == 15
#define ILLEGAL 0
#define ADDRESS frame->tf_stval
#endif

static handler *handlers[4];
static unsigned count;

int
dtrace_invop(word address, struct trapframe *frame, word value)
{
	int found = 0;

	for (unsigned i = count; i-- && !found;)
		found = handlers[i](address, frame, value);
	return found;
}

void
dtrace_invop_init(void)
{
	count = 0;
}

void
dtrace_invop_add(handler *added)
{
	handlers[count++] = added;
}

void
dtrace_invop_remove(handler *removed)
{
#ifdef BUGGY
	unsigned last = 1;
#else
	unsigned last = 0;
#endif
	for (unsigned i = last; i < count; i++)
		if (handlers[i] == removed)
			handlers[i] = handlers[--count];
}

int
dtrace_trap(struct trapframe *frame, unsigned type)
{
	if (!(cpu_core[0].cpuc_dtrace_flags & NOFAULT))
		return 0;
	if (FAULTS) {
		cpu_core[0].cpuc_dtrace_flags |= BADADDR;
		cpu_core[0].cpuc_dtrace_illval = ADDRESS;
	} else if (ILLEGAL)
		cpu_core[0].cpuc_dtrace_flags |= ILLOP;
	else
		return 0;
#ifdef BUGGY
	(void)frame;
#else
	frame->PC += dtrace_instr_size((uint8_t *)frame->PC);
#endif
	return 1;
}
