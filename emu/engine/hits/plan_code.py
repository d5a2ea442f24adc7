"""Machine code that executes plans, as `emu.probe.execute_plan.interpret` defines them.

One function walks over the operations that `emu.engine.hits.plan_encoding` encodes.  Temporaries
have places in memory, as registers have. Accesses that can fault precede the first change of a
register (`emu.displaced.plans.Plan`), so the function may give up at any access.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from emu.displaced.plans import Compare
from emu.engine.hits.plan_encoding import COMPARES, OPERATION_WORDS, Kind, condition_flags
from emu.engine.hits.walk_code import write_walk
from emu.engine.state import FILLS, Word
from emu.isa.base import Isa
from emu.native.builder import Function, Module, Variable
from emu.native.operations import Condition, Value

# Bits of a page's offset, and the mask of it.
_PAGE_BITS: Final = 12
_OFFSET: Final = 0xFFF
# `emu.engine.memory.access.Access` as a table entry of `emu.engine.qemu.tlb` has it.
READ: Final = 1
WRITE: Final = 2
# A READ for an argument of a probe, which is 0 where no memory is mapped: entries never have the other bit.
ARGUMENT: Final = READ | 8
_SIZES: Final = (1, 2, 4, 8)


@dataclass(frozen=True)
class Places:
    """Addresses of an engine's data for its machine code: the linker inserts these values."""

    words: Value
    """The words of `emu.engine.state`."""
    env: Value
    """The CPU state."""
    handle: Value
    """Unicorn's handle."""
    ram: Value
    """RAM in this process."""
    ram_end: Value
    """Its end."""
    executed: Value
    """A byte for each page of RAM, 1: code of it may have been translated; used only if `hosted`."""
    windows: Value
    """The table of windows."""
    """The answers to Unicorn's TLB; used only if `hosted`."""
    register_read: Value
    """uc_reg_read."""
    register_write: Value
    """uc_reg_write."""


class PlanCode:
    """The functions `reach` and `plan`; `hosted`: the host keeps the address space."""

    def __init__(self, module: Module, isa: Isa, places: Places, *, hosted: bool) -> None:
        self._isa = isa
        self._places = places
        self.reach = self._reach(module, hosted=hosted)
        self.plan = self._plan(module)

    def _reach(self, module: Module, *, hosted: bool) -> Function:
        """u64 reach(address, access): the place of eight bytes in this process; 0: out of reach."""
        places, tables = self._places, self._isa.paging.tables
        walk = None
        if not hosted and tables is not None:
            function = module.function("walk", 3, local=True)
            walk = write_walk(function, tables, places.ram, places.ram_end, self._isa.paging)
        f = module.function("reach", 2)
        address, access = f.parameters
        window = f.variable(self._places.windows)
        with f.loop() as loop:
            memory = f.load(window.get(), 16)
            loop.leave_if(f.eq(memory, 0))
            offset = f.sub(address, f.load(window.get()))
            f.ret_if(f.ule(offset, f.load(window.get(), 8)), f.add(memory, offset))
            window.set(f.add(window.get(), 24))
        if hosted:
            ask = f.load(places.words, 8 * Word.REACH)
            with f.when(f.ne(ask, 0), likely=False):
                found = f.call(ask, f.load(places.words, 8 * Word.REACH_FOR), address, access)
                f.ret_if(f.ne(found, 0), found)
            # In one page, and the host has permitted the access there, in the current version of this address space.
            page = f.lshr(address, _PAGE_BITS)
            entry = f.add(f.load(self._places.words, 8 * Word.FILLS), f.shl(f.and_(page, FILLS - 1), 4))
            key = f.or_(page, f.load(self._places.words, 8 * Word.GENERATION))
            answer = f.load(entry, 8)
            offset = f.and_(address, _OFFSET)
            known = f.both(f.eq(f.load(entry), key), f.ne(f.and_(answer, access), 0))
            known = f.both(known, f.ule(offset, _OFFSET - 7))
            # A store forgets translated code, which only Python does.
            executed = f.load(f.add(places.executed, f.lshr(answer, _PAGE_BITS)), 0, 1)
            known = f.both(known, f.either(f.eq(f.and_(access, WRITE), 0), f.eq(executed, 0)))
            physical = f.or_(f.and_(answer, ~_OFFSET), offset)
            f.ret_if(known, f.add(self._places.ram, physical))
        elif walk is not None:
            # In one page.  What a program may not write to as it is may be copied on write: the kernel is to be asked.
            f.ret_if(f.ugt(f.and_(address, _OFFSET), _OFFSET - 7), 0)
            registers = self._isa.registers
            kernel = f.uge(address, self._isa.kernel_start)
            kernel_root, user_root = (
                f.load(self._places.env, 8 * registers.slots[one]) for one in (registers.kernel_root, registers.root)
            )
            writing = f.select(kernel, 0, f.and_(access, WRITE))
            f.ret(f.call(walk, f.select(kernel, kernel_root, user_root), address, writing))
        f.ret(0)
        return f

    def _plan(self, module: Module) -> Function:
        """u64 plan(operations): 1 if it was executed, 0 if memory is out of reach."""
        f = module.function("plan", 1)
        operation, holds = f.variable(f.parameters[0]), f.variable(1)
        with f.loop() as loop:
            here = operation.get()
            operation.set(f.add(here, 8 * OPERATION_WORDS))
            kind = f.load(here)
            first, second, third = f.load(here, 8), f.load(here, 16), f.load(here, 24)
            loop.leave_if(f.eq(kind, 0))
            with f.cases(kind) as case:
                with case(Kind.SET):
                    self._write(f, first, f.add(f.load(second), third))
                with case(Kind.CLEAR):
                    f.store(first, f.and_(f.load(second), third))
                with case(Kind.SUM):
                    scaled = f.shl(f.load(f.load(here, 32)), f.load(here, 40))
                    self._write(f, first, f.add(f.add(f.load(second), scaled), third))
                with case(Kind.LOAD):
                    sign = f.load(here, 40)
                    value = self._load(f, self._at(f, second, third, READ), f.load(here, 32))
                    self._write(f, first, f.sub(f.xor(value, sign), sign))
                with case(Kind.STORE):
                    place = self._at(f, second, third, WRITE)
                    size, value = f.load(here, 32), f.load(first)
                    with f.cases(size) as sized:
                        for bytes_ in _SIZES:
                            with sized(bytes_):
                                f.store(place, value, 0, bytes_)
                with case(Kind.DEPOSIT):
                    f.store(self._at(f, second, third, READ), f.load(first))
                with case(Kind.READ):
                    f.store(first, self._read_public(f, second))
                with case(Kind.COMPARE):
                    mask, sign = f.load(here, 32), f.load(here, 40)
                    left, right = f.and_(f.load(first), mask), f.and_(f.load(second), mask)
                    self._compare(f, third, f.xor(left, sign), f.xor(right, sign), holds)
                if self._isa.condition is not None:
                    with case(Kind.CONDITION):
                        satisfied = f.lshr(third, self._combination(f))
                        holds.set(f.and_(holds.get(), satisfied))
                with case(Kind.BRANCH):
                    distance = f.select(f.ne(f.and_(holds.get(), 1), 0), third, f.load(here, 32))
                    self._write(f, first, f.add(f.load(first), distance))
                    holds.set(1)
                with case(Kind.ADJUST):
                    f.store(first, f.add(f.load(first), third))
                with case(Kind.SET_VECTOR):
                    both = f.buffer(16)
                    f.store(both, f.load(first))
                    f.store(both, f.load(second), 8)
                    f.call(self._places.register_write, self._places.handle, third, both)
        f.ret(1)
        return f

    def _write(self, f: Function, target: Value, value: Value) -> None:
        """Write a register or a temporary, as wide as registers are."""
        f.store(target, f.and_(value, self._isa.address_mask))

    def _at(self, f: Function, base: Value, offset: Value, access: int) -> Value:
        """Return the address of memory in this process; if it has none, abandon the plan."""
        address = f.and_(f.add(f.load(base), offset), self._isa.address_mask)
        place = f.call(self.reach, address, access)
        f.ret_if(f.eq(place, 0), 0, likely=False)
        return place

    @staticmethod
    def _load(f: Function, place: Value, size: Value) -> Value:
        """Return `size` bytes."""
        value = f.variable(0)
        with f.cases(size) as sized:
            for bytes_ in _SIZES:
                with sized(bytes_):
                    value.set(f.load(place, 0, bytes_))
        return value.get()

    def _read_public(self, f: Function, number: Value | int) -> Value:
        """Return a register by Unicorn's own call; some have four bytes."""
        room = f.buffer(8)
        f.store(room, 0)
        f.call(self._places.register_read, self._places.handle, number, room)
        return f.load(room)

    def _combination(self, f: Function) -> Value:
        """Return the flags that conditions look at, side by side."""
        flags = self._read_public(f, self._isa.unicorn.ids[self._isa.traps.flags])
        found = f.word(0)
        for place, bit in enumerate(condition_flags(self._isa)):
            found = f.or_(found, f.shl(f.and_(f.lshr(flags, bit), 1), place))
        return found

    @staticmethod
    def _compare(f: Function, how: Value, left: Value, right: Value, holds: Variable) -> None:
        """Store whether a comparison is true.  Signs were changed, so all are unsigned."""
        bit = f.and_(f.lshr(left, f.and_(right, 63)), 1)
        answers: dict[Compare, Condition] = {
            Compare.EQ: f.eq(left, right),
            Compare.NE: f.ne(left, right),
            Compare.LT: f.ult(left, right),
            Compare.GE: f.uge(left, right),
            Compare.LTU: f.ult(left, right),
            Compare.GEU: f.uge(left, right),
            Compare.BIT_CLEAR: f.eq(bit, 0),
            Compare.BIT_SET: f.ne(bit, 0),
        }
        answer = f.word(0)
        for place, compare in enumerate(COMPARES):
            answer = f.select(f.eq(how, place), f.flag(answers[compare]), answer)
        holds.set(f.and_(holds.get(), answer))
