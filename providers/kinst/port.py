"""What an ISA brings to kinst, as FreeBSD's kinst_isa.c does: what becomes of each instruction, and where it may run.

Deciding is data: an instruction is emulated by a plan, or a copy of it runs in a trampoline, or it
is refused with a reason.  To add an ISA write `providers/kinst/<isa>.py` with a `Port` and list it
in `providers/kinst/kinst.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from emu.displaced import Plan
from providers.fasttrap.port import Code, Refused
from providers.fbt.port import Exclusion

__all__ = ["Code", "Copied", "Emulated", "Frames", "Port", "Refused", "Treatment"]


@dataclass(frozen=True, slots=True)
class Emulated:
    """The handler does what the instruction would have done."""

    length: int
    plan: Plan


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy runs in a trampoline."""

    length: int
    code: bytes
    """The copy; where the original names an address relative to itself, that is filled in later."""
    place: int = -1
    """Offset in the copy of the 32-bit distance to `target`, -1: there is none."""
    target: int = 0
    leaves: int | None = None
    """When the copy does not come to its end: the number of a condition, `ALWAYS`, or None for
    never."""


ALWAYS = -1
Treatment = Refused | Emulated | Copied


class Frames(NamedTuple):
    """What is known of a function's stack frame before an instruction."""

    made: bool
    """Whether the frame is there."""
    pushed: int = 0
    """If not: words on the stack above the return address, where that is on the stack."""
    pointed: bool = False
    """If not: whether the frame pointer is set already, where that may come before the return
    address is saved."""
    saved: bool = False
    """If not: whether the return address is saved already."""


ENTERED = Frames(made=False)
FRAMED = Frames(made=True)


@dataclass(frozen=True, slots=True)
class Port:
    """kinst on one ISA."""

    exclusions: tuple[Exclusion, ...]
    """Functions left alone beyond those of `providers.kinst.kinst.EXCLUSIONS`."""
    patch: Callable[[int], bytes]
    """Length of the instruction -> what is written over it."""
    boundaries: Callable[[bytes], Iterator[int]]
    """Function's code -> offset of each instruction."""
    longest: int
    """Bytes of the longest instruction."""
    behind: int
    """How many bytes before an instruction `treat` wants to see."""
    treat: Callable[[Code], Treatment]
    frame_after: Callable[[bytes, Frames], Frames]
    """(instruction, what is known of the frame before it) -> what is known after it."""
    size: int
    """Bytes of a trampoline."""
    trampoline: Callable[[Copied, int, int], bytes]
    """(copy, address of the trampoline, address after the original) -> the trampoline's code."""
    trap: Callable[[Copied], int] | None
    """Offset in the trampoline of the breakpoint that ends it; None: it jumps back by itself."""
    answer: int
    """What the handler answers once it has set the pc: the code or the word of a nop."""
    bias: int
    """What the stub adds to the pc when that was the answer."""
    pushing: int = 0
    """What it answers when a push is left to the stub."""
