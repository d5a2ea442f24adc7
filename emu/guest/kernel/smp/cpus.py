"""The CPUs of a kernel guest that has several: one engine executes them in turn.

A CPU is a set of registers, a clock, and memory of its own.  Only one CPU runs at a time, so they
share one engine: its translated code, its tables of tracepoints, and the machine code that serves
hits are valid for all of them, and a patch is written once.  What a change of CPUs exchanges is

* all registers, those of the system included;
* the CPU's own memory: objects that the kernel names in `cpu_private[]`, which each CPU finds at
  the same addresses with other contents;
* the clock, which advances only while the CPU runs or waits.

A CPU's TLB is emptied when its turn begins, and its reservation of a load-exclusive is lost.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

from emu.elf.image import Image
from emu.engine.engine import Engine
from emu.engine.time.clock import KeptClock, VirtualClock
from emu.probe.arguments import pass_arguments


class Reason(IntFlag):
    """Reasons for an interrupt (testbins/kernel/smp/smp.h, INTR_*)."""

    CLOCK = 1
    IPI = 2


@dataclass(slots=True)
class Cpu:
    """One CPU; what it has in registers and memory is valid while another one runs."""

    number: int
    context: Any = None
    own: list[bytes] = field(default_factory=list)
    clock: KeptClock | None = None
    time: int = 0
    """Its virtual time in nanoseconds; not earlier, if it waits."""
    idle: bool = False
    """Whether it waits for an interrupt."""
    pending: Reason = field(default_factory=lambda: Reason(0))
    """The interrupts that it has not taken, or whose reasons the kernel has not asked for."""
    tick: int | None = None
    """The time of its next clock interrupt."""


class Cpus:
    """The CPUs that have been started, and the one whose turn it is."""

    def __init__(self, engine: Engine, image: Image, clock: VirtualClock) -> None:
        self._engine = engine
        self._clock = clock
        self._areas = _private(engine, image)
        self._flush, self._pointer = engine.cpu.function("tlb_flush"), ctypes.c_void_p(engine.cpu.address)
        self._root = engine.isa.registers.slots[engine.isa.registers.root]
        self.current = Cpu(0)
        self.started = [self.current]

    def start(self, number: int, function: int, stack: int) -> None:
        """Start a CPU: it calls a function with its number, on a stack, with this CPU's registers.

        So do hypervisors start a virtual CPU (Xen's VCPUOP_initialise).  Call this between runs.
        """
        engine, registers = self._engine, self._engine.isa.registers
        before = engine.cpu.new_context()
        engine.write_register(registers.sp, stack)
        if registers.link is None:
            engine.write_register(registers.sp, stack - engine.isa.word)
            engine.store(stack - engine.isa.word, engine.isa.word, 0)
        else:
            engine.write_register(registers.link, 0)
        engine.write_register(registers.fp, 0)
        pass_arguments(engine, (number,))
        engine.pc = function
        cpu = Cpu(number, engine.cpu.new_context(), self._own(), self._clock.kept(), time=self._clock.now())
        engine.cpu.restore(before)
        self.started.append(cpu)

    def switch(self, cpu: Cpu, *, looked_at: bool = False) -> None:
        """Let another CPU have its turn; between two runs.

        A CPU that is only `looked_at` keeps its reservation, since none runs meanwhile.
        """
        old, engine = self.current, self._engine
        if cpu is old:
            return
        if old.context is None:
            old.context = engine.cpu.new_context()
        else:
            engine.cpu.save(old.context)
        old.own = self._own()
        old.time = max(old.time, self._clock.now())
        old.clock = self._clock.kept()
        ram = engine.memory.ram
        for (start, size), data in zip(self._areas, cpu.own, strict=True):
            ram[start : start + size] = data
        root = engine.words[self._root]
        engine.cpu.restore(cpu.context)
        self._flush(self._pointer)
        if not looked_at:
            engine.cpu.lose_reservation()
        if engine.words[self._root] != root:
            engine.counter.forget_user_blocks()
        assert cpu.clock is not None
        self._clock.go_on(cpu.clock)
        self.current = cpu
        self._clock.skip_to(cpu.time)

    def time(self, cpu: Cpu) -> int:
        """Return a CPU's virtual time."""
        return max(cpu.time, self._clock.now()) if cpu is self.current else cpu.time

    def word(self, cpu: Cpu, address: int) -> int:
        """Return a word of a CPU's own memory."""
        word, physical = self._engine.isa.word, address - self._engine.isa.kernel_base
        if cpu is self.current:
            return self._engine.load(address, word)
        for (start, size), data in zip(self._areas, cpu.own, strict=True):
            if start <= physical < start + size:
                return int.from_bytes(data[physical - start :][:word], "little")
        raise ValueError(f"{address:#x} is not memory of each CPU's own")

    def _own(self) -> list[bytes]:
        ram = self._engine.memory.ram
        return [bytes(ram[start : start + size]) for start, size in self._areas]


def _private(engine: Engine, image: Image) -> list[tuple[int, int]]:
    """Return physical address and size of the objects that each CPU has for itself."""
    word, base = engine.isa.word, engine.isa.kernel_base
    table = image.symbol("cpu_private").value
    count = int.from_bytes(image.read(image.symbol("cpu_private_count").value, 4), "little")
    areas = []
    for index in range(count):
        address = int.from_bytes(image.read(table + index * word, word), "little")
        found = image.symbol_at(address) if address else None
        if found is not None:
            areas.append((address - base, found[0].size))
    return areas
