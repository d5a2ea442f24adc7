/* Processes and threads. */
#ifndef SYS_PROC_H
#define SYS_PROC_H

#include "frame.h"
#include "machine.h"
#include "sys/callout.h"
#include "sys/param.h"
#include "sys/pcpu.h"
#include "sys/queue.h"
#include "sys/signal.h"
#include "sys/types.h"

struct file;
struct filedesc;
struct pmap;
struct proc;
struct sigacts;
struct sysent;
struct vmspace;
struct vnode;

enum td_state { TDS_INACTIVE, TDS_INHIBITED, TDS_CAN_RUN, TDS_RUNQ, TDS_RUNNING };

struct syscall_args {
	unsigned code;
	struct sysent *callp;
	uint64_t args[6];
};

struct thread {
	struct pcb td_pcb;		/* what cpu_switch saves (machine.h) */
	struct proc *td_proc;
	struct thread *td_next;		/* the process's next thread */
	struct trapframe *td_frame;	/* user trap frame: always at the top of the kernel stack */
	vaddr_t td_kstack;		/* lowest address; the page below it is not mapped */
	uint64_t td_kstack_size;
	lwpid_t td_tid;
	int td_errno;			/* of the last system call */
	uint64_t td_retval[2];
	enum td_state td_state;
	uint32_t td_flags;		/* TDF_* */
	int td_slice;			/* ticks left */
	int td_intr_nesting_level;	/* interrupts it is serving */
	uint64_t td_runtime;		/* nanoseconds on the CPU */
	uint64_t td_switched_in;	/* gate_nanouptime() of the last switch to it */
	const void *td_wchan;		/* what it sleeps on */
	const char *td_wmesg;		/* why */
	int td_sleep_error;		/* 0, EWOULDBLOCK or EINTR, set by the code that ends the sleep */
	struct callout td_slpcallout;	/* ends a sleep with a time limit */
	sigset_t td_sigmask;
	sigset_t td_oldsigmask;		/* to restore after sigsuspend */
	int td_locks;			/* mutexes held: must be 0 on the way to user mode */
	uint64_t td_syscalls;		/* system calls made */
	struct syscall_args td_sa;	/* the one under way */
	uintptr_t td_sdt_arg5;		/* sixth argument of the SDT probe under way */
	uint64_t *td_systrace_args;	/* its arguments as its probe sees them, while it is under way */
	struct file *td_fpop;		/* the file it is reading or writing */
	char td_name[MAXCOMLEN + 1];
	TAILQ_ENTRY(thread) td_runq;	/* run queue */
	TAILQ_ENTRY(thread) td_slpq;	/* sleep queue */
};

#define TDF_NEEDRESCHED 0x01 /* the slice is used up, or a better thread woke */
#define TDF_ASTPENDING 0x02  /* a signal may be waiting */
#define TDF_SINTR 0x04	     /* asleep, and a signal may end it */
#define TDF_TIMEOUT 0x08     /* asleep, with a time limit */
#define TDF_SLEEPING 0x10
#define TDF_OLDMASK 0x20     /* td_oldsigmask is to be restored */
#define TDF_IDLETD 0x40
#define TDF_KTHREAD 0x80

/* Whose a process is (FreeBSD sys/sys/ucred.h). */
struct ucred {
	uid_t cr_uid, cr_ruid, cr_svuid;
	gid_t cr_gid, cr_rgid, cr_svgid;
	struct prison *cr_prison;
};

/* Process groups and sessions: they cannot be created, so a process has init's (FreeBSD sys/sys/proc.h). */
struct session {
	pid_t s_sid;
};

struct pgrp {
	struct session *pg_session;
	pid_t pg_id;
};

/* Where exec has put the strings (FreeBSD sys/sys/exec.h keeps this in the program's own memory). */
struct ps_strings {
	vaddr_t ps_argvstr;
	int ps_nargvstr;
	vaddr_t ps_envstr;
	int ps_nenvstr;
};

/* The arguments of a program: strings one after another, each ended by a NUL (FreeBSD sys/sys/proc.h). */
struct pargs {
	unsigned ar_ref;		/* processes that have it: always one, FreeBSD's are shared */
	unsigned ar_length;
	unsigned char ar_args[MAXARGS_SAVED];
};

enum p_state { PRS_NEW, PRS_NORMAL, PRS_ZOMBIE };

struct proc {
	pid_t p_pid;
	struct ucred *p_ucred;		/* p_cred: FreeBSD's are shared by processes */
	struct ucred p_cred;
	enum p_state p_state;
	struct proc *p_pptr;
	struct thread *p_threads;	/* the first of them */
	int p_numthreads;
	struct thread *p_singlethread;	/* the one that stays, while the others end */
	struct pmap *p_pmap;		/* of p_vmspace; &kernel_pmap for kernel processes; never NULL */
	struct vmspace *p_vmspace;
	struct filedesc *p_fd;
	struct sigacts *p_sigacts;
	struct vnode *p_textvp;		/* the program */
	sigset_t p_siglist;		/* signals posted, not yet taken */
	uint32_t p_flag;		/* P_* */
	int p_xexit;			/* exit value */
	int p_xsig;			/* signal it died of */
	struct callout p_itcallout;	/* setitimer */
	uint64_t p_itinterval;		/* ticks */
	uint64_t p_starttime;
	uint64_t p_child_runtime;
	char p_comm[MAXCOMLEN + 1];
	struct pargs *p_args;		/* p_pargs; NULL before there are any */
	struct pargs p_pargs;
	struct ps_strings p_psstrings;
	struct pgrp *p_pgrp;
	int p_nice;
	TAILQ_HEAD(, proc) p_children;
	TAILQ_ENTRY(proc) p_sibling;
	TAILQ_ENTRY(proc) p_list;	/* allproc */
	TAILQ_ENTRY(proc) p_hash;
};

#define P_KPROC 0x01
#define P_PPWAIT 0x02  /* its parent sleeps in vfork until it execs or exits */
#define P_WEXIT 0x04
#define P_INEXEC 0x08
#define P_STOPPED 0x10 /* by SIGSTOP */
#define P_SINGLE_EXIT 0x20 /* every thread but p_singlethread is to end */

extern struct proc proc0, *initproc;
extern struct thread thread0;

#endif
