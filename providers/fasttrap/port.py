"""The contract of fasttrap's port to an ISA, as fasttrap_isa.c is.

A port decides how instructions are displaced, and finds the returns of functions.

To add an ISA write `providers/fasttrap/<isa>.py` with a `Port` and list it in `PORTS`
(docs/adding-a-provider.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from emu.displaced.decision import Code, Decision, OutOfLine
from emu.support.by_name import ByName
from emu.support.immutable import immutable
from providers.fidelity import Fidelity


@immutable
class Port:
    """Fasttrap on one ISA."""

    breakpoint: Callable[[int], bytes]
    """Length of the instruction -> the bytes that are written over it."""
    longest: int
    """Bytes of the longest instruction."""
    treat: Callable[[Code, Fidelity], Decision]
    """How an instruction is displaced: `Emulated`, `OutOfLine` or `Refused`."""
    returns: Callable[[bytes, int, Fidelity], Iterator[int]]
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
    chunk: Callable[[OutOfLine, int, int], bytes]
    """(instruction, address of the chunk, address after the instruction) -> scratch code."""
    copies: int
    """The number of instructions that run besides the copy, if no return trap is needed."""
    second_copy: Callable[[OutOfLine], int]
    """Offset in the chunk of the code that ends in the return trap."""
    trap_offset: Callable[[OutOfLine], int]
    """Offset in the chunk of the return trap."""
    always_steps: bool
    """Whether every chunk ends in a return trap: there is no jump that reaches everywhere."""
    saved_offset: Callable[[OutOfLine], int] = lambda _move: 0
    """Offset in the chunk of the word with the value of the scratch register, which the code reads
    back."""
    around: int = 0
    """The number of bytes before and behind an instruction that `treat` reads."""
    decoded: Callable[[bytes, Fidelity], int] = lambda code, _fidelity: len(code)
    """Function's code -> how many bytes of it are instructions, from its start on: behind them may
    be data, a jump table perhaps, and there are no offset probes then."""
    return_trap: int | None = None
    """Number of the return trap's exception; None: it is a breakpoint."""
    return_trap_length: int = 0
    """The distance from it to the pc in that exception."""


PORTS: Final[ByName[Port]] = ByName("providers.fasttrap", ("x86_64", "aarch64", "riscv64", "i386"), "PORT")
