"""Control lines: `#pragma D option`, `#line` and the like.

Source: FreeBSD libdtrace dt_pragma.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from trapline.d.check.scopes import Globals
from trapline.d.check.stability import parse_attribute
from trapline.d.errors import CompileError, Location, did_you_mean
from trapline.d.parse.literals import read_digits
from trapline.options import OPTIONS, OptionError, Options, parse_assignment

_IGNORED: Final = frozenset({"", "ident"})
_OF_PROVIDERS: Final = ("provider", "module", "function", "name", "args")
_VERSION: Final = re.compile(r'"[0-9]+(\.[0-9]+){1,2}"')
_LINE: Final = re.compile(r'([0-9]+)(?:\s+"([^"]*)"(?:\s+[0-9 ]+)?)?')
# Characters with which a number or a text begins.
_NO_NAME: Final = frozenset('0123456789"')
# A word of a control line: text in quotes, or text between blanks and quotes (libdtrace dt_lex.l, state S3).
_WORD: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^\s"]+')


class _Origin(NamedTuple):
    """The origin of lines: line `since` of the text is `line` of a file (None: the text)."""

    since: int
    line: int
    file: str | None


# The name of the next translator in pragmas, because translators have no names.
_TRANSLATOR: Final = "translator"


class Pragmas:
    """The control lines of one program.

    `main` is the path of the program's own file, so that a `#line` with this path does not mean
    another file. `exists` returns whether there is a module or a provider of a name; it is None in
    a library, whose dependencies were checked before.
    """

    def __init__(
        self,
        options: Options,
        on_option: Callable[[str], None],
        names: Globals,
        main: str,
        exists: Callable[[str, str], bool] | None,
    ) -> None:
        self.options: list[tuple[str, str | None]] = []
        """Options set by pragmas, in order."""
        self._names = names
        self._main = main
        self._exists = exists
        self._foreign = names.defined()
        """Names defined outside this program: it cannot give them attributes."""
        self._named: list[tuple[str, int]] = []
        self._origins = [_Origin(0, 0, None)]
        self._known = options
        self._on_option = on_option
        self._table: dict[str, Callable[[list[str], int], None]] = {
            "option": self._option,
            "error": _error,
            "attributes": self._attributes,
            "binding": self._binding,
            "depends_on": self._depends_on,
        }

    def control(self, text: str, line: int) -> None:
        """Obey a control line, without its `#`.  Raises `CompileError` D_PRAG*."""
        word, *words = _WORD.findall(text) or [""]
        if word in _IGNORED:
            return
        if word == "line" or _LINE.fullmatch(word):
            self._line(" ".join(words if word == "line" else (word, *words)), line)
            return
        if word == "error":
            raise CompileError("D_PRAGERR", f"#error: {' '.join(words)}", line)
        if word != "pragma":
            raise CompileError("D_PRAGCTL_INVAL", f"invalid control directive: #{word} (does it need -C?)", line)
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
            raise CompileError("D_PRAGMA_MALFORM", 'malformed #line: write #line NUMBER "FILE"', line)
        file = found[2] if found[2] is not None else self._origins[-1].file
        self._origins.append(_Origin(line + 1, read_digits(found[1], 10), None if file == self._main else file))

    def location(self, line: int) -> Location:
        """Return where a line of the text comes from."""
        origin = next(one for one in reversed(self._origins) if one.since <= line)
        return Location(origin.line + line - origin.since, origin.file)

    def _option(self, words: list[str], line: int) -> None:
        if len(words) != 1 or words[0][0] in _NO_NAME:
            raise CompileError("D_PRAGMA_MALFORM", "malformed #pragma D option: write NAME or NAME=VALUE", line)
        name, value = parse_assignment(words[0])
        try:
            self._known.set(name, value, in_program=True)
        except OptionError as error:
            hint = "" if name in OPTIONS else did_you_mean(name, OPTIONS)
            raise CompileError("D_PRAGMA_OPTSET", f"failed to set option '{name}': {error}{hint}", line) from None
        self.options.append((name, value))
        self._on_option(name)

    def _attributes(self, words: list[str], line: int) -> None:
        """Give a name of the program, or a provider, its stability."""
        if len(words) not in {2, 4}:
            raise CompileError("D_PRAGMA_MALFORM", "malformed pragma: write attributes NAME/DATA/CLASS IDENT", line)
        attribute = parse_attribute(words[0])
        if attribute is None:
            raise CompileError("D_PRAGMA_INVAL", f"'{words[0]}' is not a stability: write Name/Data/Class", line)
        if len(words) == 2:
            self._name(words[1], line)
            self._names.attributes[words[1]] = attribute
        elif words[1] != "provider" or words[3] not in _OF_PROVIDERS:
            what = f"write attributes {words[0]} provider NAME {'|'.join(_OF_PROVIDERS)}"
            raise CompileError("D_PRAGMA_INVAL", f"invalid pragma: {what}", line)
        elif words[2] not in self._names.providers:
            raise CompileError("D_PRAGMA_UNUSED", f"the program does not define provider {words[2]}", line)

    def _binding(self, words: list[str], line: int) -> None:
        """Process the version of the language that brought a name: all known names are available."""
        if len(words) != 2:
            raise CompileError("D_PRAGMA_MALFORM", 'malformed pragma: write binding "VERSION" IDENT', line)
        if not _VERSION.fullmatch(words[0]):
            raise CompileError("D_PRAGMA_INVAL", f"{words[0]} is not a version in quotes", line)
        self._name(words[1], line)

    def _name(self, name: str, line: int) -> None:
        if name in self._foreign:
            raise CompileError("D_PRAGMA_SCOPE", f"{name} is defined outside this program", line)
        self._named.append((name, line))

    def translator_defined(self, line: int) -> None:
        """Apply the pragmas before a translator, which name it only by the keyword."""
        self._named = [(name, at) for name, at in self._named if name != _TRANSLATOR or at > line]

    def check_used(self) -> None:
        """Refuse pragmas for names that the program has not defined in the end.

        Raises `CompileError`.
        """
        defined = self._names.defined()
        for name, line in self._named:
            if name not in defined:
                raise CompileError("D_PRAGMA_UNUSED", f"the program does not define {name}", line)

    def _depends_on(self, words: list[str], line: int) -> None:
        if len(words) != 2:
            raise CompileError("D_PRAGMA_MALFORM", "malformed #pragma D depends_on: write CLASS NAME", line)
        kind, name = words
        if kind not in {"provider", "module", "library"}:
            raise CompileError("D_PRAGMA_INVAL", f"depends_on {kind}: write provider, module or library", line)
        if self._exists is None:
            return
        if kind == "library":
            raise CompileError("D_PRAGMA_DEPEND", f"depends_on library {name}: only a library depends on one", line)
        if not self._exists(kind, name):
            raise CompileError("D_PRAGMA_DEPEND", f"the program needs {kind} {name}, which does not exist", line)


def _error(words: list[str], line: int) -> None:
    raise CompileError("D_PRAGERR", f"#pragma D error: {' '.join(words)}", line)
