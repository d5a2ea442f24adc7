"""Floating-point and vector registers in the frame of a signal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from emu.isa.unicorn_model import VectorFile
from emu.support.immutable import immutable


class StateCpu(Protocol):
    """The CPU at a signal."""

    def read_register(self, name: str) -> int:
        """Return a register."""

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""

    def vectors(self) -> Sequence[Any]:
        """Return the bytes of each file of vector registers, which can be assigned."""


@immutable
class FrameState:
    """The area of a frame in which a kernel saves these registers."""

    size: int
    """Bytes of the area."""
    save: Callable[[StateCpu, int], bytes]
    """(CPU, error code of the thread's last fault) -> the area."""
    load: Callable[[StateCpu, bytes], None]
    """Loads the registers from the area."""
    at: int | None = None
    """Offset of the area in the frame; None: it lies above the frame."""
    unaligned: int = 0
    """Bytes of an area above the frame that precede its alignment."""
    pointer: int = 0
    """Offset in the frame of the address of an area above it."""
    reset: Callable[[StateCpu], None] | None = None
    """Sets the registers as a handler finds them; None: it finds those of the program."""


class Trap(NamedTuple):
    """The last fault of a thread, which the frames of all later signals tell."""

    number: int = 0
    error: int = 0
    address: int = 0


NO_TRAP: Final = Trap()


class PageFaultTrap(Protocol):
    """Returns what frames tell after a page fault; `present`: the page is mapped."""

    def __call__(self, address: int, /, *, write: bool, fetch: bool, present: bool) -> Trap:
        """Return the fault's number, error code and address."""


def read_file(cpu: StateCpu, number: int, file: VectorFile) -> bytes:
    """Return the registers of the CPU's file with this number, one behind the other."""
    data = bytes(cpu.vectors()[number])
    return b"".join(data[place] for place in file.places(len(data)))


def write_file(cpu: StateCpu, number: int, file: VectorFile, registers: bytes) -> None:
    """Set the registers of a file; what lies between them stays."""
    run = cpu.vectors()[number]
    data = bytearray(bytes(run))
    for place, start in zip(file.places(len(data)), range(0, len(registers), file.size), strict=True):
        data[place] = registers[start : start + file.size]
    run[:] = bytes(data)
