"""A kernel's file as an ELF image: its text, with the functions of kallsyms as the symbols.

`trapline sites` and `trapline check` read ELF files.  A vmlinuz is not one, so it is unpacked, and
its text and symbols are presented in the same form; no vmlinux is needed.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

from emu.elf.file import ElfError, ElfKind
from emu.elf.image import Image, Segment, SegmentFlag
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.files.compression import is_compressed, unpack
from emu.guest.linux_kernel.files.facts import KernelFacts
from emu.guest.linux_kernel.files.image_file import for_isa, is_kernel, kernel_of
from emu.guest.linux_kernel.files.module_file import ModuleFile, is_module
from emu.guest.linux_kernel.files.tables import Placed, Table
from emu.guest.linux_kernel.files.text import LinuxText
from emu.guest.linux_kernel.image import KernelImage
from emu.isa import ISAS
from emu.isa.base import Isa

# More than any magic number needs.
_HEAD: Final = 0x400
_ELF: Final = b"\x7fELF"


class KernelFile(LinuxText):
    """The text of an unpacked kernel, with the functions of its kallsyms."""

    noun = "kernel"

    def __init__(self, path: Path, kernel: KernelImage) -> None:
        """Take an unpacked kernel.  Raises `KernelFileError` if it has no kallsyms."""
        self.facts = KernelFacts(kernel)
        self.path, self.isa, self.kind = path, ISAS[kernel.isa], ElfKind.EXECUTABLE
        self.entry = 0

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The kernel's text, and what the image has between the text and its other code."""
        facts = self.facts
        low, high = facts.text.start, facts.text.stop
        data = self.as_loaded(low, facts.image.data[low - facts.start : high - facts.start])
        flags = SegmentFlag.READ | SegmentFlag.EXECUTE
        return (Segment(low, low, data, len(data), flags),)

    def table(self, table: Table) -> Placed:
        """Return a table of the kernel."""
        return self.facts.table(table)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The functions of the kernel that stay after boot, by address."""
        binding = {True: Binding.GLOBAL, False: Binding.LOCAL}
        return tuple(
            Symbol(one.name, one.value, one.size, SymbolType.FUNC, binding[one.type.isupper()], 1)
            for one in self.facts.functions()
        )

    @cached_property
    def interpreter(self) -> None:
        """A kernel has no interpreter."""
        return


def open_image(path: str | Path, isa: Isa | None = None) -> Image:
    """Open an ELF file, or the file of a Linux kernel or of a module, which may be compressed.

    Raises `ElfError`; also if `isa` is given and the file is for another one.
    """
    path = Path(path)
    try:
        if not path.is_file():  # a pipe would be waited for
            return Image(path, isa=isa)  # its message says what is wrong
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return Image(path, isa=isa)
    try:
        if store.is_stored(path):
            return KernelFile(path, for_isa(store.at(path.parent).image, path, isa.name if isa else None))
        if is_compressed(head):
            return _unpacked(path, unpack(path.read_bytes(), str(path)), isa)
        if is_kernel(head):
            return KernelFile(path, for_isa(kernel_of(path.read_bytes(), str(path)), path, isa.name if isa else None))
    except KernelFileError as error:
        raise ElfError(str(error)) from None
    image = Image(path, isa=isa)
    return ModuleFile(path, path.read_bytes()) if is_module(image) else image


def _unpacked(path: Path, data: bytes, isa: Isa | None) -> Image:
    """Return a kernel or a module by its unpacked content.  Raises `KernelFileError`, `ElfError`."""
    if data.startswith(_ELF):
        image = Image(path, isa=isa, content=data)
        if is_module(image):
            return ModuleFile(path, data)
    return KernelFile(path, for_isa(kernel_of(data, str(path)), path, isa.name if isa else None))
