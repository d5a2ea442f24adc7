enum { READ = 3, WRITE = 4, MMAP = 192, MPROTECT = 125, MUNMAP = 91, SIGACTION = 174, PREAD = 180, READV = 145, PIPE = 42, FORK = 2, EXIT = 252, WAIT = 114,
       LSEEK = 19, SIGALTSTACK = 186, MEMFD = 356, SOCKETPAIR = 360, RECVFROM = 371, PROCESS_VM_WRITEV = 348, GETPID = 20, CLOSE = 6, TRUNCATE = 93, FORK_FLAGS = 0 };
#define TRAP "int3"

long call(long number, word a, word b, word c, word d, word e, word f);
__asm__(".globl _start\n_start: xor %ebp, %ebp\nand $-16, %esp\ncall run\n"
	".globl call\ncall: push %ebx\npush %esi\npush %edi\npush %ebp\nmov 20(%esp), %eax\nmov 24(%esp), %ebx\nmov 28(%esp), %ecx\n"
	"mov 32(%esp), %edx\nmov 36(%esp), %esi\nmov 40(%esp), %edi\nmov 44(%esp), %ebp\nint $0x80\npop %ebp\npop %edi\npop %esi\npop %ebx\nret\n"
	".globl restorer\nrestorer: mov $173, %eax\nint $0x80\n");

static inline void synchronize(void *first, word size) { (void)first; (void)size; }

static const u8 trap_bytes[1] = {0xcc};

/* What fsave writes, then what fxsave writes. */
struct fpstate {
	u32 cw, sw, tag, ip, cs, dp, ds;
	u8 st[8][10];
	u16 status, magic;
	u32 fxsr_env[6];
	u32 mxcsr, reserved;
	u64 fxsr_st[8][2];
	u64 xmm[8][2];
	u32 padding[44];
	u32 sw_magic, extended_size;
	u64 xfeatures;
	u32 xstate_size, unused[7];
	u64 xstate_bv, xcomp_bv;
} __attribute__((packed));

struct context {
	u32 uc_flags, link, stack[3];
	u32 gs, fs, es, ds, edi, esi, ebp, esp, ebx, edx, ecx, eax, trapno, err, eip, cs, eflags, uesp, ss;
	struct fpstate *fp;
};

#define FLAGS 0xcd5u
#define GENERAL(X) X(0, eax) X(1, ecx) X(2, edx) X(3, ebx) X(4, esp) X(5, ebp) X(6, esi) X(7, edi)

static inline void put(struct context *c, const struct state *s)
{
#define X(n, name) c->name = s->general[n];
	GENERAL(X)
#undef X
	c->eip = s->pc;
	c->eflags = (c->eflags & ~FLAGS) | (s->flags & FLAGS);
	c->fp->mxcsr = s->control;
	c->fp->cw = (c->fp->cw & 0xffff0000) | (u16)(s->control >> 32);
	c->fp->sw = (c->fp->sw & 0xffff0000) | (u16)(s->control >> 48);
	u32 tag = 0xffff0000;
	for (int i = 0; i < 8; i++)
		if (!(s->flags >> (32 + i) & 1))
			tag |= 3u << 2 * i;
	c->fp->tag = tag;
	if (c->fp->sw_magic == 0x46505853)
		c->fp->xstate_bv = 3;
	for (int i = 0; i < 8; i++)
		for (int half = 0; half < 2; half++)
			c->fp->xmm[i][half] = s->vectors[2 * i + half];
	for (int i = 0; i < 8; i++)
		for (int at = 0; at < 10; at++)
			c->fp->st[i][at] = ((const u8 *)&s->vectors[32 + 2 * i])[at];
}

static inline void get(const struct context *c, struct state *s)
{
#define X(n, name) s->general[n] = c->name;
	GENERAL(X)
#undef X
	s->pc = c->eip;
	s->flags = c->eflags & FLAGS;
	for (int i = 0; i < 8; i++)
		if ((c->fp->tag >> 2 * i & 3) != 3)
			s->flags |= 1ull << (32 + i);
	s->control = c->fp->mxcsr | (u64)(u16)c->fp->cw << 32 | (u64)(u16)c->fp->sw << 48;
	for (int i = 0; i < 8; i++)
		for (int half = 0; half < 2; half++)
			s->vectors[2 * i + half] = c->fp->xmm[i][half];
	for (int i = 0; i < 8; i++)
		for (int at = 0; at < 10; at++)
			((u8 *)&s->vectors[32 + 2 * i])[at] = c->fp->st[i][at];
}
