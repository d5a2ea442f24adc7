/* The branch to code that runs only while something is traced (sys/traced.h). */
#define TRACED_TEST(load, address) \
	asm goto(load " t0, %0\n\tbnez t0, %l[slow]\n\t" TRACED_BEGINS(0) : : "i"(address) : "t0", "memory" : slow)
#define TRACED_TEST8(flag) TRACED_TEST("lbu", &(flag))
#define TRACED_TEST32(word) TRACED_TEST("lw", &(word))
#define TRACED_RETURN "j"
#define TRACED_NOP ".option push\n\t.option norvc\n\tnop\n\t.option pop\n\t"
#define TRACED_NOP_OWES 0
#define TRACED_SYMBOL "%0"
