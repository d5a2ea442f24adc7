"""The disassembler: capstone, with decoders that are made once.

A machine is the pair in `emu.isa.base.Isa.capstone`: capstone's architecture and mode.

Capstone is imported by the first call, because it has the structures of all its architectures: its
import takes longer than that of all ISAs together, and most traces disassemble nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import capstone

# Capstone's numbers of architectures, modes and kinds (capstone.h: cs_arch, cs_mode and others); a test compares
# them with capstone's.

CS_ARCH_ARM64: Final = 1
CS_ARCH_X86: Final = 3
CS_ARCH_RISCV: Final = 15
CS_MODE_ARM: Final = 0
CS_MODE_32: Final = 1 << 2
CS_MODE_64: Final = 1 << 3
CS_MODE_RISCV64: Final = 1 << 1
CS_MODE_RISCVC: Final = 1 << 2
CS_OP_MEM: Final = 3
CS_OP_REG: Final = 1
CS_GRP_JUMP: Final = 1
CS_GRP_CALL: Final = 2
CS_GRP_RET: Final = 3


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
    """The offset of the length in an instruction, in units of 16 bits."""


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


# The longest instruction of all ISAs, in bytes.
LONGEST: Final = 15


def instructions(length: Callable[[bytes], int], code: bytes, size: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the (offset, length) of each instruction, until bytes that do not decode.

    `length` is `emu.isa.base.Isa.instruction_length`.  Only instructions that begin in the first
    `size` bytes are yielded; None: in all of them.
    """
    offset, end = 0, len(code) if size is None else size
    while offset < end:
        found = length(code[offset : offset + LONGEST])
        if not found:
            return
        yield offset, found
        offset += found
