"""The contract of an ISA's assembly language: `emu/isa/<isa>/assembly.py` gives one `Assembly`.

It says how keystone assembles the ISA, if it does, and has a table of the instructions that
keystone lacks or encodes wrongly; for an ISA that keystone does not know, of all instructions.  The
assembler itself is `emu.assembly`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from emu.isa.fields import Field
from emu.support.immutable import immutable

# Numbers as assemblers read them: hexadecimal, binary, or decimal.
NUMBER: Final = re.compile(r"[+-]?\s*(?:0x[0-9a-f]+|0b[01]+|[0-9]+)", re.IGNORECASE)


@immutable
class Operand:
    """A kind of operand in the templates of rows."""

    read: Callable[[str, int], int]
    """(text, address of the instruction) -> bits of the instruction.  Raises ValueError, whose text
    says what is wrong."""
    default: int | None = None
    """The bits if the operand is left out, with the comma before it; None: it may not be."""


class Row(NamedTuple):
    """An instruction: its name, its operands as kinds between punctuation, and its other bits."""

    mnemonic: str
    template: str
    value: int
    size: int


class OutsideAssembler(NamedTuple):
    """An assembler of the host, which is used for what keystone and the tables lack."""

    program: str
    arguments: tuple[str, ...]
    """Its arguments: it reads standard input, and `-o FILE` is added."""
    package: str
    """The package that has it, as Debian names it."""
    before: str = ""
    """The line before the instruction."""


def number_in(text: str) -> int:
    """Return the number that a text is; a leading # is left out.  Raises ValueError."""
    bare = text.removeprefix("#").strip()
    if not NUMBER.fullmatch(bare):
        raise ValueError(f"'{text}' is not a number")
    bare = bare.replace(" ", "")
    return int(bare, 0) if bare.lstrip("+-").lower()[:2] in {"0x", "0b"} else int(bare)


def choice(names: Mapping[str, int], shift: int, what: str) -> Operand:
    """Return a kind of operand that is one of some names; `what` names the kind in errors."""

    def read(text: str, _address: int) -> int:
        if text.lower() not in names:
            raise ValueError(f"'{text}' is not {what}")
        return names[text.lower()] << shift

    return Operand(read)


def immediate(where: Field) -> Operand:
    """Return a kind of operand that is a number."""
    return Operand(lambda text, _address: where.write(number_in(text)))


def rows(text: str) -> Iterator[Row]:
    """Yield the rows of a table: `name operands = value`, one a line.

    The value is in hexadecimal; instructions have as many bits as its digits say.
    """
    for line in filter(str.strip, text.splitlines()):
        left, _, value = line.partition("=")
        mnemonic, _, template = left.strip().partition(" ")
        digits = value.strip()
        yield Row(mnemonic, template.strip(), int(digits, 16), len(digits) // 2)


@dataclass(frozen=True)
class Assembly:
    """The assembly language of one ISA."""

    table: tuple[Row, ...]
    kinds: Mapping[str, Operand] = field(default_factory=dict)
    keystone: tuple[int, int] | None = None
    """Keystone's architecture and mode; None: it does not assemble the ISA."""
    prefixes: Mapping[str, bytes] = field(default_factory=dict)
    """Prefixes that keystone lacks."""
    registers: re.Pattern[str] = re.compile(r"(?!)")
    """The pattern of register names: those that are written must be in the disassembly."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Other names of registers -> those of the disassembler."""
    dropped: Callable[[str, str], bool] = lambda _register, _statement: False
    """(register, statement) -> whether a register that is written need not be in the
    disassembly."""
    repair: Callable[[str, bytes], bytes] = lambda _statement, code: code
    """(statement, keystone's bytes) -> the right bytes, where keystone has others."""
    unchecked: frozenset[str] = frozenset()
    """Instructions whose disassembly has another name and lacks their number, such as hint."""
    outside: tuple[OutsideAssembler, ...] = ()
    """Other assemblers, in the order in which they are asked."""
    sums: bool = True
    """Whether operands may be sums, such as rax + 8; keystone ends the process for some sums of
    AArch64."""
    distances: bool = False
    """Whether a number as the target of a branch is a distance; else it is an address."""


def encode(assembly: Assembly, mnemonic: str, operands: str, address: int) -> bytes | None:
    """Return the bytes of an instruction of the table; None if the table does not have it.

    Raises ValueError, whose text says what is wrong with the operands.
    """
    wanted = [row for row in assembly.table if row.mnemonic == mnemonic]
    problems: list[str] = []
    for row in wanted:
        texts = _match(assembly, row.template, operands)
        if texts is None:
            continue
        try:
            word = row.value
            for kind, text in texts:
                word |= _bits(assembly.kinds[kind], text, address)
            return word.to_bytes(row.size, "little")
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError(problems[-1])
    if wanted and assembly.keystone is None:
        forms = " or ".join(dict.fromkeys(f"'{mnemonic} {row.template}'".replace(" '", "'") for row in wanted))
        raise ValueError(f"it must have the form {forms}")
    return None


def _bits(kind: Operand, text: str | None, address: int) -> int:
    if text is None:
        assert kind.default is not None, "the pattern lets only such operands be left out"
        return kind.default
    return kind.read(text, address)


def _match(assembly: Assembly, template: str, operands: str) -> Iterable[tuple[str, str | None]] | None:
    """Return (kind, text) for each operand of a template; None if the operands have another form."""
    pattern, kinds = "", []
    for piece in re.split(r"([A-Za-z_]\w*)", template):
        bare = piece.strip()
        if bare in assembly.kinds:
            kind = assembly.kinds[bare]
            kinds.append(bare)
            group = rf"(?P<k{len(kinds) - 1}>[^\s,()\[\]][^,()\[\]]*?)"
            if kind.default is not None:
                comma = r"\s*,\s*" if pattern.endswith(r"\s*,\s*") else ""
                pattern = pattern.removesuffix(r"\s*,\s*")
                group = rf"(?:{comma}{group})?"
            pattern += group
        elif bare:
            pattern += "".join(
                rf"\s*{re.escape(one)}\s*" if not one.isalnum() else one for one in bare.replace(" ", "")
            )
    found = re.fullmatch(pattern, operands.strip(), re.IGNORECASE)
    if found is None:
        return None
    return [(kind, found.group(f"k{number}")) for number, kind in enumerate(kinds)]
