/*
 * Statically defined tracing (FreeBSD sys/sys/sdt.h): probes that are written into the code.
 *
 *	SDT_PROVIDER_DEFINE(proc);
 *	SDT_PROBE_DEFINE1(proc, , , exec, "char *");
 *	...
 *	SDT_PROBE1(proc, , , exec, path);
 *
 * Module and function may be left out; "__" in a name is a "-". What is defined lands in linker sets, which the
 * provider of the emulator walks. How a site looks is a matter of the generation (SDT_GENERATION):
 *
 *	2013	FreeBSD's first: the probe's own id is tested
 *	2018	a global flag is tested, then the id
 *	2024	a nop, which enabling overwrites with a jump to the call
 *	2005	illumos's: a call to nothing, which the loader makes nops (x86-64 alone has it)
 *	0	none, to measure the others by
 */
#ifndef SYS_SDT_H
#define SYS_SDT_H

#include "sys/kernel.h"
#include "sys/traced.h"
#include "sys/types.h"

#ifndef SDT_GENERATION
#define SDT_GENERATION 2024
#endif

struct sdt_provider {
	const char *name;
};

/*
 * The provider of the emulator knows the layout by heart, as FreeBSD's sdt.ko does: `version' tells it that it does. Probes
 * have a section of their own, so that the compiler does not go to them by way of variables that are used at rest.
 */
struct sdt_probe {
	int version; /* sizeof(struct sdt_probe) */
	uint32_t id; /* of dtrace; 0: not enabled */
	struct sdt_provider *prov;
	const char *mod;
	const char *func;
	const char *name;
	uint64_t n_args;
};

struct sdt_argtype {
	uint64_t ndx;
	const char *type;  /* NULL: not told */
	const char *xtype; /* what D programs see instead, or NULL */
	struct sdt_probe *probe;
};

/* A site that enabling patches; SDT_TRACEPOINT makes them. */
struct sdt_tracepoint {
	struct sdt_probe *probe;
	uintptr_t patchpoint;
	uintptr_t target;
};

typedef void sdt_probe_func_t(uint32_t id, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

extern const int sdt_generation;
extern volatile bool sdt_probes_enabled;
extern sdt_probe_func_t *sdt_probe_func;
void sdt_probe(uint32_t id, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

#define SDT_PROVIDER_DEFINE(prov)                               \
	struct sdt_provider sdt_provider_##prov[1] = { { #prov } }; \
	DATA_SET(sdt_providers_set, sdt_provider_##prov)
#define SDT_PROVIDER_DECLARE(prov) extern struct sdt_provider sdt_provider_##prov[1]

#define SDT_NAME(prov, mod, func, name) sdt_##prov##_##mod##_##func##_##name
#define SDT_PROBE_DEFINEN(n, p, m, f, name) SDT_PROBE_DEFINE_AS(SDT_NAME(p, m, f, name), n, p, #m, #f, #name)
#define SDT_PROBE_DEFINE_AS(symbol, n, p, mod, func, name) SDT_PROBE_DEFINE_SYMBOL(symbol, n, p, mod, func, name)
#define SDT_PROBE_DEFINE_SYMBOL(symbol, n, p, mod, func, name)                                        \
	__attribute__((section(".data.sdt_probes"))) struct sdt_probe symbol[1] = { { sizeof(struct sdt_probe), 0, sdt_provider_##p, mod, func, name, n } }; \
	DATA_SET(sdt_probes_set, symbol)
#define SDT_PROBE_DECLARE(p, m, f, n) extern struct sdt_probe SDT_NAME(p, m, f, n)[1]

#define SDT_ARG(p, m, f, n, ndx, type, xtype) \
	SDT_ARG_AS(sdt_arg##ndx##_##p##_##m##_##f##_##n, SDT_NAME(p, m, f, n), ndx, type, xtype)
#define SDT_ARG_AS(symbol, probe, ndx, type, xtype) SDT_ARG_SYMBOL(symbol, probe, ndx, type, xtype)
#define SDT_ARG_SYMBOL(symbol, probe, ndx, type, xtype)                     \
	static struct sdt_argtype symbol[1] = { { ndx, type, xtype, probe } }; \
	DATA_SET(sdt_argtypes_set, symbol)

#define SDT_ARGS1(p, m, f, n, t0) SDT_ARG(p, m, f, n, 0, t0, NULL)
#define SDT_ARGS2(p, m, f, n, t0, t1) SDT_ARGS1(p, m, f, n, t0); SDT_ARG(p, m, f, n, 1, t1, NULL)
#define SDT_ARGS3(p, m, f, n, t0, t1, t2) SDT_ARGS2(p, m, f, n, t0, t1); SDT_ARG(p, m, f, n, 2, t2, NULL)
#define SDT_ARGS4(p, m, f, n, t0, t1, t2, t3) SDT_ARGS3(p, m, f, n, t0, t1, t2); SDT_ARG(p, m, f, n, 3, t3, NULL)
#define SDT_ARGS5(p, m, f, n, t0, t1, t2, t3, t4) SDT_ARGS4(p, m, f, n, t0, t1, t2, t3); SDT_ARG(p, m, f, n, 4, t4, NULL)
#define SDT_ARGS6(p, m, f, n, t0, t1, t2, t3, t4, t5) \
	SDT_ARGS5(p, m, f, n, t0, t1, t2, t3, t4); SDT_ARG(p, m, f, n, 5, t5, NULL)
#define SDT_PROBE_DEFINE(p, m, f, n) SDT_PROBE_DEFINEN(0, p, m, f, n)
#define SDT_PROBE_DEFINE1(p, m, f, n, ...) SDT_PROBE_DEFINEN(1, p, m, f, n); SDT_ARGS1(p, m, f, n, __VA_ARGS__)
#define SDT_PROBE_DEFINE2(p, m, f, n, ...) SDT_PROBE_DEFINEN(2, p, m, f, n); SDT_ARGS2(p, m, f, n, __VA_ARGS__)
#define SDT_PROBE_DEFINE3(p, m, f, n, ...) SDT_PROBE_DEFINEN(3, p, m, f, n); SDT_ARGS3(p, m, f, n, __VA_ARGS__)
#define SDT_PROBE_DEFINE4(p, m, f, n, ...) SDT_PROBE_DEFINEN(4, p, m, f, n); SDT_ARGS4(p, m, f, n, __VA_ARGS__)
#define SDT_PROBE_DEFINE5(p, m, f, n, ...) SDT_PROBE_DEFINEN(5, p, m, f, n); SDT_ARGS5(p, m, f, n, __VA_ARGS__)
#define SDT_PROBE_DEFINE6(p, m, f, n, ...) SDT_PROBE_DEFINEN(6, p, m, f, n); SDT_ARGS6(p, m, f, n, __VA_ARGS__)

/* ---- sites ---- */

/* The call of a probe; the first generations had no function of the kernel's between. */
#if SDT_GENERATION == 2024
#define SDT_CALL(probe, ...) sdt_probe((probe)->id, SDT_WORDS(__VA_ARGS__))
#else
#define SDT_CALL(probe, ...) (*sdt_probe_func)((probe)->id, SDT_WORDS(__VA_ARGS__))
#endif
#define SDT_WORDS(a0, a1, a2, a3, a4, a5) \
	TRACED_VALUE(a0), TRACED_VALUE(a1), TRACED_VALUE(a2), TRACED_VALUE(a3), TRACED_VALUE(a4), TRACED_VALUE(a5)

#if SDT_GENERATION == 2013
#define SDT_SITE_OF(probe, ...) TRACED(TRACED_TEST32((probe)->id), SDT_CALL(probe, __VA_ARGS__);)
#elif SDT_GENERATION == 2018
#define SDT_SITE_OF(probe, ...) TRACED(TRACED_TEST8(sdt_probes_enabled), if ((probe)->id != 0) SDT_CALL(probe, __VA_ARGS__);)
#elif SDT_GENERATION == 2024
#define SDT_TRACEPOINT(probe)                                                                              \
	asm goto("2: " TRACED_NOP TRACED_BEGINS(TRACED_NOP_OWES)                                           \
		 ".pushsection set_sdt_tracepoint_set, \"a\"\n\t" TRACED_WORD " " TRACED_SYMBOL ", 2b, %l[slow]\n\t.popsection\n"   \
	    : : "i"(probe) : "memory" : slow)
#define SDT_SITE_OF(probe, ...) TRACED(SDT_TRACEPOINT(probe), SDT_CALL(probe, __VA_ARGS__);)
#elif SDT_GENERATION == 0
#define SDT_SITE(p, m, f, n, ...)                     \
	do {                                          \
		if (0)                                \
			sdt_probe(0, SDT_WORDS(__VA_ARGS__)); \
	} while (0)
#elif SDT_GENERATION == 2005
#include "illumos_sdt.h"
#else
#error "SDT_GENERATION: 0, 2013, 2018, 2024, or 2005 where there is an illumos"
#endif

#ifndef SDT_SITE
#define SDT_SITE(p, m, f, n, ...) SDT_SITE_OF(SDT_NAME(p, m, f, n), __VA_ARGS__)
#endif
#define SDT_PROBE6(p, m, f, n, ...) SDT_SITE(p, m, f, n, __VA_ARGS__)
#define SDT_PROBE5(p, m, f, n, a0, a1, a2, a3, a4) SDT_PROBE6(p, m, f, n, a0, a1, a2, a3, a4, 0ul)
#define SDT_PROBE4(p, m, f, n, a0, a1, a2, a3) SDT_PROBE6(p, m, f, n, a0, a1, a2, a3, 0ul, 0ul)
#define SDT_PROBE3(p, m, f, n, a0, a1, a2) SDT_PROBE6(p, m, f, n, a0, a1, a2, 0ul, 0ul, 0ul)
#define SDT_PROBE2(p, m, f, n, a0, a1) SDT_PROBE6(p, m, f, n, a0, a1, 0ul, 0ul, 0ul, 0ul)
#define SDT_PROBE1(p, m, f, n, a0) SDT_PROBE6(p, m, f, n, a0, 0ul, 0ul, 0ul, 0ul, 0ul)
#define SDT_PROBE0(p, m, f, n) SDT_PROBE6(p, m, f, n, 0ul, 0ul, 0ul, 0ul, 0ul, 0ul)

#endif
