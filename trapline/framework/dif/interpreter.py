"""The DIF machine: an interpreter that can be read beside the instruction table of dtrace.h.

It defines the meaning of DIF, with `Operations`, `Builtins` and `Subroutines`, which do everything
but arithmetic and branches.  Machine code (`trapline.framework.native`) does the same; tests
compare the two on random programs: result, faults, fault offset, variables and scratch space.

Source: FreeBSD dtrace.c dtrace_dif_emulate().
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.support.immutable import immutable
from emu.support.words import WORD_MASK
from trapline.framework.base import dif
from trapline.framework.base.arithmetic import divide, overflows, remainder
from trapline.framework.base.context import Context
from trapline.framework.base.dif import TUPLE_REGISTERS, USER_VARIABLE_BASE, Op
from trapline.framework.base.dynvars import slot
from trapline.framework.base.faults import DIVZERO, FAULT, ILLOP, TUPOFLOW
from trapline.framework.base.memory import SLACK, Region
from trapline.framework.base.program import Difo, Scope
from trapline.framework.base.world import signed
from trapline.framework.dif.builtin import Builtins
from trapline.framework.dif.operations import Operations, Stack
from trapline.framework.dif.subroutines import Subroutines

INSTRUCTION_SIZE: Final = 4
# In C larger counts are undefined; amd64, AArch64 and RISC-V all take them modulo 64.
_SHIFT_MASK: Final = 63
_FLAGS: Final = int(CoreWord.FLAGS)


@immutable
class Instruction:
    """A decoded DIF instruction."""

    place: int
    op: Op
    r1: int
    r2: int
    rd: int
    index: int
    """Bits 23:8: a variable, an integer, a string or a subroutine."""
    label: int

    @classmethod
    def decode(cls, place: int, code: int) -> Instruction:
        """Decode an instruction."""
        fields = (dif.r1(code), dif.r2(code), dif.rd(code), dif.index(code), dif.label(code))
        return cls(place, Op(dif.opcode(code)), *fields)


class Loaded:
    """A DIF object ready to run: it is decoded, and its string table has an address."""

    def __init__(self, difo: Difo, strings: int) -> None:
        self.difo = difo
        self.strings = strings
        decoded = (Instruction.decode(place, code) for place, code in enumerate(difo.code))
        self.steps = [(_OPERATIONS[one.op], one) for one in decoded]


class _State:
    """A run of a DIF object: its registers, condition codes, tuple stack, and next instruction.

    No condition code tells of overflow, so comparisons of numbers that are far apart wrap around.
    """

    __slots__ = ("c", "ctx", "loaded", "machine", "n", "next", "registers", "result", "stack", "z")

    def __init__(self, machine: DifMachine, loaded: Loaded, ctx: Context) -> None:
        self.machine = machine
        self.loaded = loaded
        self.ctx = ctx
        self.registers = [0] * dif.INTEGER_REGISTERS
        self.n = self.z = self.c = False
        self.stack: Stack = []
        self.next = 0
        self.result = 0


_Operation = Callable[[_State, Instruction], None]


class DifMachine:
    """The DIF machine of one consumer, and the DIF objects that it runs."""

    def __init__(self, operations: Operations, builtins: Builtins, subroutines: Subroutines) -> None:
        self.operations = operations
        self.builtins = builtins
        self.subroutines = subroutines
        self.watcher: Callable[[Loaded, int, Sequence[int]], object] | None = None
        """Called after each instruction with its offset and the registers."""
        self._strings: dict[bytes, Region] = {}
        self._loaded: dict[Difo, Loaded] = {}

    def run(self, loaded: Loaded, ctx: Context) -> int:
        """Run a DIF object.

        After a fault the result is 0 and the context has the offset of the instruction.
        """
        state, steps, core, watcher = _State(self, loaded, ctx), loaded.steps, self.operations.core.words, self.watcher
        at, end = 0, len(steps)
        while state.next < end and not core[_FLAGS] & FAULT:
            at = state.next
            state.next = at + 1
            operation, instruction = steps[at]
            operation(state, instruction)
            if watcher is not None:
                watcher(loaded, at, state.registers)
        if core[_FLAGS] & FAULT:
            ctx.fault_offset = at * INSTRUCTION_SIZE
            return 0
        return state.result

    def load(self, difo: Difo) -> Loaded:
        """Make a DIF object ready to run; equal objects share that."""
        found = self._loaded.get(difo)
        if found is None:
            found = self._loaded[difo] = Loaded(difo, self.string_table(difo))
        return found

    def string_table(self, difo: Difo) -> int:
        """Return the address of a DIF object's strings; equal tables share one."""
        strings = self._strings.get(difo.strings)
        if strings is None:
            data = bytearray(difo.strings + bytes(SLACK))
            strings = self._strings[difo.strings] = self.operations.memory.allocate(data)
        return strings.base

    def release(self) -> None:
        """Give the memory of the strings back."""
        for region in self._strings.values():
            self.operations.memory.release(region)
        self._strings.clear()
        self._loaded.clear()


def constant(difo: Difo) -> int | None:
    """Return the constant that a DIF object returns, if it only loads a constant; else None."""
    if [dif.opcode(code) for code in difo.code] != [Op.SETX, Op.RET] or dif.rd(difo.code[0]) != dif.rd(difo.code[1]):
        return None
    return difo.integers[dif.index(difo.code[0])] & WORD_MASK


# Arithmetic


def _arithmetic(compute: Callable[[int, int], int]) -> _Operation:
    def operation(s: _State, i: Instruction) -> None:
        s.registers[i.rd] = compute(s.registers[i.r1], s.registers[i.r2]) & WORD_MASK

    return operation


def _division(compute: Callable[[int, int], int], *, traps: bool = False) -> _Operation:
    """Divide; `traps`: a CPU traps at the lowest number by -1, too."""

    def operation(s: _State, i: Instruction) -> None:
        a, b = s.registers[i.r1], s.registers[i.r2]
        if b == 0 or (traps and overflows(a, b)):
            s.machine.operations.core.flags |= DIVZERO
            s.registers[i.rd] = 0
        else:
            s.registers[i.rd] = compute(a, b) & WORD_MASK

    return operation


# Comparisons and branches


def _compare(s: _State, i: Instruction) -> None:
    a, b = s.registers[i.r1], s.registers[i.r2]
    difference = a - b & WORD_MASK
    s.n, s.z, s.c = signed(difference) < 0, difference == 0, a < b


def _test(s: _State, i: Instruction) -> None:
    s.n, s.z, s.c = False, s.registers[i.r1] == 0, False


def _compare_strings(s: _State, i: Instruction) -> None:
    difference = s.machine.operations.compare(s.registers[i.r1], s.registers[i.r2])
    s.n, s.z, s.c = difference < 0, difference == 0, False


def _branch(condition: Callable[[_State], bool]) -> _Operation:
    def operation(s: _State, i: Instruction) -> None:
        if condition(s):
            s.next = i.label

    return operation


def _return(s: _State, i: Instruction) -> None:
    s.result = s.registers[i.rd]
    s.next = len(s.loaded.steps)


def _nothing(_s: _State, _i: Instruction) -> None:
    pass


# Constants


def _integer(s: _State, i: Instruction) -> None:
    s.registers[i.rd] = s.loaded.difo.integers[i.index] & WORD_MASK


def _string(s: _State, i: Instruction) -> None:
    s.registers[i.rd] = s.loaded.strings + i.index


# Memory


def extend(value: int, size: int) -> int:
    """Extend the sign of a number of `size` bytes to 64 bits."""
    sign = 1 << (8 * size - 1)
    return ((value ^ sign) - sign) & WORD_MASK


def _load(kind: str, size: int, *, is_signed: bool) -> _Operation:
    def operation(s: _State, i: Instruction) -> None:
        operations, address = s.machine.operations, s.registers[i.r1]
        if kind == "RLD":
            value = operations.load_checked(address, size)
        else:
            memory = operations.memory
            value = memory.load_user(address, size) if kind == "ULD" else memory.load(address, size)
        if value is not None:
            s.registers[i.rd] = extend(value, size) if is_signed else value

    return operation


def _store(size: int) -> _Operation:
    return lambda s, i: s.machine.operations.store(s.ctx, s.registers[i.rd], size, s.registers[i.r1])


def _copy(s: _State, i: Instruction) -> None:
    s.machine.operations.copy(s.ctx, s.registers[i.r1], s.registers[i.r2], s.registers[i.rd])


def _allocate(s: _State, i: Instruction) -> None:
    s.registers[i.rd] = s.machine.operations.allocate(s.ctx, s.registers[i.r1])


# The tuple stack, and subroutines


def _push(s: _State, i: Instruction) -> None:
    if len(s.stack) == TUPLE_REGISTERS:
        s.machine.operations.core.flags |= TUPOFLOW
    elif i.op is Op.PUSHTV:
        s.stack.append((s.registers[i.rd], 0))
    else:
        s.machine.operations.push_reference(s.stack, i.r1, s.registers[i.r2], s.registers[i.rd])


def _pop(s: _State, _i: Instruction) -> None:
    del s.stack[-1:]


def _flush(s: _State, _i: Instruction) -> None:
    s.stack.clear()


def _call(s: _State, i: Instruction) -> None:
    value = s.machine.subroutines.table[i.index](s.ctx, s.stack)
    if value is not None:
        s.registers[i.rd] = value & WORD_MASK


# Variables


def _element(s: _State, i: Instruction) -> None:
    s.registers[i.rd] = s.machine.builtins.element(s.ctx, i.r1, s.registers[i.r2]) & WORD_MASK


def _no_element(s: _State, i: Instruction) -> None:
    s.machine.operations.core.flags |= ILLOP
    s.registers[i.rd] = 0


def _load_global(s: _State, i: Instruction) -> None:
    if i.index < USER_VARIABLE_BASE:
        s.registers[i.rd] = s.machine.builtins.scalar(s.ctx, i.index) & WORD_MASK
    else:
        s.registers[i.rd] = s.machine.operations.variables.globals.load(slot(i.index), 0)


def _load_local(s: _State, i: Instruction) -> None:
    if i.index < USER_VARIABLE_BASE:
        s.registers[i.rd] = 0
    else:
        s.registers[i.rd] = s.machine.operations.variables.locals.load(slot(i.index), s.ctx.cpu)


def _store_global(s: _State, i: Instruction) -> None:
    operations = s.machine.operations
    operations.store_static(operations.variables.globals, slot(i.index), 0, s.registers[i.rd])


def _store_local(s: _State, i: Instruction) -> None:
    operations = s.machine.operations
    operations.store_static(operations.variables.locals, slot(i.index), s.ctx.cpu, s.registers[i.rd])


def _load_dynamic(scope: Scope, *, by_tuple: bool) -> _Operation:
    def operation(s: _State, i: Instruction) -> None:
        stack = s.stack if by_tuple else []
        s.registers[i.rd] = s.machine.operations.load_dynamic(s.ctx, stack, i.index, scope) & WORD_MASK

    return operation


def _store_dynamic(scope: Scope, *, by_tuple: bool) -> _Operation:
    def operation(s: _State, i: Instruction) -> None:
        stack = s.stack if by_tuple else []
        s.machine.operations.store_dynamic(s.ctx, stack, i.index, scope, s.registers[i.rd])

    return operation


BRANCHES: Final[Mapping[Op, Callable[[_State], bool]]] = {
    Op.BA: lambda _f: True,
    Op.BE: lambda f: f.z,
    Op.BNE: lambda f: not f.z,
    Op.BG: lambda f: not (f.z or f.n),
    Op.BGU: lambda f: not (f.c or f.z),
    Op.BGE: lambda f: not f.n,
    Op.BGEU: lambda f: not f.c,
    Op.BL: lambda f: f.n,
    Op.BLU: lambda f: f.c,
    Op.BLE: lambda f: f.z or f.n,
    Op.BLEU: lambda f: f.c or f.z,
}
# Instruction -> (LD: kernel, ULD: user, RLD: kernel with a check of access; bytes; whether the sign is extended).
LOADS: Final[Mapping[Op, tuple[str, int, bool]]] = {
    op: (prefix, size, is_signed)
    for prefix in ("LD", "ULD", "RLD")
    for suffix, size, is_signed in (
        ("SB", 1, True), ("SH", 2, True), ("SW", 4, True), ("UB", 1, False), ("UH", 2, False), ("UW", 4, False), ("X",
        8, False),
    )
    for op in (Op[prefix + suffix],)
}  # fmt: skip
STORES: Final = {Op.STB: 1, Op.STH: 2, Op.STW: 4, Op.STX: 8}

_OPERATIONS: Final[Mapping[Op, _Operation]] = {
    Op.OR: _arithmetic(lambda a, b: a | b),
    Op.XOR: _arithmetic(lambda a, b: a ^ b),
    Op.AND: _arithmetic(lambda a, b: a & b),
    Op.SLL: _arithmetic(lambda a, b: a << (b & _SHIFT_MASK)),
    Op.SRL: _arithmetic(lambda a, b: a >> (b & _SHIFT_MASK)),
    Op.SRA: _arithmetic(lambda a, b: signed(a) >> (b & _SHIFT_MASK)),
    Op.SUB: _arithmetic(lambda a, b: a - b),
    Op.ADD: _arithmetic(lambda a, b: a + b),
    Op.MUL: _arithmetic(lambda a, b: a * b),
    Op.SDIV: _division(lambda a, b: divide(signed(a), signed(b))),
    Op.UDIV: _division(lambda a, b: a // b),
    Op.SREM: _division(lambda a, b: remainder(signed(a), signed(b)), traps=True),
    Op.UREM: _division(lambda a, b: a % b),
    Op.NOT: _arithmetic(lambda a, _b: ~a),
    Op.MOV: _arithmetic(lambda a, _b: a),
    Op.CMP: _compare,
    Op.TST: _test,
    Op.SCMP: _compare_strings,
    **{op: _branch(condition) for op, condition in BRANCHES.items()},
    Op.RET: _return,
    Op.NOP: _nothing,
    Op.SETX: _integer,
    Op.SETS: _string,
    **{op: _load(kind, size, is_signed=is_signed) for op, (kind, size, is_signed) in LOADS.items()},
    **{op: _store(size) for op, size in STORES.items()},
    Op.COPYS: _copy,
    Op.ALLOCS: _allocate,
    Op.PUSHTR: _push,
    Op.PUSHTV: _push,
    Op.POPTS: _pop,
    Op.FLUSHTS: _flush,
    Op.CALL: _call,
    Op.LDGA: _element,
    Op.LDTA: _no_element,
    Op.LDGS: _load_global,
    Op.STGS: _store_global,
    Op.LDLS: _load_local,
    Op.STLS: _store_local,
    Op.LDTS: _load_dynamic(Scope.THREAD, by_tuple=False),
    Op.STTS: _store_dynamic(Scope.THREAD, by_tuple=False),
    Op.LDGAA: _load_dynamic(Scope.GLOBAL, by_tuple=True),
    Op.STGAA: _store_dynamic(Scope.GLOBAL, by_tuple=True),
    Op.LDTAA: _load_dynamic(Scope.THREAD, by_tuple=True),
    Op.STTAA: _store_dynamic(Scope.THREAD, by_tuple=True),
}
