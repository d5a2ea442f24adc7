/* What the kprobes.c and core.c of kprobes need beside linux.h: <linux/kprobes.h> and its neighbours. */
#ifndef TRAPLINE_KPROBE_H
#define TRAPLINE_KPROBE_H

#define DECLARE_PER_CPU(type, name) extern type name
#define DEFINE_PER_CPU(type, name) type name
#define this_cpu_ptr(variable) (variable)
#define __this_cpu_read(variable) (variable)
#define __this_cpu_write(variable, value) ((variable) = (value))

#include <asm/kprobes.h>

struct kprobe {
	kprobe_opcode_t *addr;
	const char *symbol_name;
	unsigned int offset, flags;
	int (*pre_handler)(struct kprobe *, struct pt_regs *);
	void (*post_handler)(struct kprobe *, struct pt_regs *, unsigned long);
	kprobe_opcode_t opcode;
	struct arch_specific_insn ainsn;
};
struct kretprobe_instance {
	kprobe_opcode_t *ret_addr;
	void *fp;
};
struct kretprobe_blackpoint {
	const char *name;
	void *addr;
};
#define KPROBE_HIT_ACTIVE 1
#define KPROBE_HIT_SS 2
#define KPROBE_REENTER 4
#define KPROBE_HIT_SSDONE 8

DECLARE_PER_CPU(struct kprobe *, current_kprobe);
DECLARE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);
#define kprobe_running() (current_kprobe)
#define reset_current_kprobe() ((void)(current_kprobe = 0))
#define get_kprobe_ctlblk() (&kprobe_ctlblk)

struct kprobe *get_kprobe(void *);
kprobe_opcode_t *get_insn_slot(void);
void free_insn_slot(kprobe_opcode_t *, int);
void kprobes_inc_nmissed_count(struct kprobe *);
void dump_kprobe(struct kprobe *);
#define kprobe_add_area_blacklist(start, end) ((void)(start), (void)(end), 0)
const void *search_exception_tables(unsigned long);
#define fixup_exception(registers) false
int kallsyms_lookup_size_offset(unsigned long, unsigned long *, unsigned long *);
#define kretprobe_trampoline_handler(registers, frame) 0ul
#define EXECMEM_KPROBES 0
#define execmem_alloc(kind, size) ((void *)0)
#define execmem_free(memory) ((void)0)
#define set_memory_rox(address, pages) 0
extern char __entry_text_start[], __entry_text_end[], __irqentry_text_start[], __irqentry_text_end[];
extern char __hyp_text_start[], __hyp_text_end[], __idmap_text_start[], __idmap_text_end[];
extern char __hyp_idmap_text_start[], __hyp_idmap_text_end[];
#define is_kernel_in_hyp_mode() true

#if defined(__aarch64__)
#define DAIF_MASK 0x3c0
#define BRK64_OPCODE_KPROBES (0xd4200000 | 4 << 5)
#define BRK64_OPCODE_KPROBES_SS (0xd4200000 | 6 << 5)
int aarch64_insn_patch_text_nosync(void *, u32);
#define aarch64_insn_patch_text(addresses, words, count) ((void)(addresses), (void)(words), 0)
#elif defined(__riscv)
#define SR_SPIE 0x20
int patch_text_nosync(void *, const void *, size_t);
#define patch_text(address, words, size) ((void)(words), 0)
#else
#define text_poke_sync() ((void)0)
static inline unsigned long
regs_get_register(struct pt_regs *registers, unsigned int offset)
{
	return *(unsigned long *)((char *)registers + offset);
}
#define ftrace_location(address) 0ul
#define is_endbr(word) ((word) == 0xfa1e0ff3)
#define perf_event_text_poke(...) ((void)0)
int alternatives_text_reserved(void *, void *);
extern const unsigned char *const x86_nops[];
#endif

#endif
