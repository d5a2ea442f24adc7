"""The contract of an ISA's ELF files.

It has the numbers that name the machine, and the operand syntax of its assembly language.

`emu/isa/<isa>/elf.py` gives one `ElfFormat`, which is `Isa.elf`.

Sources: the processor supplements of the System V ABI for the numbers; the operand forms that gcc
writes into the notes of SystemTap's sys/sdt.h, and the rules of libbpf (usdt.c).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final, NamedTuple

from emu.support.immutable import immutable

# A number in an operand, as assemblers print it: ASCII digits, of 64 bits at most, no octal.
NUMBER: Final = r"-?(?:0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19})"


class InRegister(NamedTuple):
    """A register; `shift` is 8 for ah, bh, ch and dh of x86.

    `high` is the register with the upper half of a value of two words; "": such values are not in
    registers.
    """

    register: str
    shift: int = 0
    high: str = ""


@immutable
class OperandForms:
    """The operand syntax of an ISA's assembler; each pattern matches a whole operand."""

    constant: re.Pattern[str]
    """Its first group is the number."""
    register: re.Pattern[str]
    """Its first group is the name."""
    memory: re.Pattern[str]
    """Its groups by name, each of which may be missing: displacement, after (added to it), symbol,
    relation (of the symbol), base, index, scale, shift (of the index), extend, segment."""
    names: Mapping[str, InRegister]
    """Registers by their names in the assembler."""
    zero: frozenset[str] = frozenset()
    """Names of the register that is always 0."""
    thread: str = ""
    """The thread pointer; "": a segment of the operand."""


class Toolchain(NamedTuple):
    """How C is compiled for an ISA."""

    triple: str = ""
    """The prefix of the tools, as Debian names them; "": unknown."""
    options: tuple[str, ...] = ()
    """For code that uses general registers only, as kernels' does."""
    folders: tuple[str, ...] = ()
    """The names of the ISA's folders in kernels' source trees."""


@immutable
class ElfFormat:
    """One ISA's ELF files."""

    number: int
    """e_machine."""
    irelative: int
    """R_<ISA>_IRELATIVE: the relocation of a word that an indirect function's resolver fills."""
    operands: OperandForms
    object_flags: int = 0
    """e_flags of an object file that may be linked with any other."""
    thread_block: int | None = None
    """Bytes from the thread pointer to the program's thread-local variables; None: they end there."""
    toolchain: Toolchain = field(default_factory=Toolchain)
    """How object files are made."""
