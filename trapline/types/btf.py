"""C types from the BTF of a Linux kernel, as D's types.

A kernel's structures refer to thousands of others.  So the members of a struct are created when
they are requested, and not before.

Source: Linux Documentation/bpf/btf.rst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.guest.linux_kernel.files.btf import Btf, BtfError, Entry
from emu.guest.linux_kernel.files.btf import Kind as BtfKind
from trapline.d.types.data_models import base_type
from trapline.d.types.rules import align_of
from trapline.d.types.types import (
    VOID,
    Array,
    Composite,
    Enumeration,
    Float,
    Function,
    Integer,
    Kind,
    Member,
    Pointer,
    Type,
    Typedef,
)

_KEYWORDS: Final = {
    "struct": (BtfKind.STRUCT,),
    "union": (BtfKind.UNION,),
    "enum": (BtfKind.ENUM, BtfKind.ENUM64),
}
# Encodings of an integer: bits 24 to 27 of the word that follows it.
_SIGNED, _CHARACTER = 1, 2
# The largest depth of types inside types; C requires 12 declarators and 63 levels of structs.
_DEEPEST: Final = 128
_CHARS: Final = frozenset({"char", "signed char", "unsigned char"})
# The kernel's variables have no types in BTF, except per-CPU ones; these variables are used by many scripts.
_VARIABLES: Final = {
    "jiffies": "unsigned long",
    "jiffies_64": "u64",
    "init_task": "struct task_struct",
    "nr_threads": "int",
    "total_forks": "unsigned long",
    "avenrun": "unsigned long",
    "linux_banner": "char",
    "saved_command_line": "char *",
    "init_mm": "struct mm_struct",
    "init_uts_ns": "struct uts_namespace",
    "max_pfn": "unsigned long",
    "panic_timeout": "int",
    "system_state": "enum system_states",
}


class _Lazy(Composite):
    """A struct or union whose members are created when they are requested."""

    __slots__ = ("_made", "_make")
    _depth = 0
    """The depth of the alignments that are being computed, each of which is needed for the previous
    one."""

    def __init__(self, kind: Kind, tag: str, size: int, make: Callable[[], tuple[Member, ...]]) -> None:
        self._made: tuple[Member, ...] | None = None
        self._make = make
        super().__init__(kind, tag, None, size)

    @property
    def members(self) -> tuple[Member, ...]:
        """The members."""
        if self._made is None:
            self._made = self._make()
        return self._made

    @members.setter
    def members(self, value: tuple[Member, ...] | None) -> None:
        """Ignore the members: they come from the kernel."""

    @property
    def alignment(self) -> int:
        """The alignment in bytes; 1 for a type that contains itself."""
        if _Lazy._depth > _DEEPEST:
            return 1
        _Lazy._depth += 1
        try:
            return max((align_of(member.type) for member in self.members), default=1)
        finally:
            _Lazy._depth -= 1

    @alignment.setter
    def alignment(self, value: int) -> None:
        """Ignore the alignment: it follows from the members."""


class BtfTypes:
    """The types of a kernel.  Implements `trapline.types.kernel.Types`."""

    def __init__(self, btf: Btf) -> None:
        self._btf = btf
        self._made: dict[int, Type] = {}
        self._making: set[int] = set()
        """Numbers of types that are being made, each for the sake of another."""

    def typedef(self, name: str) -> Type | None:
        """Return what a typedef names."""
        return self._found(self._btf.find(name, BtfKind.TYPEDEF))

    def tag(self, keyword: str, tag: str) -> Composite | Enumeration | None:
        """Return the struct, union or enum (`keyword`) of a tag."""
        found = self._found(self._btf.find(tag, *_KEYWORDS[keyword])) if keyword in _KEYWORDS else None
        return found if isinstance(found, Composite | Enumeration) else None

    def variable(self, name: str) -> Type | None:
        """Return the type of a variable: of one CPU's, or one of the well-known."""
        known = self._btf.find(name, BtfKind.VAR)
        if known is not None:
            return self._type(known.size)
        written = _VARIABLES.get(name)
        return None if written is None else self.written(written)

    def written(self, written: str) -> Type | None:
        """Return a type by its text: a base type, a tag or a typedef, or a pointer to one."""
        plain = written.removesuffix(" *")
        keyword, _, tag = plain.rpartition(" ")
        if keyword in _KEYWORDS:
            type_: Type | None = self.tag(keyword, tag)
        else:
            type_ = base_type(plain.split()) or self.typedef(plain)
        return Pointer(type_) if type_ is not None and plain != written else type_

    def function(self, name: str) -> Function | None:
        """Return the type of a function."""
        known = self._btf.find(name, BtfKind.FUNC)
        found = None if known is None else self._type(known.size)
        return found if isinstance(found, Function) else None

    def _found(self, entry: Entry | None) -> Type | None:
        return None if entry is None else self._type(entry.number)

    # -- making types

    def _type(self, number: int) -> Type:
        if number not in self._made:
            try:
                entry = self._btf.resolved(number, typedefs=False)
            except BtfError:
                return VOID
            if entry.number not in self._made:
                if entry.number in self._making or len(self._making) > _DEEPEST:
                    return VOID  # for example a pointer to itself: no compiler generates one
                self._making.add(entry.number)
                try:
                    self._made[entry.number] = self._make(entry)
                finally:
                    self._making.discard(entry.number)
            self._made[number] = self._made[entry.number]
        return self._made[number]

    def _make(self, entry: Entry) -> Type:
        match entry.kind:
            case BtfKind.INT:
                return _integer(entry, self._btf.words(entry, 1)[0])
            case BtfKind.FLOAT:
                known = base_type(entry.name.split())
                return known if isinstance(known, Float) else Float(entry.name, entry.size)
            case BtfKind.PTR:
                return Pointer(self._type(entry.size))
            case BtfKind.ARRAY:
                element, _, count = self._btf.words(entry, 3)
                return Array(self._type(element), count)
            case BtfKind.STRUCT | BtfKind.UNION:
                return _Lazy(Kind[entry.kind.name], entry.name, entry.size, lambda: self._members(entry))
            case BtfKind.ENUM | BtfKind.ENUM64:
                return Enumeration(entry.name, self._enumerators(entry), entry.size)
            case BtfKind.FWD:
                return Composite(Kind.UNION if entry.flag else Kind.STRUCT, entry.name)
            case BtfKind.TYPEDEF:
                return Typedef(entry.name, self._type(entry.size))
            case BtfKind.FUNC_PROTO:
                return self._signature(entry)
            case _:
                return VOID

    def _members(self, entry: Entry) -> tuple[Member, ...]:
        return tuple(
            Member(member.name, self._type(member.type), member.offset, member.bits)
            for member in self._btf.members(entry)
        )

    def _enumerators(self, entry: Entry) -> dict[str, int]:
        width = 3 if entry.kind is BtfKind.ENUM64 else 2
        words = self._btf.words(entry, width * entry.vlen)
        found = {}
        for index in range(0, len(words), width):
            value = words[index + 1] | (words[index + 2] << 32 if width == 3 else 0)
            sign = 1 << (63 if width == 3 else 31)
            found[self._btf.string(words[index])] = (value ^ sign) - sign if entry.flag else value
        return found

    def _signature(self, entry: Entry) -> Function:
        words = self._btf.words(entry, 2 * entry.vlen)
        numbers = words[1::2]
        varargs = bool(numbers) and numbers[-1] == 0
        parameters = tuple(self._type(number) for number in (numbers[:-1] if varargs else numbers))
        return Function(self._type(entry.size), parameters, varargs)


def _integer(entry: Entry, data: int) -> Integer:
    """Return an integer: D's own if it is the same."""
    encoding = data >> 24 & 0xF
    known = base_type(entry.name.split())
    signed = bool(encoding & _SIGNED)
    if isinstance(known, Integer) and (known.size, known.signed) == (entry.size, signed):
        return known
    return Integer(entry.name, entry.size, signed, bool(encoding & _CHARACTER) or entry.name in _CHARS)
