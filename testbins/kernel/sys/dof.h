/* The registration of a program's probes: DOF, and the device that accepts it (FreeBSD sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h). */
#ifndef SYS_DOF_H
#define SYS_DOF_H

#include "sys/types.h"

struct dof_hdr {
	uint8_t dofh_ident[16];
	uint32_t dofh_flags;
	uint32_t dofh_hdrsize;
	uint32_t dofh_secsize;
	uint32_t dofh_secnum;
	uint64_t dofh_secoff;
	uint64_t dofh_loadsz;
	uint64_t dofh_filesz;
	uint64_t dofh_pad;
};

struct dof_sec {
	uint32_t dofs_type;
	uint32_t dofs_align;
	uint32_t dofs_flags;
	uint32_t dofs_entsize;
	uint64_t dofs_offset;
	uint64_t dofs_size;
};

struct dof_provider {
	uint32_t dofpr_strtab, dofpr_probes, dofpr_prargs, dofpr_proffs; /* sections */
	uint32_t dofpr_name;
	uint32_t dofpr_provattr, dofpr_modattr, dofpr_funcattr, dofpr_nameattr, dofpr_argsattr;
	uint32_t dofpr_prenoffs;
};

struct dof_probe {
	uint64_t dofpr_addr; /* of the function */
	uint32_t dofpr_func, dofpr_name;
	uint32_t dofpr_nargv, dofpr_xargv; /* the first type, native and translated */
	uint32_t dofpr_argidx, dofpr_offidx;
	uint8_t dofpr_nargc, dofpr_xargc;
	uint16_t dofpr_noffs;
	uint32_t dofpr_enoffidx;
	uint16_t dofpr_nenoffs;
	uint16_t dofpr_pad1;
	uint32_t dofpr_pad2;
};

struct dof_optdesc {
	uint32_t dofo_option;
	uint32_t dofo_strtab; /* section, or DOF_SECIDX_NONE */
	uint64_t dofo_value;
};

#if __SIZEOF_POINTER__ == 8
#define DOF_MODEL_NATIVE 2 /* LP64 */
#else
#define DOF_MODEL_NATIVE 1 /* ILP32 */
#endif
#define DOF_ENCODE_LSB 1
#define DOF_VERSION_2 2
#define DOF_SECF_LOAD 1
#define DOF_SECIDX_NONE 0xffffffffu
#define DOF_SECT_STRTAB 8
#define DOF_SECT_OPTDESC 14
#define DOF_SECT_PROVIDER 15
#define DOF_SECT_PROBES 16
#define DOF_SECT_PRARGS 17
#define DOF_SECT_PROFFS 18
#define DOF_SECT_PRENOFFS 26
#define DOF_ATTR(name, data, class) ((uint32_t)(name) << 24 | (data) << 16 | (class) << 8)

struct dof_helper {
	char dofhp_mod[64];
	uint64_t dofhp_addr; /* what is added to addresses that are to be relocated */
	uint64_t dofhp_dof;
	int32_t dofhp_pid;
	int32_t dofhp_gen;
};

#define DTRACEHIOC_REMOVE 0x80047a02u
#define DTRACEHIOC_ADDDOF 0xc0587a03u

#endif
