"""Sources for the providers of a Linux kernel: functions, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Iterable

from emu.guest.linux_kernel.files.facts import KernelFacts, is_function
from emu.guest.linux_kernel.kallsyms import Symbol
from emu.guest.linux_kernel.modules import Module
from providers.fbt.fbt import Signature
from trapline.d.types.types import Function, Pointer, resolve, type_name
from trapline.types.linux_kernel import LinuxKernelTypes


class KernelFunctions:
    """Implements `providers.linux_kernel.fbt.Functions`."""

    def __init__(self, facts: KernelFacts) -> None:
        self._facts = facts

    def functions(self) -> Iterable[Symbol]:
        """Yield all functions."""
        return self._facts.functions()

    def named(self, name: str) -> Iterable[Symbol]:
        """Yield those of a name that are in the kernel's text."""
        facts = self._facts
        for symbol in facts.symbols.all_of(name):
            if is_function(symbol) and symbol.value in facts.text and symbol.value not in facts.init:
                yield symbol


class ModuleFunctions:
    """The functions of a module.  Implements the same."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def functions(self) -> Iterable[Symbol]:
        """Yield all functions."""
        return self._module.functions

    def named(self, name: str) -> Iterable[Symbol]:
        """Yield those of a name."""
        return (symbol for symbol in self._module.functions if symbol.name == name)


class Signatures:
    """Types of functions' arguments.  Implements `providers.fbt.fbt.SignatureSource`."""

    def __init__(self, types: LinuxKernelTypes) -> None:
        self._types = types

    def signature(self, module: str, function: str) -> Signature | None:
        """Return the types of a function, None if they are not known."""
        types = self._types.of(module)
        found = None if types is None else types.function(function)
        if found is None:
            return None
        return Signature(type_name(found.returns), tuple(map(type_name, found.parameters)))


class TracepointTypes:
    """Types of tracepoints' arguments.  Implements `providers.linux_kernel.tracepoints.TypeSource`."""

    def __init__(self, types: LinuxKernelTypes) -> None:
        self._types = types

    def tracepoint(self, module: str, name: str) -> tuple[str, ...] | None:
        """Return the types after the first argument, which is the kernel's own."""
        types = self._types.of(module)
        found = None if types is None else types.typedef(f"btf_trace_{name}")
        pointer = None if found is None else resolve(found)
        function = pointer.target if isinstance(pointer, Pointer) else None
        return tuple(map(type_name, function.parameters[1:])) if isinstance(function, Function) else None
