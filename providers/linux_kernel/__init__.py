"""The providers of a real Linux kernel (`emu.guest.linux_kernel`), under DTrace's names.

| module | what |
| --- | --- |
| `port`, `ports`, `<isa>` | what functions begin and end with, for each ISA |
| `text` | breakpoints in the kernel's text, shared by the providers |
| `sites` | where a function's probes go, and what the displaced instructions do |
| `fbt` | fbt:kernel:vfs_read:entry |
| `syscall` | syscall:linux:read:entry |
| `kinst` | kinst:kernel:vfs_read:12 |
| `registrations` | functions of ours at tracepoints |
| `tracepoints` | sdt:kernel:sched:sched_switch |
| `events`, `named` | proc, sched, io and vminfo |
"""
