"""The encodings of x86-64, by class: opcode map, prefixes, opcode, ModRM and SIB.

What a rule can look at varies: each map with all its 256 opcodes, after each of the prefixes that change what an opcode
means or where it reads, with every mod and reg, and the values of rm, base and index that mean something else than a
register.  What no rule can look at does not: displacements and immediates are the same everywhere, and of registers
that are all alike there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from emu.isa import X86_64
from trapline.lab.check.encodings.ports import AWAY, BAD_OPCODE, BY_REGISTER

_PREFIXES: Final = tuple(
    bytes.fromhex(text)
    for text in (
        *("", "66", "f2", "f3", "67", "f0", "26", "2e", "36", "3e", "64", "65", "40", "41", "42", "44", "48", "4f"),
        *("6648", "f248", "f348", "f048", "6641", "f241", "f341", "6441", "6766", "6748", "66f2", "66f3", "f2f3"),
        *("2e3e", "6666", "4866", "4841"),
    )
)
"""Of legacy instructions: each prefix, each bit of REX, those that meet in real code, two of a kind, and REX where it
is void."""
_REST: Final = bytes.fromhex("1122334455667788990a0b0c")
"""Displacement and immediate."""
_SIBS: Final = (bytes((0x08,)), bytes((0x0D,)), bytes((0x24,)))
"""A base and an index; no base, where mod is 0; no index."""


def _tails(registers: Sequence[int]) -> tuple[bytes, ...]:
    """Return what follows an opcode: ModRM with each mod and reg, and SIB.  `registers`: the values of rm in mod 3."""
    memory = (
        bytes((mod << 6 | reg << 3 | rm,)) + sib
        for mod, reg in product(range(3), range(8))
        for rm, sibs in ((0, (b"",)), (4, _SIBS), (5, (b"",)))
        for sib in sibs
    )
    plain = (bytes((0xC0 | reg << 3 | rm,)) for reg, rm in product(range(8), registers))
    return tuple(tail + _REST for tail in (*memory, *plain))


_ALL_TAILS: Final = _tails(range(8))
_FEW_TAILS: Final = _tails(range(2))


class Form(NamedTuple):
    """The encodings of an opcode map: each head with each opcode and each tail."""

    heads: tuple[bytes, ...]
    tails: tuple[bytes, ...]

    @property
    def encodings(self) -> int:
        """How many there are."""
        return len(self.heads) * 256 * len(self.tails)

    def code(self, number: int) -> bytes:
        """Return encoding `number`, of at most 15 bytes."""
        number, tail = divmod(number, len(self.tails))
        head, opcode = divmod(number, 256)
        return (self.heads[head] + bytes((opcode,)) + self.tails[tail])[:15]


def _legacy(escape: str) -> Form:
    return Form(tuple(prefix + bytes.fromhex(escape) for prefix in _PREFIXES), _ALL_TAILS)


_ONES: Final = 0x78
"""vvvv, which is inverted, of no register."""
_VEX2: Final = tuple(
    bytes((0xC5, r << 7 | vvvv | length << 2 | pp))
    for r, vvvv, length, pp in product(range(2), (0, _ONES), range(2), range(4))
)
_VEX3: Final = tuple(
    bytes((0xC4, rxb << 5 | table, w << 7 | vvvv | length << 2 | pp))
    for rxb, table, w, vvvv, length, pp in product((0, 7), (1, 2, 3), range(2), (0, _ONES), range(2), range(4))
)
_EVEX: Final = tuple(
    bytes((0x62, 0xF0 | table, w << 7 | _ONES | 4 | pp, length << 5 | broadcast << 4 | 8))
    for table, w, pp, length, broadcast in product((1, 2, 3, 5, 6), range(2), range(4), (0, 2), range(2))
)
_XOP: Final = tuple(
    bytes((0x8F, 0xE0 | table, w << 7 | vvvv | length << 2))
    for table, w, vvvv, length in product((8, 9, 10), range(2), (0, _ONES), range(2))
)
FORMS: Final[Mapping[str, Form]] = {
    "one byte": _legacy(""),
    "0f": _legacy("0f"),
    "0f 38": _legacy("0f38"),
    "0f 3a": _legacy("0f3a"),
    "vex 2": Form(_VEX2, _FEW_TAILS),
    "vex 3": Form(_VEX3, _FEW_TAILS),
    "evex": Form(_EVEX, _FEW_TAILS),
    "xop": Form(_XOP, _FEW_TAILS),
}
"""Encodings by opcode map."""

_KINDS: Final = "JCC LOOP JCXZ CALL JMP RET RET16 PUSHL_EBP NOP COMMON".split()
_NO_INSTRUCTION: Final = "the bytes are no instruction"
_TWO_SEGMENTS: Final = "it has two segment prefixes"
_PID: Final = (
    *_KINDS,
    "COMMON" + BY_REGISTER,
    _NO_INSTRUCTION,
    _TWO_SEGMENTS,
    "it is a breakpoint, or a software interrupt",
    "a VEX, EVEX or XOP instruction with an operand relative to rip",
)
ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "fbt": tuple(row.name for row in X86_64.displaced.rows),
    "pid": (
        *_PID,
        "xbegin names the address of its handler relative to itself",
        "a far call would push the address after its copy",
        "CPUs differ about a branch with an operand-size prefix",
    ),
    "pid:freebsd": _PID,
    "uprobe": (
        "nop", "jmp", "call", "jcc", "push",
        "stepped", "stepped" + BY_REGISTER, "stepped" + AWAY, "stepped" + AWAY + BY_REGISTER,
        _NO_INSTRUCTION,
        _TWO_SEGMENTS,
        "it has a segment or lock prefix",
        BAD_OPCODE,
        "mov to ss masks interrupts for an instruction",
        "CPUs differ about a branch with an operand-size prefix",
    ),
}  # fmt: skip
"""The rules of each provider, by the kind of tracepoint or the reason for which there is none."""


def witnesses() -> Iterator[bytes]:
    """Yield encodings that reach each rule: a few of each opcode, and those with prefixes that rules ask for."""
    for escape, opcode, tail in product((b"", b"\x0f"), range(256), _ALL_TAILS[4::5]):
        yield escape + bytes((opcode,)) + tail
    for text in _NARROW:
        yield bytes.fromhex(text) + _REST


_NARROW: Final = (
    "2e3e8b00 f08700 6674 66ff25 64ff25 c5fa6f05 c5fa6f00 48ff2d ff2d 480f07 480f35 48cf 66cf 48cb c7f8".split()
)
