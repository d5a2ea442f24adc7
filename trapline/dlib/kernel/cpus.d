/* CPUs by the names that illumos has for their members, curthread->t_cpu->cpu_disp->disp_nrunnable (threads.d). */

#pragma D depends_on module kernel
#pragma D depends_on library sched.d

typedef struct pcpu_names {
	processorid_t cpu_id;
	processorid_t cpu_seqid;
	struct thread *cpu_thread;
	struct thread *cpu_idle_thread;
	struct tdq *cpu_disp;
} pcpu_names_t;

translator pcpu_names_t < struct pcpu *P > {
	cpu_id = cpu;
	cpu_seqid = cpu;
	cpu_thread = P->pc_curthread;
	cpu_idle_thread = P->pc_idlethread;
	cpu_disp = &`tdq_cpu[cpu];
};

typedef struct tdq_names {
	int disp_nrunnable;
} tdq_names_t;

translator tdq_names_t < struct tdq *Q > {
	disp_nrunnable = Q->tdq_load;
};
