"""Shadow memory: which bytes the code under test may read and write, and which have a value.

Each byte of RAM has a shadow byte.  Memory that is given to the code is marked when it is given;
the stack is marked as without value at each call.  A mistake is noted once for each instruction's
source line, with the number of times.

A read counts as one of uninitialised memory only if no byte of it has a value: compilers copy the
padding of structures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from emu.elf.image import Image, SegmentFlag
from emu.engine.engine import Engine
from emu.engine.events.access_observer import Observer
from emu.guest.function import STACK, STACK_SIZE, FunctionGuest

# The top of the stack, which has a value at a call: the arguments and the return address (`FunctionGuest.call`).
_PASSED: Final = 256 + 8


@dataclass
class Mistake:
    """A kind of bad access by one instruction."""

    what: str
    pc: int
    size: int
    address: int
    """The address of the first bad access."""
    subject: str
    """The function or encoding that was examined at the first bad access."""
    count: int = 1


class Shadow:
    """The shadow of a guest's RAM; entered (`with`) while the code under test runs."""

    NONE: Final = 0
    READ: Final = 1
    WRITE: Final = 2
    KNOWN: Final = 4

    def __init__(self, guest: FunctionGuest, image: Image) -> None:
        self._guest = guest
        self._engine: Engine = guest.engine
        self._bytes = bytearray(len(guest.engine.memory.ram))
        self.mistakes: dict[tuple[str, int], Mistake] = {}
        self.subject = ""
        """The function or encoding that is examined now."""
        self._watched: list[range] = []
        self._writers: dict[int, int] = {}
        self.inside = 0
        """The number of gates that the host serves now."""
        for segment in image.segments:
            rights = self.READ | self.KNOWN | (self.WRITE if segment.flags & SegmentFlag.WRITE else 0)
            self.set(segment.vaddr, segment.memsz, rights)
        self.covered: dict[int, int] = {}
        """The blocks of code that ran: address -> size."""
        starts = [segment for segment in image.segments if segment.flags & SegmentFlag.EXECUTE]
        first = min((segment.vaddr for segment in starts), default=0)
        last = max((segment.vaddr + segment.memsz - 1 for segment in starts), default=0)
        self._observer = Observer(guest.engine, accessed=self._accessed, entered=self._entered, code=(first, last))

    def set(self, address: int, size: int, rights: int) -> None:
        """Set the shadow of a range of virtual addresses, which may span pages."""
        while size > 0:
            part = min(size, 0x1000 - address % 0x1000)
            place = self._guest.physical(address)
            if place is not None:
                self._bytes[place : place + part] = bytes([rights]) * part
            address, size = address + part, size - part

    def watch(self, address: int, size: int) -> None:
        """Note which instructions write a range, which is on one page."""
        place = self._guest.physical(address)
        if place is not None:
            self._watched.append(range(place, place + size))

    def writer(self, address: int) -> int | None:
        """Return the instruction that has last written a byte of a watched range."""
        place = self._guest.physical(address)
        return None if place is None else self._writers.get(place)

    def forget_writers(self) -> None:
        """Forget who has written: another call begins."""
        self._writers.clear()

    def host(self, address: int, size: int, *, writes: bool) -> None:
        """Check an access that a gate makes for the code under test."""
        if not self.inside or not size:
            return
        place = self._guest.physical(address)
        if place is not None:
            self._accessed(writes, place, size)

    def __enter__(self) -> Self:
        self.set(STACK - STACK_SIZE, STACK_SIZE - _PASSED, self.READ | self.WRITE)
        self.set(STACK - _PASSED, _PASSED, self.READ | self.WRITE | self.KNOWN)
        self._observer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._observer.__exit__()

    def _entered(self, address: int, size: int) -> None:
        if size > self.covered.get(address, 0):
            self.covered[address] = size

    def _accessed(self, writes: bool, place: int, size: int) -> None:
        shadow = self._bytes[place : place + size]
        if writes and not self.inside and any(place in one for one in self._watched):
            self._writers.update(dict.fromkeys(range(place, place + size), self._engine.pc))
        if writes:
            if not all(one & self.WRITE for one in shadow):
                self._note("write out of bounds", place, size)
            else:
                self._bytes[place : place + size] = bytes(one | self.KNOWN for one in shadow)
        elif not all(one & self.READ for one in shadow):
            self._note("read out of bounds", place, size)
        elif not any(one & self.KNOWN for one in shadow):
            self._note("read of uninitialised memory", place, size)

    def _note(self, what: str, place: int, size: int) -> None:
        pc = self.caller() if self.inside else self._engine.pc
        known = self.mistakes.get((what, pc))
        if known is not None:
            known.count += 1
        else:
            self.mistakes[what, pc] = Mistake(what, pc, size, place, self.subject)

    def caller(self) -> int:
        """Return the address of the call of the gate that the host serves."""
        isa = self._guest.isa
        link, stack = isa.registers.link, self._engine.read_register(isa.registers.sp)
        after = self._engine.load(stack, isa.word) if link is None else self._engine.read_register(link)
        return after - isa.instruction_alignment
