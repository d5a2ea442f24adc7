"""A Linux kernel's names for D programs: types from BTF, symbols from kallsyms."""

from __future__ import annotations

from dataclasses import dataclass

from emu.guest.linux_kernel.facts import KernelFacts, is_function
from emu.guest.linux_kernel.modules import Modules
from trapline.d.data_models import LP64, Model
from trapline.d.scopes import KERNEL, Symbol
from trapline.d.types import Composite, Enumeration, Type
from trapline.types.btf import BtfTypes


@dataclass(frozen=True, slots=True)
class LinuxKernelNames:
    """See the module.  Implements `trapline.d.scopes.Foreign`."""

    facts: KernelFacts
    types: BtfTypes
    modules: Modules

    @property
    def model(self) -> Model:
        """Its data model."""
        return LP64

    def has_module(self, name: str) -> bool:
        """Return whether a module is loaded; the kernel itself is one."""
        return name == KERNEL or self.modules.named(name) is not None

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        plain = _plain(name)
        return None if plain is None else self.types.typedef(plain)

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return a struct, union or enum."""
        plain = _plain(tag)
        return None if plain is None else self.types.tag(keyword, plain)

    def symbol(self, name: str) -> Symbol | None:
        """Return the address of a symbol, and its type if that is known."""
        plain = _plain(name)
        found = None if plain is None else self.facts.symbols.get(plain)
        if found is None:
            return None
        typed = self.types.function if is_function(found) else self.types.variable
        return Symbol(found.value, typed(found.name))


def _plain(name: str) -> str | None:
    """Return a name without the kernel's own before a back-quote; None: it is another module's."""
    module, _, plain = name.rpartition("`")
    return plain if module in {"", KERNEL} else None
