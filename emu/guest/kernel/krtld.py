"""SDT probes in illumos' kernel linker.

The linker replaces the calls of probes by nops, and stores their addresses.

A site is compiled as a call of `__dtrace_probe_<name>`, a function that is not defined.  The linker
finds its relocation, overwrites the five bytes of the call, and stores the name and the address of
the relocated operand, which is the call's second byte.

Source: illumos usr/src/uts/intel/amd64/krtld/kobj_reloc.c (sdt_reloc_resolve).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from emu.elf.file import ElfError
from emu.elf.image import Image

PREFIX: Final = "__dtrace_probe_"
CALL: Final = 0xE8
NOPS: Final = b"\x90" * 5
_RELA: Final = struct.Struct("<QQq")
_SYMBOL: Final = struct.Struct("<IBBHQQ")


class ProbeCall(NamedTuple):
    """A site of a probe."""

    name: str
    """The part of the function's name after the prefix."""
    offset: int
    """Address of the call's operand, which is that of the call plus one."""


def probe_calls(image: Image) -> tuple[ProbeCall, ...]:
    """Return the calls of an image that are probes.

    Raises `ElfError` for one that is not a call.
    """
    relocations, symbols, strings = (image.section(name) for name in (".rela.text", ".symtab", ".strtab"))
    if relocations is None or symbols is None or strings is None:
        return ()
    found = []
    for offset, info, _ in _RELA.iter_unpack(relocations.data):
        start = _SYMBOL.unpack_from(symbols.data, (info >> 32) * _SYMBOL.size)[0]
        name = strings.data[start : strings.data.index(b"\0", start)].decode("ascii", "replace")
        if not name.startswith(PREFIX):
            continue
        if image.read(offset - 1, 1)[0] != CALL:
            raise ElfError(f"{image.path}: the reference to {name} at {offset - 1:#x} is not a call")
        found.append(ProbeCall(name.removeprefix(PREFIX), offset))
    return tuple(found)
