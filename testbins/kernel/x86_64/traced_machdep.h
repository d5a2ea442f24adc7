/* The branch to code that runs only while something is traced (sys/traced.h). */
#define TRACED_TEST(suffix, address) \
	asm goto("cmp" suffix " $0, %c0(%%rip)\n\tjne %l[slow]\n\t" TRACED_BEGINS(0) : : "i"(address) : "cc", "memory" : slow)
#define TRACED_TEST8(flag) TRACED_TEST("b", &(flag))
#define TRACED_TEST32(word) TRACED_TEST("l", &(word))
#define TRACED_RETURN "jmp"
/* One nop with room for a jump: a CPU is never stopped inside of it, as it is between the five nops of FreeBSD. */
#define TRACED_NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
#define TRACED_NOP_OWES 0
#define TRACED_SYMBOL "%c0"
