/*
 * Patchers for tests of `trapline race --object`, each of the form that a kernel for the ISA has:
 *
 *   x86      a breakpoint, the tail, the first byte, and all CPUs serialize after each (text_poke_bp)
 *   AArch64  all CPUs in a function: one writes, cleans and invalidates, the others wait and fetch anew
 *            (aarch64_insn_patch_text)
 *   RISC-V   a store of each word, a fence, and a fence.i of each hart (patch_text_nosync)
 *
 * Each mistake is an object of its own:
 *
 *   NOSYNC   other CPUs are not told to fetch anew
 *   EARLY    they are told too early: before the bytes have arrived, or without waiting for them
 *   WIDE     one store writes all instructions, without a guard
 *   BODY     the tail is written before its guard
 */
#include <stdint.h>

typedef unsigned long word;
extern void on_each_cpu(void (*function)(void *), void *argument, int wait);
extern int stop_machine(int (*function)(void *), void *argument, const void *cpus);
extern int num_online_cpus(void);
extern int sbi_remote_fence_i(const void *mask);
extern uint8_t __cpu_online_mask[128];

#if defined(__x86_64__) || defined(__i386__)

#include "serialize.h"

static void
everywhere(void)
{
#if defined(EARLY)
	on_each_cpu(serialize, 0, 0);
#elif defined(NOSYNC)
	serialize(0);
#else
	on_each_cpu(serialize, 0, 1);
#endif
}

static void
copy(volatile uint8_t *to, const uint8_t *from, word first, word end)
{
	for (word i = first; i < end; i++)
		to[i] = from[i];
	everywhere();
}

void
text_poke_bp(void *address, const void *code, word size, const void *emulated)
{
	volatile uint8_t *to = address;
	const uint8_t *from = code;
	(void)emulated;
#if defined(WIDE)
	*(volatile uint32_t *)to = *(const uint32_t *)from;
	copy(to, from, 4, size);
#elif defined(BODY)
	copy(to, from, 1, size);
	copy(to, from, 0, 1);
#else
	static const uint8_t trap = 0xcc;
	copy(to, &trap, 0, 1);
	copy(to, from, 1, size);
	copy(to, from, 0, 1);
#endif
}

#elif defined(__aarch64__)

static void
flush(void *at)
{
#ifdef EARLY
	__asm__ volatile("ic ivau, %0\n\tdsb ish\n\tdc cvau, %0\n\tdsb ish\n\tisb" : : "r"(at) : "memory");
#else
	__asm__ volatile("dc cvau, %0\n\tdsb ish\n\tic ivau, %0\n\tdsb ish\n\tisb" : : "r"(at) : "memory");
#endif
}

#if defined(NOSYNC) || defined(WIDE) || defined(BODY)

static inline void
everywhere(void *at)
{
	flush(at);
#ifndef NOSYNC
	on_each_cpu(flush, at, 1);
#endif
}

int
aarch64_insn_patch_text(void *addresses[], uint32_t code[], int count)
{
#ifdef WIDE
	*(volatile uint64_t *)addresses[0] = code[0] | (uint64_t)code[count - 1] << 32;
	everywhere(addresses[0]);
#else
	for (int i = count; i-- > 0;) {
		*(volatile uint32_t *)addresses[i] = code[i];
		everywhere(addresses[i]);
	}
#endif
	return 0;
}

#else

struct patch {
	void **to;
	const uint32_t *from;
	int count;
	int arrived;
};

static int
patch_all(void *argument)
{
	struct patch *patch = argument;
	if (__atomic_add_fetch(&patch->arrived, 1, __ATOMIC_SEQ_CST) == num_online_cpus()) {
		for (int i = 0; i < patch->count; i++) {
			*(volatile uint32_t *)patch->to[i] = patch->from[i];
			flush(patch->to[i]);
		}
		__atomic_add_fetch(&patch->arrived, 1, __ATOMIC_SEQ_CST);
	} else {
		while (__atomic_load_n(&patch->arrived, __ATOMIC_ACQUIRE) <= num_online_cpus())
			;
		__asm__ volatile("isb" : : : "memory");
	}
	return 0;
}

int
aarch64_insn_patch_text(void *addresses[], uint32_t code[], int count)
{
	struct patch patch = {addresses, code, count, 0};
	return stop_machine(patch_all, &patch, __cpu_online_mask);
}

#endif

#else

static void
everywhere(void)
{
#ifdef EARLY
	sbi_remote_fence_i(0);
#endif
	__asm__ volatile("fence w, rw\n\tfence.i" : : : "memory");
#if !defined(NOSYNC) && !defined(EARLY)
	sbi_remote_fence_i(0);
#endif
}

int
patch_text_nosync(void *address, const void *code, word size)
{
	volatile uint32_t *to = address;
	const uint32_t *from = code;
	word count = size / 4;
#if defined(WIDE)
	*(volatile uint64_t *)to = from[0] | (uint64_t)from[count - 1] << 32;
	everywhere();
#elif defined(BODY)
	while (count-- > 0) {
		to[count] = from[count];
		everywhere();
	}
#else
	for (word i = 0; i < count; i++) {
		to[i] = from[i];
		everywhere();
	}
#endif
	return 0;
}

#endif
