"""Kernel modules for providers: the fields of FreeBSD's linker_file that FBT, sdt and kinst read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from emu.elf.symbols import Symbol

# The names of the symbols that MODULE_DEPEND() makes in a module (FreeBSD sys/sys/module.h).
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
    """(address, size) -> code without patches; may be shorter at the end of the text."""
    dependencies: tuple[str, ...] = ()
    """File names of the modules that it needs."""
    load_count: int = 1
    """The serial number of this load: a file that is unloaded and loaded again has a new one."""
    enabled: int = 0
    """The number of its enabled probes; unless it is 0, the module may not be unloaded."""
    fbt_entries: int = 0
    """The number of its FBT records; unless it is 0, the module is not scanned again."""

    def functions(self) -> Iterator[Symbol]:
        """Yield the function symbols in order (FreeBSD link_elf_each_function_nameval).

        Local and weak functions are included; symbols with the value 0 are undefined and are not.
        """
        return (symbol for symbol in self.symbols if symbol.value and symbol.is_function)
