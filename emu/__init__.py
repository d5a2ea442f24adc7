"""The emulated machine.

CPUs, memory, traps and guests, and what DTrace keeps in a kernel's trap path.

That is the chain of invop handlers (`emu.trap`), the words of each CPU (`emu.cpu_core`) and FBT's
stub (`emu.isa.<isa>.stub`).  Which probes there are, and what fires them, is the providers'
business.
"""
