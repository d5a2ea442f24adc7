"""The linker of object files: it gives them fixed addresses, as a module loader or `ld` does.

    linked = link([ElfFile("a.o"), ElfFile("b.o")], Externs(functions=("printf",)))
    linked.image.symbol("f").value

The result is an `emu.elf.image.Image` of an executable file: its segments can be loaded, and its
symbols, source lines and types are found as in any other file.
"""

from __future__ import annotations

from emu.elf.link.linker import Externs, Linked, UndefinedError, link

__all__ = ["Externs", "Linked", "UndefinedError", "link"]
