"""D's types as CTF: the containers of libdtrace, for its options ctypes and dtypes.

There are two containers.  C has C's own types and the typedefs that every program sees; D has what
the programs declare, and refers to the types of C by their numbers: it is a child of C, as the
types of a FreeBSD kernel module are a child of the kernel's.

Source: FreeBSD libdtrace dt_open.c (dtrace_vopen: the containers), dt_options.c (dt_opt_ctypes,
dt_opt_dtypes); sys/sys/ctf.h; libctf ctf_create.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from trapline.d.types.data_models import BASES, Model, base_type
from trapline.d.types.types import (
    CHAR,
    INT,
    STRING,
    STRING_SIZE,
    UNSIGNED,
    VOID,
    Array,
    Composite,
    Enumeration,
    Float,
    Function,
    Integer,
    Kind,
    Pointer,
    Special,
    Type,
    Typedef,
    resolve,
)
from trapline.types.ctf_section import (
    ARRAY,
    ENUM,
    FLOAT,
    FORWARD,
    FUNCTION,
    INTEGER,
    MAGIC,
    POINTER,
    STRUCT,
    TYPEDEF,
    UNION,
    VERSION_3,
)

if TYPE_CHECKING:
    from trapline.d.check.scopes import Globals

_VERSION: Final = 3
# Encodings of integers and floats (CTF_INT_*, CTF_FP_*).
_SIGNED, _CHARACTER, _BOOLEAN = 1, 2, 4
_FLOATS: Final = {4: 1, 8: 2, 12: 6, 16: 6}
# The name of C in the header of D.
_PARENT: Final = "C"


class _Container:
    """One container that is being written."""

    def __init__(self, model: Model, parent: _Container | None = None) -> None:
        self._model = model
        self._parent = parent
        self._numbers: dict[object, int] = {}
        self._types: list[bytes] = []
        self._names: dict[str, int] = {"": 0}
        self._strings = bytearray(b"\0")

    def data(self) -> bytes:
        """Return the container as a file."""
        parent = self._name(_PARENT) if self._parent is not None else 0
        types = b"".join(self._types)
        header = struct.pack(VERSION_3.header, 0, parent, 0, 0, 0, 0, len(types), len(self._strings))
        return struct.pack("<HBB", MAGIC, _VERSION, 0) + header + types + bytes(self._strings)

    def known(self, type_: object) -> int | None:
        """Return the number of a type that was added."""
        return self._numbers.get(type_)

    def add(self, type_: Type) -> int:
        """Add a type with all that it refers to; return its number."""
        known = self._parent.known(type_) if self._parent is not None else None
        if known is None:
            known = self.known(type_)
        if known is not None:
            return known
        number = self._reserve(type_)
        self._types[(number & ~VERSION_3.child) - 1] = self._written(type_)
        return number

    def _reserve(self, key: object) -> int:
        """Give a type its number before those that it refers to, which may refer to it."""
        self._types.append(b"")
        number = self._numbers[key] = len(self._types) | (VERSION_3.child if self._parent is not None else 0)
        return number

    def _name(self, text: str) -> int:
        if text not in self._names:
            self._names[text] = len(self._strings)
            self._strings += text.encode() + b"\0"
        return self._names[text]

    def _entry(self, name: str, kind: int, vlen: int, size: int, rest: bytes = b"") -> bytes:
        info = kind << VERSION_3.kind_shift | vlen
        if size < VERSION_3.long_size:
            return struct.pack(VERSION_3.stype, self._name(name), info, size) + rest
        high, low = size >> 32, size & 0xFFFF_FFFF
        return struct.pack(VERSION_3.stype + "II", self._name(name), info, VERSION_3.long_size, high, low) + rest

    def _written(self, type_: Type) -> bytes:
        match type_:
            case Integer(name=name, size=size):
                return self._integer(name, size, _encoding(type_), 8 * size)
            case Float(name=name, size=size):
                return self._entry(name, FLOAT, 0, size, struct.pack("<I", _FLOATS[size] << 24 | 8 * size))
            case Pointer(target=target):
                return self._entry("", POINTER, 0, self.add(target))
            case Array(element=element, count=count):
                extra = struct.pack(VERSION_3.array, self.add(element), self.add(self._model.long), count)
                return self._entry("", ARRAY, 0, 0, extra)
            case Function(returns=returns, parameters=parameters, varargs=varargs):
                numbers = [*map(self.add, parameters), *([0] if varargs else [])]
                extra = struct.pack(f"<{len(numbers)}I", *numbers) + bytes(4 * (len(numbers) & 1))
                return self._entry("", FUNCTION, len(numbers), self.add(returns), extra)
            case Typedef(name=name, target=target):
                return self._entry(name, TYPEDEF, 0, self.add(target))
            case Enumeration():
                return self._enumeration(type_)
            case Composite():
                return self._composite(type_)
        return self._special(type_)

    def _special(self, type_: Special) -> bytes:
        """Write a string as an array of characters of that name; the others have no data, as void."""
        if type_ is STRING:
            return self._entry(str(STRING), TYPEDEF, 0, self.add(Array(CHAR, STRING_SIZE)))
        return self._integer(str(type_), 0, _SIGNED, 0)

    def _integer(self, name: str, size: int, encoding: int, bits: int) -> bytes:
        return self._entry(name, INTEGER, 0, size, struct.pack("<I", encoding << 24 | bits))

    def _enumeration(self, type_: Enumeration) -> bytes:
        if type_.enumerators is None:
            return self._entry(type_.tag, FORWARD, 0, ENUM)
        pairs = [struct.pack("<Ii", self._name(name), value) for name, value in type_.enumerators.items()]
        return self._entry(type_.tag, ENUM, len(pairs), type_.size, b"".join(pairs))

    def _composite(self, type_: Composite) -> bytes:
        kind = STRUCT if type_.kind is Kind.STRUCT else UNION
        if type_.members is None:
            return self._entry(type_.tag, FORWARD, 0, kind)
        is_long = type_.size >= VERSION_3.long_from
        rows = []
        for member in type_.members:
            number = self._bit_field(member.type, member.bits) if member.bits else self.add(member.type)
            name, offset = self._name(member.name), member.offset
            rows.append(
                struct.pack(VERSION_3.long_member, name, number, offset >> 32, offset & 0xFFFF_FFFF)
                if is_long
                else struct.pack(VERSION_3.member, name, number, offset)
            )
        return self._entry(type_.tag, kind, len(rows), type_.size, b"".join(rows))

    def _bit_field(self, type_: Type, bits: int) -> int:
        """Add an integer of some bits of another's."""
        base = resolve(type_)
        integer = base if isinstance(base, Integer) else INT
        key = (integer, bits)
        known = self.known(key)
        if known is None:
            known = self._reserve(key)
            self._types[(known & ~VERSION_3.child) - 1] = self._integer(
                integer.name, integer.size, _encoding(integer), bits
            )
        return known


def _encoding(type_: Integer) -> int:
    boolean = _BOOLEAN if type_.name == "_Bool" else 0
    return type_.signed * _SIGNED | type_.character * _CHARACTER | boolean


def _c_types(model: Model) -> Iterable[Type]:
    """Yield the types of every program: C's, and the typedefs."""
    for words in BASES:
        base = base_type(words.split(), model)
        if base is not None and base is not STRING:
            yield base
    yield from model.typedefs.values()


def containers(names: Globals) -> tuple[bytes, bytes]:
    """Return the containers C and D of a session's programs as CTF, version 3.

    D refers to C, whose name is in its header.
    """
    model = names.model
    parent = _Container(model)
    for type_ in (INT, UNSIGNED, VOID, *_c_types(model)):
        parent.add(type_)
    child = _Container(model, parent)
    declared = (*names.tags.values(), *(one for _value, one in names.enumerators.values()))
    for type_ in (STRING, *declared, *names.typedefs.values()):
        child.add(type_)
    return parent.data(), child.data()
