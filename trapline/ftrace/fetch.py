"""Reading the values of fetch arguments when an event is hit, and showing them.

Source: Linux 6.12 kernel/trace/trace_probe_tmpl.h.
"""

from __future__ import annotations

from typing import Final, Protocol

from emu.isa.base import Isa
from emu.support.words import WORD_MASK, BadAddressError
from trapline.ftrace.expressions import (
    Comm,
    Dereference,
    Expression,
    FetchArgument,
    Immediate,
    Memory,
    Register,
    ReturnValue,
    Stack,
    ValueType,
)

# The largest number of shown bytes of a string.
_STRING_MAX: Final = 4096


class Target(Protocol):
    """The state that an event reads when it is hit."""

    comm: str

    def register(self, name: str) -> int:
        """Return a register, by the ISA's own name."""
        ...

    def load(self, address: int, size: int) -> bytes:
        """Read memory.  Raises `BadAddressError`."""
        ...

    def file_address(self, offset: int) -> int:
        """Return the address of a byte of the probed file, if all of it is mapped at one distance."""
        ...


def fetch(argument: FetchArgument, target: Target, isa: Isa) -> str:
    """Read an argument and show it.  A number that cannot be read is 0, a string is (fault)."""
    kind, expression = argument.type, argument.expression
    if isinstance(expression, Immediate):
        return (
            f'"{expression.value}"' if isinstance(expression.value, str) else shown(expression.value & WORD_MASK, kind)
        )
    if isinstance(expression, Comm):
        return f'"{target.comm}"'
    if not isinstance(expression, (Dereference, Memory)):
        return shown(_word(expression, target, isa), kind)
    try:
        address = _address(expression, target, isa)
    except BadAddressError:
        return "(fault)" if kind.name == "string" else shown(0, kind)
    if not kind.count:
        return _at(address, kind, target)
    step = isa.word if kind.name == "string" else kind.size
    items = (_element(address + index * step, kind, target, isa) for index in range(kind.count))
    return "{" + ",".join(items) + "}"


def _element(address: int, kind: ValueType, target: Target, isa: Isa) -> str:
    if kind.name != "string":
        return _at(address, kind, target)
    try:
        return _at(int.from_bytes(target.load(address, isa.word), "little"), kind, target)
    except BadAddressError:
        return "(fault)"


def _at(address: int, kind: ValueType, target: Target) -> str:
    if kind.name == "string":
        text = _string(address, target)
        return "(fault)" if text is None else f'"{text}"'
    try:
        return shown(int.from_bytes(target.load(address & WORD_MASK, kind.size), "little"), kind)
    except BadAddressError:
        return shown(0, kind)


def _address(expression: Dereference | Memory, target: Target, isa: Isa) -> int:
    """Return the address of the outermost dereference.  Raises `BadAddressError`."""
    if isinstance(expression, Memory):
        return target.file_address(expression.address) if expression.in_file else expression.address
    return _word(expression.inner, target, isa) + expression.offset & isa.address_mask


def _word(expression: Expression, target: Target, isa: Isa) -> int:
    """Return a whole word.  Raises `BadAddressError`."""
    match expression:
        case Register(name):
            return target.register(name)
        case Stack(None):
            return target.register(isa.registers.sp)
        case Stack(index):
            return _stack_word(target, isa, index or 0)
        case ReturnValue():
            return target.register(isa.calling.results[0])
        case Immediate(value):
            return value & WORD_MASK if isinstance(value, int) else 0
        case Dereference() | Memory():
            return int.from_bytes(target.load(_address(expression, target, isa), isa.word), "little")
        case Comm():
            return 0


def _stack_word(target: Target, isa: Isa, index: int) -> int:
    try:
        return int.from_bytes(target.load(target.register(isa.registers.sp) + isa.word * index, isa.word), "little")
    except BadAddressError:
        return 0


def _string(address: int, target: Target) -> str | None:
    data = bytearray()
    while len(data) < _STRING_MAX:
        try:
            byte = target.load(address + len(data), 1)
        except BadAddressError:
            if not data:
                return None
            break
        if byte == b"\0":
            break
        data += byte
    return data.decode("utf-8", "replace")


def shown(value: int, kind: ValueType) -> str:
    """Return the text of a number of a type."""
    value &= (1 << 8 * kind.size) - 1
    if kind.width:
        return str(value >> kind.shift & (1 << kind.width) - 1)
    if kind.name == "char":
        return f"'{chr(value)}'"
    if kind.name[0] == "x":
        return f"{value:#x}"
    if kind.name[0] == "s" and value >> 8 * kind.size - 1:
        value -= 1 << 8 * kind.size
    return str(value)
