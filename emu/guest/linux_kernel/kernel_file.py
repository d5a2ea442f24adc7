"""A kernel's file as an ELF image: its text, with the functions of kallsyms as the symbols.

`trapline sites` and `trapline check` read ELF files.  A vmlinuz is not one, so it is unpacked, and
its text and symbols are presented in the same form; no vmlinux is needed.

The text is that of the file.  When a kernel boots it modifies its text.  Two of these changes are
made here too, because they decide where the probes of functions are:

| where | file | after boot, without mitigations |
| --- | --- | --- |
| `__return_sites` (x86-64) | `jmp __x86_return_thunk` | `ret`, `int3` |
| `__start_mcount_loc` | `call __fentry__`, or four `c.nop` | ftrace's pad |

Alternatives, jump labels and static calls stay as they are in the file.

Source: Linux 6.12 arch/x86/kernel/alternative.c (apply_returns), arch/*/kernel/ftrace.c
(ftrace_init_nop).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from emu.elf import Image, Segment, SegmentFlag
from emu.elf_file import ElfError, ElfKind
from emu.elf_symbols import Binding, Symbol, SymbolType
from emu.guest.linux_kernel import store
from emu.guest.linux_kernel.compression import is_compressed
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.facts import KernelFacts
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.image_files import for_isa, is_kernel, read_kernel
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from emu.isa.base import Isa

# At the places of the return sites: the first bytes in the file, and the bytes that replace them at boot.
_RETURNS: Final = (bytes.fromhex("e9"), bytes.fromhex("c3cccccccc"))
_DISTANCE: Final = struct.Struct("<i")
_ADDRESS: Final = struct.Struct("<Q")
# More than any magic number needs.
_HEAD: Final = 0x400


class KernelFile(Image):
    """The text of an unpacked kernel; see the module."""

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
        data = bytearray(facts.image.data[low - facts.start : high - facts.start])
        for places, (before, after) in ((self._returns(), _RETURNS), (self._pads(), BOARDS[self.isa.name].pad)):
            for address in places:
                at = address - low
                if 0 <= at < len(data) and data.startswith(before, at):
                    data[at : at + len(after)] = after
        flags = SegmentFlag.READ | SegmentFlag.EXECUTE
        return (Segment(low, low, bytes(data), len(data), flags),)

    def _returns(self) -> Iterator[int]:
        """Yield the addresses of the jumps that become returns."""
        table = self.facts.between("__return_sites", "__return_sites_end")
        for number, (distance,) in enumerate(_DISTANCE.iter_unpack(self.facts.content(table))):
            yield table.start + _DISTANCE.size * number + distance

    def _pads(self) -> Iterator[int]:
        """Yield the addresses of the pads of ftrace."""
        table = self.facts.between("__start_mcount_loc", "__stop_mcount_loc")
        for (address,) in _ADDRESS.iter_unpack(self.facts.content(table)):
            yield address

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
    """Open an ELF file, or a kernel's file, which may be compressed.

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
        if is_kernel(head) or is_compressed(head):
            return KernelFile(path, read_kernel(path, isa.name if isa else None))
    except KernelFileError as error:
        raise ElfError(str(error)) from None
    return Image(path, isa=isa)
