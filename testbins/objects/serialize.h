/* How the CPUs of x86 fetch anew, for the patchers (poke.c, poke_trap.c): in a function that all of them call. */
static void
serialize(void *argument)
{
	unsigned a = 1, b, c = 0, d;
	(void)argument;
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}
