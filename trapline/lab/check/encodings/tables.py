"""The decode tables of the providers, and the claims of each row about its instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from emu.displaced.decision import Displaced, DisplacedRow, Otherwise
from emu.displaced.plans import Branch, Clear, Load, Plan, Set, Store, Sum
from emu.isa import ISAS
from providers.fasttrap import aarch64 as fasttrap_aarch64
from providers.fasttrap import riscv64 as fasttrap_riscv64
from providers.fidelity import Fidelity
from providers.uprobes import aarch64 as uprobes_aarch64
from providers.uprobes import riscv64 as uprobes_riscv64
from trapline.lab.check.encodings.decoder import Facts

# The tables, by provider; "pid:freebsd" is fasttrap with the quirks of its real system.
PROVIDERS: Final = ("fbt", "pid", "pid:freebsd", "uprobe")

Tables = Mapping[str, Sequence[DisplacedRow]]

_TABLES: Final[Mapping[str, Tables]] = {
    "aarch64": {
        "fbt": ISAS["aarch64"].stub.rows,
        "pid": fasttrap_aarch64.TABLES[Fidelity.EXACT].rows,
        "pid:freebsd": fasttrap_aarch64.TABLES[Fidelity.FREEBSD].rows,
        "uprobe": uprobes_aarch64.TABLES[Fidelity.EXACT].rows,
    },
    "riscv64": {
        "fbt": ISAS["riscv64"].stub.rows,
        "pid": fasttrap_riscv64.TABLE.rows,
        "uprobe": uprobes_riscv64.TABLE.rows,
    },
}

_ANY: Final = None
_CONTROL: Final = Facts.CONTROL
_RELATIVE: Final = Facts.RELATIVE
# The facts of the instructions that a row refuses, if they have any; None: they are of several kinds.
_REFUSED: Final[Mapping[tuple[str, str, str], Facts | None]] = {
    ("aarch64", "fbt", "anything else"): _ANY,
    ("riscv64", "fbt", "anything else"): _ANY,
    ("aarch64", "pid", "BRAA"): _CONTROL,
    ("aarch64", "pid", "BC_COND"): _CONTROL | _RELATIVE,
    ("aarch64", "pid", "RETAA"): _CONTROL,
    ("riscv64", "pid", "JALR, reserved"): _CONTROL,
    ("riscv64", "pid", "BRANCH, reserved"): _CONTROL,
    ("riscv64", "pid", "C_JR, reserved"): _CONTROL,
    ("riscv64", "uprobe", "branch, reserved"): _CONTROL,
    ("riscv64", "uprobe", "ecall, csrrw"): _ANY,
    ("aarch64", "uprobe", "braa"): _CONTROL,
    ("aarch64", "uprobe", "blraa"): _CONTROL,
    ("aarch64", "uprobe", "retaa"): _CONTROL,
    ("aarch64", "uprobe", "eret"): _CONTROL,
    ("aarch64", "uprobe", "eretaa"): _CONTROL,
    ("aarch64", "uprobe", "ldr rt, label"): _RELATIVE,
    ("aarch64", "uprobe", "ldrsw xt, label"): _RELATIVE,
    ("aarch64", "uprobe", "prfm op, label"): _RELATIVE,
}


@cache
def tables(isa: str) -> Tables:
    """Return the tables of an ISA whose instructions have fixed lengths, by provider."""
    return _TABLES[isa]


def row_of(rows: Sequence[DisplacedRow], word: int, size: int) -> int:
    """Return the index of the first row that matches a word of `size` bytes."""
    return next(index for index, row in enumerate(rows) if row.matches(word) and row.length <= size)


def witnesses(mask: int, value: int, size: int) -> Iterator[int]:
    """Yield words of `size` bytes that a mask and a value match.

    The other bits all clear, all set, and mixed.
    """
    free = ~mask & (1 << 8 * size) - 1
    for pattern in (0, -1, *(_GOLDEN * number & _WORD for number in range(1, 31))):
        yield value | pattern & free


# An odd number whose multiples have no pattern (2^32 divided by the golden ratio).
_GOLDEN: Final = 0x9E3779B1
_WORD: Final = 0xFFFF_FFFF


@cache
def facts(isa: str, provider: str, number: int) -> Facts | None:
    """Return what a row claims about the instructions that it matches; None: it claims nothing.

    An instruction that runs out of line must neither branch nor use the pc, because its copy would
    have another effect.
    """
    row = tables(isa)[provider][number]
    if row.what in {Otherwise.OUT_OF_LINE, Otherwise.STEP}:
        return Facts.NONE
    if isinstance(row.what, Otherwise):
        return _REFUSED.get((isa, provider.partition(":")[0], row.name), Facts.NONE)
    return emulated_facts(isa, tables(isa)[provider], number)


def emulated_facts(isa: str, rows: Sequence[DisplacedRow], number: int) -> Facts:
    """Return the combined facts of a row's plans.

    With some operands, such as register 0, an instruction does less than with others, so several
    are tried.
    """
    row, pc, found = rows[number], ISAS[isa].registers.pc, Facts.NONE
    for word in witnesses(row.mask, row.value, row.length):
        if row_of(rows, word, row.length) == number and not isinstance(row.what, Otherwise):
            found |= plan_facts(row.what(Displaced(word, 0)), pc, row.length)
    return found


def plan_facts(plan: Plan, pc: str, length: int) -> Facts:
    """Return the facts of a plan for an instruction of `length` bytes.

    The address after the instruction, which calls keep, is not an address relative to the pc: it
    does not depend on the encoding.
    """
    found = Facts.NONE
    for operation in plan.operations:
        match operation:
            case Branch():
                found |= Facts.RELATIVE | Facts.CONTROL
            case Set(target, source, offset):
                if target == pc and (source, offset) != (pc, length):
                    found |= Facts.CONTROL
                if source == pc and offset != length:
                    found |= Facts.RELATIVE
            case Clear(target, source):
                found |= Facts.CONTROL if target == pc else Facts.NONE
                found |= Facts.RELATIVE if source == pc else Facts.NONE
            case Load(_, base) | Store(_, base) | Sum(_, base) if base == pc:
                found |= Facts.RELATIVE
    return found
