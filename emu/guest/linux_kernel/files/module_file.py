"""The file of a kernel module as an ELF image: linked, as the kernel does when it loads it.

The relocations are applied at an address where the kernel of the ISA puts modules.  The symbols
that the kernel and other modules define become functions that return at once: the file does not say
where they are.  The text is that of `emu.guest.linux_kernel.files.text`.  Functions that are
dropped after the module has been loaded (.init.text) are left out, as they are in a running kernel.

Source: Linux 6.12 kernel/module/main.c (layout_sections, apply_relocations, module_init_section).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from emu.assembly import machine_code
from emu.elf.file import ElfError, ElfKind
from emu.elf.image import Image, Segment, SegmentFlag
from emu.elf.link import Externs, link
from emu.elf.link.object_file import UNDEFINED, ObjectFile
from emu.elf.symbols import Binding, Symbol
from emu.guest.linux_kernel import kallsyms
from emu.guest.linux_kernel.files.facts import is_function
from emu.guest.linux_kernel.files.tables import Placed, Table
from emu.guest.linux_kernel.files.text import LinuxText
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS

# The section with struct module, which every module has.
_MARK: Final = ".gnu.linkonce.this_module"
_EXECINSTR: Final = 4
_INIT: Final = ".init"


def is_module(image: Image) -> bool:
    """Return whether a file is a module of a Linux kernel."""
    return image.kind is ElfKind.RELOCATABLE and image.section(_MARK) is not None


class ModuleFile(LinuxText):
    """A module's file, linked."""

    noun = "module"

    def __init__(self, path: Path, content: bytes) -> None:
        """Link a file.

        Raises `ElfError`; also for an ISA without Linux kernels here.
        """
        one = ObjectFile(path, content=content)
        board = BOARDS.get(one.isa.name)
        if board is None:
            there = ", ".join(ISAS[name].title for name in BOARDS)
            raise ElfError(f"{path}: a Linux module for {one.isa.title}; there are probes for kernels of {there}")
        missing = {one.symbols[number].name for number in one.used if one.symbols[number].section == UNDEFINED}
        defined = {symbol.name for symbol in one.symbols if symbol.section != UNDEFINED}
        externs = Externs(tuple(sorted(missing - defined - {""})), {}, machine_code(one.isa, "ret", 0))
        self._linked = link([one], externs, board.modules)
        self.path, self.isa, self.kind = path, one.isa, ElfKind.EXECUTABLE
        self.entry = 0
        self.externs = self._linked.externs
        """The addresses of the functions that stand for the kernel's."""
        self.sections: dict[str, Placed] = {}
        """The sections in memory, by name."""
        self.text: list[range] = []
        """The sections of code that stay after loading."""
        for number, section in enumerate(one.sections):
            part = self._linked.layout.part(0, number)
            if part is not None:
                self.sections[part.name] = Placed(part.address, bytes(part.data))
                if section.flags & _EXECINSTR and not part.name.startswith(_INIT):
                    self.text.append(range(part.address, part.address + part.size))

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of the linked module; the first is its code."""
        return tuple(
            replace(one, data=self.as_loaded(one.vaddr, one.data)) if one.flags & SegmentFlag.EXECUTE else one
            for one in self._linked.image.segments
        )

    def table(self, table: Table) -> Placed:
        """Return a table of the module."""
        found = (self.sections[name] for name in table.value.sections if name in self.sections)
        return next(found, Placed(0, b""))

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The functions that stay after loading, by address; of several names the first."""
        found: dict[int, Symbol] = {}
        for symbol in self._linked.image.symbols:
            named = is_function(kallsyms.Symbol(symbol.name, symbol.value, symbol.size, "t"))
            if symbol.is_function and named and any(symbol.value in part for part in self.text):
                found.setdefault(symbol.value, symbol)
        return tuple(found[address] for address in sorted(found))

    @cached_property
    def by_address(self) -> kallsyms.Symbols:
        """The functions in the form of a kernel's symbols."""
        letters = {True: "T", False: "t"}
        return kallsyms.Symbols(
            [(one.value, f"{letters[one.binding is Binding.GLOBAL]}{one.name}") for one in self.symbols]
        )

    @cached_property
    def interpreter(self) -> None:
        """A module has no interpreter."""
        return
