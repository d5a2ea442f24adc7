"""The disassembler: capstone, with decoders that are made once.

A machine is the pair in `emu.isa.base.Isa.capstone`: capstone's architecture and mode.

Capstone is imported by the first call: it has the structures of all its architectures, which takes
long, and most traces disassemble nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emu.support.capstone_numbers import CS_ARCH_X86

if TYPE_CHECKING:
    import capstone

# The text for bytes that are not an instruction.
NO_INSTRUCTION: Final = "(no instruction)"

_HALF: Final = 2


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


class _Binding(NamedTuple):
    """The C library below capstone's Python binding.

    The binding converts the texts of each instruction to Python's, which takes most of its time.
    """

    library: Any
    instruction: Any
    """The structure of an instruction."""
    stride: int
    """The size of an instruction in units of 16 bits."""
    size: int
    """The place of an instruction's length in it, likewise."""


@cache
def _binding() -> _Binding:
    import capstone  # noqa: PLC0415  see above

    one = capstone._cs_insn  # noqa: SLF001  there is no public name
    return _Binding(capstone._cs, one, ctypes.sizeof(one) // _HALF, one.size.offset // _HALF)  # noqa: SLF001


@cache
def decoder(machine: tuple[int, int], syntax: Syntax = Syntax.INTEL, *, detail: bool = False) -> capstone.Cs:
    """Return the only decoder of a machine; `detail`: with operands and groups, which takes longer."""
    import capstone  # noqa: PLC0415  see above

    made = capstone.Cs(*machine)
    made.detail = detail
    if machine[0] == CS_ARCH_X86 and syntax is Syntax.ATT:
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
    binding = _binding()
    found = ctypes.POINTER(binding.instruction)()
    count = binding.library.cs_disasm(decoder(machine).csh, code, len(code), 0, 0, ctypes.byref(found))
    if not count:
        return ()
    halves = memoryview(ctypes.string_at(found, count * binding.stride * _HALF)).cast("H")
    binding.library.cs_free(found, count)
    return tuple(halves[binding.size :: binding.stride])


def first(machine: tuple[int, int], code: bytes, address: int, syntax: Syntax = Syntax.INTEL) -> Disassembled | None:
    """Return the first instruction of some bytes; None if they do not decode."""
    return next(disassemble(machine, code, address, syntax, count=1), None)
