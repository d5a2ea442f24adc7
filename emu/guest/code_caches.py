"""Caches of code that may hold old bytes, one for each of several CPUs.

An engine's translations are such a cache: they stay until they are dropped.  Here a
write drops none but those that the ISA promises to drop, and each CPU drops its own when it
synchronizes: at an instruction that does so, and at an interrupt where the ISA says so
(`emu.isa.fetch`).  What a CPU has not translated yet, it sees as it is in memory, as an empty
cache does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from emu.elf.image import Image
from emu.engine.events.barriers import watch_barriers
from emu.guest.function import CODE, FunctionGuest
from emu.isa.fetch import Barrier, Effect


class CodeCaches:
    """The caches of CPUs over one RAM."""

    def __init__(self, cpus: Sequence[FunctionGuest], code: bytes | Image) -> None:
        self._cpus = cpus
        self._stale: list[list[tuple[int, int]]] = [[] for _ in cpus]
        """The places (address, size) that each CPU may still have in its cache."""
        for cpu in cpus:
            watch_barriers(cpu.engine, _parts(code), partial(self._barrier, cpu))

    def written(self, address: int, data: bytes, writer: FunctionGuest) -> None:
        """Write bytes.  Only x86's own stores reach what its CPU has fetched.

        Raises `BadAddressError`.
        """
        writer.engine.memory.write(address, data)
        for number, cpu in enumerate(self._cpus):
            if cpu is writer and cpu.isa.traps.coherent:
                cpu.engine.write_code(address, data)
            else:
                self._stale[number].append((address, len(data)))

    def interrupted(self, cpu: FunctionGuest) -> None:
        """Note that a CPU has taken an interrupt."""
        if cpu.isa.fetching.interrupted:
            self.synchronize(cpu)

    def _barrier(self, cpu: FunctionGuest, barrier: Barrier) -> None:
        if Effect.SYNCHRONIZE in barrier.effect:
            self.synchronize(cpu)

    def synchronize(self, cpu: FunctionGuest) -> None:
        """Drop what a CPU has in its cache, as a synchronizing instruction does."""
        stale = self._stale[cpu.cpu]
        while stale:
            address, size = stale.pop()
            cpu.engine.write_code(address, cpu.engine.read(address, size))


def _parts(code: bytes | Image) -> Iterator[tuple[int, bytes]]:
    if isinstance(code, bytes):
        yield CODE, code
        return
    for symbol in code.functions:
        yield symbol.value, code.read(symbol.value, symbol.size)
