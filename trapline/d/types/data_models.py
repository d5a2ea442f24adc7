"""The two data models, and the types that differ between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from emu.support.immutable import immutable
from trapline.d.types.types import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG_DOUBLE,
    LONG_LONG,
    SHORT,
    SIGNED_CHAR,
    STRING,
    UNSIGNED,
    UNSIGNED_CHAR,
    UNSIGNED_LONG_LONG,
    UNSIGNED_SHORT,
    VOID,
    Float,
    Integer,
    Pointer,
    Special,
    Type,
    Typedef,
)
from trapline.framework.base.program import DataModel


@immutable
class Model:
    """A data model: the types that long and pointers decide."""

    model: DataModel
    pointer: int
    """Bytes of a pointer."""
    long: Integer
    unsigned_long: Integer
    typedefs: Mapping[str, Typedef]
    """The typedefs every program sees."""

    def pointer_to(self, target: Type, *, userland: bool = False) -> Pointer:
        """Return the type of pointers to a type."""
        return Pointer(target, userland, self.pointer)


def _model(model: DataModel, size: int) -> Model:
    long = Integer("long", size, signed=True)
    unsigned_long = Integer("unsigned long", size, signed=False)
    wide = size == 8
    word, unsigned_word = (long, unsigned_long) if wide else (INT, UNSIGNED)
    targets = {
        "int8_t": CHAR,
        "int16_t": SHORT,
        "int32_t": INT,
        "int64_t": long if wide else LONG_LONG,
        "uint8_t": UNSIGNED_CHAR,
        "uint16_t": UNSIGNED_SHORT,
        "uint32_t": UNSIGNED,
        "uint64_t": unsigned_long if wide else UNSIGNED_LONG_LONG,
        **dict.fromkeys(("intptr_t", "ssize_t", "ptrdiff_t"), word),
        **dict.fromkeys(("uintptr_t", "size_t"), unsigned_word),
        "uchar_t": UNSIGNED_CHAR,
        "ushort_t": UNSIGNED_SHORT,
        "uint_t": UNSIGNED,
        "ulong_t": unsigned_long,
        "u_longlong_t": UNSIGNED_LONG_LONG,
        **dict.fromkeys(("id_t", "pid_t"), INT if wide else long),
    }
    return Model(model, size, long, unsigned_long, {name: Typedef(name, type_) for name, type_ in targets.items()})


LP64: Final = _model(DataModel.LP64, 8)
ILP32: Final = _model(DataModel.ILP32, 4)
MODELS: Final = {one.model: one for one in (LP64, ILP32)}

# The type of what is 64 bits in either model.
INT64: Final = LP64.typedefs["int64_t"]


# Words of a type, sorted -> the type; long is as in LP64.
BASES: Final[dict[str, Special | Integer | Float]] = {
    "": INT,
    "signed": INT,
    "unsigned": UNSIGNED,
    "char": CHAR,
    "char signed": SIGNED_CHAR,
    "char unsigned": UNSIGNED_CHAR,
    "short": SHORT,
    "short signed": SHORT,
    "short unsigned": UNSIGNED_SHORT,
    "int": INT,
    "int signed": INT,
    "int unsigned": UNSIGNED,
    "int short": SHORT,
    "int short signed": SHORT,
    "int short unsigned": UNSIGNED_SHORT,
    "long": LP64.long,
    "long signed": LP64.long,
    "long unsigned": LP64.unsigned_long,
    "int long": LP64.long,
    "int long signed": LP64.long,
    "int long unsigned": LP64.unsigned_long,
    "long long": LONG_LONG,
    "long long signed": LONG_LONG,
    "long long unsigned": UNSIGNED_LONG_LONG,
    "int long long": LONG_LONG,
    "int long long signed": LONG_LONG,
    "int long long unsigned": UNSIGNED_LONG_LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "double long": LONG_DOUBLE,
    "void": VOID,
    "string": STRING,
    "_Bool": BOOL,
}


def base_type(words: Iterable[str], model: Model = LP64) -> Special | Integer | Float | None:
    """Return the type that words make, in any order; None: they do not make one."""
    base = BASES.get(" ".join(sorted(words)))
    if base == LP64.long:
        return model.long
    return model.unsigned_long if base == LP64.unsigned_long else base
