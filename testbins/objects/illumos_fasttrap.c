/* exhibits/loop_count.c with the interfaces of illumos: its registers, and where a thread's scratch space is. */
#define reg regs
#define r_rflags r_rfl
#define r_eflags r_efl
#define r_esp r_uesp
#include "exhibits/loop_count.c"

struct user_desc {
	uintptr_t usd_base;
};
extern struct {
	struct pcb {
#if defined(__x86_64__)
		uintptr_t pcb_fsbase;
#else
		struct user_desc pcb_gsdesc;
#endif
	} lwp_pcb;
} trapline_lwp;
static fasttrap_scrspace_t space;

fasttrap_scrspace_t *
fasttrap_scraddr(struct thread *thread, fasttrap_proc_t *process)
{
	(void)process;
	if (thread->t_dtrace_step)
		return 0;
#if defined(__x86_64__)
	space.ftss_addr = trapline_lwp.lwp_pcb.pcb_fsbase + sizeof(void *);
#else
	space.ftss_addr = trapline_lwp.lwp_pcb.pcb_gsdesc.usd_base + sizeof(void *);
#endif
	return &space;
}
