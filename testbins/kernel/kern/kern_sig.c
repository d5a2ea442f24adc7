/* Signals (FreeBSD sys/kern/kern_sig.c). */
#include "sys/malloc.h"
#include "sys/priv.h"
#include "sys/sdt.h"
#include "sys/sysproto.h"
#include "sys/systm.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE3(proc, , , signal__send, "struct thread *", "struct proc *", "int");
SDT_PROBE_DEFINE3(proc, , , signal__discard, "struct thread *", "struct proc *", "int");

MALLOC_DEFINE(M_SUBPROC, "subproc", "process substructures");

struct sigacts {
	struct sigaction ps_sigact[NSIG]; /* by number; 0 unused */
	struct siginfo ps_info[NSIG];	  /* of the signal posted last */
};

/* What a signal does by default. */
#define SIGPROP_KILL 0x01
#define SIGPROP_STOP 0x02
#define SIGPROP_IGNORE 0x04
#define SIGPROP_CONT 0x08

static const uint8_t sigproptbl[NSIG] = {
	[SIGHUP] = SIGPROP_KILL, [SIGINT] = SIGPROP_KILL, [SIGQUIT] = SIGPROP_KILL, [SIGILL] = SIGPROP_KILL,
	[SIGTRAP] = SIGPROP_KILL, [SIGABRT] = SIGPROP_KILL, [SIGEMT] = SIGPROP_KILL, [SIGFPE] = SIGPROP_KILL,
	[SIGKILL] = SIGPROP_KILL, [SIGBUS] = SIGPROP_KILL, [SIGSEGV] = SIGPROP_KILL, [SIGSYS] = SIGPROP_KILL,
	[SIGPIPE] = SIGPROP_KILL, [SIGALRM] = SIGPROP_KILL, [SIGTERM] = SIGPROP_KILL, [SIGURG] = SIGPROP_IGNORE,
	[SIGSTOP] = SIGPROP_STOP, [18] = SIGPROP_STOP, [SIGCONT] = SIGPROP_IGNORE | SIGPROP_CONT, [SIGCHLD] = SIGPROP_IGNORE,
	[21] = SIGPROP_STOP, [22] = SIGPROP_STOP, [23] = SIGPROP_IGNORE, [24] = SIGPROP_KILL, [25] = SIGPROP_KILL,
	[26] = SIGPROP_KILL, [27] = SIGPROP_KILL, [28] = SIGPROP_IGNORE, [29] = SIGPROP_IGNORE,
	[SIGUSR1] = SIGPROP_KILL, [SIGUSR2] = SIGPROP_KILL,
};
#define SIG_CANTMASK (SIGBIT(SIGKILL) | SIGBIT(SIGSTOP))

struct sigacts *
sigacts_alloc(void)
{
	return (malloc(sizeof(struct sigacts), M_SUBPROC, M_WAITOK | M_ZERO));
}

struct sigacts *
sigacts_copy(const struct sigacts *from)
{
	return (memcpy(sigacts_alloc(), from, sizeof(*from)));
}

void
sigacts_free(struct sigacts *ps)
{
	free(ps, M_SUBPROC);
}

/* A new program: handlers are gone with the old one. */
void
execsigs(struct proc *p)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (p->p_sigacts->ps_sigact[sig].sa_handler != SIG_IGN)
			p->p_sigacts->ps_sigact[sig] = (struct sigaction){ .sa_handler = SIG_DFL };
}

static bool
sig_ignored(struct proc *p, int sig)
{
	uint64_t handler = p->p_sigacts->ps_sigact[sig].sa_handler;

	return (handler == SIG_IGN || (handler == SIG_DFL && sigproptbl[sig] & SIGPROP_IGNORE));
}

/* What a system call interrupted by it returns: made again, unless a handler without SA_RESTART runs first. */
int
sig_intr(struct proc *p, int sig)
{
	struct sigaction *act = &p->p_sigacts->ps_sigact[sig];

	return (act->sa_handler > SIG_IGN && !(act->sa_flags & SA_RESTART) ? EINTR : ERESTART);
}

/* Posts a signal, and sees to it that the thread looks. */
static int
tdsendsignal(struct proc *p, struct thread *td, int sig, const struct siginfo *info)
{
	if (p->p_state == PRS_ZOMBIE || p->p_sigacts == NULL || p->p_flag & (P_KPROC | P_WEXIT))
		return (0);
	SDT_PROBE3(proc, , , signal__send, td, p, sig);
	if (sigproptbl[sig] & SIGPROP_CONT || sig == SIGKILL) {
		p->p_siglist &= ~SIGBIT(SIGSTOP);
		if (p->p_flag & P_STOPPED) {
			p->p_flag &= ~P_STOPPED;
			wakeup(&p->p_flag);
		}
	}
	if (sig_ignored(p, sig)) {
		SDT_PROBE3(proc, , , signal__discard, td, p, sig);
		return (0);
	}
	p->p_sigacts->ps_info[sig] = *info;
	p->p_siglist |= SIGBIT(sig);
	if (td->td_sigmask & SIGBIT(sig))
		return (0);
	td->td_flags |= TDF_ASTPENDING;
	sleepq_abort(td, sig_intr(p, sig));
	return (0);
}

int
kern_psignal(struct proc *p, int sig)
{
	struct siginfo info = { .si_signo = sig, .si_pid = curproc->p_pid, .si_uid = curproc->p_ucred->cr_uid };

	return (tdsendsignal(p, p->p_threads, sig, &info));
}

/* A signal that the program has caused: if it is blocked or ignored the program cannot continue. */
void
trapsignal(struct thread *td, struct siginfo *info)
{
	struct proc *p = td->td_proc;
	int sig = info->si_signo;

	if (td->td_sigmask & SIGBIT(sig) || p->p_sigacts->ps_sigact[sig].sa_handler == SIG_IGN)
		sigexit(td, sig);
	tdsendsignal(p, td, sig, info);
}

int
cursig(struct thread *td)
{
	return (td->td_proc->p_siglist & ~td->td_sigmask ? issignal(td) : 0);
}

static void
thread_suspend_stopped(struct proc *p)
{
	p->p_flag |= P_STOPPED;
	while (p->p_flag & P_STOPPED)
		tsleep(&p->p_flag, 0, "stopped", 0);
}

/* The next signal to act on, lowest number first; 0 if there is none. */
int
issignal(struct thread *td)
{
	struct proc *p = td->td_proc;

	for (int sig = 1; sig < NSIG; sig++) {
		if (!(p->p_siglist & ~td->td_sigmask & SIGBIT(sig)))
			continue;
		if (sig_ignored(p, sig)) {
			p->p_siglist &= ~SIGBIT(sig);
			continue;
		}
		if (sigproptbl[sig] & SIGPROP_STOP && p->p_sigacts->ps_sigact[sig].sa_handler == SIG_DFL) {
			if (td->td_flags & TDF_SLEEPING)
				return (sig); /* it stops on its way out */
			p->p_siglist &= ~SIGBIT(sig);
			thread_suspend_stopped(p);
			continue;
		}
		return (sig);
	}
	return (0);
}

/* Acts on a signal: the handler is entered, or the process ends. */
int
postsig(int sig)
{
	struct thread *td = curthread;
	struct sigacts *ps = td->td_proc->p_sigacts;
	struct sigaction *act = &ps->ps_sigact[sig];
	uint64_t handler = act->sa_handler;
	sigset_t returnmask = td->td_flags & TDF_OLDMASK ? td->td_oldsigmask : td->td_sigmask;

	td->td_proc->p_siglist &= ~SIGBIT(sig);
	td->td_flags &= ~TDF_OLDMASK;
	if (handler == SIG_DFL)
		sigexit(td, sig);
	td->td_sigmask |= act->sa_mask | (act->sa_flags & SA_NODEFER ? 0 : SIGBIT(sig));
	td->td_sigmask &= ~SIG_CANTMASK;
	if (act->sa_flags & SA_RESETHAND)
		*act = (struct sigaction){ .sa_handler = SIG_DFL };
	sendsig(handler, &ps->ps_info[sig], returnmask);
	return (1);
}

void
sigexit(struct thread *td, int sig)
{
	struct proc *p = td->td_proc;

	if (sigproptbl[sig] & SIGPROP_KILL && sig != SIGKILL && sig != SIGTERM && sig != SIGINT && sig != SIGPIPE && sig != SIGALRM)
		printf("pid %d (%s), uid %d: exited on signal %d\n", p->p_pid, p->p_comm, p->p_ucred->cr_uid, sig);
	exit1(td, 0, sig);
}

/* What sigcode.S finds at sp. */
struct sigframe {
	uint64_t sf_handler;
	struct siginfo sf_info;
	uint64_t sf_sigmask;
	char sf_padding[SIGFRAME_CONTEXT - 2 * sizeof(uint64_t) - sizeof(struct siginfo)];
	struct trapframe sf_context;
};
_Static_assert(offsetof(struct sigframe, sf_context) == SIGFRAME_CONTEXT, "sigcode.S knows the layout");

/* Enters a handler: the interrupted registers go on the user stack, and the frame now leads to sigcode. */
void
sendsig(uint64_t handler, struct siginfo *info, sigset_t mask)
{
	struct thread *td = curthread;

	dtrace_fasttrap_sendsig(td, td->td_frame);
	struct sigframe sf = { .sf_handler = handler, .sf_info = *info, .sf_sigmask = mask, .sf_context = *td->td_frame };
	vaddr_t sp = rounddown2(frame_sp(td->td_frame) - 128 - sizeof(sf), 16); /* 128: x86-64's red zone */

	if (copyout(&sf, (void *)sp, sizeof(sf)) != 0)
		sigexit(td, SIGSEGV);
	cpu_exec_setregs(td->td_frame, SHAREDPAGE, sp, info->si_signo, sp + offsetof(struct sigframe, sf_info), sp + SIGFRAME_CONTEXT);
}

int
sys_sigreturn(struct thread *td, struct sigreturn_args *uap)
{
	vaddr_t sp = (vaddr_t)uap->sigcntxp - SIGFRAME_CONTEXT;
	struct sigframe sf;
	int error = copyin((void *)sp, &sf, sizeof(sf));

	if (error == 0)
		error = cpu_sigreturn(td->td_frame, &sf.sf_context);
	if (error != 0)
		return (error);
	td->td_sigmask = sf.sf_sigmask & ~SIG_CANTMASK;
	td->td_flags |= TDF_ASTPENDING;
	return (EJUSTRETURN);
}

static int
kern_sigaction(struct thread *td, int sig, const struct sigaction *act, struct sigaction *oact)
{
	struct sigaction *slot;

	if (sig <= 0 || sig >= NSIG || (act != NULL && SIGBIT(sig) & SIG_CANTMASK))
		return (EINVAL);
	slot = &td->td_proc->p_sigacts->ps_sigact[sig];
	if (oact != NULL)
		*oact = *slot;
	if (act != NULL)
		*slot = *act;
	return (0);
}

int
sys_sigaction(struct thread *td, struct sigaction_args *uap)
{
	struct sigaction act, oact;
	int error = 0;

	if (uap->act != NULL && (error = copyin(uap->act, &act, sizeof(act))) != 0)
		return (error);
	error = kern_sigaction(td, uap->sig, uap->act != NULL ? &act : NULL, &oact);
	if (error == 0 && uap->oact != NULL)
		error = copyout(&oact, uap->oact, sizeof(oact));
	return (error);
}

static int
kern_sigprocmask(struct thread *td, int how, const sigset_t *set, sigset_t *oset)
{
	*oset = td->td_sigmask;
	if (set == NULL)
		return (0);
	if (how == SIG_BLOCK)
		td->td_sigmask |= *set;
	else if (how == SIG_UNBLOCK)
		td->td_sigmask &= ~*set;
	else if (how == SIG_SETMASK)
		td->td_sigmask = *set;
	else
		return (EINVAL);
	td->td_sigmask &= ~SIG_CANTMASK;
	td->td_flags |= TDF_ASTPENDING; /* something may have been let through */
	return (0);
}

int
sys_sigprocmask(struct thread *td, struct sigprocmask_args *uap)
{
	sigset_t set, oset;
	int error = 0;

	if (uap->set != NULL && (error = copyin(uap->set, &set, sizeof(set))) != 0)
		return (error);
	error = kern_sigprocmask(td, uap->how, uap->set != NULL ? &set : NULL, &oset);
	if (error == 0 && uap->oset != NULL)
		error = copyout(&oset, uap->oset, sizeof(oset));
	return (error);
}

int
sys_sigpending(struct thread *td, struct sigpending_args *uap)
{
	sigset_t pending = td->td_proc->p_siglist & td->td_sigmask;

	return (copyout(&pending, uap->set, sizeof(pending)));
}

/* Waits under another mask; the old one is back when the handler returns. */
int
sys_sigsuspend(struct thread *td, struct sigsuspend_args *uap)
{
	sigset_t mask;
	int error = copyin(uap->sigmask, &mask, sizeof(mask));

	if (error != 0)
		return (error);
	td->td_oldsigmask = td->td_sigmask;
	td->td_flags |= TDF_OLDMASK | TDF_ASTPENDING;
	td->td_sigmask = mask & ~SIG_CANTMASK;
	while (cursig(td) == 0)
		tsleep(td, PCATCH, "sigsusp", 0);
	return (EINTR);
}

static int
kern_kill(struct thread *td, pid_t pid, int signum)
{
	struct proc *p;
	int error;

	if (signum < 0 || signum >= NSIG)
		return (EINVAL);
	if (pid <= 0 || (p = pfind(pid)) == NULL || p->p_state == PRS_ZOMBIE)
		return (ESRCH);
	if (td->td_proc->p_ucred->cr_uid != p->p_ucred->cr_uid && (error = priv_check(td, PRIV_SIGNAL_DIFFCRED)) != 0)
		return (error);
	return (signum == 0 ? 0 : kern_psignal(p, signum));
}

int
sys_kill(struct thread *td, struct kill_args *uap)
{
	return (kern_kill(td, uap->pid, uap->signum));
}
