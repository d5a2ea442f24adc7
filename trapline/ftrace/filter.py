"""Event filters: `file == 0 && cmd ~ "SELECT*"`.

Source: Linux Documentation/trace/events.rst (section 5), kernel/trace/trace_events_filter.c.
"""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

# Values of the fields as they are shown -> whether the event is wanted.
Filter = Callable[[Mapping[str, str]], bool]
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


class FilterError(Exception):
    """A filter that cannot be read; the message says why."""


def parse_filter(text: str, fields: frozenset[str]) -> Filter:
    """Read a filter over these fields.  Raises `FilterError`."""
    parser = _Parser(text, fields)
    found = parser.either()
    if parser.peek():
        raise FilterError(f"unexpected '{parser.peek()}' in filter '{text}'")
    return found


class _Parser:
    def __init__(self, text: str, fields: frozenset[str]) -> None:
        self._fields = fields
        self._tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise FilterError(f"'{text[at:].strip()}' in filter '{text}' is no operator, field or value")
            self._tokens.append(found[1])
            at = found.end()
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self.peek()
        if not token:
            raise FilterError("the filter ends early")
        self._at += 1
        return token

    def either(self) -> Filter:
        left = self._both()
        while self.peek() == "||":
            self._take()
            left = _any(left, self._both())
        return left

    def _both(self) -> Filter:
        left = self._one()
        while self.peek() == "&&":
            self._take()
            left = _all(left, self._one())
        return left

    def _one(self) -> Filter:
        if self.peek() == "!":
            self._take()
            inner = self._one()
            return lambda values: not inner(values)
        if self.peek() == "(":
            self._take()
            inner = self.either()
            if self._take() != ")":
                raise FilterError("the filter lacks a ')'")
            return inner
        return self._comparison()

    def _comparison(self) -> Filter:
        field = self._take()
        if field not in self._fields:
            raise FilterError(f"there is no field '{field}'; there are {', '.join(sorted(self._fields))}")
        sign, value = self._take(), self._take()
        if value[0] in "\"'" or sign == "~":
            return _text_test(field, sign, value.strip("\"'"))
        if sign not in _COMPARE:
            raise FilterError(f"'{sign}' is no operator")
        try:
            wanted = int(value, 0)
        except ValueError:
            raise FilterError(f"'{value}' is no number") from None
        compare = _COMPARE[sign]
        return lambda values: bool(compare(_number(values[field]), wanted))


def _any(left: Filter, right: Filter) -> Filter:
    return lambda values: left(values) or right(values)


def _all(left: Filter, right: Filter) -> Filter:
    return lambda values: left(values) and right(values)


def _text_test(field: str, sign: str, wanted: str) -> Filter:
    if sign == "~":
        return lambda values: fnmatch.fnmatchcase(values[field].strip('"'), wanted)
    if sign in {"==", "!="}:
        return lambda values: (values[field].strip('"') == wanted) is (sign == "==")
    raise FilterError(f"'{sign}' does not compare strings; ==, != and ~ do")


def _number(shown: str) -> int:
    try:
        return int(shown, 0)
    except ValueError:
        return 0
