"""The states in which an instruction is tried: awkward registers, flags and vectors.

States are made once, in a fixed order, and each site uses a range of them that depends on its
address; so a site has the same states in every run, and a program's sites together use all of them.
Memory is not part of them: every address is valid (`trapline.lab.check.cpu.aliased`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from emu.engine.memory.pages import PAGE
from emu.isa import ISAS
from emu.isa.base import Isa
from emu.support.words import WORD_MASK

# The number of states.
POOL: Final = 320
# Their numbers, twice: any number of them that follow each other, in a ring, is a part of this.
_TWICE: Final = 2 * [*range(POOL)]
# The number of states in which a site is tried, unless a number is given: where machine code tries them, and where
# Python does.  To put a probe in place costs as much as some hundred states of machine code, and as ten of Python.
BY_MACHINE_CODE: Final = POOL
BY_PYTHON: Final = 20
# Pages have kinds, by their number modulo this (`trapline.lab.check.cpu.aliased.RIGHTS`).
KINDS: Final = 8
# The largest count of a repeated string instruction.
REPEATED: Final = 0xFF
# Size of a word in bytes -> the start of a range in which no program is loaded, and the number of times that the pages
# of all kinds fit there.
_UNUSED: Final = {8: (0x0000_2A00_0000_0000, 1 << 20), 4: (0x4000_0000, 0xC000)}
_AWKWARD: Final = (
    0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 1 << 15, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 63, (1 << 63) - 1,
    WORD_MASK, WORD_MASK - 1, WORD_MASK - 7, 0xFFFF_FFFF, 0xFFFF_FFFF_8000_0000, 0x8000_0000_0000_0001,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class State:
    """The registers before the instruction; the pc is the site's."""

    kind: str
    registers: Mapping[str, int]
    flags: int = 0
    vectors: int = 0
    """Seed of the content of the vector registers; 0: zeros."""
    recorded: bytes = b""
    """Content of the vector registers of a state met in a real run; empty: see `vectors`."""


def general_registers(isa: Isa) -> tuple[str, ...]:
    """Return the names of the registers that a state sets: a run of slots, without the pc."""
    names = sorted(set(isa.registers.dtrace) & set(isa.registers.slots), key=isa.registers.slots.__getitem__)
    return tuple(name for name in names if name not in {isa.registers.pc, isa.registers.zero})


def _page(isa: Isa, kind: int, draw: random.Random) -> int:
    start, times = _UNUSED[isa.word]
    return start + (draw.randrange(times) * KINDS + kind) * PAGE


def _pointer(isa: Isa, draw: random.Random) -> int:
    return _page(isa, draw.randrange(KINDS), draw) + draw.choice((0, 8, 64, 256, 1000, 2048, 4000, PAGE - 8, PAGE - 1))


def _scattered(isa: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return {name: _page(isa, draw.choice((0, 1, 2, 4)), draw) + 16 * draw.randrange(8, 240) for name in names}


def _equal(isa: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return dict.fromkeys(names, _page(isa, 1, draw) + 16 * draw.randrange(256))


def _same_awkward(_: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return dict.fromkeys(names, draw.choice(_AWKWARD))


def _awkward(_: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return {name: draw.choice(_AWKWARD) for name in names}


def _small(_: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return {name: draw.randrange(-8, 16) & WORD_MASK for name in names}


def _anything(_: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return {name: draw.getrandbits(64) for name in names}


def _pointers(isa: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return {name: _pointer(isa, draw) for name in names}


def _base_and_index(isa: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return {name: _pointer(isa, draw) if draw.random() < 0.5 else draw.choice(_AWKWARD[:6]) for name in names}


def _stack(kind: int, offset: int) -> Callable[[Isa, random.Random, tuple[str, ...]], dict[str, int]]:
    """Return a maker of states whose stack pointer is at an offset in a page of a kind."""

    def registers(isa: Isa, draw: random.Random, names: tuple[str, ...]) -> dict[str, int]:
        pointer = _page(isa, kind, draw) + offset % PAGE
        return _base_and_index(isa, draw, names) | {isa.registers.sp: pointer, isa.registers.fp: pointer + 32}

    return registers


# Kind of state -> (ISA, source of numbers, register names) -> registers.
_MAKERS: Final = {
    "registers apart": _scattered,
    "registers equal": _equal,
    "all the same awkward value": _same_awkward,
    "awkward values": _awkward,
    "small values": _small,
    "random values": _anything,
    "pointers": _pointers,
    "base and index": _base_and_index,
    "sp at the start of a page, with no page before it": _stack(0, 0),
    "sp eight bytes into a page, with no page before it": _stack(0, 8),
    "sp at the end of a page, with no page after it": _stack(6, -8),
    "sp across the end of a page": _stack(2, -4),
    "sp in a read-only page": _stack(5, 64),
    "sp in an unmapped page": _stack(7, 64),
}


@cache
def pool(isa_name: str) -> tuple[State, ...]:
    """Return the states of an ISA, kinds taking turns."""
    isa = ISAS[isa_name]
    names = general_registers(isa)
    flags = isa.traps.states
    kinds = tuple(_MAKERS.items())
    states = []
    for number in range(POOL):
        kind, make = kinds[number % len(kinds)]
        draw = random.Random(number)  # noqa: S311  the same states in every run
        registers = {name: value & isa.address_mask for name, value in make(isa, draw, names).items()}
        counter = isa.registers.counter
        if counter and kind != "registers apart":
            # A string instruction must end after a reasonable time.
            registers[counter] = draw.choice((0, 1, 2, 3, 5, 64, registers[counter] if number % 3 == 0 else 7))
        states.append(State(kind, registers, draw.choice(flags), number))
    return tuple(states)


class States(Sequence[State]):
    """All states of an ISA, by their numbers.

    The first `POOL` ones are the pool.  Those after them have the registers of one state of the
    pool, and flags and vectors of another (`parts`).
    """

    def __init__(self, isa_name: str) -> None:
        self._pool = pool(isa_name)

    def __len__(self) -> int:
        return POOL * POOL

    def __getitem__(self, number: Any) -> Any:
        """Return the state of a number."""
        registers, rest = parts(number)
        if registers == rest:
            return self._pool[registers]
        other = self._pool[rest]
        return replace(self._pool[registers], flags=other.flags, vectors=other.vectors)


def parts(number: int) -> tuple[int, int]:
    """Return the states of the pool that give a state its registers, and its flags and vectors."""
    registers = number % POOL
    return registers, (registers + number // POOL) % POOL


def chosen(address: int, count: int) -> list[int]:
    """Return the numbers of the states for a site: consecutive ones, of all kinds.

    They are all different, up to `POOL` times `POOL`.
    """
    first = (address * 0x9E37_79B9 >> 7) % POOL
    if count <= POOL:
        return _TWICE[first : first + count]
    found: list[int] = []
    for turn in range(0, count, POOL):
        start, end = turn % (POOL * POOL), turn % (POOL * POOL) + POOL
        found += range(start + first, end)
        found += range(start, start + first)
    return found[:count]
