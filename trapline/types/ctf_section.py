"""CTF in files: `.SUNW_ctf` (versions 2 and 3) and the GNU linker's `.ctf`.

The three have the same content in fields of different widths; `Dialect` has the widths.  In a GNU
archive of several dictionaries only the first is read, which the others share.

Source: FreeBSD sys/sys/ctf.h; binutils include/ctf.h; illumos ctf(5).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from emu.elf.image import Image

# Flags: zlib; GNU's: names and symbols are the dynamic ones.
_COMPRESSED, _DYNAMIC = 1, 8
# Kinds of types (CTF_K_*).
INTEGER, FLOAT, POINTER, ARRAY, FUNCTION, STRUCT, UNION, ENUM, FORWARD, TYPEDEF = range(1, 11)
SLICE: Final = 14
# Bit of a name that is in the ELF file's string table rather than in CTF's.
_EXTERNAL: Final = 0x8000_0000
# FreeBSD's and illumos' formats begin with this.
MAGIC: Final = 0xCFF1
_ARCHIVE: Final = 0x8B47F2A4D7623EEB


class CtfError(Exception):
    """Type information that cannot be read."""


class Dialect(NamedTuple):
    """One format of CTF."""

    header: str
    """Fields after magic, version and flags, as `struct` has them."""
    sections: tuple[int, int, int, int]
    """The indices of those fields with the offsets of objects, functions, types and strings."""
    stype: str
    """name, info, size or type."""
    kind_shift: int
    vlen_mask: int
    long_size: int
    """The value of the size field that means: the size follows in two words."""
    array: str
    argument: str
    member: str
    """In the order name, type, offset; `offset_first` if the offset comes second."""
    long_member: str
    long_from: int
    """Structs of at least this many bytes have long members."""
    offset_first: bool = False
    flat_functions: bool = False
    """Functions of symbols are type numbers, like objects."""
    child: int = 0x8000_0000
    """Bit of the number of a type of its own, in a container that has a parent."""


_VERSION_2: Final = Dialect(
    "<8I", (3, 4, 5, 6), "<IHH", 11, 0x3FF, 0xFFFF, "<HHI", "<H", "<IHH", "<IHHII", 8192, child=0x8000
)
VERSION_3: Final = Dialect(
    "<8I", (3, 4, 5, 6), "<III", 26, 0xFFFFFF, 0xFFFF_FFFF, "<III", "<I", "<III", "<IIII", 536_870_912
)
GNU: Final = Dialect(
    "<12I", (4, 5, 9, 10), "<III", 26, 0xFFFFFF, 0xFFFF_FFFF, "<III", "<I", "<III", "<IIII", 536_870_912,
    offset_first=True, flat_functions=True,
)  # fmt: skip
# By magic number and version.
DIALECTS: Final = {(MAGIC, 2): _VERSION_2, (MAGIC, 3): VERSION_3, (0xDFF2, 4): GNU}
_SECTIONS: Final = (".SUNW_ctf", ".ctf")


class Entry(NamedTuple):
    """A type in the file."""

    name: str
    kind: int
    vlen: int
    size: int
    """Its size, or the type that it refers to."""
    at: int
    """The offset of the data after it."""


class Offsets(NamedTuple):
    """The offsets of a section's parts in its body."""

    objects: int
    functions: int
    types: int
    strings: int


class CtfSection:
    """The type information of an image, in the form of the file.

    Data that cannot be read raise `CtfError`, or the error of `struct` or `zlib`.
    """

    def __init__(self, image: Image) -> None:
        found = next((section for name in _SECTIONS if (section := image.section(name)) is not None), None)
        if found is None:
            raise CtfError("no type information")
        data = _first_dictionary(found.data)
        if len(data) < 4:
            raise CtfError("no header")
        magic, version, flags = struct.unpack_from("<HBB", data)
        dialect = DIALECTS.get((magic, version))
        if dialect is None:
            raise CtfError(f"magic {magic:#x}, version {version}")
        self._image = image
        self.dialect = dialect
        self.header = struct.unpack_from(dialect.header, data, 4)
        body = data[4 + struct.calcsize(dialect.header) :]
        self.body = zlib.decompress(body) if flags & _COMPRESSED else body
        self.dynamic = dialect is GNU and bool(flags & _DYNAMIC)
        """Whether names and symbols are the dynamic ones."""
        self.offsets = Offsets(*(self.header[index] for index in dialect.sections))
        self.child = dialect.child if self.header[1] else 0
        """Bit of the numbers of its own types if it refers to a parent's, else 0."""

    def name(self, reference: int) -> str:
        """Return a name from the section's table of strings, or from the ELF file's."""
        data, start = self.body, self.offsets.strings + reference
        if reference & _EXTERNAL:
            data, start = self._external, reference & ~_EXTERNAL
        end = data.find(b"\0", start)
        if not 0 <= start <= end:
            raise CtfError("a name outside its table")
        return data[start:end].decode("utf-8", "replace")

    def mentions(self, name: str) -> bool:
        """Return whether a table of strings has a name; if not, nothing here is called that."""
        text = name.encode("utf-8", "replace") + b"\0"
        return self.body.find(text, self.offsets.strings) >= 0 or text in self._external

    @cached_property
    def _external(self) -> bytes:
        """The ELF file's own table of strings."""
        table = self._image.section(".dynstr" if self.dynamic else ".strtab")
        return b"" if table is None else table.data

    @cached_property
    def entries(self) -> list[Entry]:
        """All types; the number of the first is 1."""
        dialect = self.dialect
        at, end = self.offsets.types, min(self.offsets.strings, len(self.body))
        found = []
        width = struct.calcsize(dialect.stype)
        while at + width <= end:
            name, info, size = struct.unpack_from(dialect.stype, self.body, at)
            at += width
            kind, vlen = info >> dialect.kind_shift, info & dialect.vlen_mask
            if size == dialect.long_size:
                high, low = struct.unpack_from("<II", self.body, at)
                size, at = high << 32 | low, at + 8
            found.append(Entry(self.name(name), kind, vlen, size, at))
            at += self._extra(kind, vlen, size)
        return found

    def _extra(self, kind: int, vlen: int, size: int) -> int:
        """Return the bytes that follow a type."""
        dialect = self.dialect
        match kind:
            case 1 | 2:
                return 4
            case 4:
                return struct.calcsize(dialect.array)
            case 5:
                return struct.calcsize(dialect.argument) * (vlen + (vlen & 1))
            case 6 | 7:
                return vlen * struct.calcsize(dialect.long_member if size >= dialect.long_from else dialect.member)
            case 8:
                return 8 * vlen
            case 14:
                return 8
        return 0

    def entry(self, number: int) -> Entry:
        """Return a type by its number."""
        if not 0 < number <= len(self.entries):
            raise CtfError(f"no type {number}")
        return self.entries[number - 1]

    def encoding(self, entry: Entry) -> int:
        """Return the word that describes an integer or a float."""
        (data,) = struct.unpack_from("<I", self.body, entry.at)
        return int(data)

    def slice(self, entry: Entry) -> tuple[int, int, int]:
        """Return the type, the first bit and the bits of a GNU slice."""
        base, shift, bits = struct.unpack_from("<IHH", self.body, entry.at)
        return base, shift, bits

    def array(self, entry: Entry) -> tuple[int, int]:
        """Return the type and the number of an array's elements."""
        contents, _index, count = struct.unpack_from(self.dialect.array, self.body, entry.at)
        return contents, count

    def parameters(self, count: int, at: int) -> list[int]:
        """Return the types of `count` parameters; 0 is the dots of a variable list."""
        width = struct.calcsize(self.dialect.argument)
        return [struct.unpack_from(self.dialect.argument, self.body, at + width * index)[0] for index in range(count)]

    def members(self, entry: Entry) -> Iterator[tuple[str, int, int]]:
        """Yield the name, the type and the bit offset of each member of a struct or union."""
        dialect = self.dialect
        is_long = entry.size >= dialect.long_from
        form = dialect.long_member if is_long else dialect.member
        for index in range(entry.vlen):
            fields = struct.unpack_from(form, self.body, entry.at + index * struct.calcsize(form))
            if is_long and dialect.offset_first:
                name, high, number, low = fields
                offset = high << 32 | low
            elif is_long:
                name, number, *_pad, high, low = fields
                offset = high << 32 | low
            elif dialect.offset_first:
                name, offset, number = fields
            else:
                name, number, offset = fields
            yield self.name(name), number, offset

    def enumerators(self, entry: Entry) -> Iterator[tuple[str, int]]:
        """Yield the name and the value of each enumerator."""
        for index in range(entry.vlen):
            name, value = struct.unpack_from("<Ii", self.body, entry.at + 8 * index)
            yield self.name(name), value

    def numbers(self, start: int, end: int) -> list[int]:
        """Return a table of type numbers."""
        width = struct.calcsize(self.dialect.argument)
        starts = range(start, end - width + 1, width)
        return [struct.unpack_from(self.dialect.argument, self.body, at)[0] for at in starts]


def _first_dictionary(data: bytes) -> bytes:
    """Return the shared dictionary of a GNU archive; other data are one dictionary."""
    if len(data) < 40 or int.from_bytes(data[:8], "little") != _ARCHIVE:
        return data
    _magic, _model, _count, _names, contents = struct.unpack_from("<5Q", data)
    size = int.from_bytes(data[contents : contents + 8], "little")
    return data[contents + 8 : contents + 8 + size]
