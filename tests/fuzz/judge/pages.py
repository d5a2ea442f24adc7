"""Cases about the code's pages: code that changes itself or is changed from outside, mapped twice, across a page's end.

The code adds small numbers to one register; a changed version subtracts others.  All instructions of a filler have the
same length, so that any of them can be replaced.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from emu.isa import ISAS
from tests.fuzz.judge.case import ALIAS, CODE, PAGE, Case, Change, Page
from tests.fuzz.judge.encoders import ENCODERS
from tests.fuzz.judge.judges import QEMU

_NUMBERS: Final = 100


@dataclass(frozen=True)
class _Encoding:
    """What a case needs of an ISA: `add(n)` and `subtract(n)`, of `size` bytes each, and stores."""

    size: int
    add: tuple[int, int]
    """The word that adds 0 to the register, and by how much the number is shifted."""
    subtract: tuple[int, int]
    store: bytes
    """Stores a word, as long as a filler, from one register to the address in another."""
    barrier: bytes
    """What the architecture asks for before changed code is executed."""
    value: int
    address: int
    """Numbers of the registers of the store."""

    def adds(self, number: int) -> bytes:
        """Return the instruction that adds a number."""
        return self._word(self.add, number)

    def subtracts(self, number: int) -> bytes:
        """Return the instruction that subtracts a number."""
        return self._word(self.subtract, number)

    def _word(self, pattern: tuple[int, int], number: int) -> bytes:
        return (pattern[0] + (number << pattern[1])).to_bytes(self.size, "little")


# addq $n, %rbx; nop, and subq: of eight bytes with a longer nop would be as good.
_ADD = int.from_bytes(bytes.fromhex("83c30090"), "little")
_SUB = int.from_bytes(bytes.fromhex("83eb0090"), "little")
ENCODINGS: Final = {
    **dict.fromkeys(("x86_64", "i386"), _Encoding(4, (_ADD, 16), (_SUB, 16), bytes.fromhex("8907"), b"", 0, 7)),
    # add x2, x2, #n; sub; str w0, [x1]; dc cvau, x1; dsb ish; ic ivau, x1; dsb ish; isb
    "aarch64": _Encoding(
        4, (0x91000042, 10), (0xD1000042, 10), bytes.fromhex("200000b9"),
        struct.pack("<5I", 0xD50B7B21, 0xD5033B9F, 0xD50B7521, 0xD5033B9F, 0xD5033FDF), 0, 1,
    ),
    # addi a2, a2, n; addi a2, a2, 2048 - n, as one has no subi; sw a0, 0(a1); fence.i
    "riscv64": _Encoding(
        4, (0x00060613, 20), (0x80060613, 20), bytes.fromhex("23a0a500"), struct.pack("<I", 0x0000100F), 10, 11,
    ),
}  # fmt: skip


def pages(random: Random, isa: str) -> Case:
    """Return a case about pages."""
    return random.choice((_crossing, _itself, _itself, _from_outside, _from_outside))(random, isa)


def _state(random: Random, isa: str) -> tuple[list[int], Case]:
    general, vectors, flags, control = ENCODERS[isa].state(random, isa)
    return list(general), Case(b"", (), general, vectors, flags, control, seed=random.getrandbits(32))


def _crossing(random: Random, isa: str) -> Case:
    """Return instructions across a page's end, with a second page that may be executed, or may not."""
    make = ENCODERS[isa].instructions
    case = make(random, isa)
    while case.refused:
        case = make(random, isa)
    encoding = ENCODINGS[isa]
    before = b"".join(encoding.adds(random.randrange(_NUMBERS)) for _ in range(random.randrange(3)))
    code = before + case.code
    alignment = ISAS[isa].instruction_alignment
    offset = PAGE - random.randrange(0, len(code) + 1, alignment)
    page = random.choice(list(Page))
    return replace(
        case, code=code, mnemonics=("crossing", page.name.lower(), *case.mnemonics), offset=offset, page=page,
        child=random.random() < 0.05,
    )  # fmt: skip


def _itself(random: Random, isa: str) -> Case:
    """Return code that stores into itself, behind the store or before it, and executes that."""
    encoding = ENCODINGS[isa]
    general, case = _state(random, isa)
    before, after = random.randrange(3), random.randrange(1, 5)
    target = random.randrange(after)
    head = b"".join(encoding.adds(random.randrange(_NUMBERS)) for _ in range(before))
    head += encoding.store + encoding.barrier
    fillers = [encoding.adds(random.randrange(_NUMBERS)) for _ in range(after)]
    code = head + b"".join(fillers)
    alignment = ISAS[isa].instruction_alignment
    offset = random.choice((random.randrange(0, PAGE, alignment), PAGE - random.randrange(0, len(code), alignment)))
    aliased = random.random() < 0.5
    base = ALIAS if aliased and random.random() < 0.7 else CODE
    general[encoding.value] = int.from_bytes(encoding.subtracts(random.randrange(_NUMBERS)), "little")
    general[encoding.address] = base + offset + len(head) + encoding.size * target
    case = replace(
        case, code=code, mnemonics=("itself", "alias" if base == ALIAS else "store"), general=tuple(general),
        offset=offset, aliased=aliased, child=random.random() < 0.3,
    )  # fmt: skip
    if base == CODE or isa not in QEMU:
        return case
    # qemu-user does not see a store to another mapping of the page.
    general[encoding.address] += CODE - ALIAS
    return replace(
        case, judged=replace(case, general=tuple(general)), ignored=frozenset({f"general[{encoding.address}]"})
    )


def _from_outside(random: Random, isa: str) -> Case:
    """Return code that is executed, changed in one of the ways that a program has, and executed again."""
    encoding = ENCODINGS[isa]
    _, case = _state(random, isa)
    count = random.randrange(1, 12)
    fillers = [encoding.adds(random.randrange(_NUMBERS)) for _ in range(count)]
    first = random.randrange(count)
    second = b"".join(
        encoding.subtracts(random.randrange(_NUMBERS)) for _ in range(random.randrange(1, count - first + 1))
    )
    alignment = ISAS[isa].instruction_alignment
    size = len(fillers) * encoding.size
    offset = random.choice((random.randrange(0, PAGE - size, alignment), PAGE - random.randrange(0, size, alignment)))
    changes = [
        change for change in Change if change is not Change.NONE and not (isa in QEMU and change is Change.VM_WRITE)
    ]
    change = random.choice(changes)
    if change is Change.PROTECTED:
        offset = min(offset, PAGE - size) & -alignment
    aliased = change is Change.ALIAS or (random.random() < 0.3 and change is not Change.FILE_MAPPED)
    case = replace(
        case, code=b"".join(fillers), mnemonics=("changed", change.name.lower()), offset=offset, change=change,
        changed_at=first * encoding.size, second=second, aliased=aliased, child=random.random() < 0.3,
    )  # fmt: skip
    if isa in QEMU and change is Change.ALIAS:
        return replace(case, judged=replace(case, change=Change.STORE))
    return case
