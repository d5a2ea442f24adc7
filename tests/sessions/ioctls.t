# What dtrace(1) asks of /dev/dtrace/dtrace, request by request (on FreeBSD: sysctl debug.dtrace.verbose_ioctl=1).

NAME the requests of a run, from its options to its last record
RUN trapline dtrace -x verbose_ioctl -n 'syscall::open:entry { trace(execname); exit(0); }' -c 'cat /etc/motd'
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0 {{ *\d+}}                       open:entry   init                             
|
STDERR
|dtrace_ioctl: DTRACEIOC_CONF (0x4030780a)
|dtrace_ioctl: DTRACEIOC_PROBEMATCH (0xc1847805)
|dtrace_ioctl: DTRACEIOC_PROVIDER (0xc0607801)
|dtrace_ioctl: DTRACEIOC_PROBEMATCH (0xc1847805)
|dtrace_ioctl: DTRACEIOC_ENABLE (0xc0107806)
|dtrace_ioctl: DTRACEIOC_ENABLE (0xc0107806)
|dtrace: description 'syscall::open:entry ' matched 1 probe
|dtrace_ioctl: DTRACEIOC_ENABLE (0xc0107806)
|dtrace_ioctl: DTRACEIOC_ENABLE (0xc0107806)
|dtrace_ioctl: DTRACEIOC_GO (0x4004780c)
|dtrace_ioctl: DTRACEIOC_DOFGET (0x80087811)
|dtrace_ioctl: DTRACEIOC_STATUS (0x4058780b)
|{{...}}
|dtrace_ioctl: DTRACEIOC_STOP (0xc004780d)
|dtrace_ioctl: DTRACEIOC_STATUS (0x4058780b)
|dtrace_ioctl: DTRACEIOC_AGGSNAP (0x80087807)
|dtrace_ioctl: DTRACEIOC_AGGSNAP (0x80087807)
|dtrace_ioctl: DTRACEIOC_BUFSNAP (0x80087804)
|dtrace_ioctl: DTRACEIOC_BUFSNAP (0x80087804)
|dtrace_ioctl: DTRACEIOC_EPROBE (0x80387808)
|dtrace_ioctl: DTRACEIOC_PROBES (0xc1847802)

NAME an aggregation is described once, when it is first seen
RUN trapline dtrace -x verbose_ioctl -qn 'fbt::sys_getpid:entry { @ = count(); }' -c 'getpid 3'
EXPECT
|getpid: 3 calls
|
|                3
STDERR
|{{...}}
|dtrace_ioctl: DTRACEIOC_AGGDESC (0x8008780f)
|dtrace_ioctl: DTRACEIOC_AGGDESC (0x8008780f)
|{{...}}

NAME two questions tell what a description of many probes means, as in libdtrace
RUN trapline dtrace -x verbose_ioctl -qn 'fbt:::entry { exit(0); }' -c 'getpid 3'
EXPECT
|
STDERR
|dtrace_ioctl: DTRACEIOC_CONF (0x4030780a)
|dtrace_ioctl: DTRACEIOC_PROBEMATCH (0xc1847805)
|dtrace_ioctl: DTRACEIOC_PROVIDER (0xc0607801)
|dtrace_ioctl: DTRACEIOC_PROBEMATCH (0xc1847805)
|dtrace_ioctl: DTRACEIOC_ENABLE (0xc0107806)
|{{...}}

NAME what matches nothing is not enabled
RUN trapline dtrace -x verbose_ioctl -n 'nosuch:::'
STDERR
|dtrace_ioctl: DTRACEIOC_CONF (0x4030780a)
|dtrace_ioctl: DTRACEIOC_PROBEMATCH (0xc1847805)
|dtrace: invalid probe specifier nosuch:::: probe description nosuch::: does not match any probes
EXIT 1
