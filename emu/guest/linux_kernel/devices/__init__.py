"""The devices of the machines that a Linux kernel boots on, a module each.

A device is registers and interrupt lines.  It knows neither where it is mapped nor who listens to
its lines: a platform (`emu.guest.linux_kernel.platforms`) wires it.
"""
