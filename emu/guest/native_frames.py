"""Stacks of programs by call frame information, in machine code (`emu.guest.stack_walker`).

A table in plain memory has the rows of the code that stacks have met (`emu.elf.unwind.compact`), by
the pc.  Python makes a row when machine code meets a pc for the first time; the row is used again
as long as the same bytes are at the same address of this process.  Stacks with expressions are left
to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Final

from emu.elf.unwind.compact import (
    KIND_SHIFT,
    PYTHON_ROW,
    REGISTERS,
    ROW_SIZE,
    SIGNAL,
    SIGNED,
    VALUE_SHIFT,
    CompactRow,
    RowKind,
    RuleKind,
)
from emu.engine.hits.stack_arguments import live_register
from emu.guest.stack_walker import DEEPEST, StackWalker
from emu.isa.base import Isa
from emu.native.builder import Callee, Function, Loop, Module, Variable
from emu.native.guest import GuestCode
from emu.native.operations import Value, Word
from emu.support.plain import function_address
from emu.support.words import WORD_MASK

_WORD: Final = 8
_WORD_SHIFT: Final = 3
_UNKNOWN: Final = WORD_MASK
# Rows in the table, as a power of two.
_ROWS_BITS: Final = 10
# Where a key has the kind of the pc.
_KIND_OF_PC: Final = 60
_ASK: Final = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


class PcKind(IntEnum):
    """What a pc of a stack is."""

    RETURN = 0
    """A return address: the call is before it."""
    INNERMOST = 1
    INTERRUPTED = 2
    """The next instruction of what a signal has interrupted."""
    CALLED = 3
    """A word below the stack, perhaps a return address that was taken: is a call before it?"""
    RETURNING = 4
    """The innermost, a return instruction, with the stack that it had."""


class FrameTable:
    """The rows of one guest, and the function in Python that makes them."""

    def __init__(self, walker: StackWalker) -> None:
        self._rows = (ctypes.c_uint64 * (ROW_SIZE // _WORD << _ROWS_BITS))()

        made: dict[PcKind, Callable[[int], tuple[int, ...]]] = {
            PcKind.RETURN: partial(walker.row, interrupted=False, innermost=False),
            PcKind.INNERMOST: walker.innermost_row,
            PcKind.INTERRUPTED: partial(walker.row, interrupted=True, innermost=False),
            PcKind.CALLED: walker.call_row,
            PcKind.RETURNING: partial(walker.row, interrupted=True, innermost=True),
        }

        def ask(pc: int, kind: int, row: int) -> None:
            try:
                words = made[PcKind(kind)](pc)
            except Exception:  # noqa: BLE001  Python follows the stack, and meets it again
                words = PYTHON_ROW
            room = (ctypes.c_uint64 * len(words)).from_address(row + _WORD * CompactRow.KIND)
            room[:] = list(words)

        self._ask = _ASK(ask)

    def code(self, isa: Isa) -> GuestCode:
        """Return the function `user_callers`."""
        symbols = {
            "frame_rows": ctypes.addressof(self._rows),
            "make_row": function_address(self._ask),
        }
        return GuestCode({"user_callers": lambda f, _slow: _Walk(f, isa).write()}, symbols)


class _Registers:
    """The registers of a frame: a value each, or the address that it is loaded from."""

    def __init__(self, f: Function, isa: Isa) -> None:
        self._f = f
        self._isa = isa
        self._values, self._kinds = f.buffer(_WORD * REGISTERS), f.buffer(_WORD * REGISTERS)
        self.lose()
        for number, name in enumerate(isa.registers.dwarf):
            if name in isa.registers.slots:
                self.set(number, live_register(f, isa, name))

    def lose(self) -> None:
        """Lose all registers."""
        self._f.fill(self._kinds, int(RuleKind.LOST), _WORD * REGISTERS)

    def set(self, number: Word, value: Word, kind: Word = int(RuleKind.VALUE)) -> None:
        """Set a register, or where it is saved."""
        offset = self._f.shl(number, _WORD_SHIFT)
        self._f.store(self._values, value, offset)
        self._f.store(self._kinds, kind, offset)

    def of(self, number: Word) -> tuple[Value, Value]:
        """Return what is known of a register: a value or an address, and which."""
        offset = self._f.shl(number, _WORD_SHIFT)
        return self._f.load(self._values, offset), self._f.load(self._kinds, offset)

    def get(self, loop: Loop, number: Word) -> Value:
        """Return a register; the stack ends if it is lost."""
        f = self._f
        known, kind = self.of(number)
        loop.leave_if(f.eq(kind, RuleKind.LOST))
        found = f.variable(known)
        with f.when(f.eq(kind, RuleKind.SAVED)):
            found.set(self.load(known))
        return found.get()

    def load(self, address: Word) -> Value:
        """Load a word of the stack; Python knows whether one that is out of reach is mapped."""
        f, word = self._f, self._isa.word
        found = f.call(Callee("user_pointer"), f.and_(address, self._isa.address_mask), word)
        with f.when(f.eq(found, 0), likely=False):
            f.ret(_UNKNOWN)
        return f.load(found, size=word)


class _Walk:
    """The function `user_callers(buffer, limit)` under construction."""

    def __init__(self, f: Function, isa: Isa) -> None:
        self._f = f
        self._isa = isa
        self._numbers = numbers = {name: number for number, name in enumerate(isa.registers.dwarf) if name}
        self._sp, self._fp = numbers[isa.registers.sp], numbers[isa.registers.fp]
        self._link = None if isa.registers.link is None else numbers[isa.registers.link]

    def write(self) -> None:
        """Write the function."""
        f = self._f
        buffer, asked = f.parameters
        f.ret_if(f.eq(asked, 0), 0)
        limit = f.select(f.ult(asked, DEEPEST), asked, DEEPEST)
        find = self._make_find(f.module)
        registers = _Registers(f, self._isa)
        pc, kind = f.variable(live_register(f, self._isa, self._isa.registers.pc)), f.variable(PcKind.INNERMOST)
        count = f.variable(0)
        with f.loop() as loop:
            f.store(f.add(buffer, f.shl(count.get(), _WORD_SHIFT)), pc.get())
            count.set(f.add(count.get(), 1))
            loop.leave_if(f.uge(count.get(), limit))
            found = f.variable(f.call(find, pc.get(), kind.get()))
            with f.when(f.eq(f.load(found.get(), _WORD * CompactRow.KIND), RowKind.RETURNED), likely=False):
                self._put_back(registers, find, f.load(found.get(), _WORD * CompactRow.CFA_OFFSET))
                found.set(f.call(find, pc.get(), PcKind.RETURNING))
            row = found.get()
            how, following = f.load(row, _WORD * CompactRow.KIND), f.label()
            for wanted, step in (
                (RowKind.RULES, self._by_rules),
                (RowKind.FRAME_POINTER, self._by_frame_pointer),
                (RowKind.FRAMELESS, self._frameless),
                (RowKind.SIGNAL, self._interrupted),
            ):
                with f.when(f.eq(how, wanted)):
                    step(loop, registers, row, pc, kind)
                    f.go_to(following)
            f.ret(_UNKNOWN)
            f.at(following)
        f.ret(count.get())

    def _put_back(self, registers: _Registers, find: Function, taken: Value) -> None:
        """Put the stack back that a return instruction has left (`StackWalker._returned_over`)."""
        f = self._f
        sp, _ = registers.of(self._sp)
        below = f.and_(f.sub(f.sub(sp, taken), self._isa.word), self._isa.address_mask)
        called = f.call(find, registers.load(below), PcKind.CALLED)
        with f.when(f.eq(f.load(called, _WORD * CompactRow.KIND), RowKind.CALL)):
            registers.set(self._sp, below)

    def _by_rules(self, loop: Loop, registers: _Registers, row: Value, pc: Variable, kind: Variable) -> None:
        """Continue in the caller (`emu.elf.unwind.walk.caller`)."""
        f = self._f

        def word(which: CompactRow) -> Value:
            return f.load(row, _WORD * which)

        base = registers.get(loop, word(CompactRow.CFA_REGISTER))
        cfa = f.and_(f.add(base, word(CompactRow.CFA_OFFSET)), self._isa.address_mask)
        old_sp, sp_kind = registers.of(self._sp)
        stays = f.both(f.eq(old_sp, cfa), f.eq(sp_kind, RuleKind.VALUE))
        registers.set(self._sp, cfa)
        self._apply(registers, row, cfa)
        column, marks = word(CompactRow.RETURN_REGISTER), word(CompactRow.MARKS)
        found = registers.get(loop, column)
        bits = (1 << self._isa.linux.highest.bit_length()) - 1
        caller = f.select(f.eq(f.and_(marks, SIGNED), 0), found, f.and_(found, bits))
        registers.set(column, caller)
        loop.leave_if(f.both(f.eq(caller, pc.get()), stays))
        loop.leave_if(f.eq(caller, 0))
        pc.set(caller)
        kind.set(f.select(f.eq(f.and_(marks, SIGNAL), 0), PcKind.RETURN, PcKind.INTERRUPTED))

    def _apply(self, registers: _Registers, row: Value, cfa: Value) -> None:
        """Set the registers for which there are rules."""
        f = self._f
        rule = f.variable(f.add(row, _WORD * len(CompactRow)))
        end = f.add(rule.get(), f.shl(f.load(row, _WORD * CompactRow.COUNT), _WORD_SHIFT))
        with f.loop() as rules:
            here = rule.get()
            rules.leave_if(f.uge(here, end))
            coded = f.load(here)
            number, kind = f.and_(coded, 0xFF), f.and_(f.lshr(coded, KIND_SHIFT), 0xFF)
            value = f.ashr(coded, VALUE_SHIFT)
            with f.choice(f.eq(kind, RuleKind.COPIED), likely=False) as (copied, computed):
                with copied:
                    registers.set(number, *registers.of(value))
                with computed:
                    registers.set(number, f.and_(f.add(cfa, value), self._isa.address_mask), kind)
            rule.set(f.add(here, _WORD))

    def _by_frame_pointer(self, loop: Loop, registers: _Registers, _row: Value, pc: Variable, kind: Variable) -> None:
        """Continue in the caller (`StackWalker._by_frame_pointer`)."""
        f, calling, word = self._f, self._isa.calling, self._isa.word
        pointer, sp = registers.get(loop, self._fp), registers.get(loop, self._sp)
        loop.leave_if(f.either(f.ult(pointer, sp), f.eq(pointer, 0)))
        loop.leave_if(f.ne(f.and_(pointer, word - 1), 0))
        pc.set(registers.load(f.add(pointer, calling.frame_return)))
        registers.set(self._fp, registers.load(f.add(pointer, calling.frame_next)))
        registers.set(self._sp, f.add(pointer, max(calling.frame_return + word, 0)))
        loop.leave_if(f.eq(pc.get(), 0))
        kind.set(PcKind.RETURN)

    def _frameless(self, loop: Loop, registers: _Registers, _row: Value, pc: Variable, kind: Variable) -> None:
        """Continue in the caller of code that has no frame."""
        f = self._f
        if self._link is not None:
            pc.set(registers.get(loop, self._link))
        else:
            sp = registers.get(loop, self._sp)
            pc.set(registers.load(sp))
            registers.set(self._sp, f.and_(f.add(sp, self._isa.word), self._isa.address_mask))
        loop.leave_if(f.eq(pc.get(), 0))
        kind.set(PcKind.RETURN)

    def _interrupted(self, loop: Loop, registers: _Registers, _row: Value, pc: Variable, kind: Variable) -> None:
        """Continue in what a signal interrupted (`StackWalker._interrupted`)."""
        f, layout = self._f, self._isa.linux.frame
        # The handler's return has taken its return address off.
        taken = 0 if layout.return_address is None else self._isa.word
        start = f.sub(registers.get(loop, self._sp), taken)
        registers.lose()
        for name, offset in layout.registers.items():
            value = registers.load(f.add(start, offset))
            if name in self._numbers:
                registers.set(self._numbers[name], value)
            if name == self._isa.registers.pc:
                pc.set(value)
        kind.set(PcKind.INTERRUPTED)

    def _make_find(self, module: Module) -> Function:
        """u64 find(pc, kind): the row of a pc."""
        f = module.function("find_row", 2, local=True)
        pc, kind = f.parameters
        key = f.or_(pc, f.shl(kind, _KIND_OF_PC))
        mixed = f.xor(f.xor(pc, f.lshr(pc, _ROWS_BITS)), kind)
        index = f.and_(mixed, (1 << _ROWS_BITS) - 1)
        row = f.add(module.symbol("frame_rows"), f.mul(index, ROW_SIZE))
        # The aligned word that the call ends in, or that the pc is in.
        behind = f.either(f.eq(kind, PcKind.RETURN), f.eq(kind, PcKind.CALLED))
        at = f.and_(f.sub(pc, f.flag(behind)), -_WORD)
        mapped = f.call(Callee("user_pointer"), at, _WORD)
        code = f.variable(0)
        with f.when(f.ne(mapped, 0), likely=True):
            code.set(f.load(mapped))
            same = f.both(f.eq(f.load(row), key), f.eq(f.load(row, _WORD * CompactRow.POINTER), mapped))
            same = f.both(same, f.eq(f.load(row, _WORD * CompactRow.CODE), code.get()))
            f.ret_if(same, row, likely=True)
        f.store(row, key)
        f.store(row, mapped, _WORD * CompactRow.POINTER)
        f.store(row, code.get(), _WORD * CompactRow.CODE)
        f.call(module.symbol("make_row"), pc, kind, row)
        f.ret(row)
        return f
