/*
 * A patcher with its own handler of breakpoints, for tests of `trapline race --object`: it writes down
 * what it is going to write, stores a breakpoint, then the other bytes, then the first ones, and all
 * CPUs fetch anew after each.  A CPU that takes the breakpoint meanwhile finds the record in
 * patch_trap_handler, which does what the new instruction will do: a nop, a direct jump, or a call.
 *
 * Each mistake is an object of its own:
 *
 *   STALE      the handler looks at a copy of the record that is made when the patch is complete
 *   FORGETS    the record is cleared before all CPUs have left the breakpoint
 *   UNORDERED  other CPUs may see the breakpoint before the record (not on x86, whose stores are ordered)
 *   TARGET     the jump begins at the saved pc on x86, which is behind the breakpoint, elsewhere at the next one
 */
#include "decoding.h"

typedef unsigned long word;
extern void on_each_cpu(void (*function)(void *), void *argument, int wait);

struct record {
	uint8_t *address;
	const uint8_t *code;
	word size;
};
static volatile struct record record;
#ifdef STALE
static volatile struct record known;
#else
#define known record
#endif

#if defined(__x86_64__) || defined(__i386__)

typedef uint8_t unit;
static const unit trap = 0xcc;
#define ORDER() __asm__ volatile("" : : : "memory")

#include "serialize.h"

static void
everywhere(void *at)
{
	on_each_cpu(serialize, at, 1);
}

#define SAVED_PC(registers) ((registers)->PC - 1)
#define IS_DIRECT(code) ((*(code) & 0xfe) == 0xe8)
#define DISTANCE(code) (*(const int32_t *)((code) + 1) + 5)
#define MISTAKE 1

static void
save_return(struct pt_regs *registers, const uint8_t *at, const uint8_t *code)
{
	if (*code == 0xe8) {
		registers->sp -= sizeof(word);
		*(word *)registers->sp = (word)at + 5;
	}
}

#elif defined(__aarch64__)

typedef uint32_t unit;
static const unit trap = 0xd4200080;	/* brk #4 */
#define ORDER() __asm__ volatile("dmb ishst" : : : "memory")

static void
flush(void *at)
{
	__asm__ volatile("dc cvau, %0\n\tdsb ish\n\tic ivau, %0\n\tdsb ish\n\tisb" : : "r"(at) : "memory");
}

static void
everywhere(void *at)
{
	flush(at);
	on_each_cpu(flush, at, 1);
}

#define SAVED_PC(registers) ((registers)->PC)
#define IS_DIRECT(code) ((*(const uint32_t *)(code) & 0x7c000000) == 0x14000000)
#define DISTANCE(code) ((int32_t)(*(const uint32_t *)(code) << 6) >> 4)
#define MISTAKE 4

static void
save_return(struct pt_regs *registers, const uint8_t *at, const uint8_t *code)
{
	if (*(const uint32_t *)code >> 31)
		registers->regs[30] = (word)at + 4;
}

#else

typedef uint32_t unit;
static const unit trap = 0x00100073;	/* ebreak */
#define ORDER() __asm__ volatile("fence w, w" : : : "memory")

static void
flush(void *at)
{
	(void)at;
	__asm__ volatile("fence.i" : : : "memory");
}

/* An interrupt and not sbi_remote_fence_i: a hart answers when it has left the handler. */
static void
everywhere(void *at)
{
	__asm__ volatile("fence w, rw" : : : "memory");
	on_each_cpu(flush, at, 1);
}

#define SAVED_PC(registers) ((registers)->PC)
#define IS_DIRECT(code) ((*(const uint32_t *)(code) & 0x7f) == 0x6f)
#define MISTAKE 4

static long
distance(uint32_t code)
{
	return (code >> 20 & 0x7fe) | (code >> 9 & 0x800) | (code & 0xff000) | (code >> 31 ? -(1l << 20) : 0);
}
#define DISTANCE(code) distance(*(const uint32_t *)(code))

static void
save_return(struct pt_regs *registers, const uint8_t *at, const uint8_t *code)
{
	if (*(const uint32_t *)code >> 7 & 31)
		registers->ra = (word)at + 4;
}

#endif

void
patch_code(void *address, const void *code, word size)
{
	volatile uint8_t *to = address;
	const uint8_t *from = code;

	record.code = from;
	record.size = size;
	record.address = address;
#ifndef UNORDERED
	ORDER();
#endif
	*(volatile unit *)to = trap;
	everywhere(address);
	if (size > sizeof(unit)) {
		for (word at = sizeof(unit); at < size; at++)
			to[at] = from[at];
		everywhere(address);
	}
	*(volatile unit *)to = *(const unit *)from;
#ifdef FORGETS
	record.address = 0;
#endif
	everywhere(address);
#ifdef STALE
	known.code = record.code;
	known.size = record.size;
	known.address = record.address;
#else
	record.address = 0;
#endif
}

int
patch_trap_handler(struct pt_regs *registers)
{
	const uint8_t *at = (const uint8_t *)SAVED_PC(registers);

	if (known.address != at)
		return 0;
#ifdef TARGET
	at += MISTAKE;
#endif
	if (IS_DIRECT(known.code))
		save_return(registers, at, known.code);
	registers->PC = (word)at + (IS_DIRECT(known.code) ? (word)DISTANCE(known.code) : known.size);
	return 1;
}
