"""The disassembler: capstone's names for instructions, with decoders that are made once.

A machine is the pair in `emu.isa.base.Isa.capstone`: capstone's architecture and mode.

Capstone is imported by the first call, because it has the structures of all its architectures: its
import takes longer than that of all ISAs together, and most traces disassemble nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import capstone

    from emu.isa.base import Isa

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
# The text for an instruction of x86 whose length is known, but for which capstone has no name.
NO_NAME: Final = "(no name)"
_LOCK: Final = b"\xf0"


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
    import capstone  # noqa: PLC0415  see above

    made = capstone.Cs(*machine)
    made.detail = detail
    if machine[0] == CS_ARCH_X86 and syntax is Syntax.ATT:
        made.syntax = capstone.CS_OPT_SYNTAX_ATT
    return made


def disassemble(
    isa: Isa, code: bytes, address: int, syntax: Syntax = Syntax.INTEL, *, count: int = 0
) -> Iterator[Disassembled]:
    """Yield instructions up to bytes that are none, at most `count` unless it is 0.

    The lengths are the ISA's: capstone, which gives the texts, does not know every instruction.
    """
    for offset, size in islice(instructions(isa.instruction_length, code), count or None):
        data = code[offset : offset + size]
        yield Disassembled(address + offset, size, _text(isa, data, address + offset, syntax))


def _text(isa: Isa, data: bytes, address: int, syntax: Syntax) -> str:
    for _address, size, mnemonic, operands in decoder(isa.capstone, syntax).disasm_lite(data, address, 1):
        # Capstone ends ud0 and ud1 before their operands.
        return f"{mnemonic} {operands}".rstrip() if size == len(data) else str(mnemonic)
    if isa.capstone[0] != CS_ARCH_X86:
        return NO_INSTRUCTION
    # FBT of i386 and illumos' SDT write it before what cannot be locked.
    if data.startswith(_LOCK) and len(data) > 1:
        return f"lock {_text(isa, data[1:], address + 1, syntax)}"
    return NO_NAME


def first(isa: Isa, code: bytes, address: int, syntax: Syntax = Syntax.INTEL) -> Disassembled | None:
    """Return the first instruction of some bytes; None if they are none."""
    return next(disassemble(isa, code, address, syntax, count=1), None)


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
