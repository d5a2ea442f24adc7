/* Bits of the control registers (RISC-V privileged specification). For C and assembly. */
#ifndef RISCV64_RISCVREG_H
#define RISCV64_RISCVREG_H

#define SSTATUS_SIE 0x002
#define SSTATUS_SPIE 0x020
#define SSTATUS_SPP 0x100
#define SIE_SSIE 0x002
#define SIP_SSIP 0x002
#define MSTATUS_MPP 0x1800
#define MSTATUS_MPP_S 0x0800
#define SATP_MODE_SV39 8

#define SCAUSE_INTERRUPT (1UL << 63)
#define SCAUSE_INST_MISALIGNED 0
#define SCAUSE_INST_ACCESS_FAULT 1
#define SCAUSE_ILLEGAL_INSTRUCTION 2
#define SCAUSE_BREAKPOINT 3
#define SCAUSE_LOAD_MISALIGNED 4
#define SCAUSE_LOAD_ACCESS_FAULT 5
#define SCAUSE_STORE_MISALIGNED 6
#define SCAUSE_STORE_ACCESS_FAULT 7
#define SCAUSE_ECALL_USER 8
#define SCAUSE_INST_PAGE_FAULT 12
#define SCAUSE_LOAD_PAGE_FAULT 13
#define SCAUSE_STORE_PAGE_FAULT 15

#ifndef __ASSEMBLER__
#define csr_read(csr)                                           \
	({                                                      \
		uint64_t csr_value;                             \
		__asm__ volatile("csrr %0, " #csr : "=r"(csr_value)); \
		csr_value;                                      \
	})
#define csr_write(csr, value) __asm__ volatile("csrw " #csr ", %0" ::"r"((uint64_t)(value)) : "memory")
#define csr_set(csr, bits) __asm__ volatile("csrs " #csr ", %0" ::"r"((uint64_t)(bits)) : "memory")
#define csr_clear(csr, bits) __asm__ volatile("csrc " #csr ", %0" ::"r"((uint64_t)(bits)) : "memory")
#endif

#endif
