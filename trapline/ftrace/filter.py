"""Event filters: `file == 0 && cmd ~ "SELECT*"`.

A filter is data, which is called with the values of an event; `trapline.ftrace.native.filters`
compiles it to machine code.

Source: Linux Documentation/trace/events.rst (section 5), kernel/trace/trace_events_filter.c.
"""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from providers.fidelity import Fidelity

# Values of the fields, in their shown form.
Values = Mapping[str, str]
_TOKEN: Final = re.compile(r'\s*(&&|\|\||==|!=|<=|>=|[<>&~!()]|"[^"]*"|\'[^\']*\'|[\w.+-]+)')
_COMPARE: Final[dict[str, Callable[[int, int], object]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&": operator.and_,
}


class Comparison(NamedTuple):
    """FIELD SIGN NUMBER; a value that is not a number is 0."""

    field: str
    sign: str
    wanted: int

    def __call__(self, values: Values) -> bool:
        """Return whether it is true."""
        return bool(_COMPARE[self.sign](_number(values[self.field]), self.wanted))


class Match(NamedTuple):
    """FIELD SIGN "TEXT", of ==, != and ~."""

    field: str
    sign: str
    wanted: str

    def __call__(self, values: Values) -> bool:
        """Return whether it is true."""
        text = values[self.field].strip('"')
        if self.sign == "~":
            return fnmatch.fnmatchcase(text, self.wanted)
        return (text == self.wanted) is (self.sign == "==")


class Both(NamedTuple):
    """All of some filters."""

    parts: tuple[Filter, ...]

    def __call__(self, values: Values) -> bool:
        """Return whether all hold."""
        return all(part(values) for part in self.parts)


class Either(NamedTuple):
    """One of some filters."""

    parts: tuple[Filter, ...]

    def __call__(self, values: Values) -> bool:
        """Return whether one holds."""
        return any(part(values) for part in self.parts)


class Not(NamedTuple):
    """The negation of a filter."""

    inner: Filter

    def __call__(self, values: Values) -> bool:
        """Return whether it does not hold."""
        return not self.inner(values)


Filter = Comparison | Match | Both | Either | Not

# Bytes of a filter (PAGE_SIZE: event_filter_write).
_LONGEST: Final = 4096
# Parentheses inside parentheses; the kernel has no such limit.
_DEEPEST: Final = 100


class FilterError(Exception):
    """A filter that cannot be read; the message says why."""


def parse_filter(text: str, fields: frozenset[str]) -> Filter:
    """Read a filter over these fields.  Raises `FilterError`."""
    if len(text) >= _LONGEST:
        raise FilterError(f"the filter has {len(text)} characters; the limit is {_LONGEST - 1}")
    parser = _Parser(text, fields)
    found = parser.either()
    if parser.peek():
        raise FilterError(f"unexpected '{parser.peek()}' in filter '{text}'")
    return found


class _Parser:
    def __init__(self, text: str, fields: frozenset[str]) -> None:
        self._fields = fields
        self._tokens: list[str] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                raise FilterError(f"'{text[at:].strip()}' in filter '{text}' is not an operator, field or value")
            self._tokens.append(found[1])
            at = found.end()
        self._at = 0
        self._depth = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self.peek()
        if not token:
            raise FilterError("the filter is incomplete")
        self._at += 1
        return token

    def either(self) -> Filter:
        parts = [self._both()]
        while self.peek() == "||":
            self._take()
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Filter:
        parts = [self._one()]
        while self.peek() == "&&":
            self._take()
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _one(self) -> Filter:
        wanted = True
        while self.peek() == "!":
            self._take()
            wanted = not wanted
        inner = self._enclosed() if self.peek() == "(" else self._comparison()
        return inner if wanted else Not(inner)

    def _enclosed(self) -> Filter:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise FilterError(f"the filter nests parentheses deeper than {_DEEPEST}")
        self._take()
        inner = self.either()
        if self._take() != ")":
            raise FilterError("the filter lacks a ')'")
        self._depth -= 1
        return inner

    def _comparison(self) -> Filter:
        field = self._take()
        if field not in self._fields:
            raise FilterError(f"there is no field '{field}'; there are {', '.join(sorted(self._fields))}")
        sign, value = self._take(), self._take()
        if value[0] in "\"'" or sign == "~":
            return _text_test(field, sign, value.strip("\"'"))
        if sign not in _COMPARE:
            raise FilterError(f"'{sign}' is not an operator")
        try:
            wanted = int(value, 0)
        except ValueError:
            raise FilterError(f"'{value[:40]}' is not a number") from None
        return Comparison(field, sign, wanted)


def _text_test(field: str, sign: str, wanted: str) -> Filter:
    if sign not in {"~", "==", "!="}:
        raise FilterError(f"'{sign}' does not compare strings; ==, != and ~ do")
    return Match(field, sign, wanted)


def _number(shown: str) -> int:
    try:
        return int(shown, 0)
    except ValueError:
        return 0


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The selection of events, and the details to show."""

    wanted: Filter | None = None
    """Selects events by the values of their arguments."""
    pid: int | None = None
    tid: int | None = None
    stacks: bool = False
    fidelity: Fidelity = Fidelity.EXACT
    """Whether uprobes have Linux' quirks."""
