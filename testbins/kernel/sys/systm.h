/* What everything uses: copying, strings, sleeping, scheduling (FreeBSD sys/sys/systm.h, sched.h, sleepqueue.h). */
#ifndef SYS_SYSTM_H
#define SYS_SYSTM_H

#include "sys/errno.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/machine_interface.h"

#define KASSERT(expression, message)            \
	do {                                    \
		if (!(expression))              \
			panic message;          \
	} while (0)

/* libkern.c */
int memcmp(const void *a, const void *b, size_t n);
void *memmove(void *to, const void *from, size_t n);
void bcopy(const void *from, void *to, size_t n);
void bzero(void *to, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
size_t strlcpy(char *to, const char *from, size_t size);
char *strchr(const char *s, int c);
uint32_t hash32_str(const char *s, size_t n, uint32_t seed);

/* subr_prf.c */
int kvprintf(const char *format, void (*func)(int, void *), void *arg, va_list ap);
int snprintf(char *to, size_t size, const char *format, ...) __printflike(3, 4);
int vsnprintf(char *to, size_t size, const char *format, va_list ap);
void vpanic(const char *format, va_list ap, struct trapframe *frame) __dead2;
void cnputs(const char *s, size_t n);
size_t cngets(char *s, size_t n);
extern const char *panicstr;

/* copyinout.c: 0 or EFAULT (copyinstr: ENAMETOOLONG too) */
int copyin(const void *uaddr, void *kaddr, size_t len);
int copyout(const void *kaddr, void *uaddr, size_t len);
int copyinstr(const void *uaddr, void *kaddr, size_t len, size_t *done);
int fuword(const void *uaddr, unsigned long *value);
int suword(void *uaddr, unsigned long value);

/* kern_synch.c, subr_sleepqueue.c */
#define PCATCH 0x100 /* of a sleep's priority: signals end it */
int _sleep(const void *ident, struct mtx *lock, int priority, const char *wmesg, int timo);
#define msleep(chan, mtx, pri, wmesg, timo) _sleep(chan, mtx, pri, wmesg, timo)
#define tsleep(chan, pri, wmesg, timo) _sleep(chan, NULL, pri, wmesg, timo)
int pause(const char *wmesg, int timo);
void wakeup(const void *ident);
void wakeup_one(const void *ident);
void mi_switch(int flags);
void maybe_yield(void);
#define SW_VOL 0x100   /* gave the CPU up */
#define SW_INVOL 0x200 /* lost it */

void sleepinit(const void *unused);
void sleepq_add(const void *wchan, const char *wmesg, int catch);
void sleepq_set_timeout(const void *wchan, int timo);
int sleepq_wait(const void *wchan);
void sleepq_broadcast(const void *wchan);
void sleepq_signal(const void *wchan);
void sleepq_remove(struct thread *td, const void *wchan);
int sleepq_abort(struct thread *td, int error);

/* sched_rr.c */
void sched_add(struct thread *td);
void sched_rem(struct thread *td);
struct thread *sched_choose(void);
void sched_switch(struct thread *td, int flags);
void sched_clock(struct thread *td);
void sched_wakeup(struct thread *td);
void sched_relinquish(struct thread *td);
void sched_idletd(void *unused);
bool sched_runnable(void);
int sched_load(void);
void setrunnable(struct thread *td);

/* kern_fork.c, kern_exit.c, kern_exec.c, kern_proc.c, kern_thread.c */
#define RFFDG 0x04	  /* copy the descriptors */
#define RFPROC 0x10	  /* a new process: always */
#define RFMEM 0x20	  /* share the address space */
#define RFCFDG 0x1000	  /* no descriptors */
#define RFPPWAIT 0x80000000
struct fork_req {
	uint32_t fr_flags;
	struct proc **fr_procp;
	void (*fr_function)(void *); /* a kernel process: where it starts */
	void *fr_arg;
	const char *fr_name;
};
int fork1(struct thread *td, struct fork_req *fr);
void exit1(struct thread *td, int rval, int signo) __dead2;
int kproc_create(void (*function)(void *), void *arg, struct proc **newp, const char *name);
struct proc *pfind(pid_t pid);
/* kern_thr.c */
void thread_exit(void) __dead2;
void thread_single(struct thread *td); /* the other threads of its process end */
bool thread_must_exit(struct thread *td);
void umtx_wake(struct vmspace *vm, vaddr_t address, uint64_t n); /* kern_umtx.c */
struct thread *thread_alloc(void);
void thread_free(struct thread *td);
void proc_reparent(struct proc *child, struct proc *parent);
pid_t fork_findpid(void);
void proc_insert(struct proc *p);
void proc_remove(struct proc *p);
struct proc *proc_alloc(void);
void proc_free(struct proc *p);
void proc_set_args(struct proc *p, const char *args, size_t size);
void start_init(void *unused);

TAILQ_HEAD(proclist, proc);
extern struct proclist allproc;
extern struct sx allproc_lock, proctree_lock;

/* kern_sig.c, subr_trap.c */
int kern_psignal(struct proc *p, int sig);
void trapsignal(struct thread *td, struct siginfo *info);
int cursig(struct thread *td);
int issignal(struct thread *td);
int sig_intr(struct proc *p, int sig);
int postsig(int sig);
void sigexit(struct thread *td, int sig) __dead2;
void execsigs(struct proc *p);
struct sigacts *sigacts_alloc(void);
struct sigacts *sigacts_copy(const struct sigacts *from);
void sigacts_free(struct sigacts *ps);
void sendsig(uint64_t handler, struct siginfo *info, sigset_t mask);
void userret(struct thread *td, struct trapframe *frame);
void ast(struct thread *td, struct trapframe *frame);

/* kern_clock.c, kern_tc.c, kern_time.c */
struct timespec;
uint64_t nanouptime(void);
void tc_windup(void); /* kern_mib.c */
void loadav(void);
int tvtohz_ns(uint64_t nanoseconds);
void itimer_cancel(struct proc *p);

/* kern_shutdown.c */
void kern_reboot(int howto) __dead2;

#endif
