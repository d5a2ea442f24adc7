/*
 * A scanner as FBT has one, for tests of `trapline check --object`: the functions that the glue "fbt"
 * calls, with structures of its own layout.  It finds what FreeBSD's rules find in the test kernel.
 *
 * BUGGY adds mistakes of the kinds that the check is there for: sites one instruction late, a read
 * before a function, a write behind a record, a value that was never set, an endless loop.
 */
#include "trapframe.h"

struct linker_file {
	int loadcnt;
};
typedef struct linker_symval {
	unsigned long size;
	const char *name;
	uint8_t *value;
} linker_symval_t;

#if defined(__x86_64__) || defined(__i386__)
typedef uint8_t fbt_patchval_t;
#else
typedef uint32_t fbt_patchval_t;
#endif

typedef struct fbt_probe {
	uint32_t fbtp_id;
	word fbtp_roffset;
	fbt_patchval_t fbtp_savedval, fbtp_patchval;
	uint8_t *fbtp_patchpoint;
	struct fbt_probe *fbtp_probenext, *fbtp_all;
	int8_t fbtp_rval;
} fbt_probe_t;

extern int fbt_excluded(const char *);
extern int strcmp(const char *, const char *);
extern uint32_t dtrace_probe_create(word, const char *, const char *, const char *, int, void *);
extern void dtrace_probe(uint32_t, word, word, word, word, word);
extern int dtrace_instr_size(uint8_t *);
extern void *kmem_alloc(unsigned long, int);

static fbt_probe_t *records;

/* What an ISA has: the step to the next place, and whether a place is an entry (1) or a return (2). */
struct place {
	uint8_t *at;
	int8_t rval;
	fbt_patchval_t patch;
	int offset;
};

#if defined(__x86_64__)
static const char *const skipped[] = {"trap_check"};

static uint8_t *
step(uint8_t *at, uint8_t *limit, int kind, struct place *found)
{
	for (int size; at < limit && (size = dtrace_instr_size(at)) > 0; at += size)
		if (*at == (kind == 1 ? 0x55 : 0xc3)) {
			*found = (struct place){at, kind == 1 ? 1 : 5, 0xcc, 0};
			return at + size;
		}
	return 0;
}
#elif defined(__i386__)
static const char *const skipped[] = {"trap_check"};

static uint8_t *
step(uint8_t *at, uint8_t *limit, int kind, struct place *found)
{
	if (kind == 1) {
		if (limit - at < 3 || at[0] != 0x55 || !((at[1] == 0x8b && at[2] == 0xec) || (at[1] == 0x89 && at[2] == 0xe5)))
			return 0;
		*found = (struct place){at, 1, 0xf0, 0};
		return at + 1;
	}
	for (int size; at + 1 < limit && (size = dtrace_instr_size(at)) > 0; at += size)
		if ((*at == 0x5d || *at == 0xc9) && (at[1] == 0xc3 || at[1] == 0xc2)) {
			*found = (struct place){at, *at == 0x5d ? 2 : 3, 0xf0, 1};
			return at + size;
		}
	return 0;
}
#elif defined(__aarch64__)
static const char *const skipped[] = {"handle_el1h_sync", "do_el1h_sync"};

static uint8_t *
step(uint8_t *at, uint8_t *limit, int kind, struct place *found)
{
	for (; at < limit; at += 4) {
		uint32_t word = *(uint32_t *)at;
		int8_t rval = 0;
		if (kind == 1 && ((word & 0xffc003e0) == 0xa98003e0))
			rval = 1;
		else if (kind == 1 && (word & 0xffc003ff) == 0xd10003ff)
			rval = 4;
		else if (kind == 2 && word == 0xd65f03c0)
			rval = 2;
		else if (kind == 2 && word >> 24 == 0x14 && (word & 0xffffff) * 16 >= (unsigned long)(limit - at))
			rval = 3;
		if (rval) {
			*found = (struct place){at, rval, 0xd42081a0, 0};
			return at + 4;
		}
	}
	return 0;
}
#else
static const char *const skipped[] = {"cpu_exception_handler", "cpu_exception_handler_user",
	"cpu_exception_handler_supervisor", "do_trap_supervisor"};

static uint8_t *
step(uint8_t *at, uint8_t *limit, int kind, struct place *found)
{
	static const uint32_t mask[] = {0, 0x01fff07f, 0xffffffff}, value[] = {0, 0x00113023, 0x00008067};
	static const uint16_t short_mask[] = {0, 0xe07f, 0xffff}, short_value[] = {0, 0xe006, 0x8082};
	for (; at < limit; at += 4) {
		uint16_t low = *(uint16_t *)at, high = at + 2 < limit ? *(uint16_t *)(at + 2) : 0;
		if (((low | (uint32_t)high << 16) & mask[kind]) == value[kind]) {
			*found = (struct place){at, kind == 1 ? 1 : 3, 0x00100073, 0};
			return at + 4;
		}
		for (int half = 0; half < 2; half++)
			if (((half ? high : low) & short_mask[kind]) == short_value[kind]) {
				*found = (struct place){at + 2 * half, kind == 1 ? 2 : 4, 0x9002, 0};
				return found->at + (kind == 1 ? 0 : 4);
			}
	}
	return 0;
}
#endif

static unsigned
size_of(fbt_patchval_t patch)
{
#if defined(__riscv)
	return patch == 0x9002 ? 2 : 4;
#else
	return sizeof patch;
#endif
}

static fbt_patchval_t
content(uint8_t *at, unsigned size)
{
	fbt_patchval_t value = 0;
	for (unsigned i = 0; i < size; i++)
		value |= (fbt_patchval_t)at[i] << 8 * i;
	return value;
}

int
fbt_provide_module_function(struct linker_file *file, int index, linker_symval_t *symbol, void *module)
{
	uint8_t *at = symbol->value, *limit = at + symbol->size;
	fbt_probe_t *before = 0;
	struct place found;

	(void)index;
	if (fbt_excluded(symbol->name))
		return 0;
	for (unsigned i = 0; i < sizeof skipped / sizeof *skipped; i++)
		if (strcmp(symbol->name, skipped[i]) == 0)
			return sizeof(skipped) / sizeof *skipped == 2;
#ifdef BUGGY
	volatile int flag[4];
	if (flag[file->loadcnt & 3] == 12345 || at[-1] == 0xff)
		return 0;
	while (symbol->size <= 3)
		;
#endif
	for (int kind = 1; (at = step(at, limit, kind, &found)); kind = 2) {
#ifdef BUGGY
		if (kind == 1 && dtrace_instr_size(found.at) > 0)
			found.at += dtrace_instr_size(found.at);
		fbt_probe_t *record = kmem_alloc(sizeof *record - sizeof(word), 0);
#else
		fbt_probe_t *record = kmem_alloc(sizeof *record, 0);
#endif
		*record = (fbt_probe_t){
			.fbtp_roffset = kind == 1 ? 0 : found.at + found.offset - symbol->value,
			.fbtp_savedval = content(found.at, size_of(found.patch)),
			.fbtp_patchval = found.patch,
			.fbtp_patchpoint = found.at,
			.fbtp_all = records,
			.fbtp_rval = found.rval,
		};
		if (kind == 1 || !before)
			record->fbtp_id = dtrace_probe_create(1, module, symbol->name, kind == 1 ? "entry" : "return", file->loadcnt, record);
		else {
			record->fbtp_id = before->fbtp_id;
			before->fbtp_probenext = record;
		}
		if (kind == 2)
			before = record;
		records = record;
	}
	return 0;
}

void
fbt_patch_tracepoint(fbt_probe_t *record, fbt_patchval_t value)
{
	unsigned size = size_of(record->fbtp_patchval);
	for (unsigned i = 0; i < size; i++)
		record->fbtp_patchpoint[i] = value >> 8 * i;
}

int
fbt_invop(word address, struct trapframe *frame, word value)
{
	for (fbt_probe_t *record = records; record; record = record->fbtp_all) {
		if ((word)record->fbtp_patchpoint != address)
			continue;
		word roffset = record->fbtp_roffset;
#if defined(__x86_64__)
		(void)value;
		if (roffset)
			dtrace_probe(record->fbtp_id, roffset, frame->tf_rax, 0, 0, 0);
		else
			dtrace_probe(record->fbtp_id, frame->tf_rdi, frame->tf_rsi, frame->tf_rdx, frame->tf_rcx, frame->tf_r8);
		return record->fbtp_rval;
#elif defined(__i386__)
		word *stack = (word *)frame->tf_isp + 4;
		(void)value;
		if (roffset)
			dtrace_probe(record->fbtp_id, roffset, frame->tf_eax, 0, 0, 0);
		else
			dtrace_probe(record->fbtp_id, stack[0], stack[1], stack[2], stack[3], stack[4]);
		return record->fbtp_rval;
#elif defined(__aarch64__)
		if (roffset)
			dtrace_probe(record->fbtp_id, roffset, value, 0, 0, 0);
		else
			dtrace_probe(record->fbtp_id, frame->tf_x[0], frame->tf_x[1], frame->tf_x[2], frame->tf_x[3], frame->tf_x[4]);
		return record->fbtp_savedval;
#else
		(void)value;
		if (roffset)
			dtrace_probe(record->fbtp_id, roffset, frame->tf_a[0], frame->tf_a[1], 0, 0);
		else
			dtrace_probe(record->fbtp_id, frame->tf_a[0], frame->tf_a[1], frame->tf_a[2], frame->tf_a[3], frame->tf_a[4]);
		return record->fbtp_savedval;
#endif
	}
	return 0;
}

#if defined(__aarch64__) || defined(__riscv)
/* What dtrace_subr.c does at a breakpoint of the kernel where it emulates in C: 0, or -1 for an instruction it does not know. */
int
dtrace_invop_start(struct trapframe *frame)
{
#ifdef BUGGY
	const int wrong = 8;
#else
	const int wrong = 0;
#endif
#if defined(__aarch64__)
	uint32_t code = fbt_invop(frame->tf_elr, frame, frame->tf_x[0]);
	if ((code & 0xffc003e0) == 0xa98003e0) {
		word registers[32], *sp;
		for (int i = 0; i < 30; i++)
			registers[i] = frame->tf_x[i];
		registers[30] = frame->tf_lr;
		registers[31] = 0;
		frame->tf_sp += (long)((int32_t)(code << 10) >> 25) * 8 + wrong;
		sp = (word *)frame->tf_sp;
		sp[0] = registers[code & 31];
		sp[1] = registers[code >> 10 & 31];
	} else if ((code & 0xffc003ff) == 0xd10003ff)
		frame->tf_sp -= code >> 10 & 0xfff;
	else if (code == 0xd65f03c0 || code >> 24 == 0x14) {
		frame->tf_elr = code >> 24 == 0x14 ? frame->tf_elr + (code & 0xffffff) * 4 : frame->tf_lr + wrong;
		return 0;
	} else
		return -1;
	frame->tf_elr += 4;
	return 0;
#else
	uint32_t code = fbt_invop(frame->tf_sepc, frame, 0);
	if ((code & 0xffff) == 0x8082 || code == 0x8067) {
		frame->tf_sepc = frame->tf_ra + wrong;
		return 0;
	}
	int is_short = (code & 3) != 3;
	word offset = is_short ? (code >> 7 & 0x38) | (code >> 1 & 0x1c0) : (code >> 7 & 0x1f) | (code >> 20 & 0xfe0);
	*(word *)(frame->tf_sp + offset + wrong) = frame->tf_ra;
	frame->tf_sepc += is_short ? 2 : 4;
	return 0;
#endif
}
#endif
