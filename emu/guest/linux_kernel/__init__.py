"""The guest `linux-kernel`: an unmodified Linux kernel, and the machine it runs on.

| part | what it is |
| --- | --- |
| `image` | a kernel's file: its format, and how it is unpacked |
| `store` | the kernels that `trapline kernel get` keeps |
| `initramfs` | the root file system that the kernel starts with |
| `device_tree` | the description of the machine for kernels of AArch64 and RISC-V |
| `devices` | one module for each device, written like its data sheet |
| `platforms` | a machine for each ISA: memory map, devices, boot protocol, interrupts |
| `machine` | runs a kernel on such a machine in virtual time |
| `snapshot` | a booted machine, kept on disk |
| `kallsyms`, `btf`, `layout` | the kernel's own data about symbols, types, offsets |
| `guest` | the interface to all of this for the D framework and the providers |

These modules do not depend on probes.
"""
