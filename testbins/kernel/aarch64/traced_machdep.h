/* The branch to code that runs only while something is traced (sys/traced.h). */
#define TRACED_TEST(load, address)                                                                                           \
	asm goto("adrp x16, %c0\n\t" load " w16, [x16, #:lo12:%c0]\n\tcbnz w16, %l[slow]\n\t" TRACED_BEGINS(0) : : "i"(address) \
	    : "x16", "memory" : slow)
#define TRACED_TEST8(flag) TRACED_TEST("ldrb", &(flag))
#define TRACED_TEST32(word) TRACED_TEST("ldr", &(word))
#define TRACED_RETURN "b"
#define TRACED_NOP "nop\n\t"
#define TRACED_NOP_OWES 0
#define TRACED_SYMBOL "%c0"
