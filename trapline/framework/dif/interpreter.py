"""The DIF machine: an interpreter that can be read beside the instruction table of dtrace.h.

This is the reference.  When a probe fires, the same code runs as a Python function into which it
was translated once (`translate`), some ten times as fast; both do arithmetic and branches
themselves, and everything else through `Operations`, `Builtins` and `Subroutines`.  Tests compare
the two on random programs: result, faults, fault offset, variables and scratch space.

Source: FreeBSD dtrace.c dtrace_dif_emulate().
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from emu.support.immutable import immutable
from emu.support.words import WORD_MASK
from trapline.framework.base import dif
from trapline.framework.base.arithmetic import divide, overflows, remainder
from trapline.framework.base.context import Context
from trapline.framework.base.dif import TUPLE_REGISTERS, USER_VARIABLE_BASE, Op
from trapline.framework.base.dynvars import slot
from trapline.framework.base.faults import DIVZERO, FAULT, ILLOP, TUPOFLOW
from trapline.framework.base.program import Difo, Scope
from trapline.framework.base.variables import Statics
from trapline.framework.base.world import signed
from trapline.framework.dif.builtin import Builtins
from trapline.framework.dif.operations import Operations, Stack
from trapline.framework.dif.subroutines import Subroutines

INSTRUCTION_SIZE: Final = 4
# In C larger counts are undefined; amd64, AArch64 and RISC-V all take them modulo 64.
_SHIFT_MASK: Final = 63


@immutable
class Loaded:
    """A DIF object ready to run: its string table has an address."""

    difo: Difo
    strings: int


@dataclass(slots=True)
class Flags:
    """The condition codes.

    Overflow is never set, so comparisons of numbers that are far apart wrap around.
    """

    n: bool = False
    z: bool = False
    c: bool = False


ARITHMETIC: Final[dict[Op, Callable[[int, int], int]]] = {
    Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b,
    Op.AND: lambda a, b: a & b,
    Op.SLL: lambda a, b: a << (b & _SHIFT_MASK),
    Op.SRL: lambda a, b: a >> (b & _SHIFT_MASK),
    Op.SRA: lambda a, b: signed(a) >> (b & _SHIFT_MASK),
    Op.SUB: lambda a, b: a - b,
    Op.ADD: lambda a, b: a + b,
    Op.MUL: lambda a, b: a * b,
}
DIVISIONS: Final[dict[Op, Callable[[int, int], int]]] = {
    Op.SDIV: lambda a, b: divide(signed(a), signed(b)),
    Op.UDIV: lambda a, b: a // b,
    Op.SREM: lambda a, b: remainder(signed(a), signed(b)),
    Op.UREM: lambda a, b: a % b,
}
BRANCHES: Final[dict[Op, Callable[[Flags], bool]]] = {
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
LOADS: Final[dict[Op, tuple[str, int, bool]]] = {
    op: (prefix, size, is_signed)
    for prefix in ("LD", "ULD", "RLD")
    for suffix, size, is_signed in (
        ("SB", 1, True), ("SH", 2, True), ("SW", 4, True), ("UB", 1, False), ("UH", 2, False), ("UW", 4, False), ("X",
        8, False),
    )
    for op in (Op[prefix + suffix],)
}  # fmt: skip
STORES: Final = {Op.STB: 1, Op.STH: 2, Op.STW: 4, Op.STX: 8}


def extend(value: int, size: int) -> int:
    """Extend the sign of a number of `size` bytes to 64 bits."""
    sign = 1 << (8 * size - 1)
    return ((value ^ sign) - sign) & WORD_MASK


class DifMachine:
    """The DIF machine of one consumer."""

    def __init__(self, operations: Operations, builtins: Builtins, subroutines: Subroutines) -> None:
        self.operations = operations
        self.builtins = builtins
        self.subroutines = subroutines
        self.watcher: Callable[[Loaded, int, Sequence[int]], object] | None = None
        """Called after each instruction with its offset and the registers."""

    def run(self, loaded: Loaded, ctx: Context) -> int:
        """Run a DIF object.

        After a fault the result is 0 and the context has the offset of the instruction.
        """
        code = loaded.difo.code
        registers = [0] * dif.INTEGER_REGISTERS
        flags = Flags()
        stack: Stack = []
        core = self.operations.core
        pc = at = 0
        result = 0
        while pc < len(code) and not core.flags & FAULT:
            at = pc
            pc += 1
            instruction = code[at]
            op = Op(dif.opcode(instruction))
            if op in BRANCHES:
                if BRANCHES[op](flags):
                    pc = dif.label(instruction)
            elif op == Op.RET:
                result = registers[dif.rd(instruction)]
                pc = len(code)
            elif op in (Op.CMP, Op.TST, Op.SCMP):
                self._compare(op, registers[dif.r1(instruction)], registers[dif.r2(instruction)], flags)
            else:
                self._step(op, instruction, registers, stack, loaded, ctx)
            if self.watcher is not None:
                self.watcher(loaded, at, registers)
        if core.flags & FAULT:
            ctx.fault_offset = at * INSTRUCTION_SIZE
            return 0
        return result

    def _compare(self, op: Op, a: int, b: int, flags: Flags) -> None:
        if op == Op.TST:
            flags.n, flags.z, flags.c = False, a == 0, False
            return
        difference = (a - b) & WORD_MASK if op == Op.CMP else self.operations.compare(a, b)
        flags.n, flags.z = signed(difference) < 0, difference == 0
        flags.c = op == Op.CMP and a < b

    def _step(self, op: Op, instruction: int, registers: list[int], stack: Stack, loaded: Loaded, ctx: Context) -> None:
        """Execute one instruction that neither branches nor compares."""
        rd = dif.rd(instruction)
        a, b = registers[dif.r1(instruction) % len(registers)], registers[dif.r2(instruction) % len(registers)]
        number = dif.index(instruction)
        value: int | None = None
        if op in ARITHMETIC:
            value = ARITHMETIC[op](a, b)
        elif op in DIVISIONS:
            value = self._divide(op, a, b)
        elif op == Op.NOT:
            value = ~a
        elif op == Op.MOV:
            value = a
        elif op in LOADS:
            value = self._load(op, a)
        elif op == Op.SETX:
            value = loaded.difo.integers[number]
        elif op == Op.SETS:
            value = loaded.strings + number
        elif op == Op.LDGA:
            value = self.builtins.element(ctx, dif.r1(instruction), b)
        elif op == Op.LDTA:
            self.operations.core.flags |= ILLOP
            value = 0
        elif op == Op.CALL:
            value = self.subroutines.table[number](ctx, stack)
        elif op == Op.ALLOCS:
            value = self.operations.allocate(ctx, a)
        elif op in _VARIABLE_LOADS:
            value = self._load_variable(op, number, stack, ctx)
        elif op in _VARIABLE_STORES:
            self._store_variable(op, number, stack, ctx, registers[rd])
        elif op in STORES:
            self.operations.store(ctx, registers[rd], STORES[op], a)
        elif op == Op.COPYS:
            self.operations.copy(ctx, a, b, registers[rd])
        elif op in (Op.PUSHTR, Op.PUSHTV):
            self._push(op, dif.r1(instruction), b, registers[rd], stack)
        elif op == Op.POPTS:
            del stack[-1:]
        elif op == Op.FLUSHTS:
            stack.clear()
        if value is not None:
            registers[rd] = value & WORD_MASK

    def _divide(self, op: Op, a: int, b: int) -> int:
        if b == 0 or (op is Op.SREM and overflows(a, b)):
            self.operations.core.flags |= DIVZERO
            return 0
        return DIVISIONS[op](a, b)

    def _load(self, op: Op, address: int) -> int | None:
        kind, size, is_signed = LOADS[op]
        memory = self.operations.memory
        if kind == "RLD":
            value = self.operations.load_checked(address, size)
        else:
            value = memory.load_user(address, size) if kind == "ULD" else memory.load(address, size)
        return extend(value, size) if value is not None and is_signed else value

    def _push(self, op: Op, kind: int, size: int, value: int, stack: Stack) -> None:
        if len(stack) == TUPLE_REGISTERS:
            self.operations.core.flags |= TUPOFLOW
        elif op == Op.PUSHTV:
            stack.append((value, 0))
        else:
            self.operations.push_reference(stack, kind, size, value)

    def _statics(self, op: Op, ctx: Context) -> tuple[Statics, int]:
        """Return the variables an instruction means, and which copy of them."""
        variables = self.operations.variables
        return (variables.globals, 0) if op in (Op.LDGS, Op.STGS) else (variables.locals, ctx.cpu)

    def _load_variable(self, op: Op, number: int, stack: Stack, ctx: Context) -> int:
        scope = _VARIABLE_LOADS[op]
        if scope is not None:
            return self.operations.load_dynamic(ctx, [] if op == Op.LDTS else stack, number, scope)
        if number < USER_VARIABLE_BASE:
            return self.builtins.scalar(ctx, number) if op == Op.LDGS else 0
        statics, copy = self._statics(op, ctx)
        reference = statics.references.get(slot(number))
        return statics.values[copy][slot(number)] if reference is None else reference.address(copy)

    def _store_variable(self, op: Op, number: int, stack: Stack, ctx: Context, value: int) -> None:
        scope = _VARIABLE_STORES[op]
        if scope is not None:
            self.operations.store_dynamic(ctx, [] if op == Op.STTS else stack, number, scope, value)
            return
        statics, copy = self._statics(op, ctx)
        if slot(number) in statics.references:
            self.operations.store_static(statics, slot(number), copy, value)
        else:
            statics.values[copy][slot(number)] = value


_VARIABLE_LOADS: Final[dict[Op, Scope | None]] = {
    Op.LDGS: None,
    Op.LDLS: None,
    Op.LDTS: Scope.THREAD,
    Op.LDGAA: Scope.GLOBAL,
    Op.LDTAA: Scope.THREAD,
}
# The variables that an instruction loads or stores: dynamic ones of a scope, or (None) static ones.
_VARIABLE_STORES: Final[dict[Op, Scope | None]] = {
    Op.STGS: None,
    Op.STLS: None,
    Op.STTS: Scope.THREAD,
    Op.STGAA: Scope.GLOBAL,
    Op.STTAA: Scope.THREAD,
}
