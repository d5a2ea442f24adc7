"""The providers of a real Linux kernel (`emu.guest.linux_kernel`), under DTrace's names.

| module | content |
| --- | --- |
| `port`, `<isa>` | the first and last instructions of functions, for each ISA |
| `text` | breakpoints in the kernel's text, shared by the providers |
| `sites` | the addresses of a function's probes, and the effects of the displaced instructions |
| `fbt` | fbt:kernel:vfs_read:entry |
| `syscall` | syscall:linux:read:entry |
| `kinst` | kinst:kernel:vfs_read:12 |
| `registrations` | Trapline's functions at tracepoints |
| `tracepoints` | sdt:kernel:sched:sched_switch |
| `events`, `named` | proc, sched, io and vminfo |
"""
