"""The encodings of x86-64 and i386 that a sweep enumerates.

Each encoding is a head (prefixes, REX, and the escape of an opcode map, or VEX, EVEX or XOP), an
opcode, ModRM with a class of SIB, and bytes for what follows.  All heads, all 256 opcodes, and all
256 values of ModRM are combined; the bytes that follow are made by a seed, for displacements and
immediates are too many.  The heads have each sequence of at most `bound` prefixes, equal ones too.

A decoder that is not ours may ask anything, so the space is larger than that of
trapline/lab/check/encodings/x86.py, which varies what our own rules can ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd
from typing import Final, NamedTuple

from emu.isa.x86.length import PREFIXES

# The bytes of an encoding that are given to a decoder.
LONGEST: Final = 16
DEFAULT_BOUND: Final = 1
# Behind more prefixes there are more encodings than a sweep can try in weeks.
MOST_PREFIXES: Final = 3

_OPCODES: Final = 256
_PREFIXES: Final = tuple(bytes((one,)) for one in sorted(PREFIXES))
_REX: Final = tuple(bytes((one,)) for one in range(0x40, 0x50))
# REX prefixes that are not the last prefix, which makes them void: W, and B.
_VOID: Final = (b"\x48", b"\x41")
_MAPS: Final = {"one byte": b"", "0f": b"\x0f", "0f 38": b"\x0f\x38", "0f 3a": b"\x0f\x3a"}
# A base and an index; no base, if mod is 0; no index.
_SIBS: Final = (b"\x08", b"\x0d", b"\x24")
# All bits of vvvv, which is inverted: it names no register.
_NONE: Final = 0x78
# vvvv and L of VEX with three bytes and of XOP.
_THIRD: Final = (_NONE, 4)
# The number near the golden section of 2^64, whose multiples are spread; and of the bytes that follow.
_STEP: Final = 0x9E37_79B9_7F4A_7C15
_SEED: Final = 0xD1B5_4A32_D192_ED03
_MASK: Final = (1 << 64) - 1
OMITTED: Final = (
    "of displacements and immediates one value for each encoding, by a seed",
    "of SIB three classes: with a base, without one, without an index",
    "of VEX, EVEX and XOP two values of vvvv, of L, and of R, X and B together",
    "of EVEX masks, zeroing and rounding (aaa, z, b)",
    "of VEX, EVEX and XOP behind prefixes all but one of each map",
)


class Encoding(NamedTuple):
    """One encoding, and its class."""

    code: bytes
    """LONGEST bytes, of which the instruction may need fewer."""
    form: str
    """The opcode map."""
    prefixes: str
    """The class of its prefixes."""
    opcode: int


class _Head(NamedTuple):
    data: bytes
    form: str
    prefixes: str


def _tails() -> tuple[bytes, ...]:
    """Return each ModRM, with SIB where it has one."""
    found = []
    for modrm in range(256):
        has_sib = modrm >> 6 != 3 and modrm & 7 == 4
        found += [bytes((modrm,)) + sib for sib in (_SIBS if has_sib else (b"",))]
    return tuple(found)


_TAILS: Final = _tails()


def _sequences(most: int) -> Iterator[tuple[bytes, ...]]:
    """Yield each sequence of at most so many prefixes."""
    for count in range(most + 1):
        yield from product(_PREFIXES, repeat=count)


def _legacy_prefixes(bound: int, *, rex: bool) -> Iterator[tuple[bytes, str]]:
    """Yield each sequence of prefixes, with a REX prefix behind it or within it, and its class."""
    for sequence in _sequences(bound):
        data = b"".join(sequence)
        kind = "prefixes" if sequence else "no prefix"
        yield data, kind
        for one in _REX if rex else ():
            yield data + one, f"{kind} and REX" if sequence else "REX"
        for void in _VOID if rex else ():
            for at in range(len(sequence)):
                before, behind = b"".join(sequence[:at]), b"".join(sequence[at:])
                yield before + void + behind, "a prefix behind REX"
                yield before + void + behind + b"\x48", "a prefix between two REX"
            for last in _VOID:
                yield data + void + last, "two REX"


@dataclass(frozen=True)
class _Fields:
    """What a mode has: values of R, X and B are inverted and in their place in VEX."""

    r: tuple[int, ...]
    rxb: tuple[int, ...]
    vvvv: tuple[int, ...]
    """Of VEX with two bytes, where a bit of it makes the difference to lds in 32-bit mode."""
    rex: bool
    """Whether there are REX prefixes."""


_FIELDS: Final[Mapping[str, _Fields]] = {
    "x86_64": _Fields((0, 0x80), (0, 0xE0), (0, _NONE), rex=True),
    # Other values are lds, les or bound with an operand in memory, which are in the map of one byte.
    "i386": _Fields((0x80,), (0xC0, 0xE0), (0x40, _NONE), rex=False),
}


def _vectors(isa: str) -> Iterator[tuple[bytes, str]]:
    """Yield VEX, EVEX and XOP with the values of their fields, and the opcode map."""
    fields, pps = _FIELDS[isa], range(4)
    for r, vvvv, length, pp in product(fields.r, fields.vvvv, (0, 4), pps):
        yield bytes((0xC5, r | vvvv | length | pp)), "vex 2"
    for rxb, table, pp, w, rest in product(fields.rxb, range(4), pps, (0, 0x80), _THIRD):
        yield bytes((0xC4, rxb | table, w | rest | pp)), "vex 3"
    for table, pp, w, length in product((1, 2, 3, 5, 6), pps, (0, 0x80), (0, 0x40)):
        yield bytes((0x62, 0xF0 | table, w | _NONE | 4 | pp, length | 8)), "evex"
    for table, w, rest in product((8, 9, 10), (0, 0x80), _THIRD):
        yield bytes((0x8F, 0xE0 | table, w | rest)), "xop"


def _before_vectors(isa: str, bound: int) -> Iterator[tuple[bytes, str, str]]:
    """Yield vector prefixes: all alone, and one of each map behind each other prefix."""
    for data, form in _vectors(isa):
        yield data, form, "no prefix"
    few = {(form, data[1] & 0xF if len(data) > 2 else 0): data for data, form in _vectors(isa)}
    before = [one for one in _sequences(min(bound, 1)) if one]
    if _FIELDS[isa].rex:
        before.append((b"\x48",))
    for sequence, ((form, _), data) in product(before, few.items()):
        yield b"".join(sequence) + data, form, "REX" if sequence == (b"\x48",) else "prefixes"


class Space:
    """The encodings of a mode with at most `bound` prefixes, by number.

    They are numbered in an order that spreads over all of them, so the first ones are a sample.
    """

    def __init__(self, isa: str, bound: int) -> None:
        self.isa, self.bound = isa, bound
        self._step = _STEP % len(self)
        while gcd(self._step, len(self)) != 1:
            self._step += 1

    @cached_property
    def _heads(self) -> tuple[_Head, ...]:
        legacy = (
            _Head(data + escape, form, kind)
            for data, kind in _legacy_prefixes(self.bound, rex=_FIELDS[self.isa].rex)
            for form, escape in _MAPS.items()
        )
        return (*legacy, *(_Head(*one) for one in _before_vectors(self.isa, self.bound)))

    def __len__(self) -> int:
        """Return the number of encodings."""
        return len(self._heads) * _OPCODES * len(_TAILS)

    def encoding(self, number: int) -> Encoding:
        """Return an encoding by its number."""
        position = number * self._step % len(self)
        rest, tail = divmod(position, len(_TAILS))
        at, opcode = divmod(rest, _OPCODES)
        head = self._heads[at]
        follows = ((position + 1) * _SEED & _MASK).to_bytes(8, "little")
        code = head.data + bytes((opcode,)) + _TAILS[tail] + follows + follows
        return Encoding(code[:LONGEST], head.form, head.prefixes, opcode)

    def text(self) -> str:
        """Return one sentence about what is enumerated."""
        rex = " with each REX" if _FIELDS[self.isa].rex else ""
        prefixes = "no prefix" if not self.bound else f"each sequence of at most {self.bound} of 11 prefixes"
        return (
            f"{len(self):,} encodings: {prefixes}{rex}, the maps of one byte, 0f, 0f 38 and 0f 3a, "
            "VEX, EVEX and XOP; each opcode, each ModRM"
        )
