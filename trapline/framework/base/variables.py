"""The variables of one consumer: globals, clause-locals, dynamic ones (dtrace_vstate_t).

A scalar by value is a word.  One by reference has a region of its own, an 8-byte header (first byte
0xff: NULL) before the data; a clause-local has a copy per CPU.

Source: FreeBSD dtrace.c dtrace_difo_init(), dtrace_canstore_statvar().
"""

from __future__ import annotations

from typing import Final

from emu.support.immutable import immutable
from emu.support.plain import address_of, words
from trapline.framework.base.dif import USER_VARIABLE_BASE, USER_VARIABLE_MAX
from trapline.framework.base.dynvars import CHUNK_SIZE, DynamicVariables, chunk_size_for, slot, variable_size
from trapline.framework.base.memory import Memory, Region
from trapline.framework.base.program import BY_REFERENCE, Difo, DifVariable, Scope, VariableKind

HEADER: Final = 8
NULL: Final = 0xFF
# One word for each possible variable: pages without variables take no memory.
_CAPACITY: Final = USER_VARIABLE_MAX + 1 - USER_VARIABLE_BASE


@immutable
class Reference:
    """Storage of a scalar by reference: `stride` bytes per copy, of which `HEADER` are not data."""

    region: Region
    stride: int
    variable: DifVariable

    def address(self, copy: int) -> int:
        """Return the address of the data, 0 if the value is NULL."""
        start = copy * self.stride
        return 0 if self.region.data[start] == NULL else self.region.base + start + HEADER

    def set_null(self, copy: int) -> None:
        """Make the value NULL."""
        self.region.data[copy * self.stride] = NULL

    def set_present(self, copy: int) -> int:
        """Make the value not NULL, and return the address of the data, to be filled in."""
        self.region.data[copy * self.stride] = 0
        return self.address(copy)


class Statics:
    """Scalars of fixed size: the globals, or the clause-locals with a copy per CPU."""

    def __init__(self, memory: Memory, copies: int) -> None:
        self.values = [words(_CAPACITY) for _ in range(copies)]
        """Per copy, the words by variable index."""
        self.addresses = words(copies)
        """Per copy, where its words are, for machine code."""
        for copy, values in enumerate(self.values):
            self.addresses[copy] = address_of(values)
        self.references: dict[int, Reference] = {}
        self._memory = memory

    def declare(self, variable: DifVariable) -> None:
        """Make room for a variable."""
        index = slot(variable.id)
        if variable.type.flags & BY_REFERENCE and index not in self.references:
            stride = variable_size(variable) + HEADER
            end = stride * len(self.values)
            # The headers, and the copies of other CPUs, are part of what dtrace_canstore_statvar() allows.
            region = self._memory.allocate(bytearray(end), lambda offset, size: offset + size <= end)
            self.references[index] = Reference(region, stride, variable)

    def load(self, index: int, copy: int) -> int:
        """Return a variable's value, or the address of its data."""
        reference = self.references.get(index)
        return self.values[copy][index] if reference is None else reference.address(copy)

    def release(self) -> None:
        """Release the storage."""
        for reference in self.references.values():
            self._memory.release(reference.region)


class Variables:
    """All variables, declared as the DIF objects that name them are enabled."""

    def __init__(self, memory: Memory, cpus: int) -> None:
        self.globals = Statics(memory, 1)
        self.locals = Statics(memory, cpus)
        self.declared: dict[tuple[Scope, int], DifVariable] = {}
        """By scope and id."""
        self._chunk_size = CHUNK_SIZE
        self._memory = memory
        self._cpus = cpus
        self.dynamic = DynamicVariables(memory, 0, CHUNK_SIZE, cpus)
        """Room for nothing but a single variable, until `start`."""

    def declare(self, difo: Difo) -> None:
        """Declare the variables of a DIF object that was validated against earlier ones."""
        for variable in difo.variables:
            if variable.id < USER_VARIABLE_BASE:
                continue
            self.declared.setdefault((variable.scope, variable.id), variable)
            if variable.scope == Scope.LOCAL:
                self.locals.declare(variable)
            elif variable.scope == Scope.GLOBAL and variable.kind == VariableKind.SCALAR:
                self.globals.declare(variable)
        self._chunk_size = max(self._chunk_size, chunk_size_for(difo))

    def start(self, size: int) -> None:
        """Make room for dynamic variables: from here on the chunk size is fixed."""
        self.dynamic.release()
        self.dynamic = DynamicVariables(self._memory, size, self._chunk_size, self._cpus)

    def release(self) -> None:
        """Release all storage."""
        self.globals.release()
        self.locals.release()
        self.dynamic.release()
