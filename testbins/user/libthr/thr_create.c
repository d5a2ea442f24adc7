/* Threads: making them, ending, waiting for their end (FreeBSD lib/libthr/thread/thr_create.c, thr_exit.c, thr_join.c). */
#include "sys/param.h"
#include "thr_private.h"

#define THR_STACK 0x10000 /* also their alignment: by its stack a thread knows itself */
#define FRAME_END 16 /* zeros at the top, where a walk of the stack ends */

const char usdt_module[] = "libthr.so.3";
static struct pthread initial; /* the thread the program began with */

pthread_t
pthread_self(void)
{
	vaddr_t sp = (vaddr_t)__builtin_frame_address(0);

	return (sp >= USRSTACK - MAXSSIZ ? &initial : (struct pthread *)(vaddr_t)rounddown2(sp, THR_STACK));
}

static int *
error_threaded(void)
{
	return (&pthread_self()->error);
}

static void __attribute__((constructor))
_libpthread_init(void)
{
	thr_self(&initial.tid);
	__set_error_selector(error_threaded);
}

/* The stack's pages are there once they are touched. */
static struct pthread *
stack_alloc(void)
{
	char *place = mmap(NULL, 2 * THR_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0), *stack;

	if (place == (char *)-1)
		return (NULL);
	stack = (char *)(vaddr_t)roundup2((vaddr_t)place, THR_STACK);
	if (stack > place)
		munmap(place, stack - place);
	munmap(stack + THR_STACK, place + THR_STACK - stack);
	return ((struct pthread *)stack);
}

static void
thread_start(void *arg)
{
	struct pthread *self = arg;

	pthread_exit(self->start(self->arg));
}

int
pthread_create(pthread_t *thread, const void *attributes __unused, void *(*start)(void *), void *arg)
{
	struct pthread *new = stack_alloc();
	struct thr_param param = { .start_func = thread_start, .arg = new, .stack_base = (char *)new, .stack_size = THR_STACK - FRAME_END };

	if (new == NULL)
		return (EAGAIN);
	new->start = start;
	new->arg = arg;
	param.child_tid = &new->tid;
	*thread = new;
	if (thr_new(&param, sizeof(param)) != 0) {
		munmap(new, THR_STACK);
		return (errno);
	}
	return (0);
}

void
pthread_exit(void *result)
{
	struct pthread *self = pthread_self();

	self->result = result;
	thr_exit(&self->ended);
	exit(0); /* it was the last */
}

int
pthread_join(pthread_t thread, void **result)
{
	if (thread == pthread_self())
		return (EDEADLK);
	while (*(volatile long *)&thread->ended == 0)
		_thr_umtx_wait((volatile uint32_t *)&thread->ended, 0);
	if (result != NULL)
		*result = thread->result;
	if (thread != &initial)
		munmap(thread, THR_STACK);
	return (0);
}

void
pthread_yield(void)
{
	sched_yield();
}
