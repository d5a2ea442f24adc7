"""Values and operations of machine code under construction; a method appends an instruction.

They have no branches; `emu.native.builder` has the functions that consist of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.native.block import WORD_SIZE
from emu.support.words import WORD_MASK


class Value(str):
    """A 64-bit word in machine code, with its name in the text."""

    __slots__ = ()


class Condition(str):
    """A truth value in machine code, with its name in the text."""

    __slots__ = ()


# A word as an argument of methods: Python's numbers are constants.
Word = Value | int


def text_of(word: Word) -> str:
    """Return a word in the form of the text; a number is truncated to 64 bits, and signed."""
    if isinstance(word, str):
        return word
    word &= WORD_MASK
    return str(word - (word >> 63 << 64))


_COPY: Final = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
_FILL: Final = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


class Operations:
    """Code to which operations are appended; `declare` declares a function that they use."""

    def __init__(self, declare: Callable[[str, str], None]) -> None:
        self._declare = declare
        self._body = ["body:"]
        self._count = 0

    def line(self, text: str) -> None:
        """Append an instruction that has no result."""
        self._body.append(f"  {text}")

    def _named(self, text: str) -> str:
        name = self._new()
        self.line(f"{name} = {text}")
        return name

    def _new(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def value(self, text: str) -> Value:
        """Append an instruction whose result is a word."""
        return Value(self._named(text))

    def condition(self, text: str) -> Condition:
        """Append an instruction whose result is a truth value."""
        return Condition(self._named(text))

    # Words

    def word(self, value: Word) -> Value:
        """Return a word; a number becomes a constant."""
        return Value(text_of(value))

    def _binary(self, operation: str, left: Word, right: Word) -> Value:
        return self.value(f"{operation} i64 {text_of(left)}, {text_of(right)}")

    def add(self, left: Word, right: Word) -> Value:
        """Return `left` + `right`."""
        return self._binary("add", left, right)

    def sub(self, left: Word, right: Word) -> Value:
        """Return `left` - `right`."""
        return self._binary("sub", left, right)

    def mul(self, left: Word, right: Word) -> Value:
        """Return the low word of the product."""
        return self._binary("mul", left, right)

    def and_(self, left: Word, right: Word) -> Value:
        """Return the bits that both have."""
        return self._binary("and", left, right)

    def or_(self, left: Word, right: Word) -> Value:
        """Return the bits that either has."""
        return self._binary("or", left, right)

    def xor(self, left: Word, right: Word) -> Value:
        """Return the bits that exactly one of them has."""
        return self._binary("xor", left, right)

    def shl(self, value: Word, count: Word) -> Value:
        """Return a word shifted left; the count must be below 64."""
        return self._binary("shl", value, count)

    def lshr(self, value: Word, count: Word) -> Value:
        """Return a word shifted right, filled with zeros; the count must be below 64."""
        return self._binary("lshr", value, count)

    def ashr(self, value: Word, count: Word) -> Value:
        """Return a word shifted right, filled with its sign; the count must be below 64."""
        return self._binary("ashr", value, count)

    def udiv(self, left: Word, right: Word) -> Value:
        """Return an unsigned quotient; `right` must not be 0."""
        return self._binary("udiv", left, right)

    def urem(self, left: Word, right: Word) -> Value:
        """Return an unsigned remainder; `right` must not be 0."""
        return self._binary("urem", left, right)

    def sdiv(self, left: Word, right: Word) -> Value:
        """Return a signed quotient, cut; `right` must not be 0, nor -1 for the least number."""
        return self._binary("sdiv", left, right)

    def srem(self, left: Word, right: Word) -> Value:
        """Return a signed remainder; `right` must not be 0, nor -1 for the least number."""
        return self._binary("srem", left, right)

    def not_(self, value: Word) -> Value:
        """Return a word with all bits inverted."""
        return self.xor(value, -1)

    def neg(self, value: Word) -> Value:
        """Return 0 - `value`."""
        return self.sub(0, value)

    def low(self, value: Word, size: int, *, signed: bool = False) -> Value:
        """Return the low `size` bytes, extended to a word."""
        if size == WORD_SIZE:
            return self.word(value)
        cut = self._named(f"trunc i64 {text_of(value)} to i{8 * size}")
        return self.value(f"{'sext' if signed else 'zext'} i{8 * size} {cut} to i64")

    # Conditions

    def _compare(self, how: str, left: Word, right: Word) -> Condition:
        return self.condition(f"icmp {how} i64 {text_of(left)}, {text_of(right)}")

    def eq(self, left: Word, right: Word) -> Condition:
        """Return whether they are equal."""
        return self._compare("eq", left, right)

    def ne(self, left: Word, right: Word) -> Condition:
        """Return whether they differ."""
        return self._compare("ne", left, right)

    def ult(self, left: Word, right: Word) -> Condition:
        """Return whether `left` < `right`, unsigned."""
        return self._compare("ult", left, right)

    def ule(self, left: Word, right: Word) -> Condition:
        """Return whether `left` <= `right`, unsigned."""
        return self._compare("ule", left, right)

    def ugt(self, left: Word, right: Word) -> Condition:
        """Return whether `left` > `right`, unsigned."""
        return self._compare("ugt", left, right)

    def uge(self, left: Word, right: Word) -> Condition:
        """Return whether `left` >= `right`, unsigned."""
        return self._compare("uge", left, right)

    def slt(self, left: Word, right: Word) -> Condition:
        """Return whether `left` < `right`, signed."""
        return self._compare("slt", left, right)

    def sle(self, left: Word, right: Word) -> Condition:
        """Return whether `left` <= `right`, signed."""
        return self._compare("sle", left, right)

    def sgt(self, left: Word, right: Word) -> Condition:
        """Return whether `left` > `right`, signed."""
        return self._compare("sgt", left, right)

    def sge(self, left: Word, right: Word) -> Condition:
        """Return whether `left` >= `right`, signed."""
        return self._compare("sge", left, right)

    def both(self, left: Condition, right: Condition) -> Condition:
        """Return whether both are true; both are computed."""
        return self.condition(f"and i1 {left}, {right}")

    def either(self, left: Condition, right: Condition) -> Condition:
        """Return whether at least one is true; both are computed."""
        return self.condition(f"or i1 {left}, {right}")

    def fails(self, condition: Condition) -> Condition:
        """Return whether a condition is false."""
        return self.condition(f"xor i1 {condition}, true")

    def flag(self, condition: Condition) -> Value:
        """Return 1 if a condition is true, else 0."""
        return self.value(f"zext i1 {condition} to i64")

    def select(self, condition: Condition, taken: Word, other: Word) -> Value:
        """Return one of two words; both are computed."""
        return self.value(f"select i1 {condition}, i64 {text_of(taken)}, i64 {text_of(other)}")

    # Memory

    def _pointer(self, address: Word, offset: Word = 0) -> str:
        sum_ = address if isinstance(offset, int) and not offset else self.add(address, offset)
        return self._named(f"inttoptr i64 {text_of(sum_)} to ptr")

    def load(self, address: Word, offset: Word = 0, size: int = 8, *, signed: bool = False) -> Value:
        """Return the `size` bytes at `address` + `offset`, which need not be aligned."""
        loaded = self._named(f"load i{8 * size}, ptr {self._pointer(address, offset)}, align 1")
        if size == WORD_SIZE:
            return Value(loaded)
        return self.value(f"{'sext' if signed else 'zext'} i{8 * size} {loaded} to i64")

    def store(self, address: Word, value: Word, offset: Word = 0, size: int = 8) -> None:
        """Write the low `size` bytes of a word to `address` + `offset`."""
        cut = text_of(value)
        if size != WORD_SIZE:
            cut = self._named(f"trunc i64 {cut} to i{8 * size}")
        self.line(f"store i{8 * size} {cut}, ptr {self._pointer(address, offset)}, align 1")

    def copy(self, target: Word, source: Word, size: Word) -> None:
        """Copy bytes; the areas may not overlap."""
        self._declare("memcpy", _COPY)
        pointers = f"ptr {self._pointer(target)}, ptr {self._pointer(source)}"
        self.line(f"call void @llvm.memcpy.p0.p0.i64({pointers}, i64 {text_of(size)}, i1 false)")

    def fill(self, target: Word, value: int, size: Word) -> None:
        """Write one byte `size` times."""
        self._declare("memset", _FILL)
        pointer = f"ptr {self._pointer(target)}, i8 {value}"
        self.line(f"call void @llvm.memset.p0.i64({pointer}, i64 {text_of(size)}, i1 false)")

    def _compare_memory(self, left: Word, right: Word, size: Word) -> str:
        self._declare("memcmp", "declare i32 @memcmp(ptr, ptr, i64)")
        pointers = f"ptr {self._pointer(left)}, ptr {self._pointer(right)}"
        return self._named(f"call i32 @memcmp({pointers}, i64 {text_of(size)})")

    def same(self, left: Word, right: Word, size: Word) -> Condition:
        """Return whether `size` bytes are equal in two areas."""
        return self.condition(f"icmp eq i32 {self._compare_memory(left, right, size)}, 0")

    def difference(self, left: Word, right: Word, size: Word) -> Value:
        """Return what memcmp() returns, signed: the order of `size` bytes in two areas."""
        return self.value(f"sext i32 {self._compare_memory(left, right, size)} to i64")
