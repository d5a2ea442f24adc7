"""json(): one value out of a JSON text, by its path.

The text is read from left to right and only as far as needed; the text after the value need not be
JSON. Strings are returned without their quotes and with their escapes unchanged; objects and arrays
as their source text.

Source: FreeBSD dtrace.c dtrace_json().
"""

from __future__ import annotations

import re
from typing import Final

from trapline.framework.dif.strings import strtoll

_SPACE: Final = re.compile(rb"[ \t\n\v\f\r]*")
_STRING: Final = re.compile(rb'"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)"', re.DOTALL)
_IDENTIFIER: Final = re.compile(rb"(?:true|false|null)(?=[^a-z])")
_NUMBER: Final = re.compile(rb"-?[0-9]*(\.[0-9]*)?([eE][0-9+-]*)?")
_STRUCTURE: Final = re.compile(rb'["{}\[\]]')


def split_path(path: bytes) -> list[bytes]:
    """Return the parts of a path such as `a.b[2].c`; a bracket at the very start opens nothing."""
    return path.removeprefix(b"[").replace(b"]", b"").replace(b"[", b".").split(b".")


def find(text: bytes, path: bytes) -> bytes | None:
    """Return the value at `path`, None if there is none or the text is malformed before it."""
    return _Scanner(text).find(split_path(path))


class _Scanner:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0

    def _skip_space(self) -> bytes:
        """Skip blanks; return the character that follows, b"" at the end."""
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[bytes]) -> bytes | None:
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[1] if pattern is _STRING else match[0]

    def find(self, parts: list[bytes]) -> bytes | None:
        """Follow the parts from the current value, and return the value that the last one names."""
        for part in parts:
            opening = self._skip_space()
            if opening not in (b"{", b"["):
                return None
            self._at += 1
            if not (self._to_member(part) if opening == b"{" else self._to_element(strtoll(part, 10))):
                return None
        return self._value()

    def _to_member(self, key: bytes) -> bool:
        """Move to the value of a key of the object."""
        while self._skip_space() == b'"':
            name = self._take(_STRING)
            if name is None or self._skip_space() != b":":
                return False
            self._at += 1
            if name == key:
                return True
            if self._value() is None or self._skip_space() != b",":
                return False
            self._at += 1
        return False

    def _to_element(self, number: int) -> bool:
        """Move to an element of the array."""
        position = 0
        while position != number:
            if self._value() is None or self._skip_space() != b",":
                return False
            self._at += 1
            position += 1
        return True

    def _value(self) -> bytes | None:
        """Read the current value."""
        character = self._skip_space()
        if character == b'"':
            return self._take(_STRING)
        if character in (b"{", b"["):
            return self._nested()
        if character.isalpha():
            return self._take(_IDENTIFIER)
        return self._number() if character == b"-" or character.isdigit() else None

    def _number(self) -> bytes | None:
        """Read a number; it may not end the text, be followed by a sign, or be hexadecimal."""
        match = _NUMBER.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        after = self._text[self._at : self._at + 1]
        if not after or after in b"+-" or (after in b"xX" and not match[1] and not match[2]):
            return None
        return match[0]

    def _nested(self) -> bytes | None:
        """Read a whole object or array; brackets in its strings are ignored."""
        start = self._at
        depth = {b"{": 0, b"[": 0}
        while match := _STRUCTURE.search(self._text, self._at):
            character = match[0]
            self._at = match.start()
            if character == b'"':
                if self._take(_STRING) is None:
                    return None
                continue
            self._at += 1
            if character in depth:
                depth[character] += 1
            else:
                opening = b"{" if character == b"}" else b"["
                if depth[opening] == 0:
                    return None
                depth[opening] -= 1
                if not any(depth.values()):
                    return self._text[start : self._at]
        return None
