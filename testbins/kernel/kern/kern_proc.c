/* The process table (FreeBSD sys/kern/kern_proc.c, kern_thread.c). */
#include "sys/malloc.h"
#include "sys/systm.h"
#include "sys/vm.h"

#define PIDHASHSIZE 64
#define PIDHASH(pid) (&pidhashtbl[(pid) & (PIDHASHSIZE - 1)])

struct proclist allproc = TAILQ_HEAD_INITIALIZER(allproc);
struct sx allproc_lock, proctree_lock;
static TAILQ_HEAD(, proc) pidhashtbl[PIDHASHSIZE];
static uma_zone_t proc_zone, thread_zone;
static TAILQ_HEAD(, thread) zombie_threads = TAILQ_HEAD_INITIALIZER(zombie_threads); /* their stacks are used again */
static lwpid_t lasttid = 100000;
static int nprocs;

static void
procinit(const void *unused __unused)
{
	sx_init(&allproc_lock, "allproc");
	sx_init(&proctree_lock, "proctree");
	for (int i = 0; i < PIDHASHSIZE; i++)
		TAILQ_INIT(&pidhashtbl[i]);
	proc_zone = uma_zcreate("PROC", sizeof(struct proc));
	thread_zone = uma_zcreate("THREAD", sizeof(struct thread));
}
SYSINIT(procinit, SI_SUB_INTRINSIC, SI_ORDER_FIRST, procinit, NULL);

struct proc *
pfind(pid_t pid)
{
	struct proc *p;

	TAILQ_FOREACH(p, PIDHASH(pid), p_hash)
		if (p->p_pid == pid)
			return (p);
	return (NULL);
}

void
proc_insert(struct proc *p)
{
	sx_xlock(&allproc_lock);
	TAILQ_INSERT_TAIL(&allproc, p, p_list);
	TAILQ_INSERT_TAIL(PIDHASH(p->p_pid), p, p_hash);
	nprocs++;
	sx_xunlock(&allproc_lock);
}

void
proc_remove(struct proc *p)
{
	sx_xlock(&allproc_lock);
	TAILQ_REMOVE(&allproc, p, p_list);
	TAILQ_REMOVE(PIDHASH(p->p_pid), p, p_hash);
	nprocs--;
	sx_xunlock(&allproc_lock);
}

/* A process and its thread, with nothing in them yet; NULL without memory, or with too many already. */
struct proc *
proc_alloc(void)
{
	struct proc *p;
	struct thread *td;

	if (nprocs >= MAXPROC || (p = uma_zalloc(proc_zone, M_WAITOK)) == NULL)
		return (NULL);
	if ((td = thread_alloc()) == NULL) {
		uma_zfree(proc_zone, p);
		return (NULL);
	}
	bzero(p, sizeof(*p));
	TAILQ_INIT(&p->p_children);
	callout_init(&p->p_itcallout, 1);
	p->p_state = PRS_NEW;
	p->p_pmap = &kernel_pmap;
	p->p_threads = td;
	p->p_numthreads = 1;
	td->td_proc = p;
	return (p);
}

void
proc_free(struct proc *p)
{
	thread_free(p->p_threads);
	uma_zfree(proc_zone, p);
}

/* The page below a kernel stack is not mapped: running over its end is a fault. */
static bool
vm_thread_new(struct thread *td)
{
	char *stack = kmem_malloc(PAGE_SIZE + KSTACK_SIZE);

	if (stack == NULL)
		return (false);
	pmap_guard((vaddr_t)stack);
	td->td_kstack = (vaddr_t)stack + PAGE_SIZE;
	td->td_kstack_size = KSTACK_SIZE;
	return (true);
}

struct thread *
thread_alloc(void)
{
	struct thread *td = TAILQ_FIRST(&zombie_threads);
	vaddr_t stack;

	if (td != NULL)
		TAILQ_REMOVE(&zombie_threads, td, td_runq);
	else if ((td = uma_zalloc(thread_zone, M_WAITOK)) == NULL)
		return (NULL);
	else if (!vm_thread_new(td)) {
		uma_zfree(thread_zone, td);
		return (NULL);
	}
	stack = td->td_kstack;
	bzero(td, sizeof(*td));
	td->td_kstack = stack;
	td->td_kstack_size = KSTACK_SIZE;
	td->td_frame = (struct trapframe *)(stack + KSTACK_SIZE) - 1;
	bzero(td->td_frame, sizeof(*td->td_frame)); /* the stack may be another thread's; kernel threads keep this */
	td->td_tid = ++lasttid;
	td->td_state = TDS_INACTIVE;
	callout_init(&td->td_slpcallout, 1);
	return (td);
}

/* Kept with its stack, whose guard page stays unmapped. */
void
thread_free(struct thread *td)
{
	TAILQ_INSERT_HEAD(&zombie_threads, td, td_runq);
}

void
proc_reparent(struct proc *child, struct proc *parent)
{
	if (child->p_pptr == parent)
		return;
	TAILQ_REMOVE(&child->p_pptr->p_children, child, p_sibling);
	TAILQ_INSERT_TAIL(&parent->p_children, child, p_sibling);
	child->p_pptr = parent;
}

/* args: NUL-terminated strings one after another. */
void
proc_set_args(struct proc *p, const char *args, size_t size)
{
	p->p_args = &p->p_pargs;
	p->p_args->ar_ref = 1;
	p->p_args->ar_length = MIN(size, MAXARGS_SAVED);
	memcpy(p->p_args->ar_args, args, p->p_args->ar_length);
	p->p_args->ar_args[MAXARGS_SAVED - 1] = '\0';
}
