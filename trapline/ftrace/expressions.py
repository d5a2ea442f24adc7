"""Fetch arguments as data: the values that an event reads when it is hit, and their types.

Source: Linux 6.12 kernel/trace/trace_probe.h (struct fetch_insn, struct probe_arg).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

# Size in bytes of a string's location in the fixed part of a record (__data_loc).
_STRING_PLACE: Final = 4


class Register(NamedTuple):
    """%REG."""

    name: str


class Stack(NamedTuple):
    """$stackN: a word of the stack; None: the stack pointer itself."""

    place: int | None


class ReturnValue(NamedTuple):
    """$retval."""


class Comm(NamedTuple):
    """$comm: the thread's name."""


class Memory(NamedTuple):
    """@ADDRESS, or @+OFFSET in the file."""

    address: int
    in_file: bool


class Immediate(NamedTuple):
    """A constant."""

    value: int | str


class Dereference(NamedTuple):
    """+OFFSET(EXPRESSION)."""

    offset: int
    inner: Expression


Expression = Register | Stack | ReturnValue | Comm | Memory | Immediate | Dereference


@dataclass(frozen=True, slots=True)
class ValueType:
    """The size and the format of a value."""

    name: str
    """u8 ... x64, char, string; for a bit field the name of its container."""
    size: int
    count: int = 0
    """Elements of an array, 0 for none."""
    width: int = 0
    """Bits of a bit field, 0 for none."""
    shift: int = 0
    """Its lowest bit."""


@dataclass(frozen=True, slots=True)
class FetchArgument:
    """One argument of an event."""

    name: str
    expression: Expression
    type: ValueType
    text: str
    """The source text, without the name."""

    @property
    def size(self) -> int:
        """Its bytes in the fixed part of a record; for a string they hold the string's location."""
        return (_STRING_PLACE if self.type.name == "string" else self.type.size) * max(1, self.type.count)
