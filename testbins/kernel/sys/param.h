/* Sizes and addresses that are the same on every ISA. */
#ifndef SYS_PARAM_H
#define SYS_PARAM_H

#define PAGE_SHIFT 12
#define PAGE_SIZE 4096
#define PAGE_MASK (PAGE_SIZE - 1)
#define KSTACK_PAGES 4
#define KSTACK_SIZE (KSTACK_PAGES * PAGE_SIZE)

#define KERNEL_PHYSICAL 0x200000UL /* where the image is loaded */

#define USER_BASE 0x400000UL	/* lowest address a program may use */
#define USRSTACK 0x7ffff000UL	/* the stack ends here and grows down */
#define SHAREDPAGE 0x7ffff000UL	/* one page of user text: the signal trampoline */
#define USER_END 0x80000000UL
#define MAXSSIZ 0x100000UL	/* largest stack */

#define HZ 1000
#define SCHED_SLICE 10 /* ticks a thread runs before another of its turn */

#define MAXCOMLEN 19
#define MAXARGS_SAVED 256 /* p_args */
#define NOFILE 32
#define PATH_MAX 1024
#define NAME_MAX 255
#define ARG_MAX 16384
#define MAXPROC 256

#endif
