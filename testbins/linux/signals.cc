/* Signals: sent to itself, nested, on another stack, jumped out of, blocked and waited for. */
#include "zoo.h"

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace {

volatile sig_atomic_t depth;
volatile sig_atomic_t received;
sigjmp_buf out;
char *guarded;
char *other_stack;
constexpr size_t OTHER_STACK = 64 * 1024;

void
handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {};
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | flags;
	sigemptyset(&action.sa_mask);
	if (sigaction(signal, &action, nullptr))
		fail("sigaction");
}

} // namespace

PROBEABLE void
on_alarm(int signal, siginfo_t *, void *)
{
	received = received + 1;
	say("  on_alarm(%d)", signal);
}

PROBEABLE void
on_user1(int signal, siginfo_t *info, void *)
{
	depth = depth + 1;
	say("  on_user1(%d): from itself %d, depth %d", signal, info->si_pid == getpid(), static_cast<int>(depth));
	raise(SIGUSR2);
	depth = depth - 1;
}

PROBEABLE void
on_user2(int signal, siginfo_t *, void *)
{
	depth = depth + 1;
	say("  on_user2(%d): depth %d", signal, static_cast<int>(depth));
	raise(SIGALRM);
	depth = depth - 1;
}

PROBEABLE void
on_other_stack(int signal, siginfo_t *, void *)
{
	char here;
	const char *place = &here;
	asm volatile("" : "+r"(place));
	say("  on_other_stack(%d): %d", signal, place >= other_stack && place < other_stack + OTHER_STACK);
}

PROBEABLE void
on_fault(int signal, siginfo_t *info, void *)
{
	say("  on_fault(%d): at the guarded page %d, code %s", signal, info->si_addr == guarded + 8,
	    info->si_code == SEGV_ACCERR ? "SEGV_ACCERR" : "other");
	siglongjmp(out, 1);
}

PROBEABLE void
write_to(char *place)
{
	*static_cast<volatile char *>(place) = 1;
}

PROBEABLE void
on_divide(int signal, siginfo_t *info, void *)
{
	say("  on_divide(%d): %s", signal, info->si_code == FPE_INTDIV ? "FPE_INTDIV" : "other");
	siglongjmp(out, 2);
}

PROBEABLE int
divide(int dividend, int divisor)
{
	/* In assembly: the compiler may do as it likes with a division by zero. */
	int quotient;
#if defined(__x86_64__) || defined(__i386__)
	asm volatile("cltd; idivl %2" : "=a"(quotient) : "0"(dividend), "r"(divisor) : "edx", "cc");
#elif defined(__aarch64__)
	asm volatile("sdiv %w0, %w1, %w2" : "=r"(quotient) : "r"(dividend), "r"(divisor));
#else
	asm volatile("divw %0, %1, %2" : "=r"(quotient) : "r"(dividend), "r"(divisor));
#endif
	return quotient;
}

int
case_signals(int, char **)
{
	handle(SIGALRM, on_alarm, 0);
	handle(SIGUSR1, on_user1, 0);
	handle(SIGUSR2, on_user2, 0);
	say("nested");
	raise(SIGALRM);
	kill(getpid(), SIGUSR1);

	say("another stack");
	other_stack = static_cast<char *>(malloc(OTHER_STACK));
	stack_t stack = {};
	stack.ss_sp = other_stack;
	stack.ss_size = OTHER_STACK;
	if (sigaltstack(&stack, nullptr))
		fail("sigaltstack");
	handle(SIGHUP, on_other_stack, SA_ONSTACK);
	raise(SIGHUP);
	handle(SIGHUP, on_other_stack, 0);
	raise(SIGHUP);

	say("faults");
	guarded = static_cast<char *>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	handle(SIGSEGV, on_fault, SA_ONSTACK);
	for (int i = 0; i < 2; i++)
		if (sigsetjmp(out, 1) == 0)
			write_to(guarded + 8);
		else
			say("  jumped out %d", i);

	say("blocked");
	sigset_t blocked, before, pending;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	received = 0;
	kill(getpid(), SIGALRM);
	kill(getpid(), SIGALRM);
	sigpending(&pending);
	say("  pending %d, received %d", sigismember(&pending, SIGALRM), static_cast<int>(received));
	sigsuspend(&before);
	say("  suspended, received %d", static_cast<int>(received));
	kill(getpid(), SIGALRM);
	sigprocmask(SIG_SETMASK, &before, nullptr);
	say("  unblocked, received %d", static_cast<int>(received));

	say("ignored");
	signal(SIGALRM, SIG_IGN);
	raise(SIGALRM);
	say("  received %d", static_cast<int>(received));
	return 15;
}

/* Only x86 traps when it divides by zero; the other two have a result for it. */
int
case_divide(int, char **)
{
	handle(SIGFPE, on_divide, 0);
	say("42 / 5 = %d", divide(42, 5));
	if (sigsetjmp(out, 1) == 0)
		say("42 / 0 = %d", divide(42, 0));
	else
		say("42 / 0 trapped");
	return 16;
}
