"""Text that machine code writes: constants, numbers, names, and strings of the guest.

The cursor moves with each piece.  There is always more space after it than a line needs,
so pieces of a fixed size are copied, and the bytes after their end are overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.engine.memory.pages import PAGE
from emu.native.builder import Callee, Function, Module
from emu.native.guest import NAME_SIZE
from emu.native.operations import Condition, Value, Word

# Size of a number, with space for its alignment.
NUMBER_SIZE: Final = 24
# The largest number of shown bytes of a string (`trapline.ftrace.fetch`).
STRING_MAX: Final = 4096
_HIGH_BITS: Final = 0x8080_8080_8080_8080
_ASCII: Final = 0x80
_DIGITS: Final = b"0123456789abcdef"


class Text:
    """Writes a line; `module` gets the functions that the pieces need.

    `python()` writes how the function leaves a hit to Python, for a text that is not ASCII.
    """

    def __init__(self, f: Function, cursor: Word, python: Callable[[], None]) -> None:
        self._f = f
        self._cursor = f.variable(cursor)
        self._python = python
        self._constants = 0

    @property
    def cursor(self) -> Value:
        """The address of the next piece."""
        return self._cursor.get()

    def unless(self, condition: Condition) -> None:
        """Leave the hit to Python if a condition is true."""
        with self._f.when(condition, likely=False):
            self._python()

    def constant(self, text: str) -> None:
        """Write a text that is always the same."""
        content, f = text.encode(), self._f
        if content:
            self._constants += 1
            f.copy(self.cursor, f.module.data(f"text{self._constants}", content), len(content))
            self._cursor.set(f.add(self.cursor, len(content)))

    def number(self, value: Word, base: int = 10, least: int = 1, fill: str = " ") -> None:
        """Write a number without a sign; fill a shorter one at the front to `least` characters."""
        self._cursor.set(self._f.call(Callee(f"number{base}"), self.cursor, value, least, ord(fill)))

    def signed(self, value: Value) -> None:
        """Write a number with its sign."""
        f = self._f
        with f.when(f.slt(value, 0)):
            self.constant("-")
        self.number(f.select(f.slt(value, 0), f.neg(value), value))

    def hexadecimal(self, value: Word) -> None:
        """Write a number as 0x..."""
        self.constant("0x")
        self.number(value, 16)

    def character(self, value: Value) -> None:
        """Write a character of Latin-1 in UTF-8."""
        f = self._f
        two = f.or_(0x80C0, f.or_(f.lshr(value, 6), f.shl(f.and_(value, 0x3F), 8)))
        is_ascii = f.ult(value, _ASCII)
        f.store(self.cursor, f.select(is_ascii, value, two), size=2)
        self._cursor.set(f.add(self.cursor, f.select(is_ascii, 1, 2)))

    def name(self, address: Value, least: int = 0) -> None:
        """Write a thread's name, which may be shorter than `least`: then there are spaces before."""
        f = self._f
        self.unless(f.eq(address, 0))
        words = [f.load(address, 8 * index) for index in range(NAME_SIZE // 8)]
        combined = f.or_(f.or_(words[0], words[1]), words[2])
        self.unless(f.ne(f.and_(combined, _HIGH_BITS), 0))
        length = f.call(f.module.external("strnlen", 2), address, NAME_SIZE)
        self.unless(f.uge(length, NAME_SIZE - 1))  # it may be cut
        if least:
            short = f.ult(length, least)
            f.fill(self.cursor, ord(" "), least)
            self._cursor.set(f.add(self.cursor, f.select(short, f.sub(least, length), 0)))
        f.copy(self.cursor, address, NAME_SIZE)
        self._cursor.set(f.add(self.cursor, length))

    def left(self, start: Value, least: int) -> None:
        """Fill up the text from `start` with spaces at its end."""
        f = self._f
        written = f.sub(self.cursor, start)
        f.fill(self.cursor, ord(" "), least)
        self._cursor.set(f.add(self.cursor, f.select(f.ult(written, least), f.sub(least, written), 0)))

    def string(self, address: Value) -> None:
        """Write a string of the guest, in quotes."""
        f = self._f
        self.constant('"')
        end = f.call(Callee("string"), self.cursor, address)
        self.unless(f.eq(end, 0))
        self._cursor.set(end)
        self.constant('"')


def write_functions(module: Module) -> None:
    """Write the functions that `Text` calls; `user_pointer` is the guest's."""
    _write_number(module, 10)
    _write_number(module, 16)
    _write_string(module)


def _write_number(module: Module, base: int) -> None:
    """u64 number<base>(target, value, least, fill): write digits; returns their end."""
    f = module.function(f"number{base}", 4, local=True)
    target, value, least, fill = f.parameters
    digits = module.data("digits", _DIGITS)
    buffer = f.buffer(NUMBER_SIZE)
    for word in range(NUMBER_SIZE // 8):
        f.store(buffer, f.mul(fill, 0x0101_0101_0101_0101), 8 * word)
    at, left = f.variable(NUMBER_SIZE), f.variable(value)
    with f.loop() as loop:
        at.set(f.sub(at.get(), 1))
        digit = f.load(f.add(digits, f.urem(left.get(), base)), size=1)
        f.store(f.add(buffer, at.get()), digit, size=1)
        left.set(f.udiv(left.get(), base))
        loop.leave_if(f.eq(left.get(), 0))
    furthest = f.sub(NUMBER_SIZE, least)
    start = f.select(f.ult(furthest, at.get()), furthest, at.get())
    f.copy(target, f.add(buffer, start), f.sub(NUMBER_SIZE, start))
    f.ret(f.add(target, f.sub(NUMBER_SIZE, start)))


def _write_string(module: Module) -> None:
    """u64 string(buffer, address): copy a string of the guest; returns its end, 0: use Python."""
    f = module.function("string", 2, local=True)
    buffer, address = f.parameters
    copied = f.variable(0)
    with f.loop() as pages:
        pages.leave_if(f.uge(copied.get(), STRING_MAX))
        here = f.add(address, copied.get())
        source = f.call(Callee("user_pointer"), here, 1)
        f.ret_if(f.eq(source, 0), 0, likely=False)
        left, most = f.sub(PAGE, f.and_(here, PAGE - 1)), f.sub(STRING_MAX, copied.get())
        size = f.select(f.ult(left, most), left, most)
        first, index = copied.get(), f.variable(0)
        with f.loop() as bytes_:
            bytes_.leave_if(f.uge(index.get(), size))
            byte = f.load(f.add(source, index.get()), size=1)
            target = f.add(f.add(buffer, first), index.get())
            f.ret_if(f.eq(byte, 0), target)
            f.ret_if(f.uge(byte, _ASCII), 0, likely=False)
            f.store(target, byte, size=1)
            index.set(f.add(index.get(), 1))
        copied.set(f.add(first, size))
    f.ret(f.add(buffer, copied.get()))
