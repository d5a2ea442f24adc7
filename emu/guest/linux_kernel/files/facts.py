"""A kernel's data about itself: its symbols, its types, the addresses of its parts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files.btf import Btf, BtfError
from emu.guest.linux_kernel.files.tables import Placed, Table
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.kallsyms import Symbol, Symbols, symbols_of
from emu.guest.linux_kernel.platforms.boards import BOARDS

_CODE: Final = frozenset("tTwW")
# In the names of symbols of code that are parts of functions, or not functions.
_PARTS: Final = (".cold", ".L", "$", "__pfx_", "__cfi_", "__pi_", "__SCT__")

# Elf64_Rela: address, type and symbol, value.  All of a kernel's are R_AARCH64_RELATIVE.
_RELA: Final = struct.Struct("<QQQ")


class KernelFacts:
    """The data of one kernel.  Raises `KernelFileError` if the kernel has no kallsyms."""

    def __init__(self, image: KernelImage) -> None:
        self.image = image
        self.symbols: Symbols = symbols_of(image)
        address = self.symbols.address
        try:
            self.start = BOARDS[image.isa].start(image, self.symbols)
            """Virtual address of the image's first byte."""
            self.text = range(address("_stext"), address("_etext"))
            """The kernel's code, without that which is dropped after booting."""
        except KeyError as error:
            raise KernelFileError(f"Linux {image.release}: kallsyms lacks {error}") from None
        self.init = self.between("__init_begin", "__init_end")
        """The parts that are dropped after booting."""

    def between(self, first: str, last: str) -> range:
        """Return the addresses from one symbol to another; empty if one of them is missing."""
        low, high = self.symbols.get(first), self.symbols.get(last)
        return range(low.value, high.value) if low and high else range(0)

    def content(self, part: range) -> bytes:
        """Return what the image has at some addresses of the kernel."""
        at = part.start - self.start
        return self.image.data[at : at + len(part)] if part else b""

    def relocated(self, part: range) -> bytes:
        """Return the same after the relocation at boot: AArch64 leaves some addresses to it."""
        content = bytearray(self.content(part))
        for address, _info, value in _RELA.iter_unpack(self.content(self.between("__pi_rela_start", "__pi_rela_end"))):
            if address in part:
                struct.pack_into("<Q", content, address - part.start, value)
        return bytes(content)

    def table(self, table: Table) -> Placed:
        """Return a table of the image; an empty one if there is none."""
        form = table.value
        part = self.between(form.start, form.end)
        return Placed(part.start, self.relocated(part) if form.absolute else self.content(part))

    def parts(self) -> Iterator[range]:
        """Yield the permanent ranges of the kernel's image: its text, and its data."""
        end = self.symbols.get("_end")
        for low, high in ((self.text.start, self.init.start), (self.init.stop, end.value if end else 0)):
            if low < high:
                yield range(low, high)

    @cached_property
    def btf(self) -> Btf:
        """The types.  Raises `KernelFileError` if there are none."""
        try:
            return Btf(self.content(self.between("__start_BTF", "__stop_BTF")), self.image.digest)
        except BtfError as error:
            raise KernelFileError(
                f"Linux {self.image.release}: {error}; a kernel with CONFIG_DEBUG_INFO_BTF=y is needed"
            ) from None

    def functions(self) -> Iterator[Symbol]:
        """Yield the functions of the kernel's own text, by address; of several names the first."""
        latest = 0
        for symbol in self.symbols.between(self.text.start, self.text.stop):
            if symbol.value != latest and is_function(symbol) and symbol.value not in self.init:
                latest = symbol.value
                yield symbol


def is_function(symbol: Symbol) -> bool:
    """Return whether a symbol is the start of a function."""
    return symbol.type in _CODE and not any(part in symbol.name for part in _PARTS)
