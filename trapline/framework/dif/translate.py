"""A DIF object as one Python function, which runs when a probe fires.

`machine.DifMachine.run` defines the meaning of DIF; this translates it in advance.  Registers
become local variables, constants of the program become literals, and everything except arithmetic
becomes a call of the same operations.  DIF only branches forward, so a basic block is an `if` on
the number of the block that runs next, and code without a branch has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from emu.displaced.cpu_core import CoreWord
from emu.support.words import WORD_MASK
from trapline.framework.base import dif
from trapline.framework.base.arithmetic import divide, overflows, remainder
from trapline.framework.base.context import Context
from trapline.framework.base.dif import TUPLE_REGISTERS, USER_VARIABLE_BASE, Op, Var
from trapline.framework.base.dynvars import slot
from trapline.framework.base.faults import DIVZERO, FAULT, ILLOP, TUPOFLOW
from trapline.framework.base.program import Difo, Scope
from trapline.framework.base.world import signed
from trapline.framework.dif.interpreter import BRANCHES, INSTRUCTION_SIZE, LOADS, STORES, DifMachine, Loaded

Translated = Callable[[Context], int]

_FLAGS: Final = int(CoreWord.FLAGS)
_ARITHMETIC: Final = {
    Op.OR: "{a} | {b}",
    Op.XOR: "{a} ^ {b}",
    Op.AND: "{a} & {b}",
    Op.SLL: "{a} << ({b} & 63) & WORD_MASK",
    Op.SRL: "{a} >> ({b} & 63)",
    Op.SRA: "signed({a}) >> ({b} & 63) & WORD_MASK",
    Op.SUB: "{a} - {b} & WORD_MASK",
    Op.ADD: "{a} + {b} & WORD_MASK",
    Op.MUL: "{a} * {b} & WORD_MASK",
    Op.NOT: "{a} ^ WORD_MASK",
    Op.MOV: "{a}",
}
_DIVISION: Final = {
    Op.SDIV: "divide(signed({a}), signed({b})) & WORD_MASK",
    Op.UDIV: "{a} // {b}",
    Op.SREM: "remainder(signed({a}), signed({b})) & WORD_MASK",
    Op.UREM: "{a} % {b}",
}
_CONDITIONS: Final = {
    Op.BA: "True",
    Op.BE: "z",
    Op.BNE: "not z",
    Op.BG: "not (z or n)",
    Op.BGU: "not (c or z)",
    Op.BGE: "not n",
    Op.BGEU: "not c",
    Op.BL: "n",
    Op.BLU: "c",
    Op.BLE: "z or n",
    Op.BLEU: "c or z",
}
_DYNAMIC_LOADS: Final = {Op.LDTS: Scope.THREAD, Op.LDGAA: Scope.GLOBAL, Op.LDTAA: Scope.THREAD}
_DYNAMIC_STORES: Final = {Op.STTS: Scope.THREAD, Op.STGAA: Scope.GLOBAL, Op.STTAA: Scope.THREAD}
# The arguments that every probe passes.
_ARGUMENTS: Final = {Var(Var.ARG0 + index): index for index in range(5)}
_NEVER_FAULT: Final = frozenset({
    Var.TIMESTAMP, Var.WALLTIMESTAMP, Var.EPID, Var.ID, Var.PROBEPROV, Var.PROBEMOD, Var.PROBEFUNC, Var.PROBENAME,
    Var.PID, Var.TID, Var.PPID, Var.EXECNAME, Var.UID, Var.GID, Var.ERRNO, Var.CPU, Var.CURTHREAD,
})  # fmt: skip


def translate(machine: DifMachine, loaded: Loaded) -> Translated:
    """Return a function that does what `machine.run` does with a validated DIF object."""
    return _Translator(machine, loaded).function()


def constant(difo: Difo) -> int | None:
    """Return the constant that a DIF object returns, if it only loads a constant; else None."""
    if [dif.opcode(code) for code in difo.code] != [Op.SETX, Op.RET] or dif.rd(difo.code[0]) != dif.rd(difo.code[1]):
        return None
    return difo.integers[dif.index(difo.code[0])] & WORD_MASK


class _Translator:
    def __init__(self, machine: DifMachine, loaded: Loaded) -> None:
        self._machine = machine
        self._loaded = loaded
        self._code = loaded.difo.code
        self._starts = sorted({0, *self._targets()})
        self._block = {start: number for number, start in enumerate(self._starts)}
        operations = machine.operations
        self._names: dict[str, Any] = {
            "WORD_MASK": WORD_MASK,
            "FAULT": FAULT,
            "signed": signed,
            "divide": divide,
            "overflows": overflows,
            "remainder": remainder,
            "core": operations.core.words,
            "operations": operations,
            "memory": operations.memory,
            "globals_": operations.variables.globals.values[0],
            "locals_": operations.variables.locals.values,
        }

    def _targets(self) -> Iterator[int]:
        """Yield the starts of blocks: the targets of branches, and the instructions after branches."""
        for place, code in enumerate(self._code):
            if Op(dif.opcode(code)) in BRANCHES:
                yield dif.label(code)
                yield place + 1

    def function(self) -> Translated:
        body = list(self._body())
        used = [f"r{number}" for number in range(8) if number == 0 or any(f"r{number}" in line for line in body)]
        lines = ["def translated(ctx):", f"    {' = '.join(used)} = 0"]
        if any("stack" in line for line in body):
            lines.append("    stack = []")
        if len(self._starts) > 1:
            lines += ["    n = z = c = False", "    block = 0"]
        exec("\n".join(lines + body), self._names)  # noqa: S102  made here, from validated DIF
        function: Translated = self._names["translated"]
        return function

    def _body(self) -> Iterator[str]:
        several = len(self._starts) > 1
        for number, start in enumerate(self._starts):
            end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._code)
            if several:
                yield f"    if block <= {number}:"
            indent = "        " if several else "    "
            for place in range(start, end):
                for line in self._instruction(place):
                    yield indent + line

    def _instruction(self, place: int) -> Iterator[str]:
        code = self._code[place]
        op = Op(dif.opcode(code))
        a, b, d = f"r{dif.r1(code)}", f"r{dif.r2(code)}", f"r{dif.rd(code)}"
        if op in _ARITHMETIC:
            yield f"{d} = {_ARITHMETIC[op].format(a=a, b=b)}"
        elif op in BRANCHES:
            target = f"block = {self._block[dif.label(code)]}"
            yield target if op is Op.BA else f"if {_CONDITIONS[op]}: {target}"
        elif op is Op.RET:
            yield f"return {d}"
        elif op is Op.CMP:
            yield f"difference = {a} - {b} & WORD_MASK"
            yield f"n = difference >> 63 == 1; z = difference == 0; c = {a} < {b}"
        elif op is Op.TST:
            yield f"n = c = False; z = {a} == 0"
        elif op is Op.NOP:
            yield "pass"
        elif op is Op.SETX:
            yield f"{d} = {self._loaded.difo.integers[dif.index(code)] & WORD_MASK}"
        elif op is Op.SETS:
            yield f"{d} = {self._loaded.strings + dif.index(code)}"
        elif op is Op.FLUSHTS:
            yield "stack.clear()"
        elif op is Op.POPTS:
            yield "del stack[-1:]"
        elif op is Op.LDGS and dif.index(code) in _ARGUMENTS:
            yield f"{d} = ctx.args[{_ARGUMENTS[Var(dif.index(code))]}]"
        elif op in {Op.LDGS, Op.STGS, Op.LDLS, Op.STLS}:
            yield from self._scalar(op, dif.index(code), d, place)
        else:
            yield from self._operation(op, code, a, b, d)
            yield self._check(place)

    def _check(self, place: int) -> str:
        return f"if core[{_FLAGS}] & FAULT: ctx.fault_offset = {place * INSTRUCTION_SIZE}; return 0"

    def _scalar(self, op: Op, number: int, register: str, place: int) -> Iterator[str]:
        """Load or store a built-in variable, a global or a clause-local."""
        if op is Op.LDGS and number < USER_VARIABLE_BASE:
            builtins = self._machine.builtins
            self._names[f"variable{number}"] = builtins.scalars.get(number, builtins.unknown)
            yield f"{register} = variable{number}(ctx) & WORD_MASK"
            if number not in _NEVER_FAULT:
                yield self._check(place)
            return
        if op is Op.LDLS and number < USER_VARIABLE_BASE:
            yield f"{register} = 0"
            return
        local = op in {Op.LDLS, Op.STLS}
        variables = self._machine.operations.variables
        statics = variables.locals if local else variables.globals
        copy, words = ("ctx.cpu", "locals_[ctx.cpu]") if local else ("0", "globals_")
        index = slot(number)
        reference = statics.references.get(index)
        load = op in {Op.LDGS, Op.LDLS}
        if reference is None:
            yield f"{register} = {words}[{index}]" if load else f"{words}[{index}] = {register}"
            return
        which = "locals" if local else "globals"
        if load:
            self._names[f"{which}{index}"] = reference
            yield f"{register} = {which}{index}.address({copy})"
        else:
            self._names[f"{which}s"] = statics
            yield f"operations.store_static({which}s, {index}, {copy}, {register})"
            yield self._check(place)

    def _operation(self, op: Op, code: int, a: str, b: str, d: str) -> Iterator[str]:
        """Write an operation that may fault."""
        number = dif.index(code)
        if op in _DIVISION:
            overflow = f" or overflows({a}, {b})" if op is Op.SREM else ""
            yield f"if {b} == 0{overflow}: core[{_FLAGS}] |= {DIVZERO}; {d} = 0"
            yield f"else: {d} = {_DIVISION[op].format(a=a, b=b)}"
        elif op is Op.SCMP:
            yield f"difference = operations.compare({a}, {b}); n = difference < 0; z = difference == 0; c = False"
        elif op in LOADS:
            yield from self._load(op, a, d)
        elif op in STORES:
            yield f"operations.store(ctx, {d}, {STORES[op]}, {a})"
        elif op is Op.COPYS:
            yield f"operations.copy(ctx, {a}, {b}, {d})"
        elif op is Op.ALLOCS:
            yield f"{d} = operations.allocate(ctx, {a})"
        elif op is Op.LDGA:
            self._names["element"] = self._machine.builtins.element
            yield f"{d} = element(ctx, {dif.r1(code)}, {b}) & WORD_MASK"
        elif op is Op.LDTA:
            yield f"core[{_FLAGS}] |= {ILLOP}; {d} = 0"
        elif op is Op.CALL:
            name = f"subroutine{number}"
            self._names[name] = self._machine.subroutines.table[number]
            yield f"value = {name}(ctx, stack)"
            yield f"if value is not None: {d} = value & WORD_MASK"
        elif op in _DYNAMIC_LOADS:
            scope, tuple_ = _DYNAMIC_LOADS[op], "[]" if op is Op.LDTS else "stack"
            self._names[f"scope{scope}"] = scope
            yield f"{d} = operations.load_dynamic(ctx, {tuple_}, {number}, scope{scope}) & WORD_MASK"
        elif op in _DYNAMIC_STORES:
            scope, tuple_ = _DYNAMIC_STORES[op], "[]" if op is Op.STTS else "stack"
            self._names[f"scope{scope}"] = scope
            yield f"operations.store_dynamic(ctx, {tuple_}, {number}, scope{scope}, {d})"
        elif op in {Op.PUSHTR, Op.PUSHTV}:
            pushed = (
                f"stack.append(({d}, 0))"
                if op is Op.PUSHTV
                else f"operations.push_reference(stack, {dif.r1(code)}, {b}, {d})"
            )
            yield f"if len(stack) == {TUPLE_REGISTERS}: core[{_FLAGS}] |= {TUPOFLOW}"
            yield f"else: {pushed}"
        else:
            raise AssertionError(f"{op.name} is validated, but has no translation")

    def _load(self, op: Op, a: str, d: str) -> Iterator[str]:
        kind, size, is_signed = LOADS[op]
        extended = f"(({{}} ^ {1 << 8 * size - 1}) - {1 << 8 * size - 1}) & WORD_MASK" if is_signed else "{}"
        if kind == "RLD":
            yield f"value = operations.load_checked({a}, {size})"
            yield f"if value is not None: {d} = {extended.format('value')}"
        else:
            load = f"memory.{'load_user' if kind == 'ULD' else 'load'}({a}, {size})"
            yield f"{d} = {extended.format(load)}"
