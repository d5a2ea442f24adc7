"""Kernel modules as a provider sees them: what FreeBSD's linker_file tells FBT, sdt and kinst."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from emu.elf_symbols import Symbol

# What MODULE_DEPEND() leaves in a module (FreeBSD sys/sys/module.h).
_DEPENDS = re.compile(r"_mod_metadata_md_\w+?_on_(\w+)")


def dependencies(symbols: Iterable[Symbol]) -> tuple[str, ...]:
    """Return the file names of the modules that a module needs, as its symbols name them."""
    found = (_DEPENDS.fullmatch(symbol.name) for symbol in symbols)
    return tuple(f"{each[1]}.ko" for each in found if each)


@dataclass(eq=False)
class Module:
    """A loaded module; the kernel itself is one.

    `enabled` and `fbt_entries` belong to the providers, as linker_file's nenabled and fbt_nentries
    do.
    """

    name: str
    """File name, with its ".ko": "kernel", "dtrace.ko"."""
    symbols: tuple[Symbol, ...]
    """Its symbols at the addresses where they are loaded, in the order of the symbol table."""
    read: Callable[[int, int], bytes]
    """(address, size) -> code as the program has it; may be short at the end of the text."""
    dependencies: tuple[str, ...] = ()
    """File names of the modules it needs."""
    load_count: int = 1
    """How many times the linker has loaded it."""
    enabled: int = 0
    """How many of its probes are enabled: while there are any, it may not be unloaded."""
    fbt_entries: int = 0
    """How many FBT records it has: once there are any, it is not scanned again."""

    def functions(self) -> Iterator[Symbol]:
        """Yield the function symbols in order (FreeBSD link_elf_each_function_nameval).

        Local and weak ones are functions like any other; a symbol with the value 0 is not there.
        """
        return (symbol for symbol in self.symbols if symbol.value and symbol.is_function)
