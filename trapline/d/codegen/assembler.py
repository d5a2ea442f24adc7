"""DIF under construction: registers, instructions with labels, and the tables they index.

Source: FreeBSD libdtrace dt_as.c, dt_regset.c, dt_inttab.c, dt_strtab.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from emu.support.words import WORD_MASK
from trapline.d.check.typed import Variable
from trapline.d.errors import CompileError
from trapline.d.types.rules import diftype
from trapline.d.types.types import DYNAMIC
from trapline.framework.base.dif import Op, encode_branch, encode_index, encode_registers
from trapline.framework.base.program import Difo, DifType, DifVariable, TypeKind, VariableKind


class Label:
    """An instruction to branch to; `index` is known once it is bound."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = -1


# Registers that an instruction can name: its fields have eight bits, whatever iregs says.
_NAMES: Final = 256


class Assembler:
    """One DIF object under construction."""

    def __init__(self, registers: int, strsize: int) -> None:
        self._free = [True] * min(registers, _NAMES)
        self._free[0] = False
        self._strsize = strsize
        self._code: list[int | tuple[Op, Label]] = []
        self._integers: dict[int, int] = {}
        self._strings: dict[str, int] = {}
        self._string_bytes = bytearray(b"\0")
        self._variables: dict[Variable, int] = {}

    def object(self, register: int, returns: DifType) -> Difo:
        """Return the object that gives the value of a register."""
        self.emit(Op.RET, rd=register)
        code = tuple(
            instruction if isinstance(instruction, int) else encode_branch(instruction[0], instruction[1].index)
            for instruction in self._code
        )
        variables = sorted(self._variables.items(), key=lambda item: (item[0].scope, item[0].id))
        for variable, _flags in variables:
            self.string(variable.name)
        return Difo(
            code,
            tuple(self._integers),
            bytes(self._string_bytes),
            tuple(self._describe(variable, flags) for variable, flags in variables),
            returns,
        )

    def _describe(self, variable: Variable, flags: int) -> DifVariable:
        kind = VariableKind.SCALAR if variable.keys is None else VariableKind.ARRAY
        described = DifType(TypeKind.CTF, 0, 0, 0) if variable.type is DYNAMIC else diftype(variable.type)
        if described.kind is TypeKind.STRING:
            described = replace(described, size=self._strsize)
        return DifVariable(variable.name, variable.id, kind, variable.scope, flags, described)

    # -- registers ---------------------------------------------------------------------------------------------------

    def allocate(self) -> int:
        """Take a register.  Raises `CompileError` D_NOREG."""
        try:
            register = self._free.index(True)
        except ValueError:
            raise CompileError(
                "D_NOREG",
                f"the expression needs more than {len(self._free) - 1} registers at once: use a this-> variable",
            ) from None
        self._free[register] = False
        return register

    def release(self, register: int) -> None:
        """Release a register."""
        self._free[register] = True

    @contextmanager
    def scratch(self, value: int) -> Iterator[int]:
        """Hold a constant in a register for a while."""
        register = self.allocate()
        self.set(register, value)
        yield register
        self.release(register)

    # -- emitting ----------------------------------------------------------------------------------------------------

    def emit(self, op: Op, r1: int = 0, r2: int = 0, rd: int = 0) -> None:
        """Add an instruction on registers."""
        self._code.append(encode_registers(op, r1, r2, rd))

    def emit_index(self, op: Op, index: int, register: int) -> None:
        """Add an instruction with an index: of a table, a variable or a subroutine."""
        self._code.append(encode_index(op, index, register))

    def branch(self, op: Op, label: Label) -> None:
        """Add a branch."""
        self._code.append((op, label))

    def bind(self, label: Label) -> None:
        """Make a label mean the next instruction."""
        label.index = len(self._code)

    def set(self, register: int, value: int) -> None:
        """Add the instruction that loads an integer."""
        index = self._integers.setdefault(value & WORD_MASK, len(self._integers))
        self.emit_index(Op.SETX, index, register)

    def string(self, text: str) -> int:
        """Return the offset of a string in the table."""
        if not text:
            return 0
        if text not in self._strings:
            self._strings[text] = len(self._string_bytes)
            self._string_bytes += text.encode("utf-8", "surrogateescape") + b"\0"
        return self._strings[text]

    def uses(self, variable: Variable, flag: int) -> int:
        """Note that a variable is referenced or modified, and return its number."""
        self._variables[variable] = self._variables.get(variable, 0) | flag
        return variable.id

    @property
    def next(self) -> int:
        """Index of the next instruction."""
        return len(self._code)

    def put(self, index: int, instruction: int) -> None:
        """Replace an instruction."""
        self._code[index] = instruction
