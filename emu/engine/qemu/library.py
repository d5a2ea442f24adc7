"""Functions and numbers of Unicorn's library, for machine code that calls it."""

from __future__ import annotations

from typing import Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.native.builder import Callee, Function, Module
from emu.native.operations import Value
from emu.support.plain import function_address

# The kind of a read; those of a write and of a fetch follow (enum uc_mem_type of unicorn.h).
READ: Final[int] = unicorn.UC_MEM_READ


def address(name: str) -> int:
    """Return the address of a function that the library exports.  Raises AttributeError."""
    return function_address(getattr(uclib, name))


class Library:
    """The functions of the library that one module of machine code calls."""

    def __init__(self, module: Module, target: str) -> None:
        self._module = module
        self._target = target
        self._names: set[str] = set()

    def unicorn(self, name: str, parameters: int) -> Callee:
        """Return a function of Unicorn's interface."""
        self._names.add(name)
        return self._module.external(name, parameters)

    def qemu(self, name: str, parameters: int) -> Callee:
        """Return one of QEMU's functions for this CPU."""
        return self.unicorn(f"{name}_{self._target}", parameters)

    def call(self, f: Function, name: str, cpu: Value) -> None:
        """Call one of QEMU's functions with a CPU; "": none."""
        if name:
            f.call(self.qemu(name, 1), cpu)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(sorted(self._names))
