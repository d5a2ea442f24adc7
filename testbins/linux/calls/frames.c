/* The frames of signals: what they tell of a fault, and the floating-point registers in them. */
#define _GNU_SOURCE
#include "calls.h"

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* A fault, as every ISA tells it: none, a page fault by its access, or an instruction. */
enum kind { NOTHING, READ, WRITE, FETCH };

static sigjmp_buf back;
static int told;

/* Whether the frame tells of the last page fault: with the access, and whether the page was there. */
static int
page_fault(const ucontext_t *context, enum kind kind, int present)
{
#if defined __x86_64__ || defined __i386__
	static const long bits[] = { [READ] = 4, [WRITE] = 6, [FETCH] = 20 };
	const greg_t *registers = context->uc_mcontext.gregs;
	if (kind == NOTHING)
		return registers[REG_TRAPNO] == 0 && registers[REG_ERR] == 0;
	return registers[REG_TRAPNO] == 14 && registers[REG_ERR] == (bits[kind] | present);
#elif defined __aarch64__
	const struct _aarch64_ctx *record = (const void *)context->uc_mcontext.__reserved;
	for (; record->magic; record = (const void *)((const char *)record + record->size)) {
		if (record->magic != ESR_MAGIC)
			continue;
		unsigned long syndrome = ((const struct esr_context *)record)->esr;
		unsigned long class = kind == FETCH ? 0x20 : 0x24, fault = syndrome & 0x3c;
		return syndrome >> 26 == class && (syndrome >> 6 & 1) == (kind == WRITE) && fault == (present ? 0xc : 4);
	}
	return kind == NOTHING;
#else
	(void)context, (void)kind, (void)present; /* RISC-V's frames tell nothing. */
	return 1;
#endif
}

static enum kind wanted;
static int wanted_present;

static void
fault(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	told = page_fault(context, wanted, wanted_present);
	siglongjmp(back, 1);
}

static void
handle(int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER };
	sigaction(number, &action, NULL);
}

#define TRY(what, kind, present, statement) \
	do { \
		wanted = (kind), wanted_present = (present), told = -1; \
		if (!sigsetjmp(back, 1)) { \
			statement; \
		} \
		say("%s: %s", (what), told < 0 ? "no signal" : told ? "told" : "told wrongly"); \
	} while (0)

CASE(told_faults)
{
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGUSR1 };
	for (size_t number = 0; number < sizeof numbers / sizeof *numbers; number++)
		handle(numbers[number], fault);
	volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile char *none = (char *)16;
	TRY("before any fault", NOTHING, 0, raise(SIGUSR1));
	TRY("read", READ, 0, (void)*none);
	TRY("write", WRITE, 0, *none = 1);
	TRY("write to a page that was not used", WRITE, 0, *page = 1);
	TRY("a signal after it", WRITE, 0, raise(SIGUSR1));
	(void)*page;
	TRY("write to a page that was used", WRITE, 1, *page = 1);
	TRY("jump", FETCH, 0, ((void (*)(void))none)());
	TRY("another signal", FETCH, 0, raise(SIGUSR1));
}

/* Instructions that the CPU does not know, or that no program may execute. */

#if defined __x86_64__ || defined __i386__
static int code, number_of_trap;

static void
refused(int number, siginfo_t *info, void *context)
{
	(void)number;
	code = info->si_code;
	number_of_trap = (int)((ucontext_t *)context)->uc_mcontext.gregs[REG_TRAPNO];
	siglongjmp(back, 1);
}

#define REFUSED(what, signal, wanted_code, wanted_number, instruction) \
	do { \
		handle((signal), refused); \
		if (!sigsetjmp(back, 1)) \
			__asm__ volatile(instruction : : : "eax", "edx", "memory"); \
		say("%s: %s", (what), code == (wanted_code) && number_of_trap == (wanted_number) ? "told" : "told wrongly"); \
	} while (0)
#else
#define REFUSED(what, signal, wanted_code, wanted_number, instruction) say("%s: told", (what))
#endif

CASE(told_instructions)
{
	REFUSED("undefined", SIGILL, ILL_ILLOPN, 6, "ud2");
	REFUSED("privileged", SIGSEGV, SI_KERNEL, 13, "hlt");
	REFUSED("division", SIGFPE, FPE_INTDIV, 0, "xor %%eax, %%eax; cltd; idivl %%eax");
	REFUSED("breakpoint", SIGTRAP, SI_KERNEL, 3, "int3");
}

/* The floating-point registers. */

static int round_in_handler, raised_in_handler, saved;

/* The environment of a handler: x86 gives it the one that a program begins with. */
#if defined __x86_64__ || defined __i386__
#define HANDLERS_ROUND FE_TONEAREST
#define HANDLERS_FLAGS 0
#else
#define HANDLERS_ROUND FE_UPWARD
#define HANDLERS_FLAGS FE_INEXACT
#endif

/* The place in the frame of the register that `send` sets. */
static void *
place_of_register(ucontext_t *context)
{
#if defined __x86_64__
	return &context->uc_mcontext.fpregs->_xmm[0];
#elif defined __i386__
	return (char *)context->uc_mcontext.fpregs + 112 + 160;
#elif defined __aarch64__
	struct _aarch64_ctx *record = (void *)context->uc_mcontext.__reserved;
	while (record->magic && record->magic != FPSIMD_MAGIC)
		record = (void *)((char *)record + record->size);
	return &((struct fpsimd_context *)record)->vregs[0];
#else
	return &context->uc_mcontext.__fpregs.__d.__f[0];
#endif
}

/* Makes the program round towards zero. */
static void
change_round(ucontext_t *context)
{
#if defined __x86_64__
	context->uc_mcontext.fpregs->mxcsr |= 0x6000;
	context->uc_mcontext.fpregs->cwd |= 0xc00;
#elif defined __i386__
	context->uc_mcontext.fpregs->cw |= 0xc00;
#elif defined __aarch64__
	struct fpsimd_context *vectors = (void *)((char *)place_of_register(context) - offsetof(struct fpsimd_context, vregs));
	vectors->fpcr |= 0xc00000;
#else
	context->uc_mcontext.__fpregs.__d.__fcsr = 0x20;
#endif
}

static int change;

static void
look(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	round_in_handler = fegetround();
	raised_in_handler = fetestexcept(FE_INEXACT);
	double value;
	void *place = place_of_register(context);
	memcpy(&value, place, sizeof value);
	saved = value == 2.5;
	if (change) {
		value = 4.5;
		memcpy(place, &value, sizeof value);
		change_round(context);
	}
}

/* Sends this process a signal while the first vector register is 2.5; returns the register after it. */
static double
send(int number)
{
	double value = 2.5;
	long pid = getpid();
#if defined __x86_64__
	long result = SYS_kill;
	__asm__ volatile("movsd %0, %%xmm0; syscall; movsd %%xmm0, %0"
	    : "+m"(value), "+a"(result) : "D"(pid), "S"((long)number) : "rcx", "r11", "xmm0", "memory");
#elif defined __i386__
	long result = SYS_kill;
	__asm__ volatile("movsd %0, %%xmm0; int $0x80; movsd %%xmm0, %0"
	    : "+m"(value), "+a"(result) : "b"(pid), "c"(number) : "memory");
#elif defined __aarch64__
	register long x0 __asm__("x0") = pid;
	register long x1 __asm__("x1") = number;
	register long x8 __asm__("x8") = SYS_kill;
	__asm__ volatile("ldr d0, %0; svc #0; str d0, %0" : "+m"(value), "+r"(x0) : "r"(x1), "r"(x8) : "v0", "memory");
#else
	register long a0 __asm__("a0") = pid;
	register long a1 __asm__("a1") = number;
	register long a7 __asm__("a7") = SYS_kill;
	__asm__ volatile("fld ft0, %0; ecall; fsd ft0, %0" : "+m"(value), "+r"(a0) : "r"(a1), "r"(a7) : "ft0", "memory");
#endif
	return value;
}

static const char *
round_of_program(void)
{
	return fegetround() == FE_UPWARD ? "up" : fegetround() == FE_TOWARDZERO ? "to zero" : "elsewhere";
}

CASE(floating_frames)
{
	handle(SIGUSR1, look);
	fesetround(FE_UPWARD);
	feclearexcept(FE_ALL_EXCEPT);
	feraiseexcept(FE_INEXACT);
	double after = send(SIGUSR1);
	say("the handler's environment: %s", round_in_handler == HANDLERS_ROUND && raised_in_handler == HANDLERS_FLAGS
	    ? "as Linux has it" : "another one");
	say("the frame: %s", saved ? "it has the register" : "it has something else");
	say("after it: %s, rounding %s, %s", after == 2.5 ? "the same" : "changed", round_of_program(),
	    fetestexcept(FE_INEXACT) ? "inexact" : "exact");
	change = 1;
	after = send(SIGUSR1);
	say("after a change: %s, rounding %s", after == 4.5 ? "changed" : "the same", round_of_program());
	change = 0;
	fesetround(FE_TONEAREST);
}

#if defined __x86_64__ || defined __i386__
static void
without(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	((ucontext_t *)context)->uc_mcontext.fpregs = NULL;
}

static int st[2];

static void
stacked(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	/* Exponents of the two values on the x87's stack. */
	st[0] = ((ucontext_t *)context)->uc_mcontext.fpregs->_st[0].exponent;
	st[1] = ((ucontext_t *)context)->uc_mcontext.fpregs->_st[1].exponent;
	/* A full stack would overflow. */
	double sum = 0;
	__asm__ volatile("fld1; fld1; fld1; fld1; fld1; fld1; fld1; fld1;"
	    "faddp; faddp; faddp; faddp; faddp; faddp; faddp; fstpl %0" : "=m"(sum));
	saved = sum == 8;
}
#endif

CASE(x87_frames)
{
#if defined __x86_64__ || defined __i386__
	handle(SIGUSR1, stacked);
	double pi = 0, one = 0;
	__asm__ volatile("fld1; fldpi" : : : "memory");
	send(SIGUSR1);
	__asm__ volatile("fstpl %0; fstpl %1" : "=m"(pi), "=m"(one));
	say("the frame: %s", st[0] == 0x4000 && st[1] == 0x3fff ? "pi and one" : "something else");
	say("the handler's stack: %s", saved ? "empty" : "not empty");
	say("after it: %s", pi > 3.14 && pi < 3.15 && one == 1 ? "pi and one" : "something else");
	handle(SIGUSR1, without);
	fesetround(FE_UPWARD);
	double after = send(SIGUSR1);
	say("without registers: %s, %s", after == 0 ? "zero" : "something else",
	    fegetround() == FE_TONEAREST ? "rounding to nearest" : "rounding elsewhere");
#else
	say("the frame: pi and one");
	say("the handler's stack: empty");
	say("after it: pi and one");
	say("without registers: zero, rounding to nearest");
#endif
}

CASE(direction_in_handler)
{
	/* x86 clears the direction and the trap flag for a handler. */
#if defined __x86_64__ || defined __i386__
	handle(SIGUSR1, look);
	char text[] = "0123456789", copy[11];
	__asm__ volatile("std");
	send(SIGUSR1);
	long flags;
	__asm__ volatile("pushf; cld; pop %0" : "=r"(flags));
	memcpy(copy, text, sizeof copy);
	say("after it: %s, %s", flags & 0x400 ? "backwards" : "forwards", copy);
#else
	say("after it: backwards, 0123456789");
#endif
}
