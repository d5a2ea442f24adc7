/* The CPU: there is one. */

typedef int processorid_t;
typedef int psetid_t;
typedef int chipid_t;
typedef int lgrp_id_t;

typedef struct cpuinfo {
	processorid_t cpu_id;
	psetid_t cpu_pset;
	chipid_t cpu_chip;
	lgrp_id_t cpu_lgrp;
} cpuinfo_t;

translator cpuinfo_t < int C > {
	cpu_id = C;
	cpu_pset = 0;
	cpu_chip = 0;
	cpu_lgrp = 0;
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> (cpu);
inline psetid_t pset = 0;
inline chipid_t chip = 0;
inline lgrp_id_t lgrp = 0;
