"""A DIF object during translation to machine code, with the tools of its operations.

Registers and condition codes are variables of the function, which LLVM keeps in the CPU's
registers.  DIF only branches forward, so a label begins a basic block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from emu.native.builder import Function, Module
from emu.native.operations import Condition, Word
from emu.support.immutable import immutable
from trapline.framework.base.dif import INTEGER_REGISTERS, Op
from trapline.framework.base.faults import FAULT
from trapline.framework.base.program import BY_REFERENCE, Difo, DifVariable, Scope
from trapline.framework.dif.interpreter import BRANCHES, INSTRUCTION_SIZE, Instruction
from trapline.framework.native.firing_words import FLAGS_OFFSET, Firing
from trapline.framework.native.upcall_code import Upcall, asks


@immutable
class Surroundings:
    """The properties of a consumer that determine the generated code."""

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
        self._registers = [self.f.variable(0) for _ in range(INTEGER_REGISTERS)]
        self._conditions = {name: self.f.variable(0) for name in "nzc"}
        self._place = self.f.variable(0)
        self._fault = self.f.label()
        self.faults = False
        """Whether a fault may end it, as far as it is written."""
        self._code = [Instruction.decode(place, code) for place, code in enumerate(difo.code)]
        labels = sorted({i.label for i in self._code if i.op in BRANCHES})
        self._labels = {label: self.f.label() for label in labels}

    def write(self, operations: Mapping[Op, Operation]) -> Function:
        """Write the function, each operation by its row of the table."""
        for instruction in self._code:
            if instruction.place in self._labels:
                self.f.at(self._labels[instruction.place])
            operations[instruction.op](self, instruction)
        self.f.at(self._fault)
        self.put("fault_offset", self._place.get())
        self.f.ret(0)
        return self.f

    # The tools of operations

    def register(self, number: int) -> Word:
        """Return the value of a register."""
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
        """Go to a label if a condition is true."""
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
        """Call Python."""
        return asks(self.f, which, *operands)()

    def raise_flag(self, flag: int) -> None:
        """Set a flag."""
        self.f.store(self.core, self.f.or_(self.flags(), flag), FLAGS_OFFSET)

    def fault_if(self, condition: Condition, flag: int, place: int) -> None:
        """End the function with a fault if a condition is true."""
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


# Writes one operation.
Operation = Callable[[Translation, Instruction], None]
