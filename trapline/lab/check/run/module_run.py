"""The functions of a Linux module, called one by one, plain or with sites patched.

There is no kernel around them: a call of one of its functions returns at once, and low addresses,
where per-CPU variables and the current task would be, have zeros.  The arguments are numbers, and
pointers into a block whose words all point to its middle, so that code which follows pointers goes
on.  A function ends when it returns, when it faults, or after `LIMIT` instructions.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from emu.displaced.frame import Frame
from emu.elf.image import SegmentFlag
from emu.engine.memory.access import Access
from emu.guest.base import Location
from emu.guest.function import FunctionFaultError, FunctionGuest, FunctionTraps
from emu.guest.linux_kernel.files.module_file import ModuleFile
from emu.support.did_you_mean import counted
from providers.linux_kernel.text import Hook, Text
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.linux_kernel import NoRoom
from trapline.lab.check.run.ended import Ended
from trapline.lab.check.site.subject import Subject

LIMIT: Final = 5_000
_BLOCK: Final = 64 << 10
_LOW: Final = 64 << 10
_RETURNED, _FAULTED, _STOPPED = "returned", "faulted", "did not end"


class ModuleRun:
    """Implements `trapline.lab.check.run.guest_runs.GuestRun`."""

    def __init__(self, subject: Subject, rules: Rules, *, accelerated: bool | None = None) -> None:
        image = subject.image
        assert isinstance(image, ModuleFile)
        self._image = image
        self._names = [one.name for one in subject.wanted]
        self.isa = image.isa
        self._guest = FunctionGuest(self.isa, image, accelerated=accelerated)
        self.engine = self._guest.engine
        self._guest.place(0, bytes(_LOW), Access.READ | Access.WRITE)
        self._block = self._guest.allocate(_BLOCK)
        patcher = rules.patcher(self.engine)
        self._text = Text(self.isa, patcher, self._guest.traps, NoRoom(), self._guest.clock)
        FunctionTraps(self.engine, self._guest.traps, patcher).attach()
        self.fired = 0
        """The number of hits of probes."""

    def prepare(self) -> None:
        """Do nothing: every call starts by itself."""

    def patch(self, sites: Sequence[CheckSite]) -> None:
        """Put probes at sites."""
        for site in sites:
            self._text.add(site.address, Hook(self._fires))

    def _fires(self, _frame: Frame) -> None:
        self.fired += 1

    def go(self, longest: int = 0) -> Ended:
        """Call every function; return the output, the status, the instructions and a checksum.

        Each call has a limit of its own: `longest` is not used.
        Only calls that return are counted in instructions, and have a checksum of memory.
        """
        del longest
        lines, ends, instructions, memory = [], Counter[str](), 0, 0
        for name in self._names:
            for number, arguments in enumerate(self._arguments()):
                self._reset()
                began = self.engine.instructions
                end, line = self._call(name, arguments)
                ends[end] += 1
                lines.append(f"{name} {number}: {line}\n")
                if end == _RETURNED:
                    instructions += self.engine.instructions - began
                    memory = zlib.crc32(self._memory(), memory)
        told = ", ".join(f"{counted(ends[end], 'call')} {end}" for end in (_RETURNED, _FAULTED, _STOPPED))
        return Ended("".join(lines).encode(), told, instructions, memory)

    def _arguments(self) -> Iterator[tuple[int, ...]]:
        """Yield the arguments of calls."""
        pointer = self._block + _BLOCK // 2
        yield (pointer,) * 6
        yield pointer, 1, pointer, 0, 0, 0
        yield 0, 0, 0, 0, 0, 0

    def _reset(self) -> None:
        memory = self.engine.memory
        for segment in self._image.segments:
            if segment.flags & SegmentFlag.WRITE:
                memory.write(segment.vaddr, bytes(segment.data))
        memory.write(0, bytes(_LOW))
        middle = self._block + _BLOCK // 2
        memory.write(self._block, middle.to_bytes(8, "little") * (_BLOCK // 8))

    def _call(self, name: str, arguments: tuple[int, ...]) -> tuple[str, str]:
        """Call a function; return how it ended, and with what."""
        engine, guest = self.engine, self._guest
        guest.prepare(*arguments, function=name)
        last = engine.instructions + LIMIT
        try:
            while engine.instructions < last:
                if guest.advance(last - engine.instructions):
                    return _RETURNED, f"{engine.read_register(self.isa.calling.results[0]):#x}"
        except FunctionFaultError as error:
            return _FAULTED, f"{error} at {error.pc:#x}"
        return _STOPPED, _STOPPED

    def _memory(self) -> bytes:
        """Return what a call may have written."""
        read = self.engine.read
        data = (read(one.vaddr, len(one.data)) for one in self._image.segments if one.flags & SegmentFlag.WRITE)
        return b"".join((*data, read(0, _LOW), read(self._block, _BLOCK)))

    def locate(self, pc: int) -> Location | None:
        """Return the module and symbol of an address."""
        found = self._guest.locate(pc)
        return found and Location(self._image.path.name, found.symbol, found.offset)

    def in_program(self, pc: int) -> bool:
        """Return True: there is no other code."""
        del pc
        return True
