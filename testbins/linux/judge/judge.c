/*
 * Executes cases from standard input, and writes to standard output what became of them.
 *
 * A case is a few instructions at a given offset of two pages of code, the state of all registers before them, and what
 * happens to the pages: protected, mapped twice, written to in one of many ways and executed again, shared with a child.
 * The instructions end in a breakpoint or a fault.  Everything is done in the handler of that signal: it notes the registers
 * of its frame, and puts the next case's into the frame that it returns to.  So the same bytes can be executed on a CPU,
 * below qemu-user, and by Trapline, and what they print compared byte by byte.
 */
#include "judge.h"

#define PAGE 4096ul
#define CODE 0x10000000ul
#define ALIAS 0x30000000ul
#define DATA 0x20000000ul
#define DATA_SIZE (2 * PAGE)
#define CODE_SIZE (2 * PAGE)
#define LONGEST 128

enum { PROT_R = 1, PROT_W = 2, PROT_X = 4, SHARED = 1, PRIVATE = 2, FIXED = 16, ANONYMOUS = 32 };
enum { SA_SIGINFO = 4, SA_RESTORER = 0x04000000, SA_ONSTACK = 0x08000000, SA_NODEFER = 0x40000000 };

/* What becomes of the second page of code. */
enum { BOTH = 0, NO_ACCESS = 1, NO_EXECUTION = 2, NO_WRITING = 3, GONE = 4 };
/* How the second version of the code gets into the page. */
enum { ONCE, STORE, BY_READ, BY_PREAD, BY_READV, BY_RECV, BY_VM_WRITE, BY_ALIAS, MAPPED_ANEW, PROTECTED, FILE_MAPPED, BY_PIPE };

struct test {
	u32 offset, size, page, method;
	u32 aliased, child, changed_at, changed_size;
	u8 code[LONGEST], second[LONGEST];
	u64 seed;
	struct state before;
};

struct result {
	u32 signal, code;
	u64 address, data, text;
	struct state after;
};

struct sigaction {
#if __SIZEOF_POINTER__ == 8 && (defined(__x86_64__) || defined(__aarch64__))
	void *handler;
	word flags;
	void *restorer;
	u64 mask;
#elif defined(__riscv)
	void *handler;
	word flags;
	u64 mask;
#else
	void *handler;
	word flags;
	void *restorer;
	u32 mask[2];
#endif
};

struct stack {
	void *first;
	int flags;
	word size;
};

extern void restorer(void);

static u8 signal_stack[65536] __attribute__((aligned(16)));
static struct result *results;
enum { RESULTS = 64 };

static struct test test;
static int phase;
static u32 done;
static int file, text_file, pipes[2], sockets[2];
static word child;

static void fill(u8 *at, const u8 *from, word size)
{
	while (size--)
		*at++ = *from++;
}

static long map(word address, word size, int protection, int flags, int fd)
{
	return call(MMAP, address, size, protection, flags, fd, 0);
}

static void leave(int status)
{
	for (;;)
		call(EXIT, status, 0, 0, 0, 0, 0);
}

static void expect(int true_, int number)
{
	if (!true_)
		leave(100 + number);
}

static void write_all(const void *from, word size)
{
	while (size) {
		long written = call(WRITE, 1, (word)from, size, 0, 0, 0);
		expect(written > 0, 1);
		from = (const u8 *)from + written;
		size -= written;
	}
}

static void flush(void)
{
	write_all(results, done * sizeof(struct result));
	done = 0;
}

static int read_test(void)
{
	word have = 0;
	while (have < sizeof test) {
		long got = call(READ, 0, (word)&test + have, sizeof test - have, 0, 0, 0);
		expect(got >= 0, 2);
		if (!got)
			return 0;
		have += got;
	}
	return 1;
}

static u64 hash(const u64 *at, word size)
{
	u64 sum = 0;
	for (word i = 0; i < size / 8; i++)
		sum = (sum ^ at[i]) * 0x9e3779b97f4a7c15ull;
	return sum;
}

/* The pages that hold the code: fresh, or those of a file that is mapped a second time. */
static void map_code(void)
{
	if (test.aliased) {
		expect(map(CODE, CODE_SIZE, 7, SHARED | FIXED, text_file) == (long)CODE, 3);
		expect(map(ALIAS, CODE_SIZE, 7, SHARED | FIXED, text_file) == (long)ALIAS, 4);
	} else {
		expect(map(CODE, CODE_SIZE, 7, PRIVATE | FIXED | ANONYMOUS, -1) == (long)CODE, 5);
	}
	for (word at = 0; at < CODE_SIZE; at += sizeof trap_bytes)
		fill((u8 *)CODE + at, trap_bytes, sizeof trap_bytes);
	synchronize((void *)CODE, CODE_SIZE);
}

static int fresh = 1;

static void prepare(void)
{
	/* The pages of the case before are good enough where nothing was done to them. */
	static word dirty_at, dirty_size;
	if (fresh || test.aliased) {
		map_code();
	} else {
		word first = dirty_at & ~3ul;
		for (word at = first; at < dirty_at + dirty_size + 4 && at < CODE_SIZE; at += sizeof trap_bytes)
			fill((u8 *)CODE + at, trap_bytes, sizeof trap_bytes);
	}
	dirty_at = test.offset;
	dirty_size = LONGEST;
	fill((u8 *)CODE + test.offset, test.code, test.size);
	synchronize((void *)(CODE + test.offset), LONGEST);
	switch (test.page) {
	case NO_ACCESS: call(MPROTECT, CODE + PAGE, PAGE, 0, 0, 0, 0); break;
	case NO_EXECUTION: call(MPROTECT, CODE + PAGE, PAGE, PROT_R | PROT_W, 0, 0, 0); break;
	case NO_WRITING: call(MPROTECT, CODE + PAGE, PAGE, PROT_R | PROT_X, 0, 0, 0); break;
	case GONE: call(MUNMAP, CODE + PAGE, PAGE, 0, 0, 0, 0); break;
	}
	/* A case may change any byte of its code through a register. */
	fresh = test.page || test.aliased || test.method || test.child;
}

static void fill_data(void)
{
	u64 value = test.seed | 1;
	u64 *data = (u64 *)DATA;
	for (word i = 0; i < DATA_SIZE / 8; i++) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
		data[i] = value;
	}
}

/* Put the second version of the code where the first one has run. */
static void change(void)
{
	u8 *at = (u8 *)CODE + test.offset + test.changed_at;
	const u8 *from = test.second;
	word size = test.changed_size;
	word vector[2] = {(word)at, size};
	word source[2] = {(word)from, size};
	switch (test.method) {
	case STORE:
		fill(at, from, size);
		break;
	case BY_READ:
	case BY_PREAD:
	case BY_READV:
		call(LSEEK, file, 0, 0, 0, 0, 0);
		expect(call(WRITE, file, (word)from, size, 0, 0, 0) == (long)size, 6);
		call(LSEEK, file, 0, 0, 0, 0, 0);
		if (test.method == BY_READ)
			expect(call(READ, file, (word)at, size, 0, 0, 0) == (long)size, 7);
		else if (test.method == BY_PREAD)
			expect(call(PREAD, file, (word)at, size, 0, 0, 0) == (long)size, 8);
		else
			expect(call(READV, file, (word)vector, 1, 0, 0, 0) == (long)size, 9);
		break;
	case BY_PIPE:
		expect(call(WRITE, pipes[1], (word)from, size, 0, 0, 0) == (long)size, 10);
		expect(call(READ, pipes[0], (word)at, size, 0, 0, 0) == (long)size, 11);
		break;
	case BY_RECV:
		expect(call(WRITE, sockets[1], (word)from, size, 0, 0, 0) == (long)size, 12);
		expect(call(RECVFROM, sockets[0], (word)at, size, 0, 0, 0) == (long)size, 13);
		break;
	case BY_VM_WRITE:
		expect(call(PROCESS_VM_WRITEV, call(GETPID, 0, 0, 0, 0, 0, 0), (word)source, 1, (word)vector, 1, 0) == (long)size, 14);
		break;
	case BY_ALIAS:
		fill(at - CODE + ALIAS, from, size);
		break;
	case MAPPED_ANEW:
		call(MUNMAP, CODE, CODE_SIZE, 0, 0, 0, 0);
		map_code();
		fill((u8 *)CODE + test.offset, test.code, test.size);
		fill(at, from, size);
		break;
	case PROTECTED:
		call(MPROTECT, CODE, PAGE, PROT_R | PROT_W, 0, 0, 0);
		fill(at, from, size);
		call(MPROTECT, CODE, PAGE, PROT_R | PROT_X, 0, 0, 0);
		break;
	case FILE_MAPPED: {
		int fd = call(MEMFD, (word)"", 0, 0, 0, 0, 0);
		expect(call(WRITE, fd, CODE, CODE_SIZE, 0, 0, 0) == (long)CODE_SIZE, 15);
		call(LSEEK, fd, test.offset + test.changed_at, 0, 0, 0, 0);
		expect(call(WRITE, fd, (word)from, size, 0, 0, 0) == (long)size, 16);
		expect(map(CODE, CODE_SIZE, PROT_R | PROT_X, PRIVATE | FIXED, fd) == (long)CODE, 17);
		call(CLOSE, fd, 0, 0, 0, 0, 0);
		break;
	}
	}
	synchronize(at, size);
}

static void record(const struct info *info, struct context *context)
{
	struct result *result = &results[done++];
	result->signal = info->signal;
	result->code = info->code;
	result->address = info->address;
	get(context, &result->after);
	result->data = hash((u64 *)DATA, DATA_SIZE);
	result->text = hash((u64 *)(CODE + (test.offset & ~7ul)), test.page == NO_ACCESS || test.page == GONE ? (PAGE - (test.offset & ~7ul) < LONGEST ? PAGE - (test.offset & ~7ul) : LONGEST) : LONGEST);
}

/* Go to the next phase, or to the next case. */
static void next(struct context *context)
{
	if (phase == 1 && test.method != ONCE) {
		phase = 2;
		change();
	} else {
		if (phase && test.child && !child)
			leave(0);
		for (;;) {
			if (done > RESULTS - 4)
				flush();
			if (!read_test()) {
				flush();
				leave(0);
			}
			prepare();
			phase = 1;
			if (!test.child)
				break;
			child = call(FORK, FORK_FLAGS, 0, 0, 0, 0, 0);
			expect((long)child >= 0, 18);
			if (!child)
				break;
			int status;
			u32 expected = test.method == ONCE ? 1 : 2;
			expect(call(WAIT, child, (word)&status, 0, 0, 0, 0) == (long)child, 19);
			expect(status == 0, 20);
			done += expected;  /* the child's, in memory that both have */
		}
	}
	fill_data();
	put(context, &test.before);
}

static void handler(int signal, const struct info *info, void *context)
{
	(void)signal;
	if (phase)
		record(info, context);
	next(context);
}

void run(void)
{
	static const u8 signals[] = {4, 5, 7, 8, 11};
	struct stack stack = {signal_stack, 0, sizeof signal_stack};
	struct sigaction action = {.handler = handler, .flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
#ifndef __riscv
	action.flags |= SA_RESTORER;
	action.restorer = restorer;
#endif
	expect(!call(SIGALTSTACK, (word)&stack, 0, 0, 0, 0, 0), 21);
	for (u32 i = 0; i < sizeof signals; i++)
		expect(!call(SIGACTION, signals[i], (word)&action, 0, 8, 0, 0), 22);
	expect(map(DATA, DATA_SIZE, PROT_R | PROT_W, PRIVATE | FIXED | ANONYMOUS, -1) == (long)DATA, 23);
	results = (struct result *)map(0, RESULTS * sizeof *results, PROT_R | PROT_W, SHARED | ANONYMOUS, -1);
	expect((word)results < -4096ul, 24);
	file = call(MEMFD, (word)"", 0, 0, 0, 0, 0);
	text_file = call(MEMFD, (word)"", 0, 0, 0, 0, 0);
	expect(file > 2 && text_file > 2, 25);
	expect(!call(TRUNCATE, text_file, CODE_SIZE, 0, 0, 0, 0), 26);
	expect(!call(PIPE, (word)pipes, 0, 0, 0, 0, 0), 27);
	expect(!call(SOCKETPAIR, 1, 1, 0, (word)sockets, 0, 0), 28);
	__asm__ volatile(TRAP);
	__builtin_unreachable();
}
