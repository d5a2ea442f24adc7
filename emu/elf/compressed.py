"""Compressed sections of ELF files (SHF_COMPRESSED).  Source: ELF, "Section Compression"."""

from __future__ import annotations

import struct
import zlib
from typing import Final

# Elf64_Chdr and Elf32_Chdr: type, (reserved,) size, alignment.
_HEADERS: Final = {8: struct.Struct("<IIQQ"), 4: struct.Struct("<III")}
_ZLIB: Final = 1
# Bytes of a section's content: more than any has, less than what a hostile file asks for.
_LARGEST: Final = 1 << 30


def decompressed(data: bytes, word: int) -> bytes:
    """Return a section's content; b"" if it is damaged or not compressed by zlib."""
    header = _HEADERS[word]
    if len(data) < header.size:
        return b""
    kind, *_, size, _alignment = header.unpack_from(data)
    if kind != _ZLIB or size > _LARGEST:
        return b""
    try:
        return zlib.decompressobj().decompress(data[header.size :], size or 1)
    except zlib.error:
        return b""
