"""A CPU with a program's code, on which one instruction at a time is tried in a given state.

It is a Linux guest with one process, so that providers of user probes work on it.  The code is at
the program's own addresses.  Every other address is valid too: pages of `KINDS` kinds alternate
through the whole address space, and all pages of a kind are one page of RAM.  So an instruction may
be tried with any values in its registers, its writes are found in eight pages, and a page that is
not writable or not mapped is always near.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from emu.engine.handlers import WrappedTaker
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.fs.fdtable import Descriptors
from emu.guest.linux.fs.open_file import FileTable
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.kernel import Kernel
from emu.guest.linux.mm.address_space import Area
from emu.guest.linux.mm.page_frames import Frames
from emu.guest.linux.process.process import Process, Signals, Surroundings, Thread
from emu.isa.base import Isa
from emu.isa.linux_signals import SI_KERNEL, SignalInfo
from emu.isa.unicorn_model import VectorFile
from trapline.lab.check.cpu.aliased import AliasedSpace, pristine_memory
from trapline.lab.check.cpu.states import KINDS, POOL, State, general_registers

# The largest number of steps of code that should have ended.
_LONGEST: Final = 2_000
# The largest number of breakpoints of one instruction.
_TRAPS: Final = 100
# The number of blocks whose sizes are remembered: patching forgets them, and few are needed.
_BLOCKS: Final = 256
_SIGBUS, _SIGSEGV = 7, 11
_PID: Final = 100


class Ending(NamedTuple):
    """The end of an instruction: the pc, and the fault or system call, if any."""

    pc: int
    fault: tuple[int, int, int] | None = None
    """Signal, code, address."""
    system_call: bool = False
    traps: int = 1
    """The number of breakpoints of a patched instruction, if that is 0 or too large."""

    def __str__(self) -> str:
        if not self.traps:
            return f"no trap: the breakpoint was never taken, pc {self.pc:#x}"
        if self.traps > 1:
            return f"no end: it trapped {self.traps} times, pc {self.pc:#x}"
        if self.fault is not None:
            signal, code, address = self.fault
            return f"signal {signal} (code {code}) at {address:#x}, pc {self.pc:#x}"
        return f"a system call, pc {self.pc:#x}" if self.system_call else f"pc {self.pc:#x}"


class _EndlessError(Exception):
    """A breakpoint was taken too often."""


@lru_cache(POOL)
def _drawn(seed: int, sizes: tuple[int, ...]) -> tuple[bytes, ...]:
    """Return the content of the vector registers: random, or zeros if the seed is 0."""
    draw = random.Random(seed)  # noqa: S311
    return tuple(draw.randbytes(size) if seed else bytes(size) for size in sizes)


class Stretch(NamedTuple):
    """A range of a program's code."""

    address: int
    data: bytes


class _CountedTraps(WrappedTaker):
    """Counts breakpoints, and ends a run that meets too many.  Raises `_EndlessError`."""

    taken = 0

    def breakpoint(self, address: int) -> int:
        """Count a breakpoint."""
        self.taken += 1
        if self.taken > _TRAPS:
            raise _EndlessError
        return self.inner.breakpoint(address)


class TrialCpu:
    """One CPU and its process.

    `stepping`: it executes plain instructions, one by one; else it runs patched code.
    """

    def __init__(
        self,
        isa: Isa,
        code: Iterable[Stretch],
        *,
        stepping: bool,
        accelerated: bool | None = None,
        space: Callable[[Frames, int, int], AliasedSpace] = AliasedSpace,
    ) -> None:
        self.isa = isa
        self.kernel = Kernel(isa, lambda _kernel: {}, accelerated=accelerated, blocks=_BLOCKS)
        self.engine = self.kernel.engine
        self.stepping = stepping
        self.space = space(self.kernel.frames, PAGE * 16, isa.linux.highest)
        root = self.kernel.root
        self.process = Process(
            _PID, None, self.space, Descriptors(FileTable(1)), Surroundings(root, root), Signals(), _PID, _PID
        )
        self.thread = Thread(_PID, self.process)
        self.process.threads.append(self.thread)
        self.kernel.processes[_PID] = self.kernel.tasks.first = self.process
        self.kernel.threads[_PID] = self.thread
        self.files: list[tuple[int, int, RegularFile]] = []
        """The ranges of mapped code, [start, end), and the file of each."""
        for stretch in code:
            self._map(stretch)
        self.kernel.on_cpu.switch(self.thread)
        self._registers = self._general()
        self._flags = isa.traps.flags
        self._vectors = self.engine.cpu.vectors()
        self._vector_sizes = tuple(map(len, self._vectors))
        self._paddings = [
            list(_padding(file, len(place))) for file, place in zip(isa.unicorn.vectors, self._vectors, strict=True)
        ]
        self._base = self.engine.cpu.new_context()
        self._contexts: dict[int, Any] = {}
        self.memory = self.engine.memory.pointer + self.space.memory_at
        """Address in this process of the eight pages."""
        self.clobbered_by_calls = isa.calling.system_call_clobbers
        """Registers in which a system call leaves where it was made."""
        self.places = [
            (ctypes.addressof(ctypes.c_uint8.from_buffer(place)), len(place))
            for place in (self._registers, *self._vectors)
        ]
        """Address in this process and size of each run of registers that is compared."""
        self.paddings = [
            (at + part.start, part.stop - part.start)
            for (at, _), parts in zip(self.places[1:], self._paddings, strict=True)
            for part in parts
        ]
        """The same of the bytes between them that no register has."""
        self._pristine = ctypes.create_string_buffer(pristine_memory(), KINDS * PAGE)
        self.pristine_at, self.memory_size = ctypes.addressof(self._pristine), KINDS * PAGE
        self._taken = 0
        self.executed = 0
        """The number of executions by Python."""
        self.clean()

    def _map(self, stretch: Stretch) -> None:
        start = stretch.address // PAGE * PAGE
        content = bytes(stretch.address - start) + stretch.data
        file = RegularFile(0o755, content=content)
        end = start - -len(content) // PAGE * PAGE
        backing = file.pages(self.kernel.frames)
        self.space.map(Area(start, end, Access.READ | Access.EXECUTE, backing=backing, name="text"))
        self.files.append((start, end, file))

    def file_at(self, address: int) -> tuple[RegularFile, int]:
        """Return the file that is mapped at an address of code, and the offset in it."""
        return next((file, address - start) for start, end, file in self.files if start <= address < end)

    def _general(self) -> memoryview:
        """Return the general registers as bytes of the CPU state."""
        slots = [self.isa.registers.slots[name] for name in general_registers(self.isa)]
        assert slots == list(range(slots[0], slots[0] + len(slots))), "the registers follow each other"
        return self.engine.cpu.general(slots[0], slots[-1] + 1)

    # -- states

    def clean(self) -> None:
        """Restore the pages."""
        ctypes.memmove(self.memory, self._pristine, KINDS * PAGE)

    def is_clean(self) -> bool:
        """Return whether nothing was written."""
        return not _memcmp(self.memory, self._pristine, KINDS * PAGE)

    def same_memory(self, other: TrialCpu) -> bool:
        """Return whether the pages of two CPUs are the same."""
        return not _memcmp(self.memory, other.memory, KINDS * PAGE)

    def written(self) -> dict[str, bytes]:
        """Return the pages that were written, by name."""
        if self.is_clean():
            return {}
        content, before = ctypes.string_at(self.memory, KINDS * PAGE), pristine_memory()
        parts = {f"memory, pages {kind} modulo {KINDS}": slice(kind * PAGE, (kind + 1) * PAGE) for kind in range(KINDS)}
        return {name: content[part] for name, part in parts.items() if content[part] != before[part]}

    def load(self, state: State) -> None:
        """Put a state into the registers."""
        self.engine.cpu.restore(self._base)
        for name, value in state.registers.items():
            self.engine.write_register(name, value)
        if self._flags:
            self.engine.write_register(self._flags, state.flags)
        at = 0
        for place, drawn in zip(self._vectors, _drawn(state.vectors, self._vector_sizes), strict=True):
            size = len(place)
            place[:] = state.recorded[at : at + size] if state.recorded else drawn
            at += size

    def load_numbered(self, states: Sequence[State], number: int) -> None:
        """Load a state into the registers; store the image if the state is in the pool."""
        if number >= POOL:
            self.load(states[number])
            return
        context = self._contexts.get(number)
        if context is None:
            self.load(states[number])
            self._contexts[number] = self.engine.cpu.new_context()
        else:
            self.engine.cpu.restore(context)

    def same_registers(self, other: TrialCpu, *, called: bool = False) -> bool:
        """Return whether two CPUs have the same registers, flags and vectors.

        `called`: after a system call, which leaves the address of its caller in a register.
        """
        if called and self.clobbered_by_calls:
            for cpu in (self, other):
                for name in self.clobbered_by_calls:
                    cpu.engine.write_register(name, 0)
        pairs = zip(self.places, other.places, strict=True)
        apart = any(_memcmp(at, there, size) for (at, size), (there, _) in pairs)
        if apart and (self.general(), self.vectors()) != (other.general(), other.vectors()):
            return False
        return self.flags() == other.flags()

    # -- running

    def execute(self, address: int, *, repeats: bool = False) -> Ending:
        """Execute the instruction at an address, and return how it ended.

        Patched code runs until one instruction is counted.  One that `repeats` is stepped until it
        has ended.
        """
        engine, kernel = self.engine, self.kernel
        self.executed += 1
        engine.pc = address
        if repeats:
            fault = self._step_until(lambda pc: pc != address and not self._in_scratch(pc))
        elif self.stepping:
            fault = kernel.trapping.advance(self.thread, engine.step)
        else:
            try:
                fault = self._run_one()
            except _EndlessError:
                return Ending(engine.pc, traps=_TRAPS)
            if not self._taken:
                return Ending(engine.pc, traps=0)
        called = kernel.trapping.take_call()
        pc = engine.pc
        if fault is None and not self.stepping and self._in_scratch(pc):
            # A copy that ends its block, such as a system call: continue with the way back.
            fault = self._step_until(lambda pc: not self._in_scratch(pc))
            pc = engine.pc
        if fault is None:
            return Ending(pc, None, called)
        if fault.address == pc != address and fault.number == _SIGSEGV:
            return Ending(pc)  # done: it is the next instruction that cannot be fetched
        return Ending(pc, self._told(fault))

    def _told(self, fault: SignalInfo) -> tuple[int, int, int]:
        """Return what is compared of a fault: its signal, code and address.

        Where no page can be, an x86 CPU raises #GP or #SS, and a kernel that executes a plan sends
        SIGSEGV with the address (fasttrap_sigsegv in fasttrap_isa.c): that is one fault here.
        """
        isa, address = self.engine.isa, fault.address or 0
        beyond = fault.number == _SIGSEGV and isa.linux.beyond(address, isa.word, False) is not None  # noqa: FBT003
        if beyond or (fault.code == SI_KERNEL and fault.number in {_SIGSEGV, _SIGBUS}):
            return _SIGSEGV, SI_KERNEL, 0
        return fault.number, fault.code, address

    def _run_one(self) -> SignalInfo | None:
        """Run until one instruction is counted, or a fault.  Raises `_EndlessError`."""
        engine = self.engine
        deadline = engine.instructions + 1
        taker = engine.handlers.taker
        engine.handlers.taker = counted = _CountedTraps(taker)
        try:
            return self.kernel.trapping.advance(self.thread, lambda: engine.run(hard=deadline))
        finally:
            engine.handlers.taker, self._taken = taker, counted.taken

    def _in_scratch(self, pc: int) -> bool:
        """Return whether the pc is in one of the pages where providers run copies."""
        area = self.space.mapped(pc)
        return area is not None and area.backing is None

    def _step_until(self, over: Callable[[int], bool]) -> SignalInfo | None:
        """Step until the pc passes a test, or to a fault."""
        fault = None
        for _ in range(_LONGEST):
            fault = self.kernel.trapping.advance(self.thread, self.engine.step)
            if fault is not None or over(self.engine.pc):
                break
        return fault

    def general(self) -> bytes:
        """Return the general registers."""
        return bytes(self._registers)

    def flags(self) -> int:
        """Return the flags; 0 if the ISA has none."""
        return self.engine.read_register(self._flags) if self._flags else 0

    def vectors(self) -> list[bytes]:
        """Return the vector and floating-point registers, with zeros between them."""
        contents = [bytearray(place) for place in self._vectors]
        for content, padding in zip(contents, self._paddings, strict=True):
            for part in padding:
                content[part] = bytes(part.stop - part.start)
        return list(map(bytes, contents))


def _padding(file: VectorFile, size: int) -> Iterator[slice]:
    """Yield the bytes of a run, of so many bytes, that no register has.

    QEMU keeps an x87 register, of ten bytes, in sixteen (target/i386 cpu.h, FPReg), and one of SSE
    in the 64 of AVX-512, which it does not have (ZMMReg).  It copies the others from wherever its
    own stack was: after pshufb they are the host's.
    """
    for register, following in pairwise(file.places(size)):
        if register.stop != following.start:
            yield slice(register.stop, following.start)


_libc = ctypes.CDLL(None)
_memcmp = _libc.memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
