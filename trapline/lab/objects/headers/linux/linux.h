/*
 * What uprobes.c, decode-insn.c and simulate-insn.c of Linux (arm64, riscv) need of their kernel, and
 * no more: written for Trapline from the interfaces.  <asm/insn.h>, <asm/uprobes.h> and <asm/probes.h>
 * are the source tree's own.
 */
#ifndef TRAPLINE_LINUX_H
#define TRAPLINE_LINUX_H

#define UINT_MAX (~0U)
#define INT_MAX ((int)(UINT_MAX >> 1))
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16;
typedef uint32_t u32, __u32, __le32;
typedef uint64_t u64, __u64, __le64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned int gfp_t;

#define __always_inline inline __attribute__((always_inline))
#define __kprobes
#define __init
#define __ro_after_init
#define __user
#define __packed __attribute__((packed))
#define __visible
#define __percpu
#define fallthrough __attribute__((fallthrough))
#define __stringify_1(...) #__VA_ARGS__
#define __stringify(...) __stringify_1(__VA_ARGS__)
#define nokprobe_inline inline
#define NOKPROBE_SYMBOL(function)
#define OPTIMIZER_HIDE_VAR(variable) __asm__("" : "=r"(variable) : "0"(variable))
#define CONFIG_UPROBES 1
#define CONFIG_KPROBES 1
#define likely(x) (x)
#define unlikely(x) (x)
#define BIT(n) (1UL << (n))
#define GENMASK(high, low) ((~0UL << (low)) & (~0UL >> (8 * sizeof(long) - 1 - (high))))
#define FIELD_GET(mask, value) (((value) & (mask)) / ((mask) & -(mask)))
#define FIELD_PREP(mask, value) (((value) * ((mask) & -(mask))) & (mask))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define BUILD_BUG_ON(condition) ((void)sizeof(char[1 - 2 * !!(condition)]))
#define IS_ALIGNED(value, size) (((value) & ((size) - 1)) == 0)
#define ALIGN_DOWN(value, size) ((value) & ~((typeof(value))(size) - 1))
#define READ_ONCE(value) (*(const volatile typeof(value) *)&(value))
/* 1 for an option that is defined as 1, else 0: only the former becomes two arguments. */
#define TRAPLINE_OPTION_1 0, 1
#define TRAPLINE_SECOND(first, second, ...) second
#define TRAPLINE_ENABLED(...) TRAPLINE_SECOND(__VA_ARGS__, 0, 0)
#define TRAPLINE_JOINED(value) TRAPLINE_ENABLED(TRAPLINE_OPTION_##value)
#define IS_ENABLED(option) TRAPLINE_JOINED(option)
#define le32_to_cpu(value) ((u32)(value))
#define cpu_to_le32(value) ((__le32)(value))
#define le16_to_cpu(value) ((u16)(value))
#define __le32_to_cpu(value) ((u32)(value))
#define __cpu_to_le32(value) ((__le32)(value))
#define get_unaligned(place) ({ typeof(*(place)) value_; __builtin_memcpy(&value_, (place), sizeof(value_)); value_; })
#define lower_32_bits(value) ((u32)(value))
#define upper_32_bits(value) ((u32)((u64)(value) >> 32))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define ENOEXEC 8
#define ENOMEM 12
#define EFAULT 14
#define EINVAL 22
#define ENOSPC 28
#define ENOSYS 38
#define ENODATA 61
#define EILSEQ 84
#define EOPNOTSUPP 95
#define ERESTART 85
#define ENOTSUPP 524
#define SZ_1 0x1
#define SZ_2 0x2
#define SZ_4 0x4
#define SZ_8 0x8
#define SZ_16 0x10
#define SZ_32 0x20
#define SZ_64 0x40
#define SZ_128 0x80
#define SZ_256 0x100
#define SZ_512 0x200
#define SZ_1K 0x400
#define SZ_2K 0x800
#define SZ_4K 0x1000
#define SZ_8K 0x2000
#define SZ_16K 0x4000
#define SZ_32K 0x8000
#define SZ_64K 0x10000
#define SZ_128K 0x20000
#define SZ_256K 0x40000
#define SZ_512K 0x80000
#define SZ_1M 0x100000
#define SZ_2M 0x200000
#define SZ_4M 0x400000
#define SZ_8M 0x800000
#define SZ_16M 0x1000000
#define SZ_32M 0x2000000
#define SZ_64M 0x4000000
#define SZ_128M 0x8000000
#define SZ_256M 0x10000000
#define SZ_512M 0x20000000
#define SZ_1G 0x40000000
#define SZ_2G 0x80000000

static __always_inline s32
sign_extend32(u32 value, int index)
{
	return (s32)(value << (31 - index)) >> (31 - index);
}

static __always_inline s64
sign_extend64(u64 value, int index)
{
	return (s64)(value << (63 - index)) >> (63 - index);
}

static inline int
hweight64(u64 value)
{
	int count = 0;
	for (; value; value &= value - 1)
		count++;
	return count;
}
#define fls64(value) ((value) ? 64 - __builtin_clzll(value) : 0)
#define __ffs64(value) __builtin_ctzll(value)
#define __ffs(value) __builtin_ctzl(value)
#define ffs(value) __builtin_ffs(value)
#define ilog2(value) (63 - __builtin_clzll(value))
#define ror64(value, count) ((value) >> (count) | (value) << (64 - (count)))
#define offset_in_page(address) ((unsigned long)(address) & 4095)

int printk(const char *, ...);
#define pr_err(...) printk(__VA_ARGS__)
#define pr_warn(...) printk(__VA_ARGS__)
void panic(const char *, ...) __attribute__((noreturn));
#define BUG() panic("BUG at line %d", __LINE__)
#define BUG_ON(condition) ((condition) ? BUG() : (void)0)
#define WARN_ON(condition) ({ int true_ = !!(condition); if (true_) printk("WARN_ON"); true_; })
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define WARN(condition, ...) WARN_ON(condition)
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);

#define device_initcall(function) int (*trapline_initcall)(void) = (function)
#define PAGE_SIZE 4096UL
#define PAGE_MASK (~4095UL)
#define IS_ERR_VALUE(value) ((unsigned long)(value) >= -4095UL)
struct page;
void *kmap_atomic(struct page *);
void kunmap_atomic(void *);
unsigned long copy_to_user(void *, const void *, unsigned long);
unsigned long copy_from_user(void *, const void *, unsigned long);
long copy_from_kernel_nofault(void *, const void *, size_t);

struct pt_regs {
#if defined(__aarch64__)
	u64 regs[31];
	u64 sp, pc, pstate;
#elif defined(__riscv)
	unsigned long epc, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5, a6, a7;
	unsigned long s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, t3, t4, t5, t6, status, badaddr, cause, orig_a0;
#elif defined(__x86_64__)
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
#elif defined(__i386__)
	unsigned long bx, cx, dx, si, di, bp, ax, ds, es, fs, gs, orig_ax, ip, cs, flags, sp, ss;
#endif
};

#if defined(__aarch64__)
#define instruction_pointer(registers) ((registers)->pc)
static inline void
instruction_pointer_set(struct pt_regs *registers, unsigned long value)
{
	registers->pc = value;
}
#define procedure_link_pointer(registers) ((registers)->regs[30])
static inline void
procedure_link_pointer_set(struct pt_regs *registers, unsigned long value)
{
	registers->regs[30] = value;
}
static inline unsigned long
pt_regs_read_reg(const struct pt_regs *registers, int number)
{
	return number == 31 ? 0 : registers->regs[number];
}
static inline void
pt_regs_write_reg(struct pt_regs *registers, int number, unsigned long value)
{
	if (number != 31)
		registers->regs[number] = value;
}
#define FAULT_BRK_IMM 0x100
#define UPROBES_BRK_IMM 5
#define BRK64_OPCODE_UPROBES (0xd4200000 | UPROBES_BRK_IMM << 5)
#define MMCF_AARCH32 1
void sync_icache_aliases(unsigned long, unsigned long);
#define DBG_HOOK_HANDLED 0
#define DBG_HOOK_ERROR 1
struct break_hook {
	int (*fn)(struct pt_regs *, unsigned long);
	u16 imm, mask;
};
struct step_hook {
	int (*fn)(struct pt_regs *, unsigned long);
};
void register_user_break_hook(struct break_hook *);
void register_user_step_hook(struct step_hook *);
#elif defined(__riscv)
#define CONFIG_RISCV_ISA_C 1
#define instruction_pointer(registers) ((registers)->epc)
static inline void
instruction_pointer_set(struct pt_regs *registers, unsigned long value)
{
	registers->epc = value;
}
#define __BUG_INSN_16 0x9002
#define __BUG_INSN_32 0x00100073
#define GET_INSN_LENGTH(code) (((code) & 3) == 3 ? 4 : 2)
void flush_icache_range(unsigned long, unsigned long);
void fence_i(void);
#define local_flush_icache_all() __asm__ volatile("fence.i" ::: "memory")
#elif defined(__x86_64__) || defined(__i386__)
#include "x86.h"
#endif

struct mm_struct {
	struct {
		unsigned long flags;
	} context;
};

#if !defined(__x86_64__) && !defined(__i386__)
#include <asm/probes.h>
#endif
#include <asm/uprobes.h>

struct arch_uprobe_task;
struct uprobe_task {
	struct arch_uprobe_task autask;
	unsigned long vaddr, xol_vaddr;
};
struct task_struct {
	struct uprobe_task *utask;
	int pid;
	struct {
		unsigned long fault_code, bad_cause, trap_nr;
	} thread;
};
extern struct task_struct trapline_task;
#define current (&trapline_task)
struct return_instance {
	unsigned long func, stack;
};
enum rp_check {
	RP_CHECK_CALL,
	RP_CHECK_CHAIN_CALL,
	RP_CHECK_RET,
};
struct notifier_block;
#define NOTIFY_DONE 0
void user_enable_single_step(struct task_struct *);
void user_disable_single_step(struct task_struct *);
int uprobe_pre_sstep_notifier(struct pt_regs *);
int uprobe_post_sstep_notifier(struct pt_regs *);

#include "kprobe.h"

#endif
