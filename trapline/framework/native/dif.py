"""A DIF object as one function of machine code.

`trapline.framework.machine` says what DIF means; the tables here name the same operations, one
small function for each.  Registers and condition codes are variables of the function, which LLVM
keeps in the CPU's registers.  DIF only branches forward, so a label begins a basic block.

What has no native form is an upcall.  After each operation that can fault the flags are looked at:
a fault ends the function with the result 0, and the firing's words say where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from emu.cpu_core import CoreWord
from emu.native.builder import Condition, Function, Module, Word
from trapline.framework import dif
from trapline.framework.blocks import DynamicWord
from trapline.framework.dif import TUPLE_REGISTERS, USER_VARIABLE_BASE, Op
from trapline.framework.dynvars import STRING_SIZE, slot, variable_size
from trapline.framework.faults import DIVZERO, DROP, FAULT, ILLOP, TUPOFLOW
from trapline.framework.machine import BRANCHES, INSTRUCTION_SIZE, LOADS, STORES
from trapline.framework.native import builtins
from trapline.framework.native.asking import Upcall, asks
from trapline.framework.native.firing import ENTRY, Firing
from trapline.framework.native.strings import WITHOUT_RESULT, subroutine_name
from trapline.framework.operations import SIZE_MAX, THREAD_KEY_BITS, THREAD_KEY_OFFSET
from trapline.framework.program import BY_REFERENCE, Difo, DifVariable, Scope, TypeKind
from trapline.framework.variables import HEADER, NULL

_SIGN_BIT: Final = 63
_COUNT_MASK: Final = 63
_LOWEST: Final = 1 << _SIGN_BIT
_MINUS_ONE: Final = (1 << 64) - 1
_WORD: Final = 8
# Where the flags are in the words of the CPU's core.
FLAGS_OFFSET: Final = _WORD * CoreWord.FLAGS


@dataclass(frozen=True, slots=True)
class Instruction:
    """A DIF instruction taken apart."""

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
        """Take an instruction apart."""
        fields = (dif.r1(code), dif.r2(code), dif.rd(code), dif.index(code), dif.label(code))
        return cls(place, Op(dif.opcode(code)), *fields)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a consumer has, which decides what code is made."""

    support: AbstractSet[str]
    """The functions of `trapline.framework.native.support` that there are."""
    declared: Mapping[tuple[Scope, int], DifVariable]
    """Its variables."""


class Translation:
    """A DIF object on its way to machine code.

    `f` is the function under construction, which takes the addresses of the enabling's words and of
    the five arguments; `strings` is the symbol of the string table's address.
    """

    def __init__(
        self, module: Module, name: str, difo: Difo, strings: str, surroundings: Surroundings, *, local: bool = False
    ) -> None:
        self.module = module
        self.difo = difo
        self.support = surroundings.support
        self.declared = surroundings.declared
        self.strings = strings
        self.f: Function = module.function(name, 2, local=local)
        self.core = module.symbol("core")
        self.firing = module.symbol("firing")
        self.tuple = module.symbol("tuple")
        self.ecb, self.arguments = self.f.parameters
        self._registers = [self.f.variable(0) for _ in range(dif.INTEGER_REGISTERS)]
        self._conditions = {name: self.f.variable(0) for name in "nzc"}
        self._place = self.f.variable(0)
        self._fault = self.f.label()
        self.faults = False
        """Whether a fault may end it, as far as it is written."""
        self._code = [Instruction.decode(place, code) for place, code in enumerate(difo.code)]
        labels = sorted({i.label for i in self._code if i.op in BRANCHES})
        self._labels = {label: self.f.label() for label in labels}

    def function(self) -> Function:
        """Write the function."""
        for instruction in self._code:
            if instruction.place in self._labels:
                self.f.at(self._labels[instruction.place])
            OPERATIONS[instruction.op](self, instruction)
        self.f.at(self._fault)
        self.put("fault_offset", self._place.get())
        self.f.ret(0)
        return self.f

    # What operations are written with

    def register(self, number: int) -> Word:
        """Return what a register has."""
        return self._registers[number].get()

    def set(self, number: int, value: Word) -> None:
        """Set a register."""
        self._registers[number].set(value)

    def condition(self, name: str) -> Condition:
        """Return a condition code, n, z or c."""
        return self.f.ne(self._conditions[name].get(), 0)

    def conditions(self, **codes: Word) -> None:
        """Set the condition codes, to 0 or 1."""
        for name, value in codes.items():
            self._conditions[name].set(value)

    def branch(self, condition: Condition, label: int) -> None:
        """Go to a label if a condition holds."""
        self.f.branch_to(condition, self._labels[label])

    def jump(self, label: int) -> None:
        """Go to a label."""
        self.f.go_to(self._labels[label])
        self.f.at(self.f.label())

    def get(self, name: str) -> Word:
        """Return a word of the firing."""
        return self.f.load(self.firing, Firing.offset(name))

    def put(self, name: str, value: Word) -> None:
        """Set a word of the firing."""
        self.f.store(self.firing, value, Firing.offset(name))

    def is_reference(self, scope: Scope, number: int) -> bool:
        """Return whether a variable is kept by reference."""
        return bool(self.declared[scope, number].type.flags & BY_REFERENCE)

    def flags(self) -> Word:
        """Return the flags of the CPU's core."""
        return self.f.load(self.core, FLAGS_OFFSET)

    def ask(self, name: str, *operands: Word) -> Word:
        """Call a function that is shared by all clauses."""
        return self.f.call(self.module.external(name, len(operands)), *operands)

    def upcall(self, which: Upcall, *operands: Word) -> Word:
        """Ask Python."""
        return asks(self.f, which, *operands)()

    def raise_flag(self, flag: int) -> None:
        """Set a flag."""
        self.f.store(self.core, self.f.or_(self.flags(), flag), FLAGS_OFFSET)

    def fault_if(self, condition: Condition, flag: int, place: int) -> None:
        """End the function with a fault if a condition holds."""
        self.faults = True
        with self.f.when(condition, likely=False):
            self.raise_flag(flag)
            self._place.set(place * INSTRUCTION_SIZE)
            self.f.go_to(self._fault)

    def check(self, place: int) -> None:
        """End the function if there was a fault."""
        self.faults = True
        self._place.set(place * INSTRUCTION_SIZE)
        self.f.branch_to(self.f.ne(self.f.and_(self.flags(), FAULT), 0), self._fault)


def _signed_quotient(f: Function, a: Word, b: Word) -> Word:
    """Divide; by -1 negate, since a CPU traps at the lowest number."""
    negates = f.eq(b, _MINUS_ONE)
    return f.select(negates, f.neg(a), f.sdiv(a, f.select(negates, 1, b)))


Operation = Callable[[Translation, Instruction], None]

# Arithmetic, beside `machine.ARITHMETIC`

ARITHMETIC: Final[Mapping[Op, Callable[[Function, Word, Word], Word]]] = {
    Op.OR: lambda f, a, b: f.or_(a, b),
    Op.XOR: lambda f, a, b: f.xor(a, b),
    Op.AND: lambda f, a, b: f.and_(a, b),
    Op.SLL: lambda f, a, b: f.shl(a, f.and_(b, _COUNT_MASK)),
    Op.SRL: lambda f, a, b: f.lshr(a, f.and_(b, _COUNT_MASK)),
    Op.SRA: lambda f, a, b: f.ashr(a, f.and_(b, _COUNT_MASK)),
    Op.SUB: lambda f, a, b: f.sub(a, b),
    Op.ADD: lambda f, a, b: f.add(a, b),
    Op.MUL: lambda f, a, b: f.mul(a, b),
    Op.NOT: lambda f, a, _b: f.not_(a),
    Op.MOV: lambda _f, a, _b: a,
}
# Of 0 none is done; of the lowest number by -1 only the quotient, by `_signed_quotient`.
DIVISIONS: Final[Mapping[Op, Callable[[Function, Word, Word], Word]]] = {
    Op.SDIV: _signed_quotient,
    Op.UDIV: lambda f, a, b: f.udiv(a, b),
    Op.SREM: lambda f, a, b: f.srem(a, b),
    Op.UREM: lambda f, a, b: f.urem(a, b),
}
CONDITIONS: Final[Mapping[Op, Callable[[Translation], Condition]]] = {
    Op.BE: lambda t: t.condition("z"),
    Op.BNE: lambda t: t.f.fails(t.condition("z")),
    Op.BG: lambda t: t.f.fails(t.f.either(t.condition("z"), t.condition("n"))),
    Op.BGU: lambda t: t.f.fails(t.f.either(t.condition("c"), t.condition("z"))),
    Op.BGE: lambda t: t.f.fails(t.condition("n")),
    Op.BGEU: lambda t: t.f.fails(t.condition("c")),
    Op.BL: lambda t: t.condition("n"),
    Op.BLU: lambda t: t.condition("c"),
    Op.BLE: lambda t: t.f.either(t.condition("z"), t.condition("n")),
    Op.BLEU: lambda t: t.f.either(t.condition("c"), t.condition("z")),
}


def _arithmetic(t: Translation, i: Instruction) -> None:
    t.set(i.rd, ARITHMETIC[i.op](t.f, t.register(i.r1), t.register(i.r2)))


def _division(t: Translation, i: Instruction) -> None:
    a, b = t.register(i.r1), t.register(i.r2)
    impossible = t.f.eq(b, 0)
    if i.op is Op.SREM:
        overflows = t.f.both(t.f.eq(b, _MINUS_ONE), t.f.eq(a, _LOWEST))
        impossible = t.f.either(impossible, overflows)
    t.fault_if(impossible, DIVZERO, i.place)
    t.set(i.rd, DIVISIONS[i.op](t.f, a, b))


def _branch(t: Translation, i: Instruction) -> None:
    t.branch(CONDITIONS[i.op](t), i.label)


def _jump(t: Translation, i: Instruction) -> None:
    t.jump(i.label)


def _return(t: Translation, i: Instruction) -> None:
    t.f.ret(t.register(i.rd))
    t.f.at(t.f.label())


def _nothing(_t: Translation, _i: Instruction) -> None:
    pass


# Comparisons


def _compare(t: Translation, i: Instruction) -> None:
    a, b = t.register(i.r1), t.register(i.r2)
    negative = t.f.lshr(t.f.sub(a, b), _SIGN_BIT)
    t.conditions(n=negative, z=t.f.flag(t.f.eq(a, b)), c=t.f.flag(t.f.ult(a, b)))


def _test(t: Translation, i: Instruction) -> None:
    t.conditions(n=0, z=t.f.flag(t.f.eq(t.register(i.r1), 0)), c=0)


def _compare_strings(t: Translation, i: Instruction) -> None:
    difference = t.ask("compare", t.register(i.r1), t.register(i.r2))
    t.conditions(n=t.f.lshr(difference, _SIGN_BIT), z=t.f.flag(t.f.eq(difference, 0)), c=0)
    t.check(i.place)


# Constants


def _integer(t: Translation, i: Instruction) -> None:
    t.set(i.rd, t.difo.integers[i.index])


def _string(t: Translation, i: Instruction) -> None:
    t.set(i.rd, t.f.add(t.module.symbol(t.strings), i.index))


# Memory

# Every consumer may read all of kernel memory on FreeBSD: the check of access finds nothing.
_LOADERS: Final = {"LD": "load", "ULD": "load_user", "RLD": "load"}


def _load(t: Translation, i: Instruction) -> None:
    kind, size, signed = LOADS[i.op]
    value = t.ask(f"{_LOADERS[kind]}{size}", t.register(i.r1))
    t.check(i.place)
    t.set(i.rd, t.f.low(value, size, signed=signed))


def _store(t: Translation, i: Instruction) -> None:
    t.ask(f"write{STORES[i.op]}", t.register(i.rd), t.register(i.r1))
    t.check(i.place)


def _copy(t: Translation, i: Instruction) -> None:
    t.ask("copy", t.register(i.r1), t.register(i.r2), t.register(i.rd))
    t.check(i.place)


def _allocate(t: Translation, i: Instruction) -> None:
    t.set(i.rd, t.ask("allocate", t.register(i.r1)))
    t.check(i.place)


# Variables


def _load_global(t: Translation, i: Instruction) -> None:
    if i.index >= USER_VARIABLE_BASE:
        t.set(i.rd, _static(t, Scope.GLOBAL, i.index))
        return
    value = builtins.read(t, i.index)
    if value is None:
        value = t.upcall(Upcall.SCALAR, i.index)
        t.check(i.place)
    t.set(i.rd, value)


def _load_local(t: Translation, i: Instruction) -> None:
    t.set(i.rd, _static(t, Scope.LOCAL, i.index) if i.index >= USER_VARIABLE_BASE else 0)


_STATICS: Final = {Scope.GLOBAL: "globals", Scope.LOCAL: "locals"}


def _static(t: Translation, scope: Scope, number: int) -> Word:
    """Load a variable of fixed place: a word, or the address of what is kept by reference."""
    if not t.is_reference(scope, number):
        return t.f.load(t.module.symbol(_STATICS[scope]), _WORD * slot(number))
    name = reference_symbol(scope, number)
    is_null = t.f.eq(t.f.load(t.module.symbol(name), size=1), NULL)
    return t.f.select(is_null, 0, t.f.add(t.module.symbol(f"{name}.dif"), HEADER))


def reference_symbol(scope: Scope, number: int) -> str:
    """Return the symbol of the storage of a variable by reference; with .dif its address of DIF."""
    return f"{_STATICS[scope]}.{slot(number)}"


def _store_static(t: Translation, i: Instruction) -> None:
    scope = Scope.GLOBAL if i.op is Op.STGS else Scope.LOCAL
    if not t.is_reference(scope, i.index):
        t.f.store(t.module.symbol(_STATICS[scope]), t.register(i.rd), _WORD * slot(i.index))
        return
    value, place = t.register(i.rd), t.module.symbol(reference_symbol(scope, i.index))
    with t.f.choice(t.f.eq(value, 0), likely=False) as (null, present):
        with null:
            t.f.store(place, NULL, size=1)
        with present:
            t.f.store(place, 0, size=1)
            kept = _keep(t, t.declared[scope, i.index], t.f.add(place, HEADER), value)
            with t.f.when(t.f.eq(kept, 0), likely=False):
                t.upcall(Upcall.STORE_STATIC, int(scope), i.index, value)
    t.check(i.place)


def _keep(t: Translation, variable: DifVariable, place: Word, value: Word) -> Word:
    """Copy a variable's new data: a string up to its NUL, others whole; 0: Python has to do it."""
    function = "keep" if variable.type.kind == TypeKind.STRING else "bring"
    return t.ask(function, place, value, variable_size(variable))


def _element(t: Translation, i: Instruction) -> None:
    t.set(i.rd, t.upcall(Upcall.ELEMENT, i.r1, t.register(i.r2)))
    t.check(i.place)


def _no_thread_array(t: Translation, i: Instruction) -> None:
    t.fault_if(t.f.eq(0, 0), ILLOP, i.place)


_DYNAMIC: Final = {
    Op.LDTS: (Scope.THREAD, 0),
    Op.STTS: (Scope.THREAD, 0),
    Op.LDGAA: (Scope.GLOBAL, 1),
    Op.STGAA: (Scope.GLOBAL, 1),
    Op.LDTAA: (Scope.THREAD, 1),
    Op.STTAA: (Scope.THREAD, 1),
}


def _key(t: Translation, i: Instruction) -> tuple[Word, Word]:
    """Make the key of a dynamic variable; return where it is, and its size.

    The size is 0 if machine code cannot make it.
    """
    f = t.f
    scope, has_tuple = _DYNAMIC[i.op]
    depth = t.get("depth") if has_tuple else 0
    thread: Word = 0
    if scope is Scope.THREAD:
        thread = f.and_(f.add(t.ask("tid"), THREAD_KEY_OFFSET), THREAD_KEY_BITS)
    dynamic = t.module.symbol("dynamic")
    threads = int(scope is Scope.THREAD)
    regions = t.module.symbol("regions")
    size = t.ask("key", dynamic, regions, t.tuple, depth, slot(i.index), threads, thread)
    return f.load(dynamic, _WORD * DynamicWord.KEY), size


def _by_python(t: Translation, i: Instruction) -> bool:
    """Return whether Python does all of an operation on a dynamic variable."""
    scope, _has_tuple = _DYNAMIC[i.op]
    return scope is Scope.THREAD and "tid" not in t.support


def _load_dynamic(t: Translation, i: Instruction) -> None:
    scope, has_tuple = _DYNAMIC[i.op]

    def slow() -> Word:
        return t.upcall(Upcall.LOAD_DYNAMIC, int(scope), i.index, has_tuple)

    if _by_python(t, i):
        t.set(i.rd, slow())
        t.check(i.place)
        return
    f = t.f
    key, size = _key(t, i)
    result = f.variable(0)
    with f.choice(f.eq(size, 0), likely=False) as (unknown, known):
        with unknown:
            result.set(slow())
        with known:
            offset = t.ask("find", t.module.symbol("dynamic"), key, size)
            with f.when(f.ne(offset, 0)):
                result.set(_dynamic_value(t, scope, i.index, offset))
    t.check(i.place)
    t.set(i.rd, result.get())


def _dynamic_value(t: Translation, scope: Scope, number: int, offset: Word) -> Word:
    """Return what is at an offset: a word, or its address if it is kept by reference."""
    dynamic = t.module.symbol("dynamic")
    if t.is_reference(scope, number):
        return t.f.add(t.f.load(dynamic, _WORD * DynamicWord.BASE), offset)
    return t.f.load(t.f.add(t.f.load(dynamic, _WORD * DynamicWord.DATA), offset))


def _store_dynamic(t: Translation, i: Instruction) -> None:
    scope, has_tuple = _DYNAMIC[i.op]
    value = t.register(i.rd)

    def slow() -> None:
        t.upcall(Upcall.STORE_DYNAMIC, int(scope), i.index, has_tuple, value)

    if _by_python(t, i):
        slow()
        t.check(i.place)
        return
    f = t.f
    dynamic = t.module.symbol("dynamic")
    key, size = _key(t, i)
    unknown = f.eq(size, 0)
    variable = t.declared[scope, i.index]
    if t.is_reference(scope, i.index):
        # What cannot be read has to be Python's from the start: the variable is made first.
        finder = "text" if variable.type.kind == TypeKind.STRING else "reach"
        found = t.ask(finder, value, variable_size(variable))
        hidden = f.eq(t.get("text") if finder == "text" else found, 0)
        unknown = f.either(unknown, f.both(hidden, f.ne(value, 0)))
    with f.choice(unknown, likely=False) as (by_python, natively):
        with by_python:
            slow()
        with natively, f.choice(f.eq(value, 0)) as (gone, there):
            with gone:
                t.ask("remove", dynamic, key, size, 0)
            with there:
                offset = t.ask("store", dynamic, key, size, max(variable_size(variable), _WORD), 0)
                with f.choice(f.ne(offset, 0), likely=True) as (made, dropped):
                    with made:
                        place = f.add(f.load(dynamic, _WORD * DynamicWord.DATA), offset)
                        if t.is_reference(scope, i.index):
                            _keep(t, variable, place, value)
                        else:
                            f.store(place, value)
                    with dropped:
                        t.raise_flag(DROP)
    t.check(i.place)


# The tuple stack, and subroutines


def _push(t: Translation, i: Instruction) -> None:
    depth = t.get("depth")
    t.fault_if(t.f.eq(depth, TUPLE_REGISTERS), TUPOFLOW, i.place)
    value, size = t.register(i.rd), t.register(i.r2)
    if i.op is Op.PUSHTV:
        _push_entry(t, depth, value, 0)
        return
    f = t.f
    unknown = f.ugt(size, SIZE_MAX)
    if i.r1 == TypeKind.STRING:
        length = t.ask("text", value, f.select(f.eq(size, 0), STRING_SIZE, size))
        unknown = f.eq(t.get("text"), 0)
        size = f.add(length, 1)
    with f.choice(unknown, likely=False) as (by_python, natively):
        with by_python:
            t.upcall(Upcall.PUSH_REFERENCE, i.r1, t.register(i.r2), value)
        with natively:
            _push_entry(t, depth, value, size)
    t.check(i.place)


def _push_entry(t: Translation, depth: Word, value: Word, size: Word) -> None:
    entry = t.f.add(t.tuple, t.f.mul(depth, ENTRY))
    t.f.store(entry, value)
    t.f.store(entry, size, _WORD)
    t.put("depth", t.f.add(depth, 1))


def _pop(t: Translation, _i: Instruction) -> None:
    depth = t.get("depth")
    t.put("depth", t.f.sub(depth, t.f.flag(t.f.ne(depth, 0))))


def _flush(t: Translation, _i: Instruction) -> None:
    t.put("depth", 0)


def _call(t: Translation, i: Instruction) -> None:
    name = subroutine_name(i.index)
    if name not in t.support:
        t.set(i.rd, t.upcall(Upcall.SUBROUTINE, i.index, t.register(i.rd)))
    elif i.index in WITHOUT_RESULT:
        t.ask(name)
    else:
        t.set(i.rd, t.ask(name))
    t.check(i.place)


OPERATIONS: Final[Mapping[Op, Operation]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(DIVISIONS, _division),
    **dict.fromkeys(CONDITIONS, _branch),
    **dict.fromkeys(LOADS, _load),
    **dict.fromkeys(STORES, _store),
    Op.BA: _jump,
    Op.RET: _return,
    Op.NOP: _nothing,
    Op.CMP: _compare,
    Op.TST: _test,
    Op.SCMP: _compare_strings,
    Op.SETX: _integer,
    Op.SETS: _string,
    Op.COPYS: _copy,
    Op.ALLOCS: _allocate,
    Op.LDGS: _load_global,
    Op.LDLS: _load_local,
    Op.STGS: _store_static,
    Op.STLS: _store_static,
    Op.LDGA: _element,
    Op.LDTA: _no_thread_array,
    Op.LDTS: _load_dynamic,
    Op.LDGAA: _load_dynamic,
    Op.LDTAA: _load_dynamic,
    Op.STTS: _store_dynamic,
    Op.STGAA: _store_dynamic,
    Op.STTAA: _store_dynamic,
    Op.PUSHTR: _push,
    Op.PUSHTV: _push,
    Op.POPTS: _pop,
    Op.FLUSHTS: _flush,
    Op.CALL: _call,
}


def translate(
    module: Module, name: str, difo: Difo, strings: str, surroundings: Surroundings, *, local: bool = False
) -> tuple[Function, bool]:
    """Write a DIF object as a function of the module.

    It takes the addresses of the enabling's words and of the arguments.  The flags of the firing
    are clear when it begins; after a fault it returns 0.  Return the function, and whether it may
    fault.
    """
    translation = Translation(module, name, difo, strings, surroundings, local=local)
    return translation.function(), translation.faults
