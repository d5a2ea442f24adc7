/* The end, planned or not (FreeBSD sys/kern/kern_shutdown.c). */
#include "sys/priv.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/time.h"

const char *panicstr; /* set once: a panic inside a panic only says so */

/* frame is the trap that led here, or NULL. */
void
vpanic(const char *format, va_list ap, struct trapframe *frame)
{
	static char message[256];
	bool again = panicstr != NULL;

	panicstr = message;
	if (again) {
		gate_panic("panic while panicking", frame);
		cpu_halt();
	}
	vsnprintf(message, sizeof(message), format, ap);
	printf("panic: %s\n", message);
	if (curthread != NULL && curproc != NULL)
		printf("process %d (%s), thread %d\n", curproc->p_pid, curproc->p_comm, curthread->td_tid);
	cpu_stacktrace(frame);
	gate_panic(message, frame);
	cpu_halt();
}

void
panic(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vpanic(format, ap, NULL);
}

static void __printflike(2, 3) __dead2
panic_frame(struct trapframe *frame, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vpanic(format, ap, frame);
}

/* An exception the kernel did not expect of itself. */
void
trap_fatal(struct trapframe *frame, const char *what)
{
	panic_frame(frame, "%s at %#lx", what, frame_pc(frame));
}

/* The machine stays on while a tracer waits for its timers; then the caller sleeps, and the idle thread runs. */
void
kern_reboot(int howto)
{
	for (;;) {
		gate_poweroff(howto & ~RB_POWEROFF);
		tsleep(&initproc, 0, "poweroff", 0);
	}
}

/* reboot(RB_POWEROFF | status): the run ends with that status. */
int
sys_reboot(struct thread *td, struct reboot_args *uap)
{
	int error = priv_check(td, PRIV_REBOOT);

	if (error != 0)
		return (error);
	if (!(uap->opt & RB_POWEROFF))
		return (EINVAL);
	kern_reboot(uap->opt);
}
