"""Fetch arguments in machine code, as by `trapline.ftrace.fetch`.

If memory is out of reach for machine code, as at every fault, Python does the whole hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emu.native.builder import Callee, Function
from emu.native.operations import Value, Word
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
from trapline.ftrace.fetch import shown
from trapline.ftrace.native.text import NUMBER_SIZE, STRING_MAX, Text

if TYPE_CHECKING:
    from emu.isa.base import Isa

# The text around a value, and around the values of an array.
_AROUND = 8


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The sources of arguments."""

    isa: Isa
    public: Mapping[str, int]
    """Unicorn's numbers of the registers that are not words of the CPU state."""
    file_start: Value
    """The address of the file's first byte, as if all of it were mapped like the probe."""
    python: Callable[[], None]
    """Writes how the function leaves a hit to Python."""


def most(argument: FetchArgument) -> int:
    """Return the largest size in bytes of an argument's text, with its name."""
    element = STRING_MAX if argument.type.name == "string" else NUMBER_SIZE
    return len(argument.name) + len(argument.text) + max(1, argument.type.count) * (element + _AROUND) + _AROUND


class Values:
    """Reads and writes the arguments of one event."""

    def __init__(self, f: Function, text: Text, around: Surroundings) -> None:
        self._f = f
        self._text = text
        self._around = around
        self._isa = around.isa

    def number(self, argument: FetchArgument) -> Value | None:
        """Return a number, cut to its type; None: the argument is not a number."""
        kind, expression = argument.type, argument.expression
        if kind.name == "string" or kind.count or isinstance(expression, Immediate | Comm):
            return None
        if not isinstance(expression, Dereference | Memory):
            return self._cut(self._word(expression), kind)
        return self._cut(self._load(self._address(expression), kind.size), kind)

    def write(self, argument: FetchArgument, number: Value | None) -> None:
        """Write an argument's value; `number` is what `number` returned."""
        kind, expression, text = argument.type, argument.expression, self._text
        if number is not None:
            self._show(number, kind)
        elif isinstance(expression, Immediate):
            value = expression.value
            text.constant(f'"{value}"' if isinstance(value, str) else shown(value, kind))
        elif isinstance(expression, Comm):
            text.constant('"')
            text.name(self._f.call(Callee("execname")))
            text.constant('"')
        elif not isinstance(expression, Dereference | Memory):
            # If an array is not in memory, only its first element is shown.
            self._show(self._cut(self._word(expression), kind), kind)
        elif not kind.count:
            text.string(self._address(expression))
        else:
            self._array(self._address(expression), kind)

    def _array(self, address: Value, kind: ValueType) -> None:
        f, text = self._f, self._text
        strings = kind.name == "string"
        step = self._isa.word if strings else kind.size
        text.constant("{")
        index = f.variable(0)
        with f.loop() as loop:
            here = f.add(address, f.mul(index.get(), step))
            loaded = self._load(here, step)
            if strings:
                text.string(loaded)
            else:
                self._show(self._cut(loaded, kind), kind)
            index.set(f.add(index.get(), 1))
            loop.leave_if(f.uge(index.get(), kind.count))
            text.constant(",")
        text.constant("}")

    def _cut(self, value: Value, kind: ValueType) -> Value:
        """Return a value in its type, with its sign extended."""
        f = self._f
        if kind.width:
            whole = f.low(value, kind.size)
            return f.and_(f.lshr(whole, kind.shift), (1 << kind.width) - 1)
        return f.low(value, kind.size, signed=is_signed(kind))

    def _show(self, value: Value, kind: ValueType) -> None:
        text = self._text
        if kind.width:
            text.number(value)
        elif kind.name == "char":
            text.constant("'")
            text.character(value)
            text.constant("'")
        elif kind.name[0] == "x":
            text.hexadecimal(value)
        elif is_signed(kind):
            text.signed(value)
        else:
            text.number(value)

    # -- expressions

    def _register(self, name: str) -> Value:
        f, slot = self._f, self._isa.registers.slots.get(name)
        if slot is not None:
            return f.load(f.module.symbol("env"), 8 * slot)
        buffer = f.buffer(8)
        f.store(buffer, 0)
        f.call(f.module.symbol("register_read"), f.module.symbol("handle"), self._around.public[name], buffer)
        return f.load(buffer)

    def _word(self, expression: Expression) -> Value:
        f, isa = self._f, self._isa
        match expression:
            case Register(name):
                return self._register(name)
            case Stack(None):
                return self._register(isa.registers.sp)
            case Stack(index):
                return self._load(f.add(self._register(isa.registers.sp), isa.word * (index or 0)), isa.word)
            case ReturnValue():
                return self._register(isa.calling.results[0])
            case Immediate(value):
                return f.word(value if isinstance(value, int) else 0)
            case Dereference() | Memory():
                return self._load(self._address(expression), isa.word)
            case Comm():
                return f.word(0)

    def _address(self, expression: Dereference | Memory) -> Value:
        f = self._f
        if isinstance(expression, Memory):
            return (
                f.add(self._around.file_start, expression.address) if expression.in_file else f.word(expression.address)
            )
        return f.and_(f.add(self._word(expression.inner), expression.offset), self._isa.address_mask)

    def _load(self, address: Word, size: int) -> Value:
        f = self._f
        pointer = f.call(Callee("user_pointer"), address, size)
        with f.when(f.eq(pointer, 0), likely=False):
            self._around.python()
        return f.load(pointer, size=size)


def is_signed(kind: ValueType) -> bool:
    """Return whether a number of this type may be negative."""
    return kind.name[0] == "s" and kind.name != "string" and not kind.width
