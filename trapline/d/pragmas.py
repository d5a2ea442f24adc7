"""Control lines: `#pragma D option`, `#line` and their like.

Source: FreeBSD libdtrace dt_pragma.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trapline.d.errors import CompileError, did_you_mean
from trapline.options import OPTIONS, OptionError, Options, parse_assignment

_IGNORED: Final = frozenset({"", "ident"})


class Pragmas:
    """The control lines of one program."""

    def __init__(self, options: Options, on_option: Callable[[str], None]) -> None:
        self.options: list[tuple[str, str | None]] = []
        """Options set by pragmas, in order."""
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
        if word in _IGNORED or word == "line" or word.isdecimal():
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
