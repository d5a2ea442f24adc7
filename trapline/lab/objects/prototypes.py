"""C prototypes of the functions of a glue: the widths of their arguments and results.

Only widths and signs matter, so an unknown type name is a machine word without a sign.

    prototype("int dtrace_probe_create(uintptr_t id, const char *module, void *arg)")
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

_DECLARATION: Final = re.compile(
    r"\s*(?P<result>.*?)(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>.*)\)\s*;?\s*", re.DOTALL
)
_WORDS: Final = re.compile(r"[A-Za-z_]\w*|\*|\[|\.\.\.")
_QUALIFIERS: Final = frozenset({"const", "volatile", "struct", "union", "enum", "static", "extern", "restrict"})
# Names of types -> (bytes, signed); 0 bytes: a machine word.
_TYPES: Final = {
    "bool": (1, False), "_Bool": (1, False), "char": (1, True), "int8_t": (1, True), "uint8_t": (1, False),
    "u8": (1, False), "u_char": (1, False), "short": (2, True), "int16_t": (2, True), "uint16_t": (2, False),
    "u16": (2, False), "int": (4, True), "int32_t": (4, True), "uint32_t": (4, False), "u32": (4, False),
    "u_int": (4, False), "dtrace_id_t": (4, False), "long": (0, True), "ssize_t": (0, True), "intptr_t": (0, True),
    "register_t": (0, True), "int64_t": (8, True), "uint64_t": (8, False), "u64": (8, False),
}  # fmt: skip


class PrototypeError(Exception):
    """The declaration cannot be parsed; the message says why."""


class CType(NamedTuple):
    """A type of a parameter or of a result."""

    size: int
    """The size in bytes; 0: a machine word."""
    signed: bool
    text: bool = False
    """Whether it is a `const char *`, whose string is read."""

    def narrowed(self, value: int, word: int) -> int:
        """Return the number that the type's bytes of a register or a word hold."""
        bits = 8 * (self.size or word)
        value &= (1 << bits) - 1
        return value - (1 << bits) if self.signed and value >> bits - 1 else value


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function's name, parameters and result."""

    name: str
    parameters: tuple[CType, ...]
    result: CType | None
    """The type of the result; None: void."""


def prototype(declaration: str) -> Prototype:
    """Return the prototype of a declaration.  Raises `PrototypeError`."""
    found = _DECLARATION.fullmatch(declaration)
    if found is None:
        raise PrototypeError(f"not a C prototype: '{declaration}'")
    inside = [part.strip() for part in found["parameters"].split(",")]
    parameters = tuple(_type(part, named=True) for part in inside if part not in {"", "void", "..."})
    result = _WORDS.findall(found["result"])
    void = [word for word in result if word not in _QUALIFIERS] in (["void"], [])
    return Prototype(found["name"], parameters, None if void else _type(found["result"], named=False))


def _type(text: str, *, named: bool) -> CType:
    """Return the type in a declaration; `named`: a name may follow the type."""
    words = _WORDS.findall(text)
    if "*" in words or "[" in words:
        kept = [word for word in words if word not in {"*", "["}]
        return CType(0, signed=False, text=kept[:2] == ["const", "char"] and words.count("*") == 1)
    names = [word for word in words if word not in _QUALIFIERS]
    unsigned = "unsigned" in names
    names = [word for word in names if word not in {"unsigned", "signed"}]
    if named and len(names) > 1 and names[-1] not in _TYPES:
        names.pop()
    if names[:2] == ["long", "long"]:
        return CType(8, signed=not unsigned)
    size, signed = _TYPES.get(names[0], (0, False)) if names else (4, True)
    return CType(size, signed=signed and not unsigned)
