"""Fetch arguments from their text.

    [NAME=]EXPRESSION[:TYPE]        +0(+8(%ax)):string   $retval:s32   %di   @+0x1000:u8
    path=+0(%si):string

Source: Linux 6.12 kernel/trace/trace_probe.c; register names: arch/*/kernel/ptrace.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from emu.isa.base import Isa
from trapline.ftrace.errors import UprobeEventError
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

_NAME_MAX: Final = 32
_BODY_MAX: Final = 63
_DEREFERENCES_MAX: Final = 13
_ARRAY_MAX: Final = 64
_RESERVED: Final = frozenset(
    """
    common_type common_flags common_preempt_count common_pid common_tgid __probe_ip __probe_ret_ip __probe_func
    """.split()
)
_SIZES: Final = {f"{letter}{bits}": bits // 8 for letter in "usx" for bits in (8, 16, 32, 64)} | {"char": 1}
_STRINGS: Final = frozenset({"string", "ustring"})
_BIT_FIELD: Final = re.compile(r"b([0-9]{1,9})@([0-9]{1,9})/(8|16|32|64)")
# Numbers have 64 bits at most, as in the kernel's kstrtoul() (lib/kstrtox.c); larger ones are out of range.
_NUMBER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,22})")
_MOST: Final = (1 << 64) - 1
DIGITS: Final = frozenset("0123456789")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")


def number(text: str) -> int | None:
    """Read a number in C's syntax; None: the text is not a number."""
    if not _NUMBER.fullmatch(text):
        return None
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits.startswith("0") and "x" not in digits.lower()
    try:
        value = int(digits, 8 if octal else 0)
    except ValueError:
        return None
    if value > _MOST:
        return None
    return -value if text.startswith("-") else value


class _Parser:
    """Reads one argument; every error knows its column."""

    def __init__(self, text: str, isa: Isa, command: str, column: int, *, returns: bool) -> None:
        self._text = text
        self._registers = isa.linux.probe_registers
        self._word = isa.word
        self._command = command
        self._column = column
        self._returns = returns

    def fail(self, identifier: str, at: int = 0) -> UprobeEventError:
        return UprobeEventError(identifier, self._command, self._column + at)

    def parse(self, default: str, used: set[str]) -> FetchArgument:
        name, body, at = default, self._text, 0
        equals = self._text.find("=")
        if equals >= 0:
            name, body, at = self._text[:equals], self._text[equals + 1 :], equals + 1
            self._check_name(name)
        if name in used:
            raise self.fail("USED_ARG_NAME")
        if not body:
            raise self.fail("NO_ARG_BODY", at)
        if len(body) > _BODY_MAX:
            raise self.fail("ARG_TOO_LONG", at)
        expression_text, type_text = self._split(body)
        expression = self._expression(expression_text, at, 0)
        kind = self._type(type_text, expression, at + len(expression_text) + 1)
        return FetchArgument(name, expression, kind, body)

    def _check_name(self, name: str) -> None:
        if not name:
            raise self.fail("NO_ARG_NAME")
        if len(name) > _NAME_MAX:
            raise self.fail("ARG_NAME_TOO_LONG")
        if not _IDENTIFIER.fullmatch(name):
            raise self.fail("BAD_ARG_NAME")
        if name in _RESERVED:
            raise self.fail("USED_ARG_NAME")

    @staticmethod
    def _split(body: str) -> tuple[str, str | None]:
        """Split off the type, which follows the last colon outside a string."""
        if body.startswith('\\"'):
            end = body.find('"', 2)
            colon = body.find(":", end) if end > 0 else -1
        else:
            colon = body.rfind(":")
        return (body, None) if colon < 0 else (body[:colon], body[colon + 1 :])

    def _expression(self, text: str, at: int, depth: int) -> Expression:
        if depth > _DEREFERENCES_MAX:
            raise self.fail("TOO_MANY_OPS", at)
        first = text[:1]
        if first == "%":
            if text[1:] not in self._registers:
                raise self.fail("BAD_REG_NAME", at)
            return Register(self._registers[text[1:]])
        if first == "$":
            return self._variable(text[1:], at)
        if first == "@":
            return self._memory(text[1:], at)
        if first == "\\":
            return self._immediate(text[1:], at)
        if first in {"+", "-"} and first:
            return self._dereference(text, at, depth)
        raise self.fail("NOSUP_BTFARG" if _IDENTIFIER.fullmatch(text) else "BAD_FETCH_ARG", at)

    def _variable(self, name: str, at: int) -> Expression:
        if name == "retval":
            if not self._returns:
                raise self.fail("RETVAL_ON_PROBE", at)
            return ReturnValue()
        if name in {"comm", "COMM"}:
            return Comm()
        if name.startswith("arg"):
            raise self.fail("NOFENTRY_ARGS", at)
        if name.startswith("stack"):
            if name == "stack":
                return Stack(None)
            index = number(name[5:]) if name[5:6] in DIGITS else None
            if index is None:
                raise self.fail("BAD_STACK_NUM", at)
            return Stack(index)
        raise self.fail("BAD_VAR", at)

    def _memory(self, text: str, at: int) -> Expression:
        if text.startswith("+"):
            value = number(text[1:])
            if value is None:
                raise self.fail("BAD_FILE_OFFS", at)
            return Memory(value, in_file=True)
        if text[:1] not in DIGITS:
            raise self.fail("SYM_ON_UPROBE", at)
        value = number(text)
        if value is None:
            raise self.fail("BAD_MEM_ADDR", at)
        return Memory(value, in_file=False)

    def _immediate(self, text: str, at: int) -> Expression:
        if text.startswith('"'):
            if len(text) < 2 or not text.endswith('"'):
                raise self.fail("IMMSTR_NO_CLOSE", at)
            return Immediate(text[1:-1])
        value = number(text)
        if value is None:
            raise self.fail("BAD_IMM", at)
        return Immediate(value)

    def _dereference(self, text: str, at: int, depth: int) -> Expression:
        brace = text.find("(")
        if brace < 0:
            raise self.fail("DEREF_NEED_BRACE", at)
        if not text.endswith(")"):
            raise self.fail("DEREF_OPEN_BRACE", at + brace)
        sign, digits = text[0], text[1:brace].removeprefix("u")
        value = number(sign + digits) if digits[:1] in DIGITS else None
        if value is None:
            raise self.fail("BAD_DEREF_OFFS", at)
        inner = self._expression(text[brace + 1 : -1], at + brace + 1, depth + 1)
        if isinstance(inner, Comm):
            raise self.fail("COMM_CANT_DEREF", at + brace + 1)
        return Dereference(value, inner)

    def _type(self, text: str | None, expression: Expression, at: int) -> ValueType:
        is_text = isinstance(expression, Comm) or (
            isinstance(expression, Immediate) and isinstance(expression.value, str)
        )
        if text is None:
            return ValueType("string", 0) if is_text else ValueType(f"x{8 * self._word}", self._word)
        name, count = self._array(text, at)
        in_memory = isinstance(expression, (Dereference, Memory))
        if count and not in_memory:
            raise self.fail("BAD_STRING" if name in _STRINGS else "BAD_TYPE", at)
        if name in _STRINGS:
            if not in_memory and not is_text:
                raise self.fail("BAD_STRING", at)
            return ValueType("string", 0, count)
        if is_text:
            raise self.fail("NEED_STRING_TYPE", at)
        if name in _SIZES:
            return ValueType(name, _SIZES[name], count)
        if name[:1] == "b" and name[1:2] in DIGITS:
            return self._bit_field(name, at)
        raise self.fail("BAD_TYPE", at)

    def _array(self, text: str, at: int) -> tuple[str, int]:
        brace = text.find("[")
        if brace < 0:
            return text, 0
        end = text.find("]", brace)
        if end < 0:
            raise self.fail("ARRAY_NO_CLOSE", at + brace)
        if end != len(text) - 1:
            raise self.fail("BAD_ARRAY_SUFFIX", at + end + 1)
        digits = text[brace + 1 : end]
        size = number(digits) if digits[:1] in DIGITS else None
        if not size:
            raise self.fail("BAD_ARRAY_NUM", at + brace + 1)
        if size > _ARRAY_MAX:
            raise self.fail("ARRAY_TOO_BIG", at + brace + 1)
        return text[:brace], size

    def _bit_field(self, name: str, at: int) -> ValueType:
        found = _BIT_FIELD.fullmatch(name)
        if found is None:
            raise self.fail("BAD_BITFIELD", at)
        width, shift, container = map(int, found.groups())
        if not width or width + shift > container:
            raise self.fail("BAD_BITFIELD", at)
        return ValueType(f"u{container}", container // 8, width=width, shift=shift)


def parse(
    text: str, isa: Isa, number: int, used: set[str], *, returns: bool, command: str = "", column: int = 0
) -> FetchArgument:
    """Read an argument, the `number`th from 1; `used` are the names of those before.

    Raises `UprobeEventError`.
    """
    return _Parser(text, isa, command or text, column, returns=returns).parse(f"arg{number}", used)


def words(text: str) -> Iterator[tuple[str, int]]:
    """Yield the words of a line, and their positions."""
    return ((found[0], found.start()) for found in re.finditer(r"\S+", text))
