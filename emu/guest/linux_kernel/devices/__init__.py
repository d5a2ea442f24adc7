"""The devices of the machines that a Linux kernel boots on, a module each.

A device consists of registers and interrupt lines.  It does not know its address or the receiver of
its interrupts: a platform (`emu.guest.linux_kernel.platforms`) connects it.
"""
