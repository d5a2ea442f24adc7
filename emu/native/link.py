"""Object code in memory: a linker for ELF relocatable files.

LLVM's own linker would need LLVM, whose import takes longer than the rest of the start-up; this one
supports only the output of `emu.native.compile`, on the host architectures in `HOSTS`.

Where code reads a symbol's address from a table, or branches to one that may be too far, a stub
behind the code has the address, or a jump to it.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from emu.isa import isa_of_machine
from emu.isa.relocations import Reference, Relocation, Relocations, relocations_of
from emu.native.libc import forget_instructions, libc
from emu.support.plain import function_address


class Host(NamedTuple):
    """A host architecture that machine code is generated for; its relocations are those of the ISA."""

    far_jump: bytes = b""
    """Jumps to the address that follows it; empty: nothing needs that."""
    jumps: frozenset[int] = frozenset()
    """The relocations whose target may be replaced by a jump to it, if it is too far."""
    coherent: bool = True
    """Whether the CPU executes what was written without being told."""


# By e_machine: EM_X86_64, EM_AARCH64.
HOSTS: Final = {
    62: Host(),
    183: Host(
        far_jump=bytes.fromhex("50000058 00021fd6"),  # ldr x16,[pc,#8]    br x16
        jumps=frozenset({282, 283}),  # R_AARCH64_JUMP26, R_AARCH64_CALL26
        coherent=False,
    ),
}


def host_relocations(machine: int) -> Relocations:
    """Return the relocations of object code for a host, by its e_machine."""
    isa = isa_of_machine(machine)
    assert isa is not None
    return relocations_of(isa)


_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QIIq")
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 1, 2, 4, 8
_SHF_WRITE, _SHF_ALLOC = 1, 2
_SHN_UNDEF, _SHN_ABS = 0, 0xFFF1
_WORD: Final = 8
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
        self._offsets: dict[int, int] = {}
        machine = _machine(code)
        self._host, self._known = HOSTS[machine], host_relocations(machine)
        stubs = self._stubs_needed()
        readable = [index for index, section in enumerate(sections) if _is_loaded(section)]
        # Writable sections come last, on pages of their own.
        readable.sort(key=lambda index: bool(sections[index].flags & _SHF_WRITE))
        size = fixed = stubs_at = 0
        for index in readable:
            section = sections[index]
            if section.flags & _SHF_WRITE and not fixed:
                stubs_at = _up(size, _WORD)
                fixed = size = _up(stubs_at + sum(stubs.values()), mmap.PAGESIZE)
            size = _up(size, section.alignment)
            self._offsets[index] = size
            size += section.size
        if not fixed:
            stubs_at = _up(size, _WORD)
            fixed = size = _up(stubs_at + sum(stubs.values()), mmap.PAGESIZE) or mmap.PAGESIZE
        self._memory = mmap.mmap(-1, _up(size, mmap.PAGESIZE) or mmap.PAGESIZE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for index in readable:
            section, offset = sections[index], self._offsets[index]
            if section.kind != _SHT_NOBITS:
                self._memory[offset : offset + section.size] = code[section.offset : section.offset + section.size]
            self._offsets[index] = base + offset
        self._base = base
        self._functions: dict[str, int] = {}
        self._symbols = list(self._read_symbols(symbols or {}))
        self._stubs = dict(self._write_stubs(stubs, stubs_at))
        self._relocate()
        if not self._host.coherent:
            forget_instructions(base, fixed)
        if libc().mprotect(ctypes.c_void_p(base), ctypes.c_size_t(fixed), _PROT_READ_EXECUTE):
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
                    address = self._offsets.get(index, 0) + value
                    if name:
                        self._functions[name] = address
                    yield address

    def _relocations(self) -> Iterator[_Place]:
        """Yield the fields to be changed in the sections that are loaded."""
        for section in self._sections:
            if section.kind != _SHT_RELA or not _is_loaded(self._sections[section.info]):
                continue
            for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                offset, kind, symbol, addend = _RELOCATION.unpack_from(self._code, at)
                if kind in self._known.ignored:
                    continue
                how = self._known.types.get(kind)
                if how is None:
                    raise LinkError(f"the code has a relocation of kind {kind}, which is not made for 64-bit symbols")
                yield _Place(section.info, offset, how, symbol, addend, jumps=kind in self._host.jumps)

    def _stubs_needed(self) -> dict[tuple[int, bool], int]:
        """Return the size of each stub, by symbol and whether it is a jump."""
        word, jump = _WORD, len(self._host.far_jump) + _WORD
        bound = [one for one in self._relocations() if one.how.entry or one.jumps]
        return {(one.symbol, one.jumps): jump if one.jumps else word for one in bound}

    def _write_stubs(self, stubs: Mapping[tuple[int, bool], int], at: int) -> Iterator[tuple[tuple[int, bool], int]]:
        """Write the stubs; yield the address of each."""
        for (symbol, jumps), size in stubs.items():
            word = self._symbols[symbol].to_bytes(_WORD, "little")
            self._memory[at : at + size] = self._host.far_jump + word if jumps else word
            yield (symbol, jumps), self._base + at
            at += size

    def _relocate(self) -> None:
        for section, offset, how, symbol, addend, jumps in self._relocations():
            address = self._offsets[section] + offset
            entry = self._stubs[symbol, False] if how.entry else 0
            value = how.value(Reference(self._symbols[symbol], addend, address, entry))
            if jumps and not how.field.holds(value):
                value = how.value(Reference(self._stubs[symbol, True], 0, address))
            if not how.field.holds(value):
                raise LinkError("the code has a distance that is too long")
            field = slice(address - self._base, address - self._base + how.field.size)
            new = how.field.put(int.from_bytes(self._memory[field], "little"), value)
            self._memory[field] = (new & (1 << 8 * how.field.size) - 1).to_bytes(how.field.size, "little")


class _Place(NamedTuple):
    """A field that a relocation changes."""

    section: int
    offset: int
    how: Relocation
    symbol: int
    addend: int
    jumps: bool
    """Whether a jump to the symbol may replace the symbol."""


def _machine(code: bytes) -> int:
    """Return e_machine of object code for one of `HOSTS`."""
    if code[:6] != b"\x7fELF\2\1" or len(code) < _HEADER.size:
        raise LinkError("the code is not a 64-bit ELF file")
    machine: int = _HEADER.unpack_from(code)[1]
    if machine not in HOSTS:
        raise LinkError(f"the code is for a host of another kind (e_machine {machine})")
    return machine


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
        return function_address(libc()[name])
    except AttributeError:
        raise LinkError(f"the code needs '{name}', which does not exist") from None


def _string(code: bytes, at: int) -> bytes:
    return code[at : code.index(b"\0", at)]


def _up(number: int, alignment: int) -> int:
    return -(-number // alignment) * alignment if alignment else number
