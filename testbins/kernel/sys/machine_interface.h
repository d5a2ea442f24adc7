/*
 * The machine-dependent interface: what every ISA folder gives, and what it may call.
 *
 * What a caller relies on:
 *  - pmap_bootstrap(ram_size): vm_page_alloc() works before it is called, so locore's map must reach the first GiB
 *    of RAM at KERNBASE (RAM is at most 1 GiB).
 *  - pmap_guard(va) unmaps a page of the linear map forever: the page below each kernel stack. So RAM outside the
 *    kernel text is mapped with 4 KiB pages, or split when asked.
 *  - cpu_sigreturn(frame, saved) checks a user-supplied frame for sigreturn.
 *  - sigcode, esigcode (sigcode.S): the signal trampoline, user text that is copied to SHAREDPAGE.
 *  - kstack0 (kern/init_main.c): PAGE_SIZE of guard, then KSTACK_SIZE of stack. _start uses it.
 *  - gate_icache_sync(address, size): a gate; memory at that kernel address was written and will be executed.
 *  - fork_return: cpu_fork is "copy the frame, result 0, cpu_thread_start(child, fork_return, child)".
 *
 * Files an ISA folder has (the Makefile takes every .c and .S):
 *   machine.h   KERNBASE; struct pcb (stack pointer and callee-saved registers); nothing else
 *   frame.h     struct trapframe, the words in the README's order
 *   genassym.c  ASSYM(NAME, value); lines, each a constant of the generated "assym.h" for the .S files
 *               (sys/assym.h has the macro; the shared constants are in sys/assym.h too)
 *   asmacros.h  ENTRY, END and LONE_RETURN: how a function begins and ends in assembly, and its return instruction
 *   locore.S exception.S swtch.S sigcode.S dtrace_asm.S dtrace_subr.c pmap.c trap.c machdep.c kernel.ld
 * What both x86 share is in x86/, which the Makefile adds to each of the two.
 * Includes are written "sys/..." from the kernel folder and "machine.h" from the ISA's own. kernel.ld gives the
 * symbols kernel_text_start, kernel_text_end, kernel_data_start, kernel_end (virtual).
 *
 * Rules for the entry code:
 *  - A trap from user mode saves its frame at curthread->td_frame, the top of the kernel stack:
 *    td_kstack + td_kstack_size - sizeof(struct trapframe).
 *  - Every call below that takes a frame does all the work of returning to user mode too (signals, rescheduling):
 *    the entry code calls it and restores the whole frame. All registers, for sigreturn and execve change them all.
 *  - cpu_switch sets pcpu0.pc_curthread itself, in assembly, together with the stack: the two never disagree.
 *    mi_switch has called pmap_activate() for the new thread before.
 *  - Interrupts are off in the kernel; a clock interrupt comes from user mode or from cpu_idle().
 */
#ifndef SYS_MACHINE_INTERFACE_H
#define SYS_MACHINE_INTERFACE_H

#include "frame.h"
#include "machine.h"
#include "sys/param.h"
#include "sys/pcpu.h"
#include "sys/pmap.h"
#include "sys/proc.h"
#include "sys/types.h"

#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4

struct linker_file;

#define PHYS_TO_DMAP(pa) ((void *)((paddr_t)(pa) + KERNBASE))
#define DMAP_TO_PHYS(va) ((paddr_t)(va) - KERNBASE)

/* ---- given by the ISA folder ---- */

/* pmap.c */
void pmap_bootstrap(unsigned long ram_size); /* the final kernel map: text r-x, the rest rw-; sets kernel_pmap, activates it */
int pmap_pinit(struct pmap *pmap);	/* new root, kernel half shared; 0 or ENOMEM */
void pmap_release(struct pmap *pmap);	/* vm_page_unref() on every user page still mapped; frees the tables and the root */
int pmap_enter(struct pmap *pmap, vaddr_t va, paddr_t pa, int prot); /* user page, new or changed; 0 or ENOMEM; no reference taken */
paddr_t pmap_extract(struct pmap *pmap, vaddr_t va, int *prot);	/* page address, 0 if unmapped; prot may be NULL */
void pmap_remove(struct pmap *pmap, vaddr_t va);		/* no reference dropped */
void pmap_activate(struct pmap *pmap);				/* also sets pcpu0.pc_curpmap */
void pmap_guard(vaddr_t va);
void pmap_kprotect(vaddr_t va, size_t size, int prot);		/* whole pages of the linear map outside the kernel's text */

/* swtch.S, machdep.c */
void cpu_switch(struct thread *old, struct thread *new);
void cpu_fork(struct thread *parent, struct thread *child);
void cpu_thread_start(struct thread *td, void (*function)(void *), void *arg); /* function does not return */
void cpu_exec_setregs(struct trapframe *frame, vaddr_t entry, vaddr_t sp, uint64_t argc, vaddr_t argv, vaddr_t envp);
int cpu_set_upcall(struct thread *td, vaddr_t entry, vaddr_t arg, vaddr_t stack_end); /* td begins with entry(arg); 0 or EFAULT */
void cpu_user_enter(struct trapframe *frame) __dead2;
int cpu_sigreturn(struct trapframe *frame, const struct trapframe *saved); /* takes saved over, user mode kept; 0 or EINVAL */
void cpu_idle(void);	/* interrupts on, wait for one, interrupts off */
void cpu_startup(void); /* first thing kmain calls: vectors, segments, system call entry; no memory to allocate yet */
void cpu_halt(void) __dead2;

uint64_t cpu_syscall_number(struct trapframe *frame);
int cpu_syscall_args(struct trapframe *frame, uint64_t args[6], int narg); /* 0 or EFAULT; an array of registers, whatever their size */
void cpu_syscall_result(struct trapframe *frame, int error, uint64_t value); /* error 0: value; ERESTART (-1): redo the instruction; EJUSTRETURN (-2): leave the frame alone */
vaddr_t frame_pc(struct trapframe *frame);
vaddr_t frame_sp(struct trapframe *frame);
bool frame_is_user(struct trapframe *frame);
void cpu_stacktrace(struct trapframe *frame); /* frame may be NULL: from here */

/*
 * sigcode.S: runs in user mode with sp at a struct sigframe (16-byte aligned): word 0 is the handler, its three
 * arguments are in the argument registers already, the frame to restore is at sp + SIGFRAME_CONTEXT.
 * Calls the handler, then sigreturn(sp + SIGFRAME_CONTEXT). Position independent.
 */
extern const char sigcode[], esigcode[];

/* The gates (kern/gates.S): the README says what each one does. */
struct dof_helper;
#define GATE(type, name, parameters) type name parameters;
#include "sys/gates.def"
#undef GATE

/* ---- given by the machine-independent part ---- */

void kmain(unsigned long ram_size, paddr_t initrd, unsigned long initrd_size) __dead2; /* _start calls it: on kstack0, high addresses */
void trap_fault(struct trapframe *frame, vaddr_t address, int access);	/* page fault; access is one PROT_* bit */
void trap_signal(struct trapframe *frame, int sig, vaddr_t address);	/* any other exception of user mode */
void trap_fatal(struct trapframe *frame, const char *what) __dead2;	/* any other exception of kernel mode */
void syscall(struct trapframe *frame);
void hardclock(struct trapframe *frame);
void fork_return(void *td);	/* where a forked thread starts */
void panic(const char *format, ...) __dead2 __printflike(1, 2);
int printf(const char *format, ...) __printflike(1, 2);
paddr_t vm_page_alloc(void);	/* one zeroed page, referenced once; 0 if there is none */
void vm_page_unref(paddr_t pa); /* frees it with the last reference */
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
extern char kstack0[PAGE_SIZE + KSTACK_SIZE];
extern char kernel_text_start[], kernel_text_end[], kernel_data_start[], kernel_end[];

#define SIGFRAME_CONTEXT 64 /* struct sigframe: handler, siginfo, padding; then the trap frame */

#endif
