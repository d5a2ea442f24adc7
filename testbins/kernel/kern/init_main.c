/* From kmain to process 1 (FreeBSD sys/kern/init_main.c). */
#include "sys/jail.h"
#include "sys/file.h"
#include "sys/malloc.h"
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

static void mi_startup(void);
static void swapper(void) __dead2;
int kern_execve_init(struct thread *td, const char *path);

struct proc proc0, *initproc;
struct thread thread0;
struct pcpu pcpu0;
char kstack0[PAGE_SIZE + KSTACK_SIZE] __attribute__((aligned(PAGE_SIZE)));

SET_DECLARE(sysinit_set, const struct sysinit);

/* thread0 must exist before anything can trap: its stack is the one we are on. */
static void
thread0_init(void)
{
	thread0.td_kstack = (vaddr_t)kstack0 + PAGE_SIZE;
	thread0.td_kstack_size = KSTACK_SIZE;
	thread0.td_frame = (struct trapframe *)(thread0.td_kstack + KSTACK_SIZE) - 1;
	thread0.td_proc = &proc0;
	thread0.td_state = TDS_RUNNING;
	thread0.td_flags = TDF_KTHREAD;
	proc0.p_pmap = &kernel_pmap;
	proc0.p_threads = &thread0;
	pcpu0.pc_curthread = &thread0;
}

void
kmain(unsigned long ram_size, paddr_t initrd, unsigned long initrd_size)
{
	thread0_init();
	cpu_startup();
	printf("Trapline teaching kernel\n");
	vm_page_startup(ram_size, initrd, initrd_size);
	pmap_bootstrap(ram_size);
	pmap_guard((vaddr_t)kstack0);
	memfs_set_initrd(initrd, initrd_size);
	mi_startup();
	swapper();
}

/* Calls what SYSINIT collected, by subsystem and order; entries of equal rank in link order. */
static void
mi_startup(void)
{
	const struct sysinit **sip;

	for (int subsystem = 0; subsystem <= SI_SUB_LAST; subsystem++)
		for (int order = SI_ORDER_FIRST; order <= SI_ORDER_ANY; order++)
			SET_FOREACH(sip, sysinit_set)
				if ((int)(*sip)->subsystem == subsystem && (int)(*sip)->order == order)
					(*sip)->func((*sip)->udata);
}

static struct session session0 = { 0 }, init_session = { 1 };
static struct pgrp pgrp0 = { &session0, 0 }, init_pgrp = { &init_session, 1 };

static void
proc0_init(const void *unused __unused)
{
	thread0.td_tid = 100000;
	strlcpy(thread0.td_name, "swapper", sizeof(thread0.td_name));
	strlcpy(proc0.p_comm, "kernel", sizeof(proc0.p_comm));
	proc_set_args(&proc0, "kernel", sizeof("kernel"));
	proc0.p_state = PRS_NORMAL;
	proc0.p_flag = P_KPROC;
	proc0.p_pgrp = &pgrp0;
	proc0.p_ucred = &proc0.p_cred;
	proc0.p_cred.cr_prison = &prison0;
	TAILQ_INIT(&proc0.p_children);
	callout_init(&thread0.td_slpcallout, 1);
	callout_init(&proc0.p_itcallout, 1);
	proc0.p_fd = fdinit();
	proc0.p_sigacts = sigacts_alloc();
	proc_insert(&proc0);
}
SYSINIT(proc0_init, SI_SUB_INTRINSIC, SI_ORDER_ANY, proc0_init, NULL);

static void
create_init(const void *unused __unused)
{
	struct fork_req fr = { .fr_flags = RFFDG | RFPROC, .fr_procp = &initproc, .fr_function = start_init, .fr_name = "init" };

	if (fork1(&thread0, &fr) != 0)
		panic("cannot fork init");
	initproc->p_flag &= ~P_KPROC;
	initproc->p_pgrp = &init_pgrp;
	initproc->p_threads->td_flags &= ~TDF_KTHREAD;
}
SYSINIT(create_init, SI_SUB_CREATE_INIT, SI_ORDER_FIRST, create_init, NULL);

/* Process 1 starts here, in the kernel, and becomes a program. */
void
start_init(void *unused __unused)
{
	struct thread *td = curthread;
	int error;

	error = kern_execve_init(td, "/sbin/init");
	if (error != 0)
		panic("cannot run /sbin/init: error %d", error);
	gate_ready();
	userret(td, td->td_frame);
	cpu_user_enter(td->td_frame);
}

/* There is nothing to swap: thread0 only waits. */
static void
swapper(void)
{
	for (;;)
		tsleep(&proc0, 0, "swapin", 0);
}
