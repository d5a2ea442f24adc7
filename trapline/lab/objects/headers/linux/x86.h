/* What uprobes.c, kprobes/core.c, insn.c and inat.c of x86 need beside linux.h. */
#ifndef TRAPLINE_X86_H
#define TRAPLINE_X86_H

#if defined(__x86_64__)
#define CONFIG_X86_64 1
#define user_64bit_mode(registers) ((void)(registers), true)
#define is_64bit_mm(mm) ((void)(mm), true)
#else
#define CONFIG_X86_32 1
#define user_64bit_mode(registers) ((void)(registers), false)
#define is_64bit_mm(mm) ((void)(mm), false)
#endif
#define instruction_pointer(registers) ((registers)->ip)

#define X86_EFLAGS_CF 0x001
#define X86_EFLAGS_PF 0x004
#define X86_EFLAGS_ZF 0x040
#define X86_EFLAGS_SF_BIT 7
#define X86_EFLAGS_SF 0x080
#define X86_EFLAGS_TF 0x100
#define X86_EFLAGS_IF 0x200
#define X86_EFLAGS_OF_BIT 11
#define X86_EFLAGS_OF 0x800

/* The system call of return probes is compiled and never made. */
#define __NR_uretprobe 335
#define SYSCALL_DEFINE0(name) long trapline_sys_##name(void)
#define task_pt_regs(task) ((struct pt_regs *)(void *)(task))
#define uprobe_get_trampoline_vaddr() 0ul
#define UPROBE_NO_TRAMPOLINE_VADDR (~0ul)
#define SIGILL 4
#define SIGSEGV 11
void force_sig(int);
void uprobe_handle_trampoline(struct pt_regs *);
#define shstk_is_enabled() false
#define shstk_update_last_frame(value) 0
#define shstk_push(value) 0
#define TIF_BLOCKSTEP 25
#define test_tsk_thread_flag(task, flag) false
#define set_task_blockstep(task, on) ((void)0)
#define DIE_INT3 1
#define DIE_DEBUG 2
#define NOTIFY_STOP 0x8001
struct task_struct;
struct die_args {
	struct pt_regs *regs;
};
#define SIGTRAP 5
void send_sig(int, struct task_struct *, int);
#define user_mode(registers) (((registers)->cs & 3) == 3)
#define TIF_ADDR32 29
#define test_thread_flag(flag) false
#define current_thread_info() ((struct thread_info *)0)
struct thread_info {
	unsigned int status;
};
#define TS_COMPAT 2
unsigned long get_unmapped_area(void *, unsigned long, unsigned long, unsigned long, unsigned long);
#define TASK_SIZE 0x7ffff000ul

static inline bool
test_bit(long number, const volatile unsigned long *bits)
{
	return bits[number / (8 * sizeof(long))] >> number % (8 * sizeof(long)) & 1;
}

#endif
