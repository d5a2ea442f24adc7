"""The providers of a real Linux kernel (`emu.guest.linux_kernel`), under DTrace's names.

| module | what |
| --- | --- |
| `port`, `ports`, `<isa>` | what functions begin and end with, for each ISA |
| `text` | breakpoints in the kernel's text, shared by the providers |
| `sites` | where a function's probes go, and what the displaced instructions do |
| `fbt` | fbt:kernel:vfs_read:entry |
| `syscall` | syscall:linux:read:entry |
| `tracepoints` | sdt:kernel:sched:sched_switch; proc, sched, io and vminfo are made of them |
"""
