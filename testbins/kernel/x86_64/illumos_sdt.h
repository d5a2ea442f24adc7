/*
 * Probes as illumos has them (illumos usr/src/uts/common/sys/sdt.h): a site is a call of a function that is nowhere. The
 * loader, which finds the relocation, makes it five nops and notes the name and the place; that is all there is. A name
 * begins with what tells its provider: __proc_, __sched_, __io_ and so on; those without are of provider sdt. lockstat has a mechanism
 * of its own there, and no sites here.
 */
#undef SDT_PROVIDER_DEFINE
#undef SDT_PROVIDER_DECLARE
#undef SDT_PROBE_DEFINE_SYMBOL
#undef SDT_ARG_SYMBOL
#define SDT_PROVIDER_DEFINE(prov) struct sdt_none
#define SDT_PROVIDER_DECLARE(prov) struct sdt_none
#define SDT_PROBE_DEFINE_SYMBOL(...) struct sdt_none
#define SDT_ARG_SYMBOL(...) struct sdt_none

#define SDT_SITE(p, m, f, n, ...) SDT_ILLUMOS_##p(n, __VA_ARGS__)
#define SDT_ILLUMOS(symbol, ...)                                                                 \
	do {                                                                                     \
		extern void symbol(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t); \
		symbol(SDT_WORDS(__VA_ARGS__));                                                  \
	} while (0)
#define SDT_ILLUMOS_proc(n, ...) SDT_ILLUMOS(__dtrace_probe___proc_##n, __VA_ARGS__)
#define SDT_ILLUMOS_sched(n, ...) SDT_ILLUMOS(__dtrace_probe___sched_##n, __VA_ARGS__)
#define SDT_ILLUMOS_io(n, ...) SDT_ILLUMOS(__dtrace_probe___io_##n, __VA_ARGS__)
#define SDT_ILLUMOS_sysinfo(n, ...) SDT_ILLUMOS(__dtrace_probe___cpu_sysinfo_##n, __VA_ARGS__)
#define SDT_ILLUMOS_vminfo(n, ...) SDT_ILLUMOS(__dtrace_probe___cpu_vminfo_##n, __VA_ARGS__)
#define SDT_ILLUMOS_fsinfo(n, ...) SDT_ILLUMOS(__dtrace_probe___fsinfo_##n, __VA_ARGS__)
#define SDT_ILLUMOS_mib(n, ...) SDT_ILLUMOS(__dtrace_probe___mib_##n, __VA_ARGS__)
#define SDT_ILLUMOS_ip(n, ...) SDT_ILLUMOS(__dtrace_probe___ip_##n, __VA_ARGS__)
#define SDT_ILLUMOS_tcp(n, ...) SDT_ILLUMOS(__dtrace_probe___tcp_##n, __VA_ARGS__)
#define SDT_ILLUMOS_udp(n, ...) SDT_ILLUMOS(__dtrace_probe___udp_##n, __VA_ARGS__)
#define SDT_ILLUMOS_vfs(n, ...) SDT_ILLUMOS(__dtrace_probe_##n, __VA_ARGS__)
#define SDT_ILLUMOS_priv SDT_ILLUMOS_vfs
#define SDT_ILLUMOS_random SDT_ILLUMOS_vfs
#define SDT_ILLUMOS_callout_execute SDT_ILLUMOS_vfs
#define SDT_ILLUMOS_test SDT_ILLUMOS_vfs
#define SDT_ILLUMOS_lockstat(n, ...)                  \
	do {                                          \
		if (0)                                \
			sdt_probe(0, SDT_WORDS(__VA_ARGS__)); \
	} while (0)
