/* The branch to code that runs only while something is traced (sys/traced.h). */
#define TRACED_TEST(suffix, address) \
	asm goto("cmp" suffix " $0, %c0(%%rip)\n\tjne %l[slow]\n\t" TRACED_BEGINS(0) : : "i"(address) : "cc", "memory" : slow)
#define TRACED_TEST8(flag) TRACED_TEST("b", &(flag))
#define TRACED_TEST32(word) TRACED_TEST("l", &(word))
#define TRACED_RETURN "jmp"
/* Room for a jump; one jump then replaces five instructions. */
#define TRACED_NOP ".byte 0x90, 0x90, 0x90, 0x90, 0x90\n\t"
#define TRACED_NOP_OWES 4
#define TRACED_SYMBOL "%c0"
