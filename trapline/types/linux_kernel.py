"""A Linux kernel's names for D programs: types from BTF, symbols from kallsyms.

A name without a module is the kernel's, or else that of the first module that has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from emu.guest.linux_kernel.files.facts import KernelFacts, is_function
from emu.guest.linux_kernel.modules import Module, Modules
from emu.support.immutable import immutable
from trapline.d.types.data_models import LP64, Model
from trapline.d.types.names import KERNEL, Symbol
from trapline.d.types.types import Composite, Enumeration, Type
from trapline.types.btf import BtfTypes

# The beginnings of the names of variables that the kernel's macros define in modules, with their types.
_DEFINED = {"__this_module": "struct module", "__tracepoint_": "struct tracepoint", "event_": "struct trace_event_call"}


@immutable
class LinuxKernelTypes:
    """The types of a kernel and of its modules."""

    kernel: BtfTypes
    modules: Modules
    _made: dict[str, tuple[Module, BtfTypes]] = field(default_factory=dict)

    def of(self, name: str) -> BtfTypes | None:
        """Return the types of a module by its name, None if they are not known."""
        if name == KERNEL:
            return self.kernel
        module = self.modules.named(name)
        return None if module is None else self.of_module(module)

    def of_module(self, module: Module) -> BtfTypes | None:
        """Return the types of a module that is loaded."""
        known = self._made.get(module.name)
        if known is not None and known[0] is module:
            return known[1]
        if module.types is None:
            return None
        made = BtfTypes(module.types)
        self._made[module.name] = module, made
        return made


@immutable
class LinuxKernelNames:
    """A Linux kernel's types and symbols for D.  Implements `trapline.d.types.names.Foreign`."""

    facts: KernelFacts
    types: LinuxKernelTypes

    @property
    def model(self) -> Model:
        """Its data model."""
        return LP64

    def has_module(self, name: str) -> bool:
        """Return whether a module is loaded; the kernel itself is one."""
        return name == KERNEL or self.types.modules.named(name) is not None

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        module, _, plain = name.rpartition("`")
        found = (types.typedef(plain) for types in self._types(module))
        return next((one for one in found if one is not None), None)

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum."""
        module, _, plain = tag.rpartition("`")
        found = (types.tag(keyword, plain) for types in self._types(module))
        return next((one for one in found if one is not None), None)

    def symbol(self, name: str) -> Symbol | None:
        """Return the address of a symbol, and its type if that is known."""
        module, _, plain = name.rpartition("`")
        found = self.facts.symbols.get(plain) if module in {"", KERNEL} else None
        if found is not None:
            typed = self.types.kernel.function if is_function(found) else self.types.kernel.variable
            return Symbol(found.value, typed(found.name))
        return next(filter(None, (self._symbol(one, plain) for one in self._modules(module))), None)

    def _modules(self, name: str) -> Iterator[Module]:
        """Yield the module of a name, or all of them."""
        return (one for one in self.types.modules.all() if name in {"", one.name})

    def _types(self, name: str) -> Iterator[BtfTypes]:
        """Yield the types in which a name of a module, or of any, is looked up."""
        if name in {"", KERNEL}:
            yield self.types.kernel
        yield from filter(None, map(self.types.of_module, self._modules(name)))

    def _symbol(self, module: Module, name: str) -> Symbol | None:
        types = self.types.of_module(module)
        function = next((one for one in module.functions if one.name == name), None)
        if function is not None:
            return Symbol(function.value, types.function(name) if types else None)
        address = module.variables.get(name)
        if address is None:
            return None
        written = module.parameters.get(address)
        if written is None:
            written = next((type_ for start, type_ in _DEFINED.items() if name.startswith(start)), None)
        known = types.variable(name) if types else None
        return Symbol(address, known or (self.types.kernel.written(written) if written else None))
