"""Object code in memory: a linker for ELF relocatable files.

LLVM's own linker would need LLVM, whose import takes longer than the rest of the start-up; this one
supports only the output of `emu.native.compiling`: x86-64, symbols of 64 bits.

Source: System V ABI, AMD64 Architecture Processor Supplement, 4.4 (relocation).
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from emu.native.libc import libc

_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QIIq")
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 1, 2, 4, 8
_SHF_WRITE, _SHF_ALLOC = 1, 2
_SHN_UNDEF, _SHN_ABS = 0, 0xFFF1
# Size in bytes of a relocation, and whether it is relative to its own place: R_X86_64_64, PC32, PLT32, PC64.
_RELOCATIONS: Final = {1: (8, False), 2: (4, True), 4: (4, True), 24: (8, True)}
_PROT_READ_EXECUTE: Final = mmap.PROT_READ | mmap.PROT_EXEC
# The section for unwinding the stack is not used, because there are no exceptions.
_UNWINDING: Final = b".eh_frame"


class LinkError(Exception):
    """Object code that cannot be put into memory; the message says why."""


class _Section(NamedTuple):
    name: bytes
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


class Linked:
    """Object code in memory, until the object goes.

    `symbols` has the addresses of the names that the code does not define; the C library's
    functions are known.  Raises `LinkError`.
    """

    def __init__(self, code: bytes, symbols: Mapping[str, int] | None = None) -> None:
        self._code = code
        sections = self._sections = list(_sections(code))
        self._places: dict[int, int] = {}
        readable = [index for index, section in enumerate(sections) if _is_loaded(section)]
        # Writable sections come last, on pages of their own.
        readable.sort(key=lambda index: bool(sections[index].flags & _SHF_WRITE))
        size = fixed = 0
        for index in readable:
            section = sections[index]
            if section.flags & _SHF_WRITE and not fixed:
                fixed = size = _up(size, mmap.PAGESIZE)
            size = _up(size, section.alignment)
            self._places[index] = size
            size += section.size
        self._memory = mmap.mmap(-1, _up(size, mmap.PAGESIZE) or mmap.PAGESIZE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for index in readable:
            section, place = sections[index], self._places[index]
            if section.kind != _SHT_NOBITS:
                self._memory[place : place + section.size] = code[section.offset : section.offset + section.size]
            self._places[index] = base + place
        self._base = base
        self._functions: dict[str, int] = {}
        self._symbols = list(self._read_symbols(symbols or {}))
        self._relocate()
        pages = fixed or _up(size, mmap.PAGESIZE) or mmap.PAGESIZE
        if libc().mprotect(ctypes.c_void_p(base), ctypes.c_size_t(pages), _PROT_READ_EXECUTE):
            raise LinkError("this system does not let a program execute memory that it wrote")

    def address(self, name: str) -> int:
        """Return the address of a function.  Raises `LinkError`."""
        try:
            return self._functions[name]
        except KeyError:
            raise LinkError(f"the code has no function '{name}'") from None

    def _read_symbols(self, known: Mapping[str, int]) -> Iterator[int]:
        """Yield the address of each symbol."""
        for section in self._sections:
            if section.kind != _SHT_SYMTAB:
                continue
            names = self._sections[section.link]
            for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                name_at, _, _, index, value, _ = _SYMBOL.unpack_from(self._code, at)
                name = _string(self._code, names.offset + name_at).decode()
                if index == _SHN_UNDEF:
                    yield _found(name, known) if name else 0
                elif index == _SHN_ABS:
                    yield value
                else:
                    address = self._places.get(index, 0) + value
                    if name:
                        self._functions[name] = address
                    yield address

    def _relocate(self) -> None:
        for section in self._sections:
            if section.kind != _SHT_RELA or section.info not in self._places:
                continue
            start = self._places[section.info]
            for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                offset, kind, symbol, addend = _RELOCATION.unpack_from(self._code, at)
                if kind not in _RELOCATIONS:
                    raise LinkError(f"the code has a relocation of kind {kind}, which is not made for 64-bit symbols")
                size, relative = _RELOCATIONS[kind]
                value = self._symbols[symbol] + addend - (start + offset if relative else 0)
                if relative and not -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
                    raise LinkError("the code has a distance that is too long")
                place = start + offset - self._base
                self._memory[place : place + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _sections(code: bytes) -> Iterator[_Section]:
    if code[:6] != b"\x7fELF\2\1" or len(code) < _HEADER.size:
        raise LinkError("the code is not a 64-bit ELF file")
    header = _HEADER.unpack_from(code)
    start, count, names_index = header[5], header[11], header[12]
    raw = [_SECTION.unpack_from(code, start + _SECTION.size * index) for index in range(count)]
    names = raw[names_index][4]
    for name, kind, flags, _, offset, size, link, info, alignment, _ in raw:
        yield _Section(_string(code, names + name), kind, flags, offset, size, link, info, alignment)


def _is_loaded(section: _Section) -> bool:
    kinds = {_SHT_PROGBITS, _SHT_NOBITS}
    return section.kind in kinds and bool(section.flags & _SHF_ALLOC) and section.name != _UNWINDING


def _found(name: str, known: Mapping[str, int]) -> int:
    address = known.get(name)
    if address is not None:
        return address
    try:
        return ctypes.cast(libc()[name], ctypes.c_void_p).value or 0
    except AttributeError:
        raise LinkError(f"the code needs '{name}', which does not exist") from None


def _string(code: bytes, at: int) -> bytes:
    return code[at : code.index(b"\0", at)]


def _up(number: int, alignment: int) -> int:
    return -(-number // alignment) * alignment if alignment else number
