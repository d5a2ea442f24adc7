/* Instructions C has no words for. */
#ifndef CPUFUNC_H
#define CPUFUNC_H

#include "sys/types.h"

static inline void
invlpg(vaddr_t va)
{
	__asm__ volatile("invlpg (%0)" ::"r"(va) : "memory");
}

static inline void
load_cr3(paddr_t root)
{
	__asm__ volatile("mov %0, %%cr3" ::"r"(root) : "memory");
}

static inline paddr_t
rcr3(void)
{
	paddr_t root;

	__asm__ volatile("mov %%cr3, %0" : "=r"(root));
	return root;
}

static inline vaddr_t
rcr2(void)
{
	vaddr_t address;

	__asm__ volatile("mov %%cr2, %0" : "=r"(address));
	return address;
}

static inline void
wrmsr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr" ::"c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

#endif
