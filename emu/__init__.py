"""The emulated machine.

CPUs, memory, traps and guests, and what DTrace keeps in a kernel's trap path.

That is the chain of invop handlers (`emu.probe.trap`), the words of each CPU
(`emu.displaced.cpu_core`) and FBT's stub (`emu.isa.<isa>.stub`).  Providers decide which probes
exist and when they fire.
"""
