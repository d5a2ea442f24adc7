/* The smallest program: no library, two system calls. */

enum { STATUS = 3 };

#if defined(__x86_64__)

enum { SYS_WRITE = 1, SYS_EXIT = 60 };

__attribute__((noinline, noipa)) static long
call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

#elif defined(__i386__)

enum { SYS_WRITE = 4, SYS_EXIT = 1 };

__attribute__((noinline, noipa)) static long
call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "0"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

#else

enum { SYS_WRITE = 64, SYS_EXIT = 93 };

#if defined(__aarch64__)
#define NUMBER "x8"
#define FIRST "x0"
#define SECOND "x1"
#define THIRD "x2"
#define CALL "svc #0"
#else
#define NUMBER "a7"
#define FIRST "a0"
#define SECOND "a1"
#define THIRD "a2"
#define CALL "ecall"
#endif

__attribute__((noinline, noipa)) static long
call(long number, long a, long b, long c)
{
	register long n __asm__(NUMBER) = number;
	register long first __asm__(FIRST) = a;
	register long second __asm__(SECOND) = b;
	register long third __asm__(THIRD) = c;
	__asm__ volatile(CALL : "+r"(first) : "r"(n), "r"(second), "r"(third) : "memory");
	return first;
}

#endif

__attribute__((noinline, noipa)) long
tiny_length(const char *text)
{
	long length = 0;
	while (text[length])
		length++;
	return length;
}

__attribute__((noreturn)) void
_start(void)
{
	static const char text[] = "tiny\n";
	call(SYS_WRITE, 1, (long)text, tiny_length(text));
	call(SYS_EXIT, STATUS, 0, 0);
	__builtin_unreachable();
}
