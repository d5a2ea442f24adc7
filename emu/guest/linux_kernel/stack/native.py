"""Stacks of a Linux kernel in machine code, as `FramePointers` and `Orc` find them at a breakpoint.

If memory is out of reach, or a frame is of a rare kind, Python walks the stack from the start.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.engine.hits.tracepoint_blocks import Firing
from emu.guest.linux_kernel.stack.orc_modules import OrcRow, OrcRows
from emu.guest.linux_kernel.stack.walk import (
    CALL,
    IRET_SP,
    MOST,
    ORC_ENTRY,
    REGS,
    REGS_BP,
    REGS_IP,
    REGS_PARTIAL,
    REGS_SP,
    FramePointers,
    Orc,
    OrcRegister,
    Unwinder,
)
from emu.isa.base import Isa
from emu.native.builder import Callee, Function, Variable
from emu.native.guest import Writer
from emu.native.operations import Condition, Value, Word
from emu.support.words import WORD_MASK

_WORD: Final = 8
_UNKNOWN: Final = WORD_MASK
# Bytes of an entry of .orc_unwind_ip.
_IP: Final = 4


def stack_code(isa: Isa, unwinder: Unwinder) -> dict[str, Writer]:
    """Return the writer of `kernel_callers(buffer, limit)` for a kernel."""
    match unwinder:
        case FramePointers():
            return {"kernel_callers": _FramePointerCode(isa, unwinder).write}
        case Orc():
            return {"kernel_callers": _OrcCode(isa, unwinder).write}
    return {}


class _StackCode:
    """The common part of both."""

    def __init__(self, isa: Isa) -> None:
        self._isa = isa

    def _begin(self, f: Function) -> Value:
        """Return the firing; Python finds the stack if it is not a hit in the kernel."""
        firing = f.load(f.module.symbol("core"), _WORD * CoreWord.FIRING)
        self._python_if(f, f.eq(firing, 0))
        self._python_if(f, f.ult(self._register(f, self._isa.registers.pc), self._isa.kernel_start))
        return firing

    def _register(self, f: Function, name: str) -> Value:
        return f.load(f.module.symbol("cpu_words"), _WORD * self._isa.registers.slots[name])

    def _load(self, f: Function, address: Word) -> Value:
        mapped = f.call(Callee("kernel_pointer"), address, _WORD)
        self._python_if(f, f.eq(mapped, 0))
        return f.load(mapped)

    @staticmethod
    def _python_if(f: Function, condition: Condition) -> None:
        with f.when(condition, likely=False):
            f.ret(_UNKNOWN)

    @staticmethod
    def _add(f: Function, buffer: Word, count: Variable, pc: Word) -> None:
        f.store(f.add(buffer, f.shl(count.get(), 3)), pc)
        count.set(f.add(count.get(), 1))


class _FramePointerCode(_StackCode):
    """The equivalent of `FramePointers`."""

    def __init__(self, isa: Isa, unwinder: FramePointers) -> None:
        super().__init__(isa)
        self._entry = unwinder.entry
        self._saved = unwinder.saved

    def write(self, f: Function, _slow: Callable[[], Word]) -> None:
        """Write the function."""
        buffer, limit = f.parameters
        firing = self._begin(f)
        registers, calling, lowest = self._isa.registers, self._isa.calling, self._isa.kernel_start
        count, pointer = f.variable(0), f.variable(self._register(f, registers.fp))
        framed = f.load(firing, Firing.offset("framed"))
        assert registers.link is not None
        with f.when(f.both(f.eq(framed, 0), f.ne(limit, 0))):
            self._add(f, buffer, count, self._register(f, registers.link))
        walked = f.variable(0)
        with f.loop() as loop:
            frame = pointer.get()
            loop.leave_if(f.uge(count.get(), limit))
            loop.leave_if(f.uge(walked.get(), MOST))
            loop.leave_if(f.either(f.ult(frame, lowest), f.ne(f.and_(frame, _WORD - 1), 0)))
            pc = self._load(f, f.add(frame, calling.frame_return))
            following = f.variable(self._load(f, f.add(frame, calling.frame_next)))
            loop.leave_if(f.ult(pc, lowest))
            self._add(f, buffer, count, pc)
            walked.set(f.add(walked.get(), 1))
            if self._entry:
                inside = f.ult(f.sub(pc, self._entry.start), len(self._entry))
                with f.when(inside, likely=False):
                    interrupted = self._load(f, f.add(frame, _WORD * self._saved.index("pc")))
                    f.ret_if(f.ult(interrupted, lowest), count.get())
                    f.ret_if(f.uge(count.get(), limit), count.get())
                    self._add(f, buffer, count, interrupted)
                    walked.set(f.add(walked.get(), 1))
                    following.set(self._load(f, f.add(frame, _WORD * self._saved.index(registers.fp))))
            pointer.set(following.get())
        f.ret(count.get())


class _OrcCode(_StackCode):
    """The equivalent of `Orc`."""

    def __init__(self, isa: Isa, unwinder: Orc) -> None:
        super().__init__(isa)
        self._table = unwinder

    def write(self, f: Function, _slow: Callable[[], Word]) -> None:
        """Write the function."""
        buffer, limit = f.parameters
        self._begin(f)
        table, lowest = self._table, self._isa.kernel_start
        ips = f.call(Callee("kernel_pointer"), table.ips, _IP * table.count)
        entries = f.call(Callee("kernel_pointer"), table.entries, ORC_ENTRY * table.count)
        self._python_if(f, f.either(f.eq(ips, 0), f.eq(entries, 0)))
        search, search_module = self._search(f), self._search_module(f)
        ip, sp, bp = (f.variable(self._register(f, name)) for name in ("rip", "rsp", "rbp"))
        count, exact = f.variable(0), f.variable(1)
        with f.when(f.both(f.ult(f.sub(ip.get(), table.bare.start), len(table.bare)), f.ne(limit, 0)), likely=False):
            ip.set(self._load(f, sp.get()))
            sp.set(f.add(sp.get(), _WORD))
            exact.set(0)
            self._add(f, buffer, count, ip.get())
        with f.loop() as loop:
            loop.leave_if(f.uge(count.get(), limit))
            loop.leave_if(f.uge(count.get(), MOST))
            wanted = f.sub(ip.get(), f.sub(1, exact.get()))
            place_of_entry = f.variable(0)
            with f.choice(f.ult(f.sub(wanted, table.text.start), len(table.text))) as (kernel, other):
                with kernel:
                    found = f.call(search, ips, wanted)
                    with f.when(f.ne(found, 0)):
                        place_of_entry.set(f.add(entries, f.mul(f.sub(found, 1), ORC_ENTRY)))
                with other:
                    place_of_entry.set(self._of_module(f, wanted, search_module))
            at = place_of_entry.get()
            loop.leave_if(f.eq(at, 0))
            sp_offset, bp_offset = f.load(at, 0, 2, signed=True), f.load(at, 2, 2, signed=True)
            rest = f.load(at, 4, 2)
            kind = f.and_(f.lshr(rest, 8), 7)
            known = f.either(f.eq(kind, CALL), f.either(f.eq(kind, REGS), f.eq(kind, REGS_PARTIAL)))
            loop.leave_if(f.fails(known))
            base = self._base(f, f.and_(rest, 0xF), sp.get(), bp.get(), sp_offset)
            own_bp = bp.get()
            with f.cases(kind) as case:
                with case(CALL):
                    ip.set(self._load(f, f.sub(base, _WORD)))
                    sp.set(base)
                with case(REGS):
                    ip.set(self._load(f, f.add(base, _WORD * REGS_IP)))
                    sp.set(self._load(f, f.add(base, _WORD * REGS_SP)))
                    bp.set(self._load(f, f.add(base, _WORD * REGS_BP)))
                with case(REGS_PARTIAL):
                    ip.set(self._load(f, base))
                    sp.set(self._load(f, f.add(base, _WORD * IRET_SP)))
            with f.cases(f.and_(f.lshr(rest, 4), 0xF)) as case:
                with case(OrcRegister.PREV_SP):
                    bp.set(self._load(f, f.add(base, bp_offset)))
                with case(OrcRegister.BP):
                    bp.set(self._load(f, f.add(own_bp, bp_offset)))
            loop.leave_if(f.ult(ip.get(), lowest))
            signal = f.and_(f.lshr(rest, 11), 1)
            exact.set(f.or_(signal, f.flag(f.ne(kind, CALL))))
            self._add(f, buffer, count, ip.get())
        f.ret(count.get())

    def _base(self, f: Function, register: Value, sp: Value, bp: Value, offset: Value) -> Value:
        """Return the sp at the start of the caller's frame."""
        base = f.variable(0)
        with f.cases(register) as case:
            with case(OrcRegister.SP):
                base.set(f.add(sp, offset))
            with case(OrcRegister.BP):
                base.set(f.add(bp, offset))
            with case(OrcRegister.SP_INDIRECT):
                base.set(f.add(self._load(f, sp), offset))
            with case(OrcRegister.BP_INDIRECT):
                base.set(self._load(f, f.add(bp, offset)))
        self._python_if(f, f.eq(base.get(), 0))
        return base.get()

    def _of_module(self, f: Function, ip: Value, search: Function) -> Value:
        """Return the address of the entry for an address of a module's code, 0 if it has none."""
        words = self._table.modules.words.address
        rows, count = f.load(words, OrcRows.offset("rows")), f.load(words, OrcRows.offset("count"))
        left, found = f.variable(count), f.variable(0)
        with f.loop() as loop:
            loop.leave_if(f.eq(left.get(), 0))
            left.set(f.sub(left.get(), 1))
            row = f.add(rows, f.mul(left.get(), ctypes.sizeof(OrcRow)))
            start, size = f.load(row, OrcRow.offset("start")), f.load(row, OrcRow.offset("size"))
            with f.when(f.ult(f.sub(ip, start), size)):
                found.set(row)
            loop.leave_if(f.ne(found.get(), 0))
        row = found.get()
        self._python_if(f, f.eq(row, 0))
        loaded = self._load(f, f.load(row, OrcRow.offset("pointer")))
        self._python_if(f, f.ne(loaded, f.load(row, OrcRow.offset("value"))))  # another module is there now
        number = f.call(search, f.load(row, OrcRow.offset("ips")), f.load(row, OrcRow.offset("count")), ip)
        entry = f.variable(0)
        with f.when(f.ne(number, 0)):
            entry.set(f.add(f.load(row, OrcRow.offset("entries")), f.mul(f.sub(number, 1), ORC_ENTRY)))
        return entry.get()

    @staticmethod
    def _search_module(f: Function) -> Function:
        """u64 search(ips, count, ip): the same in a copied table, which has addresses."""
        s = f.module.function("orc_search_module", 3, local=True)
        ips, count, ip = s.parameters
        _halve(s, count, ip, lambda middle: s.load(s.add(ips, s.shl(middle, 3))))
        return s

    def _search(self, f: Function) -> Function:
        """u64 search(ips, ip): the number of entries that do not begin after an address."""
        s = f.module.function("orc_search", 2, local=True)
        ips, ip = s.parameters

        def begins(middle: Value) -> Value:
            offset = s.mul(middle, _IP)
            return s.add(s.add(offset, self._table.ips), s.load(s.add(ips, offset), 0, _IP, signed=True))

        _halve(s, self._table.count, ip, begins)
        return s


def _halve(s: Function, count: Word, ip: Value, begins: Callable[[Value], Value]) -> None:
    """Write a search: it returns how many of `count` sorted entries do not begin after an address."""
    low, high = s.variable(0), s.variable(count)
    with s.loop() as loop:
        loop.leave_if(s.uge(low.get(), high.get()))
        middle = s.lshr(s.add(low.get(), high.get()), 1)
        with s.choice(s.ule(begins(middle), ip)) as (lower, upper):
            with lower:
                low.set(s.add(middle, 1))
            with upper:
                high.set(middle)
    s.ret(low.get())
