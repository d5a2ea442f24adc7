"""What an ISA brings to fasttrap, as fasttrap_isa.c does: what becomes of each instruction, and where functions return.

To add an ISA write `providers/fasttrap/<isa>.py` with a `Port` and list it in
`providers/fasttrap/__init__.py`.

Deciding is data: an instruction is emulated by a `Plan`, or runs out of line in scratch space, or
is refused with a reason.  `fidelity` chooses between what the CPU would do and what the named
system does where it is known to differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from emu.displaced import Plan


class Fidelity(Enum):
    """Whose behaviour is wanted where a system's emulation differs from the CPU."""

    EXACT = "exact"
    """The CPU's: a probed program computes what it would without probes."""
    FREEBSD = "freebsd"
    """The system's, quirks and all."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No tracepoint may go here."""

    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Emulated:
    """The kernel does what the instruction would have done."""

    kind: str
    """Type of the tracepoint (FASTTRAP_T_*)."""
    length: int
    plan: Plan
    leaves: bool = False
    """Whether it is a return, which leaves its function wherever it goes (FASTTRAP_T_RET,
    RET16)."""


@dataclass(frozen=True, slots=True)
class OutOfLine:
    """A copy of the instruction runs in scratch space (FASTTRAP_T_COMMON)."""

    length: int
    code: bytes
    """The copy; rewritten where the original names an address relative to the pc."""
    scratch: str = ""
    """Register that has the address after the original while the copy runs; "" for none."""


Treatment = Refused | Emulated | OutOfLine


@dataclass(frozen=True, slots=True)
class Code:
    """An instruction where it stands: its bytes and those after it, its address, and the function before it."""

    data: bytes
    address: int
    before: bytes = b""
    """The bytes of its function that precede it, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Port:
    """Fasttrap on one ISA."""

    breakpoint: Callable[[int], bytes]
    """Length of the instruction -> what is written over it."""
    longest: int
    """Bytes of the longest instruction."""
    treat: Callable[[Code, Fidelity], Treatment]
    returns: Callable[[bytes, int], Iterator[int]]
    """(function's code, address) -> offsets of its return sites."""
    boundaries: Callable[[bytes], Iterator[int]]
    """Function's code -> offset of each instruction."""
    arguments: tuple[str, ...]
    """Registers of arg0 to arg4 of an entry or offset probe; none: they are on the stack."""
    late_arguments: tuple[str, ...]
    """Registers of the arguments after those; the rest is on the stack."""
    stack_skip: int
    """Words on the stack before the first argument there: the return address."""
    results: tuple[str, ...]
    """Registers of arg1 and up of a return probe."""
    chunk: Callable[[OutOfLine, int, int, int, bool], bytes]
    """(instruction, address of the chunk, address after the instruction, value of the scratch
    register, wants the return trap) -> scratch code."""
    copies: int
    """How many instructions of a chunk run besides the copy itself, where no return trap is
    wanted."""
    second_copy: Callable[[OutOfLine], int]
    """Offset in the chunk of the code that ends in the return trap."""
    trap_offset: Callable[[OutOfLine], int]
    """Offset in the chunk of the return trap."""
    always_steps: bool
    """Whether every chunk ends in a return trap: there is no jump that reaches everywhere."""
    behind: int = 0
    """How many bytes before an instruction `treat` wants to see."""
    has_jump_table: Callable[[bytes], bool] = lambda _code: False
    """Function's code -> whether data lies between the instructions: there are no offset probes
    then."""
    return_trap: int | None = None
    """Number of the exception that the return trap is; None: it is a breakpoint."""
