"""The encodings of x86-64, by class: opcode map, prefixes, opcode, ModRM and SIB.

What a rule can look at varies: each map with all its 256 opcodes, after each of the prefixes that change what an opcode
means or where it reads, with every mod and reg, and the values of rm, base and index that mean something else than a
register.  What no rule can look at does not: displacements and immediates are the same everywhere, and of registers
that are all alike there is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Final, NamedTuple

from emu.displaced import Treatment
from emu.isa import X86_64
from providers.fasttrap import PORTS as FASTTRAP
from providers.fasttrap import Fidelity
from providers.fasttrap.port import Code, Emulated, OutOfLine
from providers.uprobes import PORTS as UPROBES
from providers.uprobes.port import Refused, Simulated, SingleStepped
from trapline.lab.check.encodings.decoder import NOTHING_DECODED, Decoded, Facts, decoder
from trapline.lab.check.encodings.exemptions import EXEMPTIONS
from trapline.lab.check.encodings.results import Cell, Doing, Ours
from trapline.lab.check.encodings.space import WITNESSES, Chunk
from trapline.lab.check.encodings.tables import plan_facts

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

_BY_REGISTER: Final = ", by a register"
_KINDS: Final = "JCC LOOP JCXZ CALL JMP RET RET16 PUSHL_EBP NOP COMMON".split()
_NO_INSTRUCTION: Final = "the bytes are no instruction"
_TWO_SEGMENTS: Final = "it has two segment prefixes"
_PID: Final = (
    *_KINDS,
    "COMMON" + _BY_REGISTER,
    _NO_INSTRUCTION,
    _TWO_SEGMENTS,
    "it is a breakpoint, or a software interrupt",
    "a VEX, EVEX or XOP instruction with an operand relative to rip",
)
_BAD_OPCODE: Final = "opcode xx is in the table of those that cannot be probed"
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
        "stepped", "stepped" + _BY_REGISTER, "stepped, goes away", "stepped, goes away" + _BY_REGISTER,
        _NO_INSTRUCTION,
        _TWO_SEGMENTS,
        "it has a segment or lock prefix",
        _BAD_OPCODE,
        "mov to ss masks interrupts for an instruction",
        "CPUs differ about a branch with an operand-size prefix",
    ),
}  # fmt: skip
"""The rules of each provider, by the kind of tracepoint or the reason for which there is none."""


_Said = tuple[str, Doing, int, Facts | None]
"""Row, what is done, length in bytes, what it claims."""


def _fbt(code: bytes) -> _Said:
    row, plan = X86_64.displaced.decide(code, 0)
    if plan is None or isinstance(row.what, Treatment):
        return row.name, Doing.REFUSED, row.length, None
    return row.name, Doing.EMULATED, row.length, plan_facts(plan, "rip", row.length)


def _pid(code: bytes, fidelity: Fidelity) -> _Said:
    match FASTTRAP["x86_64"].treat(Code(code, 0), fidelity):
        case Emulated(kind, length, plan):
            return kind, Doing.EMULATED, length, plan_facts(plan, "rip", length)
        case OutOfLine(length, _, scratch):
            return ("COMMON" + bool(scratch) * _BY_REGISTER, Doing.OUT_OF_LINE, length,
                    Facts.RELATIVE if scratch else Facts.NONE)  # fmt: skip
        case refused:
            return refused.why, Doing.REFUSED, 0, None


def _uprobe(code: bytes) -> _Said:
    match UPROBES["x86_64"].analyze(code, 0):
        case Simulated(name, length, plan):
            return name, Doing.EMULATED, length, plan_facts(plan, "rip", length)
        case SingleStepped(length, _, scratch, absolute):
            name = "stepped" + absolute * ", goes away" + bool(scratch) * _BY_REGISTER
            facts = (Facts.CONTROL if absolute else Facts.NONE) | (Facts.RELATIVE if scratch else Facts.NONE)
            return name, Doing.OUT_OF_LINE, length, facts
        case Refused(_, why):
            return (_BAD_OPCODE if why.startswith("opcode ") else why), Doing.REFUSED, 0, None


_RULES: Final = {
    "fbt": _fbt,
    "pid": lambda code: _pid(code, Fidelity.EXACT),
    "pid:freebsd": lambda code: _pid(code, Fidelity.FREEBSD),
    "uprobe": _uprobe,
}


@cache
def _exemption(provider: str, row: str, name: str) -> int:
    """Return the number of the exemption; they go by names, not by bits, which prefixes shift."""
    for index, one in enumerate(EXEMPTIONS["x86_64"]):
        if provider in one.providers and row in one.rows and name in one.names:
            return index
    return -1


def _theirs(code: bytes) -> Decoded:
    other = decoder("x86_64")
    return other.facts(other.number, other.bits) if other.decode(code) else NOTHING_DECODED


def _witnesses() -> Iterator[bytes]:
    """Yield encodings that reach each rule: a few of each opcode, and those with prefixes that rules ask for."""
    for escape, opcode, tail in product((b"", b"\x0f"), range(256), _ALL_TAILS[4::5]):
        yield escape + bytes((opcode,)) + tail
    for text in _NARROW:
        yield bytes.fromhex(text) + _REST


_NARROW: Final = (
    "2e3e8b00 f08700 6674 66ff25 64ff25 c5fa6f05 c5fa6f00 48ff2d ff2d 480f07 480f35 48cf 66cf 48cb c7f8".split()
)


def classify(chunk: Chunk) -> Iterator[Cell]:
    """Classify encodings one by one."""
    if chunk.form == WITNESSES:
        codes = _witnesses()
    else:
        form = FORMS[chunk.form]
        codes = (form.code(number) for number in chunk.numbers)
    rules = tuple(_RULES.values())
    # Facts are looked up by identity: there is one of each, and hashing an enum is slow.
    counts: Counter[tuple[object, ...]] = Counter()
    said: dict[tuple[object, ...], tuple[list[_Said], Decoded, bytes]] = {}
    for code in codes:
        theirs = _theirs(code)
        ours = [rule(code) for rule in rules]
        key = (
            theirs.name, theirs.length, id(theirs.facts),
            *((row, length, id(facts)) for row, _, length, facts in ours),
        )  # fmt: skip
        counts[key] += 1
        if counts[key] == 1:
            said[key] = ours, theirs, code
    for key, (ours, theirs, code) in said.items():
        found = tuple(
            Ours(provider, row, doing, length, facts, _exemption(provider, row, theirs.name))
            for provider, (row, doing, length, facts) in zip(_RULES, ours, strict=True)
        )
        yield Cell(found, theirs, counts[key], code)
