enum { READ = 0, WRITE = 1, MMAP = 9, MPROTECT = 10, MUNMAP = 11, SIGACTION = 13, PREAD = 17, READV = 19, PIPE = 22, FORK = 57, EXIT = 231, WAIT = 61,
       LSEEK = 8, SIGALTSTACK = 131, MEMFD = 319, SOCKETPAIR = 53, RECVFROM = 45, PROCESS_VM_WRITEV = 311, GETPID = 39, CLOSE = 3, TRUNCATE = 77, FORK_FLAGS = 0 };
#define TRAP "int3"

static inline long call(long number, word a, word b, word c, word d, word e, word f)
{
	long result;
	register word r10 __asm__("r10") = d;
	register word r8 __asm__("r8") = e;
	register word r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
}

__asm__(".globl _start\n_start: xor %ebp, %ebp\nand $-16, %rsp\ncall run\n"
	".globl restorer\nrestorer: mov $15, %eax\nsyscall\n");

static inline void synchronize(void *first, word size) { (void)first; (void)size; }

static const u8 trap_bytes[1] = {0xcc};

struct fxsave {
	u16 cw, sw, tag, op;
	u64 rip, rdp;
	u32 mxcsr, mask;
	u64 st[8][2];
	u64 xmm[16][2];
	u64 padding[6];
	u32 magic, extended_size;
	u64 xfeatures;
	u32 xstate_size, unused[7];
	u64 xstate_bv, xcomp_bv;
};

struct context {
	u64 flags, link, stack[3];
	u64 r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	u16 cs, gs, fs, ss;
	u64 err, trapno, oldmask, cr2;
	struct fxsave *fp;
};

#define FLAGS 0xcd5u
#define GENERAL(X) X(0, rax) X(1, rcx) X(2, rdx) X(3, rbx) X(4, rsp) X(5, rbp) X(6, rsi) X(7, rdi) \
	X(8, r8) X(9, r9) X(10, r10) X(11, r11) X(12, r12) X(13, r13) X(14, r14) X(15, r15)

static inline void put(struct context *c, const struct state *s)
{
#define X(n, name) c->name = s->general[n];
	GENERAL(X)
#undef X
	c->rip = s->pc;
	c->eflags = (c->eflags & ~(u64)FLAGS) | (s->flags & FLAGS);
	c->fp->mxcsr = s->control;
	c->fp->cw = s->control >> 32;
	c->fp->sw = s->control >> 48;
	c->fp->tag = (u8)(s->flags >> 32);
	if (c->fp->magic == 0x46505853)
		c->fp->xstate_bv = 3;
	for (int i = 0; i < 16; i++)
		for (int half = 0; half < 2; half++)
			c->fp->xmm[i][half] = s->vectors[2 * i + half];
	for (int i = 0; i < 8; i++) {
		c->fp->st[i][0] = s->vectors[32 + 2 * i];
		c->fp->st[i][1] = s->vectors[33 + 2 * i] & 0xffff;
	}
}

static inline void get(const struct context *c, struct state *s)
{
#define X(n, name) s->general[n] = c->name;
	GENERAL(X)
#undef X
	s->pc = c->rip;
	s->flags = (c->eflags & FLAGS) | (u64)(u8)c->fp->tag << 32;
	s->control = c->fp->mxcsr | (u64)c->fp->cw << 32 | (u64)c->fp->sw << 48;
	for (int i = 0; i < 16; i++)
		for (int half = 0; half < 2; half++)
			s->vectors[2 * i + half] = c->fp->xmm[i][half];
	for (int i = 0; i < 8; i++) {
		s->vectors[32 + 2 * i] = c->fp->st[i][0];
		s->vectors[33 + 2 * i] = (c->fp->st[i][1] & 0xffff);
	}
}
