"""The disassembler: capstone, with decoders that are made once.

A machine is the pair in `emu.isa.base.Isa.capstone`: capstone's architecture and mode.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple

import capstone

# The text for bytes that are not an instruction.
NO_INSTRUCTION: Final = "(no instruction)"


# The C library below capstone's Python binding. The binding converts the texts of each instruction to Python's, which
# takes most of its time.
_LIBRARY: Any = capstone._cs  # noqa: SLF001  there is no public name
_INSN: Any = capstone._cs_insn  # noqa: SLF001
_HALF: Final = 2
_STRIDE: Final = ctypes.sizeof(_INSN) // _HALF
_SIZE: Final = _INSN.size.offset // _HALF


class Syntax(Enum):
    """The syntax of x86 instructions; the other ISAs have one syntax."""

    INTEL = "intel"
    ATT = "att"


class Disassembled(NamedTuple):
    """One instruction as text."""

    address: int
    size: int
    """In bytes."""
    text: str


@cache
def decoder(machine: tuple[int, int], syntax: Syntax = Syntax.INTEL, *, detail: bool = False) -> capstone.Cs:
    """Return the only decoder of a machine; `detail`: with operands and groups, which takes longer."""
    made = capstone.Cs(*machine)
    made.detail = detail
    if machine[0] == capstone.CS_ARCH_X86 and syntax is Syntax.ATT:
        made.syntax = capstone.CS_OPT_SYNTAX_ATT
    return made


def disassemble(
    machine: tuple[int, int], code: bytes, address: int, syntax: Syntax = Syntax.INTEL, *, count: int = 0
) -> Iterator[Disassembled]:
    """Yield instructions up to bytes that do not decode, at most `count` unless it is 0."""
    for at, size, mnemonic, operands in decoder(machine, syntax).disasm_lite(code, address, count):
        yield Disassembled(at, size, f"{mnemonic} {operands}".rstrip())


def lengths(machine: tuple[int, int], code: bytes) -> tuple[int, ...]:
    """Return the length of each instruction, up to the first bytes that do not decode."""
    found = ctypes.POINTER(_INSN)()
    count = _LIBRARY.cs_disasm(decoder(machine).csh, code, len(code), 0, 0, ctypes.byref(found))
    if not count:
        return ()
    halves = memoryview(ctypes.string_at(found, count * _STRIDE * _HALF)).cast("H")
    _LIBRARY.cs_free(found, count)
    return tuple(halves[_SIZE::_STRIDE])


def first(machine: tuple[int, int], code: bytes, address: int, syntax: Syntax = Syntax.INTEL) -> Disassembled | None:
    """Return the first instruction of some bytes; None if they do not decode."""
    return next(disassemble(machine, code, address, syntax, count=1), None)
