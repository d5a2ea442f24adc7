"""The assembler: statements become bytes, and each is disassembled again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from typing import Final, NamedTuple

from emu.assembly import keystone_engine, outside
from emu.assembly.agreement import missing
from emu.assembly.keystone_engine import NotAssembledError
from emu.assembly.statements import AssemblyError, Labels, Statement, data_of, statements
from emu.isa import disassembly
from emu.isa.assembly import Assembly, encode
from emu.isa.base import Isa
from emu.support.did_you_mean import did_you_mean

# How often sizes may change until all labels are where they were taken to be.
_ROUNDS: Final = 20
_GUESS: Final = 4
# More than any instruction, or snippet of them, has.
MOST: Final = 10_000


_NAME: Final = re.compile(r"[a-z][\w.]*", re.ASCII)
# Keystone does not come back from some of these, either, such as an equals sign.
_STRANGE: Final = re.compile(r"[^\w\s.,:+*\-\[\](){}#!/]", re.ASCII)
_SUM: Final = re.compile(r"\w\s*[-+]")
_LIST: Final = re.compile(r"\{[^}]*\}")
_BRACKETS: Final = ("[]", "()", "{}")


class Assembled(NamedTuple):
    """One instruction."""

    address: int
    code: bytes
    text: str
    """The disassembly; for bytes of a directive, too."""
    written: str
    """The statement it was assembled from."""


class _OtherError(ValueError):
    """An assembler has made another instruction."""


def assemble(isa: Isa, text: str, address: int = 0) -> list[Assembled]:
    """Assemble statements for an address.

    Raises `AssemblyError`, whose message names the instruction and what is wrong with it.
    """
    found = statements(text)
    if len(found) > MOST:
        raise AssemblyError(f"there are {len(found):,} instructions, more than {MOST:,}")
    assembly = language(isa)
    labels = Labels(found)
    sizes = [_GUESS] * len(found)
    for _ in range(_ROUNDS):
        addresses = list(accumulate(sizes, initial=address))
        codes = []
        for index, statement in enumerate(found):
            operands = labels.put_in(statement.operands, index, addresses, distances=assembly.distances)
            try:
                codes.append(_one(isa, assembly, statement, operands, addresses[index]))
            except ValueError as error:
                raise statement.error(str(error), found[-1].line) from None
        if [len(code) for code in codes] == sizes:
            return list(_told(isa, found, codes, addresses))
        sizes = [len(code) for code in codes]
    raise AssemblyError("the distances to its labels do not settle: write numbers instead of labels")


def machine_code(isa: Isa, text: str, address: int = 0) -> bytes:
    """Assemble statements, and return only their bytes.  Raises `AssemblyError`."""
    return b"".join(one.code for one in assemble(isa, text, address))


def language(isa: Isa) -> Assembly:
    """Return the assembly language of an ISA.  Raises `AssemblyError` if it has none."""
    name = f"emu.isa.{isa.name}.assembly"
    if find_spec(name) is None:
        raise AssemblyError(f"there is no assembler for {isa.title}: give bytes")
    found: Assembly = import_module(name).ASSEMBLY
    return found


def _told(isa: Isa, found: list[Statement], codes: list[bytes], addresses: list[int]) -> Iterator[Assembled]:
    for statement, code, address in zip(found, codes, addresses, strict=False):
        if not code:
            continue  # labels at the end
        told = disassembly.first(isa, code, address)
        yield Assembled(address, code, told.text if told else disassembly.NO_INSTRUCTION, statement.text)


def _one(isa: Isa, assembly: Assembly, statement: Statement, operands: str, address: int) -> bytes:
    """Assemble one statement.  Raises ValueError, whose text says what is wrong with it."""
    if not statement.text:
        return b""
    data = data_of(statement)
    if data is not None:
        return data
    prefix = assembly.prefixes.get(statement.name)
    if prefix is not None and operands:
        name, _, rest = operands.partition(" ")
        inner = statement._replace(text=operands)
        return prefix + _instruction(isa, assembly, inner.name, name, rest, address + len(prefix))
    return _instruction(isa, assembly, statement.name, statement.text.split(None, 1)[0], operands, address)


def _instruction(isa: Isa, assembly: Assembly, name: str, written: str, operands: str, address: int) -> bytes:
    # Keystone does not come back from a text that begins with something else than a name.
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' is not the name of an instruction")
    strange = _STRANGE.search(operands)
    if strange is not None:
        raise ValueError(f"'{strange.group()}' does not belong into an operand")
    if not assembly.sums and _SUM.search(_LIST.sub("", operands)):
        raise ValueError("an operand is a sum: write the number itself")
    for opening, closing in _BRACKETS:
        if operands.count(opening) != operands.count(closing):
            raise ValueError(f"there are not as many '{closing}' as '{opening}'")
    code = encode(assembly, name, operands, address)
    if code is not None:
        return code
    if assembly.keystone is None:
        raise ValueError(_unknown(isa, name))
    text = f"{written} {operands}".rstrip()
    try:
        return _by_keystone(isa, assembly, name, text, address)
    except ValueError:
        for one in assembly.outside:
            made = outside.assembled(one, text)
            if made is not None:
                with suppress(_OtherError):  # keystone's own reason is told
                    return _checked(isa, assembly, text, made, address, one.program)
        raise


def _by_keystone(isa: Isa, assembly: Assembly, name: str, text: str, address: int) -> bytes:
    """Return keystone's bytes of an instruction.  Raises ValueError."""
    assert assembly.keystone is not None, "the caller looks"
    if not keystone_engine.available():
        raise ValueError(f"assembling for {isa.title} needs keystone: {keystone_engine.INSTALL}")
    try:
        code = assembly.repair(text.lower(), keystone_engine.assembled(assembly.keystone, text, address))
    except NotAssembledError as error:
        raise ValueError(_unknown(isa, name) if error.unknown else str(error)) from None
    return _checked(isa, assembly, text, code, address, "keystone")


def _checked(isa: Isa, assembly: Assembly, text: str, code: bytes, address: int, assembler: str) -> bytes:
    """Return the bytes that an assembler has made if their disassembly has what was written.

    Raises ValueError; if it is readable, but another one, `_OtherError`.
    """
    told = disassembly.first(isa, code, address)
    bytes_ = f"{assembler} makes {code.hex()} of it"
    if told is None or told.text in {disassembly.NO_INSTRUCTION, disassembly.NO_NAME}:
        raise ValueError(f"{bytes_}, which is not an instruction for the disassembler: give the bytes if you mean that")
    if told.size != len(code):
        raise _OtherError(f"{bytes_}, which is more than one instruction, from '{told.text}' on")
    lost = missing(assembly, text, told.text)
    if lost is not None:
        raise _OtherError(
            f"{bytes_}, which is '{told.text}', without {lost}: write it so if you mean that, or give the bytes"
        )
    return code


def _unknown(isa: Isa, name: str) -> str:
    if name in _mnemonics(isa):
        others = language(isa).outside
        missing_ = [f"{one.program} (package {one.package})" for one in others if not outside.installed(one)]
        remedy = f"install {missing_[0]}, or give" if len(missing_) == len(others) and others else "give"
        return f"the assembler of {isa.title} lacks this instruction: {remedy} its bytes with .byte or .inst"
    return f"there is no instruction '{name}' on {isa.title}{did_you_mean(name, _mnemonics(isa))}"


@cache
def _mnemonics(isa: Isa) -> frozenset[str]:
    """Return the names of all instructions: the disassembler's, and those of the table."""
    decoder = disassembly.decoder(isa.capstone)
    names: set[str] = {row.mnemonic for row in language(isa).table}
    for number in range(1, 1 << 13):
        name = decoder.insn_name(number)
        if name:
            names.add(name)
    return frozenset(names)
