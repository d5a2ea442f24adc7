"""The functions of Unicorn's library that machine code calls."""

from __future__ import annotations

from emu.native.builder import Callee, Function, Module
from emu.native.values import Value


class Library:
    """The functions of Unicorn's library that the code calls."""

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
