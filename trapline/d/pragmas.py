"""Control lines: `#pragma D option`, `#line` and their like.

Source: FreeBSD libdtrace dt_pragma.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from trapline.d.errors import CompileError, Place, did_you_mean
from trapline.options import OPTIONS, OptionError, Options, parse_assignment

_IGNORED: Final = frozenset({"", "ident"})
_LINE: Final = re.compile(r'(\d+)(?:\s+"([^"]*)"(?:\s+[0-9 ]+)?)?')


class _Origin(NamedTuple):
    """Where lines come from: line `since` of the text is line `line` of a file (None: of the text itself)."""

    since: int
    line: int
    file: str | None


class Pragmas:
    """The control lines of one program."""

    def __init__(self, options: Options, on_option: Callable[[str], None]) -> None:
        self.options: list[tuple[str, str | None]] = []
        """Options set by pragmas, in order."""
        self._origins = [_Origin(0, 0, None)]
        self._known = options
        self._on_option = on_option
        self._table: dict[str, Callable[[list[str], int], None]] = {
            "option": self._option,
            "error": _error,
            "attributes": _attributes,
            "binding": _attributes,
            "depends_on": _depends_on,
        }

    def control(self, text: str, line: int) -> None:
        """Obey a control line, without its `#`.  Raises `CompileError` D_PRAG*."""
        word, _, rest = text.partition(" ")
        if word in _IGNORED:
            return
        if word == "line" or word.isdecimal():
            self._line(rest if word == "line" else text, line)
            return
        if word == "error":
            raise CompileError("D_PRAGERR", f"#error: {rest.strip()}", line)
        if word != "pragma":
            raise CompileError("D_PRAGCTL_INVAL", f"invalid control directive: #{word} (does it need -C?)", line)
        words = rest.split()
        if words[:1] == ["error"]:
            raise CompileError("D_PRAGERR", f"#pragma error: {' '.join(words[1:])}", line)
        if words[:1] != ["D"]:
            return
        name = words[1] if len(words) > 1 else ""
        pragma = self._table.get(name)
        if pragma is None:
            raise CompileError("D_PRAGMA_INVAL", f"invalid D pragma: {name}{did_you_mean(name, self._table)}", line)
        pragma(words[2:], line)

    def _line(self, text: str, line: int) -> None:
        """Note where the following lines come from: `#line N "file"`."""
        found = _LINE.fullmatch(text.strip())
        if found is None:
            raise CompileError("D_PRAGCTL_INVAL", 'malformed #line: write #line NUMBER "FILE"', line)
        file = found[2] if found[2] is not None else self._origins[-1].file
        self._origins.append(_Origin(line + 1, int(found[1]), file))

    def place(self, line: int) -> Place:
        """Return where a line of the text comes from."""
        origin = next(one for one in reversed(self._origins) if one.since <= line)
        return Place(origin.line + line - origin.since, origin.file)

    def _option(self, words: list[str], line: int) -> None:
        if len(words) != 1:
            raise CompileError("D_PRAGMA_MALFORM", "malformed #pragma D option: write NAME or NAME=VALUE", line)
        name, value = parse_assignment(words[0])
        try:
            self._known.set(name, value, in_program=True)
        except OptionError as error:
            hint = "" if name in OPTIONS else did_you_mean(name, OPTIONS)
            raise CompileError("D_PRAGMA_OPTSET", f"failed to set option '{name}': {error}{hint}", line) from None
        self.options.append((name, value))
        self._on_option(name)


def _error(words: list[str], line: int) -> None:
    raise CompileError("D_PRAGERR", f"#pragma D error: {' '.join(words)}", line)


def _attributes(words: list[str], line: int) -> None:
    """Check the number of words; stability is not reported yet."""
    if len(words) not in {2, 3}:
        raise CompileError("D_PRAGMA_MALFORM", "malformed pragma: a value and a name are needed", line)


def _depends_on(words: list[str], line: int) -> None:
    if len(words) != 2:
        raise CompileError("D_PRAGMA_MALFORM", "malformed #pragma D depends_on: write CLASS NAME", line)
    if words[0] not in {"provider", "module", "library"}:
        raise CompileError("D_PRAGMA_INVAL", f"depends_on {words[0]}: write provider, module or library", line)
