"""DWARF expressions, as far as call frame information uses them.

Source: DWARF 5, section 2.5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.elf.unwind.reader import FrameError, Reader
from emu.support.words import WORD_MASK, signed

# An expression may jump back: so many operations are the end of it.
_LONGEST: Final = 1000

_ADDRESS: Final = 0x03
_DEREF: Final = 0x06
_BRANCH: Final = 0x28
_SKIP: Final = 0x2F
_LITERALS: Final = range(0x30, 0x50)
_REGISTERS: Final = range(0x70, 0x90)
_REGISTER: Final = 0x92
_DEREF_SIZE: Final = 0x94
_NOTHING: Final = 0x96

# DW_OP_const*: bytes, and whether the number has a sign.
_CONSTANTS: Final = {
    0x08: (1, False), 0x09: (1, True), 0x0A: (2, False), 0x0B: (2, True),
    0x0C: (4, False), 0x0D: (4, True), 0x0E: (8, False), 0x0F: (8, True),
}  # fmt: skip
_CONSTANT_ULEB: Final = 0x10
_CONSTANT_SLEB: Final = 0x11
_PLUS_CONSTANT: Final = 0x23

Load = Callable[[int, int], int]


def _quotient(left: int, right: int) -> int:
    if not right:
        raise FrameError("a division by zero")
    quotient = abs(signed(left)) // abs(signed(right))
    return quotient if (signed(left) < 0) == (signed(right) < 0) else -quotient


def _rest(left: int, right: int) -> int:
    if not right:
        raise FrameError("a division by zero")
    return left % right


# Operations on the two values on top: the second from the top, and the top.
_BINARY: Final[dict[int, Callable[[int, int], int]]] = {
    0x1A: lambda left, right: left & right,
    0x1B: _quotient,
    0x1C: lambda left, right: left - right,
    0x1D: _rest,
    0x1E: lambda left, right: left * right,
    0x21: lambda left, right: left | right,
    0x22: lambda left, right: left + right,
    0x24: lambda left, right: left << right if right < 64 else 0,
    0x25: lambda left, right: left >> right if right < 64 else 0,
    0x26: lambda left, right: signed(left) >> min(right, 63),
    0x27: lambda left, right: left ^ right,
    0x29: lambda left, right: left == right,
    0x2A: lambda left, right: signed(left) >= signed(right),
    0x2B: lambda left, right: signed(left) > signed(right),
    0x2C: lambda left, right: signed(left) <= signed(right),
    0x2D: lambda left, right: signed(left) < signed(right),
    0x2E: lambda left, right: left != right,
}
_UNARY: Final[dict[int, Callable[[int], int]]] = {
    0x19: lambda value: abs(signed(value)),
    0x1F: lambda value: -value,
    0x20: lambda value: ~value,
}
# Operations that move values: (stack) -> nothing.
_MOVES: Final[dict[int, Callable[[list[int]], object]]] = {
    0x12: lambda stack: stack.append(stack[-1]),
    0x13: lambda stack: stack.pop(),
    0x14: lambda stack: stack.append(stack[-2]),
    0x16: lambda stack: stack.append(stack.pop(-2)),
    0x17: lambda stack: stack.insert(-2, stack.pop()),
}
_PICK: Final = 0x15


def evaluate(code: bytes, registers: Mapping[int, int], load: Load, word: int, start: int | None = None) -> int:
    """Return the value of an expression; `start` is on the stack first, None: nothing is.

    `load(address, size)` may raise.  Raises `FrameError`.
    """
    stack = [] if start is None else [start]
    reader = Reader(code, 0, len(code))
    try:
        for _ in range(_LONGEST):
            if not reader.more:
                return stack[-1]
            _step(reader, stack, registers, load, word)
    except (IndexError, KeyError) as error:
        raise FrameError(f"an expression without what it needs ({error})") from None
    raise FrameError("an expression without an end")


def _step(reader: Reader, stack: list[int], registers: Mapping[int, int], load: Load, word: int) -> None:
    operation = reader.number(1)
    if operation in _LITERALS:
        stack.append(operation - _LITERALS.start)
    elif operation in _REGISTERS:
        stack.append((registers[operation - _REGISTERS.start] + reader.sleb()) & WORD_MASK)
    elif operation == _REGISTER:
        stack.append((registers[reader.uleb()] + reader.sleb()) & WORD_MASK)
    elif operation in _CONSTANTS:
        size, has_sign = _CONSTANTS[operation]
        stack.append(reader.number(size, signed=has_sign) & WORD_MASK)
    elif operation == _ADDRESS:
        stack.append(reader.number(word))
    elif operation in {_CONSTANT_ULEB, _CONSTANT_SLEB}:
        stack.append((reader.uleb() if operation == _CONSTANT_ULEB else reader.sleb()) & WORD_MASK)
    elif operation == _PLUS_CONSTANT:
        stack.append((stack.pop() + reader.uleb()) & WORD_MASK)
    elif operation in {_DEREF, _DEREF_SIZE}:
        stack.append(load(stack.pop(), word if operation == _DEREF else reader.number(1)))
    elif operation in _BINARY:
        right, left = stack.pop(), stack.pop()
        stack.append(int(_BINARY[operation](left, right)) & WORD_MASK)
    elif operation in _UNARY:
        stack.append(_UNARY[operation](stack.pop()) & WORD_MASK)
    elif operation in _MOVES:
        _MOVES[operation](stack)
    elif operation == _PICK:
        stack.append(stack[-1 - reader.number(1)])
    elif operation in {_BRANCH, _SKIP}:
        distance = reader.number(2, signed=True)
        if operation == _SKIP or stack.pop():
            reader.offset += distance
            if reader.offset < 0:
                raise FrameError("an expression that jumps out of itself")
    elif operation != _NOTHING:
        raise FrameError(f"an expression with the unknown operation {operation:#x}")
