"""The guest `linux-kernel`: an unmodified Linux kernel, and the machine it runs on.

| part | what it is |
| --- | --- |
| `image` | a kernel's file: what it is, and how it is unpacked |
| `store` | the kernels that `trapline kernel get` keeps |
| `initramfs`, `cpio` | the root file system that the kernel starts with |
| `device_tree` | what a kernel is told of its machine on AArch64 and RISC-V |
| `devices` | one module for each device, written like its data sheet |
| `platforms` | a machine for each ISA: memory map, devices, boot protocol, interrupts |
| `machine` | runs a kernel on such a machine in virtual time |
| `snapshot` | a booted machine, kept on disk |
| `kallsyms`, `btf`, `layout` | what the kernel says of itself: symbols, types, offsets |
| `guest` | all of this as the D framework and the providers see it |

Nothing in here knows of probes.
"""
