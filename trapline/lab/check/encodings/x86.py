"""The encodings of x86-64 and i386, by class: opcode map, prefixes, opcode, ModRM and SIB.

The parts that a rule can test vary: each map with all its 256 opcodes, after each of the prefixes
that change the meaning of an opcode or its operand's address, with every mod and reg, and the
values of rm, base and index that do not mean a register.  The parts that no rule can test do not
vary: displacements and immediates are always the same, and one register represents all equal ones.

Each of the two ISAs has a table of forms. i386 has no REX and no addresses relative to eip; after
67, ModRM has another meaning there; and its VEX and EVEX are the encodings of les, lds or bound
with a register, which do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final, NamedTuple

from emu.isa import ISAS
from providers.fasttrap import x86 as pid
from providers.fidelity import Fidelity
from providers.uprobes import x86 as uprobe

_SHARED: Final = ("", *"66 f2 f3 67 f0 26 2e 36 3e 64 65 6766 66f2 66f3 f2f3 2e3e 6666".split())
# Prefixes of legacy instructions: each prefix, each bit of REX, usual combinations, two of a kind, and a void REX.
_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "x86_64": (*_SHARED, *"40 41 42 44 48 4f 6648 f248 f348 f048 6641 f241 f341 6441 6748 4866 4841".split()),
    "i386": (*_SHARED, *"6466 6467 67f3".split()),
}
# Displacement and immediate.
_REST: Final = bytes.fromhex("1122334455667788990a0b0c")
# A base and an index; no base, if mod is 0; no index.
_SIBS: Final = (bytes((0x08,)), bytes((0x0D,)), bytes((0x24,)))


class Operands(NamedTuple):
    """The operands of an opcode map."""

    memory: tuple[tuple[int, tuple[bytes, ...]], ...]
    """Values of rm if mod is not 3, and the bytes after each."""
    registers: range
    """Values of rm if mod is 3."""

    @property
    def tails(self) -> tuple[bytes, ...]:
        """Bytes after an opcode: ModRM with each mod and reg, SIB, displacement, immediate."""
        memory = (
            bytes((mod << 6 | reg << 3 | rm,)) + sib
            for mod, reg in product(range(3), range(8))
            for rm, sibs in self.memory
            for sib in sibs
        )
        plain = (bytes((0xC0 | reg << 3 | rm,)) for reg, rm in product(range(8), self.registers))
        return tuple(tail + _REST for tail in (*memory, *plain))


_NO_SIB: Final = (b"",)
# Any base except the first, which makes jumps by a distance of 0; SIB; if mod is 0, no base: relative to rip, or in
# 32-bit mode an address.
_LONG: Final = ((1, _NO_SIB), (4, _SIBS), (5, _NO_SIB))
_TAILS: Final = {
    "x86_64": Operands(_LONG, range(8)).tails,
    # With 16-bit addresses 6 has no base if mod is 0.
    "i386": Operands((*_LONG, (6, _NO_SIB)), range(8)).tails,
}
# Operands of VEX, EVEX and XOP.
_FEW_TAILS: Final = {
    "x86_64": Operands(_LONG, range(2)).tails,
    # In this mode nothing is relative to eip, so no rule tests an operand.
    "i386": Operands(((1, _NO_SIB), (5, _NO_SIB)), range(2)).tails,
}


class Form(NamedTuple):
    """The encodings of an opcode map: each head with each opcode and each tail."""

    heads: tuple[bytes, ...]
    tails: tuple[bytes, ...]

    @property
    def encodings(self) -> int:
        """The number of encodings."""
        return len(self.heads) * 256 * len(self.tails)

    def code(self, number: int) -> bytes:
        """Return encoding `number`, of at most 15 bytes."""
        number, tail = divmod(number, len(self.tails))
        head, opcode = divmod(number, 256)
        return (self.heads[head] + bytes((opcode,)) + self.tails[tail])[:15]


# vvvv, which is inverted, without a register.
_ONES: Final = 0x78


class Bits(NamedTuple):
    """Values of VEX's fields, in their places, that a mode has.

    In 32-bit mode these are the values that set the two high bits.
    """

    r: tuple[int, ...]
    """Values in VEX of two bytes."""
    vvvv: tuple[int, ...]
    """Values in VEX of two bytes."""
    rxb: tuple[int, ...]
    """Values in VEX of three bytes."""


_BITS: Final[Mapping[str, Bits]] = {
    "x86_64": Bits((0, 0x80), (0, _ONES), (0, 0xE0)),
    "i386": Bits((0x80,), (0x40, _ONES), (0xC0, 0xE0)),
}


def _forms(isa: str) -> Mapping[str, Form]:
    """Return the encodings of a mode by opcode map."""
    bits, tails, few = _BITS[isa], _TAILS[isa], _FEW_TAILS[isa]
    lengths, pps = (0, 4), range(4)
    vex2 = (bytes((0xC5, r | vvvv | length | pp)) for r, vvvv, length, pp in product(bits.r, bits.vvvv, lengths, pps))
    vex3 = (
        bytes((0xC4, rxb | table, w | vvvv | length | pp))
        for rxb, table, w, vvvv, length, pp in product(bits.rxb, (1, 2, 3), (0, 0x80), (0, _ONES), lengths, pps)
    )
    evex = (
        bytes((0x62, 0xF0 | table, w | _ONES | 4 | pp, length | broadcast | 8))
        for table, w, pp, length, broadcast in product((1, 2, 3, 5, 6), (0, 0x80), pps, (0, 0x40), (0, 0x10))
    )
    xop = (
        bytes((0x8F, 0xE0 | table, w | vvvv | length))
        for table, w, vvvv, length in product((8, 9, 10), (0, 0x80), (0, _ONES), lengths)
    )
    legacy = {
        name: Form(tuple(bytes.fromhex(prefix + escape) for prefix in _PREFIXES[isa]), tails)
        for name, escape in {"one byte": "", "0f": "0f", "0f 38": "0f38", "0f 3a": "0f3a"}.items()
    }
    vectors = {"vex 2": vex2, "vex 3": vex3, "evex": evex, "xop": xop}
    return legacy | {name: Form(tuple(heads), few) for name, heads in vectors.items()}


# Encodings by ISA and opcode map.
FORMS: Final[Mapping[str, Mapping[str, Form]]] = {isa: _forms(isa) for isa in _PREFIXES}


# The tables of the pid provider and of uprobes.
_TABLES: Final = {
    "x86_64": (pid.LONG_TABLES, uprobe.LONG_TABLES),
    "i386": (pid.PROTECTED_TABLES, uprobe.PROTECTED_TABLES),
}


def _rows(isa: str) -> Mapping[str, tuple[str, ...]]:
    return {
        "fbt": tuple(row.name for row in ISAS[isa].stub.rows),
        "pid": _TABLES[isa][0][Fidelity.EXACT].names,
        "pid:freebsd": _TABLES[isa][0][Fidelity.FREEBSD].names,
        "uprobe": _TABLES[isa][1][Fidelity.EXACT].names,
    }


# The names of the rules of each provider.
ROWS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {isa: _rows(isa) for isa in FORMS}


def witnesses(isa: str) -> Iterator[bytes]:
    """Yield encodings that reach each rule.

    They are a few of each opcode, and those with prefixes that rules test.
    """
    for escape, opcode, tail in product((b"", b"\x0f"), range(256), _TAILS[isa][4::5]):
        yield escape + bytes((opcode,)) + tail
    for text in _NARROW[isa]:
        yield bytes.fromhex(text) + _REST


_NARROW_ALWAYS: Final = tuple("2e3e8b00 f08700 f0c3 6674 66ff10 66ff25 64ff25 66cf c7f8".split())
_NARROW: Final[Mapping[str, tuple[str, ...]]] = {
    "x86_64": (
        *_NARROW_ALWAYS,
        *"c5fa6f05 c5fa6f00 48ff2d ff2d 480f07 480f35 48cf 48cb d5180102 8fe978812511223344 660f78c0 66660f85".split(),
    ),
    "i386": (*_NARROW_ALWAYS, "660f78c0", *"c5fa6f05 c500 c400 6200 67ff60 67ff24 67e2 67e3 66cb cd80".split()),
}
