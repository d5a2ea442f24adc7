"""Displaced instructions: the decision how each is executed, as data.

A breakpoint takes the place of an instruction, so the effect of that instruction must be produced
in another way. There are four decisions, and each names the rule that made it: a plan is carried
out (`Emulated`), a copy runs elsewhere (`OutOfLine`) or in a single step (`Stepped`), or no
tracepoint is allowed there (`Refused`).

FreeBSD's FBT emulates when the trap handler returns: `dtrace_invop()` answers with a code or with
the saved instruction, and a stub changes the interrupted registers accordingly.  Here the stub is a
table.  Each ISA lists its rows in `emu/isa/<isa>/stub.py`, in the order in which the kernel tests
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum
from typing import Final, NamedTuple

from emu.displaced.plans import Plan
from emu.support.immutable import immutable


class Displaced(NamedTuple):
    """An instruction as a row's builder sees it.

    It has its bytes as a little-endian number, and its address.
    """

    word: int
    address: int

    def bits(self, high: int, low: int) -> int:
        """Return bits high..low, unsigned."""
        return self.word >> low & (1 << high - low + 1) - 1

    def signed(self, high: int, low: int) -> int:
        """Return bits high..low as a two's complement number."""
        sign = 1 << high - low
        return (self.bits(high, low) ^ sign) - sign


@immutable
class Code:
    """An instruction in its place: its bytes, its address, and the code around it."""

    data: bytes
    address: int
    before: bytes = b""
    """The bytes of its function that precede it, as far as they are known."""
    length: int = 0
    """Bytes of the instruction, if they are known; 0: they are not."""
    after: bytes = b""
    """The bytes behind `data`, as far as they are known."""

    @classmethod
    def at(cls, body: bytes, offset: int, address: int, *, longest: int, around: int, length: int = 0) -> Code:
        """Return the instruction at an offset of some code, with as many bytes around it."""
        end = offset + longest
        before = body[max(0, offset - around) : offset]
        return cls(body[offset:end], address, before, length, body[end : end + around])


@immutable
class Rule:
    """The reason of a decision.

    It has the name that reports and tests use for the rule, the reason, and the source.
    """

    name: str
    why: str
    source: str
    """The system and file that has the rule."""
    errno: int = field(default=0, kw_only=True)
    """The error number that a refusal gives to programs; 0 where the system gives none."""
    quirk: str = field(default="", kw_only=True)
    """The difference of the real system's emulation from the CPU; "" for none."""


@immutable
class Emulated:
    """The plan is executed instead of the instruction."""

    rule: Rule
    length: int
    plan: Plan
    leaves: bool = False
    """Whether it is a return, which leaves its function whatever its target is."""


@immutable
class OutOfLine:
    """A copy of the instruction runs elsewhere and leads back (fasttrap, kinst)."""

    rule: Rule
    length: int
    code: bytes
    """The copy; rewritten where the original names an address relative to the pc."""
    scratch: str = ""
    """Register that has the address after the original while the copy runs; "" for none."""
    place: int = -1
    """Offset in the copy of a 32-bit distance to be filled in once its address is known; -1: there
    is none."""
    target: int = 0
    """The target of that distance, counted from the original."""
    leaves: int | None = None
    """The condition under which the copy leaves before its end: the number of a condition,
    `ALWAYS`, or None for never."""


@immutable
class Stepped:
    """A copy runs in a slot for one step, and its effects are corrected (uprobes)."""

    rule: Rule
    length: int
    code: bytes
    """The copy; rewritten where the original names an address relative to the pc."""
    scratch: str = ""
    """Register that has the address after the original while the copy runs; "" for none."""
    absolute: bool = False
    """Whether the pc is correct after the step, as after a return or a jump through a register."""
    calls: bool = False
    """Whether the copy pushed a return address; that address is in the slot and must be corrected."""
    pushes_flags: bool = False
    """Whether the copy pushed the flags, with the trap flag that the single step has set."""
    pops_flags: bool = False
    """Whether the trap flag is correct after the step, because the copy popped it from the stack."""


@immutable
class Refused:
    """No tracepoint may go there; the rule's `why` is the reason."""

    rule: Rule


Decision = Emulated | OutOfLine | Stepped | Refused

# Bytes of the longest instruction there is.
_LONGEST: Final = 15
# How many decisions a table keeps.
_KNOWN: Final = 1 << 14
# `OutOfLine.leaves` of an instruction that always goes elsewhere.
ALWAYS: Final = -1


class Otherwise(Enum):
    """The decision of an instruction that a row does not emulate."""

    OUT_OF_LINE = "out of line"
    STEP = "stepped"
    REFUSE = "refused"


@immutable
class DisplacedRow(Rule):
    """A rule for the instructions whose word & `mask` == `value`, and what is done with them.

    Its name is the instruction as an assembler writes it, with generic operands.
    """

    # Declared again here, so that a row's pattern follows its name directly.
    why: str = field(kw_only=True)
    source: str = field(kw_only=True)
    mask: int
    value: int
    length: int
    """Bytes of the instruction; 0 where the row holds for any length."""
    what: Callable[[Displaced], Plan] | Otherwise
    invop: int | None = field(default=None, kw_only=True)
    """The code `dtrace_invop()` returns or tags records with; None: the stub has none."""
    code: str = field(default="", kw_only=True)
    """The code's name in FreeBSD's dtrace.h, without DTRACE_INVOP_."""

    def matches(self, word: int) -> bool:
        """Return whether an instruction word matches this row."""
        return word & self.mask == self.value

    def treat(self, insn: Displaced, code: bytes) -> Decision:
        """Return how an instruction that matches this row is displaced.

        `code` begins with its bytes.
        """
        match self.what:
            case Otherwise.OUT_OF_LINE:
                return OutOfLine(self, self.length, code[: self.length])
            case Otherwise.STEP:
                return Stepped(self, self.length, code[: self.length])
            case Otherwise.REFUSE:
                return Refused(self)
            case plan:
                return Emulated(self, self.length, plan(insn))


@immutable
class DisplacedTable:
    """The rows of an ISA in the order in which they are tested; the last one matches everything."""

    rows: tuple[DisplacedRow, ...]
    by_code: bool
    """`dtrace_invop()` returns an invop code (x86); otherwise it returns the saved instruction
    word."""
    _known: dict[bytes, DisplacedRow | Decision] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By the bytes: a decision, or the row whose plan depends on the address."""

    def decide(self, code: bytes, address: int) -> Decision:
        """Return the decision of the instruction at `address` by the first row that matches."""
        word = int.from_bytes(code[:8], "little")
        key = code[:_LONGEST]
        known = self._known.get(key)
        if known is None:
            known = next(row for row in self.rows if row.matches(word) and len(code) >= row.length)
            if len(self._known) == _KNOWN:
                self._known.clear()
            # A program has few different instructions, and a probe at each of them asks about each.
            found = known.treat(Displaced(word, address), code)
            self._known[key] = known if isinstance(found, Emulated) else found
            return found
        return known.treat(Displaced(word, address), code) if isinstance(known, DisplacedRow) else known

    def plan(self, code: bytes, address: int) -> Plan | None:
        """Return the plan of the instruction that starts `code`; None if it is not emulated."""
        found = self.decide(code, address)
        return found.plan if isinstance(found, Emulated) else None

    def number(self, code: str) -> int:
        """Return the number of an invop code, DTRACE_INVOP_`code`.

        Raises KeyError if the stub has no such code.
        """
        for row in self.rows:
            if row.code == code and row.invop is not None:
                return row.invop
        raise KeyError(code)

    def invop(self, rval: int, saved: int, address: int) -> Plan | None:
        """Return the breakpoint stub's decision when `dtrace_invop()` has answered `rval`.

        None: the stub does not claim the trap.

        On x86 `rval` is a code, and `saved` holds the displaced instruction; elsewhere `rval` is
        the saved word itself.
        """
        if not rval:
            return None
        word = saved if self.by_code else rval
        for row in self.rows:
            if not isinstance(row.what, Otherwise) and (row.invop == rval if self.by_code else row.matches(word)):
                return row.what(Displaced(word, address))
        return None
