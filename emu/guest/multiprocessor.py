"""Several CPUs over one RAM: each an engine, and one of them runs at a time.

Their order is drawn from a seed and counted in instructions, so a run is the same on every host.
Each CPU calls one function of the same code.  There is no kernel: an interrupt is a Python function
that a CPU runs between two of its turns.  For D programs it is a guest with a thread for each CPU.

    machine = Multiprocessor(X86_64, code, cpus=4, seed=1)
    results = machine.call_all([(counter, 100)] * 4)

A cache of a CPU may hold old bytes of code.  An engine's translations are such a cache: they stay
until they are dropped.  Here a write drops none but those that the ISA promises to drop, and each
CPU drops its own when it synchronizes: at an instruction that does so, and at an interrupt where
the ISA says so (`emu.isa.fetch`).  Code that a CPU has not translated yet, it sees as it is in
memory, as an empty cache does.

Native code for hits is not used: the tables of an engine are its own, and a probe is one for all.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from emu.elf.image import Image
from emu.engine.events.barriers import watch_barriers
from emu.guest.base import Abilities, Location, RunState, Thread
from emu.guest.function import CODE, DEFAULT_LIMIT, FunctionFaultError, FunctionGuest
from emu.isa.base import Isa
from emu.isa.fetch import Barrier, Effect
from emu.probe.patcher import Patcher


class CodeCaches:
    """The caches of CPUs over one RAM."""

    def __init__(self, cpus: Sequence[FunctionGuest], code: bytes | Image) -> None:
        self._cpus = cpus
        self._stale: list[list[tuple[int, int]]] = [[] for _ in cpus]
        """The ranges (address, size) that each CPU may still have in its cache."""
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


# The most instructions of a turn.
_LONGEST_TURN: Final = 200

Interrupt = Callable[[FunctionGuest], None]


class _EveryCpu:
    """The code of all CPUs.  Implements `emu.probe.patcher.CodeMemory`."""

    def __init__(self) -> None:
        self.cpus: list[FunctionGuest] = []
        self.caches: CodeCaches | None = None
        self.writer = 0
        """The number of the CPU that writes."""

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""
        return self.cpus[0].engine.read(address, size)

    def write_code(self, address: int, data: bytes) -> None:
        """Write bytes, and drop what every CPU has translated from them, if it keeps no old bytes.

        Raises `BadAddressError`.
        """
        if self.caches is not None:
            self.caches.written(address, data, self.cpus[self.writer])
            return
        for cpu in self.cpus:
            cpu.engine.write_code(address, data)


class Multiprocessor:
    """`cpus` CPUs over one RAM; implements `emu.guest.base.Guest`."""

    def __init__(
        self, isa: Isa, code: bytes | Image, *, cpus: int, seed: int = 0, accelerated: bool | None = None,
        code_caches: bool = False,
    ) -> None:  # fmt: skip
        """`code_caches`: each CPU may execute old bytes of patched code until it synchronizes."""
        self.isa = isa
        self._every = _EveryCpu()
        self.patcher = Patcher(self._every)
        """Writes the code of all CPUs."""
        for _ in range(cpus):
            beside = self._every.cpus[-1] if self._every.cpus else None
            cpu = FunctionGuest(isa, code, accelerated=accelerated, beside=beside, patcher=self.patcher)
            cpu.host_trap.use_python()
            self._every.cpus.append(cpu)
        if code_caches:
            self._every.caches = CodeCaches(self._every.cpus, code)
        self._running = self.cpus[0]
        self._draw = random.Random(seed)  # noqa: S311
        self._latest = 0
        self._interrupts: list[deque[Interrupt]] = [deque() for _ in self.cpus]
        self.traps = self.cpus[0].traps
        self.abilities = Abilities()
        self.turns = 0
        """The number of turns so far."""

    @property
    def cpus(self) -> Sequence[FunctionGuest]:
        """The CPUs, by number."""
        return self._every.cpus

    @property
    def cpu(self) -> int:
        """The number of the CPU that runs."""
        return self._running.cpu

    def allocate(self, data: bytes | int) -> int:
        """Put bytes (or that many zeros) into memory of their own and return the address."""
        return self.cpus[0].allocate(data)

    def interrupt_others(self, handler: Interrupt) -> None:
        """Make each other CPU run a handler before its next instruction."""
        for cpu, waiting in zip(self.cpus, self._interrupts, strict=True):
            if cpu is not self._running:
                waiting.append(handler)

    def call_all(
        self,
        calls: Sequence[Sequence[int]],
        *,
        function: str | None = None,
        between: Callable[[int], None] = lambda _turn: None,
        limit: int = DEFAULT_LIMIT,
    ) -> list[int]:
        """Call the function on each CPU, with arguments of its own, and return the results.

        `between` is called before each turn, with its number.  Raises `FunctionFaultError` if a
        CPU faults, or has not returned after `limit` turns.
        """
        if len(calls) != len(self.cpus):
            raise ValueError(f"{len(calls)} calls for {len(self.cpus)} CPUs")
        for cpu, arguments in zip(self.cpus, calls, strict=True):
            cpu.prepare(*arguments, function=function)
        busy, turns = list(self.cpus), 0
        while busy:
            if turns == limit:
                raise FunctionFaultError(f"a CPU had not returned after {limit:,} turns", busy[0].engine.pc)
            turns += 1
            self.turns += 1
            between(self.turns)
            self._running = self._draw.choice(busy)
            self._every.writer = self._running.cpu
            if self._turn(self._running):
                busy.remove(self._running)
        for cpu in self.cpus:
            self._serve(cpu)
        return [cpu.engine.read_register(self.isa.calling.results[0]) for cpu in self.cpus]

    def _turn(self, cpu: FunctionGuest) -> bool:
        """Let a CPU run for a while; return whether its function has returned."""
        self._serve(cpu)
        # Another CPU may have written what this one has reserved.
        cpu.engine.cpu.lose_reservation()
        return cpu.advance(self._draw.randint(1, _LONGEST_TURN))

    def _serve(self, cpu: FunctionGuest) -> None:
        waiting = self._interrupts[cpu.cpu]
        while waiting:
            waiting.popleft()(cpu)
            if self._every.caches is not None:
                self._every.caches.interrupted(cpu)

    def synchronize(self, cpu: FunctionGuest) -> None:
        """Make a CPU fetch anew, as a synchronizing instruction does; for handlers of interrupts."""
        if self._every.caches is not None:
            self._every.caches.synchronize(cpu)

    # -- the interface for the framework

    def now(self) -> int:
        """Return virtual nanoseconds, which never go back: those of the CPU that is furthest."""
        self._latest = max(self._latest, self._running.now())
        return self._latest

    wall = now

    def thread(self) -> Thread:
        """Return the thread of the CPU that runs."""
        return Thread(address=0, tid=self.cpu + 1, pid=1, ppid=0, execname="function")

    def load(self, address: int, size: int) -> bytes:
        """Read memory.  Raises `BadAddressError`."""
        return self._running.load(address, size)

    user_load = load

    def user_store(self, address: int, data: bytes) -> None:
        """Write memory.  Raises `BadAddressError`."""
        self._running.user_store(address, data)

    def kernel_stack(self) -> list[int]:
        """Return the pc of the CPU that runs, and its caller."""
        return self._running.kernel_stack()

    def user_stack(self) -> list[int]:
        """Return nothing: there is no user mode."""
        return []

    def locate(self, address: int) -> Location | None:
        """Name an address by the symbols of the image."""
        return self._running.locate(address)

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name nothing: there is no user mode."""
        return self._running.locate_user(address, pid)

    def run(self, deadline: int | None) -> RunState:
        """Return at once: the CPUs run in `call_all`."""
        return self._running.run(deadline)

    def interrupt(self) -> None:
        """Do nothing: `call_all` returns by itself."""
