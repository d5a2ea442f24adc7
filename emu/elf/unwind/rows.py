"""Call frame programs, compiled: for each stretch of instructions, how to find the caller's frame.

Source: DWARF 5, section 6.4.2; GNU's and AArch64's own operations: binutils, include/dwarf2.def.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from emu.elf.unwind.entries import FrameEntries, FrameEntry
from emu.elf.unwind.reader import FrameError, Reader
from emu.support.words import WORD_MASK


class How(Enum):
    """The meaning of a rule."""

    SAVED = "saved at CFA + value"
    OFFSET = "CFA + value"
    REGISTER = "in register number `value`"
    SAVED_AT = "saved at the address that the expression computes"
    COMPUTED = "what the expression computes"
    UNDEFINED = "lost"


class RegisterRule(NamedTuple):
    """The location of the caller's value of a register, or of the frame (CFA)."""

    how: How
    value: int = 0
    expression: bytes = b""


class FrameRules(NamedTuple):
    """The rules of a stretch of code.

    A register without a rule has kept its value.
    """

    cfa_register: int
    cfa_offset: int
    cfa_expression: bytes
    """The expression of the CFA; empty: the CFA is `cfa_register` + `cfa_offset`."""
    rules: Mapping[int, RegisterRule]
    signed: bool
    """Whether the return address carries a signature (AArch64)."""
    return_column: int
    signal: bool


_UNDEFINED: Final = RegisterRule(How.UNDEFINED)


class FrameTable:
    """The rules of a file's instructions."""

    def __init__(self, entries: FrameEntries, word: int) -> None:
        self._entries = entries
        self._word = word
        self._known: dict[int, FrameRules | None] = {}
        self._compiled: dict[int, tuple[list[int], Sequence[FrameRules]]] = {}

    def at(self, address: int) -> FrameRules | None:
        """Return the rules of an instruction; None: there are none, or they cannot be read."""
        if address not in self._known:
            self._known[address] = self._found(address)
        return self._known[address]

    def _found(self, address: int) -> FrameRules | None:
        entry = self._entries.at(address)
        if entry is None:
            return None
        if entry.start not in self._compiled:
            try:
                rows = compiled(entry, self._word)
            except (FrameError, IndexError):
                rows = []
            self._compiled[entry.start] = ([start for start, _ in rows], [frame for _, frame in rows])
        starts, frames = self._compiled[entry.start]
        index = bisect_right(starts, address) - 1
        return frames[index] if index >= 0 else None


def compiled(entry: FrameEntry, word: int) -> list[tuple[int, FrameRules]]:
    """Return the rules of an entry's code, each with the address from which on it holds.

    Raises `FrameError`.
    """
    state = _State(entry, word)
    state.run(entry.common.program)
    state.initial = dict(state.rules)
    state.rows.clear()
    state.run(entry.program)
    state.close()
    return state.rows


class _State:
    """A call frame program under execution."""

    def __init__(self, entry: FrameEntry, word: int) -> None:
        self._entry = entry
        self._common = entry.common
        self._word = word
        self._location = entry.start
        self._cfa: tuple[int, int, bytes] | None = None
        self._signed = False
        self._kept: list[tuple[dict[int, RegisterRule], tuple[int, int, bytes] | None, bool]] = []
        self.rules: dict[int, RegisterRule] = {}
        self.initial: dict[int, RegisterRule] = {}
        self.rows: list[tuple[int, FrameRules]] = []

    def run(self, program: tuple[int, int]) -> None:
        reader = Reader(self._common.section.data, *program)
        while reader.more:
            code = reader.number(1)
            match code & 0xC0:
                case 0x40:
                    self._advance(code & 0x3F)
                case 0x80:
                    self._saved(code & 0x3F, reader.uleb())
                case 0xC0:
                    self._restore(code & 0x3F)
                case _:
                    self._other(code, reader)

    def close(self) -> None:
        """Note the rules that hold from here on."""
        if self._cfa is None:
            raise FrameError("code before its frame is known")
        frame = FrameRules(*self._cfa, dict(self.rules), self._signed, self._common.return_column, self._common.signal)
        if self.rows and self.rows[-1][0] == self._location:
            self.rows.pop()
        self.rows.append((self._location, frame))

    def _advance(self, units: int) -> None:
        self._go_to(self._location + units * self._common.code_alignment)

    def _go_to(self, location: int) -> None:
        self.close()
        if location < self._location:
            raise FrameError("a location that goes back")
        self._location = location & WORD_MASK

    def _rule(self, register: int, rule: RegisterRule) -> None:
        self.rules[register] = rule

    def _saved(self, register: int, offset: int) -> None:
        self.rules[register] = RegisterRule(How.SAVED, offset * self._common.data_alignment)

    def _restore(self, register: int) -> None:
        if register in self.initial:
            self.rules[register] = self.initial[register]
        else:
            self.rules.pop(register, None)

    def _frame_at(self, register: int | None = None, offset: int | None = None) -> None:
        old = self._cfa or (0, 0, b"")
        self._cfa = (old[0] if register is None else register, old[1] if offset is None else offset, b"")

    def _other(self, code: int, reader: Reader) -> None:
        scale = self._common.data_alignment
        match code:
            case 0x00:  # nop
                pass
            case 0x01:  # set_loc
                self._go_to(reader.pointer(self._common.pointers, self._common.section.address, self._word))
            case 0x02 | 0x03 | 0x04:  # advance_loc1, 2, 4
                self._advance(reader.number(1 << (code - 2)))
            case 0x05:  # offset_extended
                self._saved(reader.uleb(), reader.uleb())
            case 0x06:  # restore_extended
                self._restore(reader.uleb())
            case 0x07:  # undefined
                self._rule(reader.uleb(), _UNDEFINED)
            case 0x08:  # same_value
                self.rules.pop(reader.uleb(), None)
            case 0x09:  # register
                self._rule(reader.uleb(), RegisterRule(How.REGISTER, reader.uleb()))
            case 0x0A:  # remember_state
                self._kept.append((dict(self.rules), self._cfa, self._signed))
            case 0x0B:  # restore_state
                self.rules, self._cfa, self._signed = self._kept.pop()
            case 0x0C:  # def_cfa
                self._frame_at(reader.uleb(), reader.uleb())
            case 0x0D:  # def_cfa_register
                self._frame_at(register=reader.uleb())
            case 0x0E:  # def_cfa_offset
                self._frame_at(offset=reader.uleb())
            case 0x0F:  # def_cfa_expression
                self._cfa = (0, 0, reader.block())
            case 0x10:  # expression
                self._rule(reader.uleb(), RegisterRule(How.SAVED_AT, expression=reader.block()))
            case 0x11:  # offset_extended_sf
                self._saved(reader.uleb(), reader.sleb())
            case 0x12:  # def_cfa_sf
                self._frame_at(reader.uleb(), reader.sleb() * scale)
            case 0x13:  # def_cfa_offset_sf
                self._frame_at(offset=reader.sleb() * scale)
            case 0x14:  # val_offset
                self._rule(reader.uleb(), RegisterRule(How.OFFSET, reader.uleb() * scale))
            case 0x15:  # val_offset_sf
                self._rule(reader.uleb(), RegisterRule(How.OFFSET, reader.sleb() * scale))
            case 0x16:  # val_expression
                self._rule(reader.uleb(), RegisterRule(How.COMPUTED, expression=reader.block()))
            case 0x2D:  # AArch64: negate_ra_state
                self._signed = not self._signed
            case 0x2E:  # GNU_args_size
                reader.uleb()
            case 0x2F:  # GNU_negative_offset_extended
                self._saved(reader.uleb(), -reader.uleb())
            case _:
                raise FrameError(f"the unknown operation {code:#x} in call frame information")
