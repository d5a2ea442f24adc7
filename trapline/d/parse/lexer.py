"""Characters to tokens, one top-level item at a time.

D's lexer has two modes (libdtrace dt_lex.l): descriptions of probes are read with a character set
of their own, everything else as C.  The parse depends on which words are names of types, so the
text is cut into items, and each is read after all before it have been processed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from emu.support.immutable import immutable
from emu.support.one_line import one_line
from emu.support.words import WORD_MASK
from trapline.d.errors import CompileError, Region
from trapline.d.parse.literals import INT, parse_character, parse_integer, parse_string, type_of_number
from trapline.d.parse.macros import Macros, is_identifier, parse_number

TYPE_WORDS: Final = frozenset("void char short int long float double signed unsigned string _Bool".split())
STORAGE_WORDS: Final = frozenset("auto register static extern typedef".split())
QUALIFIERS: Final = frozenset("const volatile restrict userland".split())
SPECIFIERS: Final = TYPE_WORDS | STORAGE_WORDS | QUALIFIERS
# Keywords that have no use in D and cannot be names either.
UNUSED_WORDS: Final = frozenset("break case continue counter default do for goto import return switch while".split())

_OPENS_DECLARATION: Final = SPECIFIERS | frozenset("struct union enum inline translator provider self this".split())
_OPERATORS: Final = frozenset("<< >> <= >= == != && || ^^ | ^ %".split())
_ASSIGNMENTS: Final = frozenset("+= -= *= /= %= &= ^= |= <<= >>=".split())
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}

_TRIVIA: Final = re.compile(r"(?:[ \t\r\f\v]|\\\r?\n)+|(?P<newline>\n)|(?P<comment>/\*)")
_COMMENT: Final = re.compile(r"/\*.*?\*/")
# A control line, up to a comment that is not closed on it.
_CONTROL: Final = re.compile(r"#!.*|#(?:/\*.*?\*/|(?!/\*).)*")
_DESCRIPTION: Final = re.compile(
    r"[0-9]+(?![-$:a-zA-Z_.?*\[\]!\\`])|[-$:a-zA-Z_.?*\[\]!\\][-$:a-zA-Z_.?*\[\]!\\0-9`@]*"
)
# Strings are matched possessively: otherwise each character is stored for backtracking that never happens.
_TOKEN: Final = re.compile(
    r"""(?P<floating>[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+|[0-9]+[eE][-+]?[0-9]+(?![0-9A-Za-z_]))
    |(?P<integer>[0-9][0-9A-Za-z_]*)
    |(?P<word>[A-Za-z_`][A-Za-z0-9_`]*)
    |@(?P<aggregation>[A-Za-z_][A-Za-z0-9_]*|)
    |(?P<macro>\$\$?[A-Za-z0-9_]+)
    |"(?P<string>(?:[^"\\\n]++|\\.)*+)(?P<string_end>"?)
    |'(?P<character>(?:[^'\\\n]++|\\.)*+)(?P<character_end>'?)
    |(?P<punctuation><<=|>>=|\.\.\.|[-+*/%&^|<>=!]=|<<|>>|&&|\|\||\^\^|\+\+|--|->|[-+*/%&^|<>=!~?:;,.(){}\[\]])""",
    re.VERBOSE,
)
_LITERAL: Final = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uU]?[lL]{0,2}")
_CLOSES_PREDICATE: Final = re.compile(r"\s*(?:[{;/]|\Z)")
_OPENS_BRACE: Final = re.compile(r"\s*\{")
_ASSIGNED_NEXT: Final = re.compile(r"\s*(?:\+\+|--|\[|=(?!=))")


@immutable
class Token:
    """A token; `type` is a terminal of the grammar."""

    type: str
    text: str
    line: int
    number: tuple[int, str] | None = None
    """Value of an INTEGER, and the words of its type."""

    def __str__(self) -> str:
        return self.text


class Names(Protocol):
    """The information about names that the lexer needs."""

    @property
    def long_size(self) -> int:
        """Bytes of a long."""
        ...

    def is_type(self, name: str) -> bool:
        """Return whether a name is that of a type."""
        ...

    def is_defined(self, name: str) -> bool:
        """Return whether a name is that of a variable, inline, function or enumerator."""
        ...

    def is_complete(self, keyword: str, tag: str) -> bool:
        """Return whether a struct, union or enum has its members."""
        ...


class Lexer:
    """Reads a program's text.

    `control` obeys a control line (its text without `#`, and its line), `literals` are the
    grammar's words and marks, by their text.
    """

    def __init__(
        self,
        text: str,
        names: Names,
        control: Callable[[str, int], None],
        macros: Macros,
        literals: Mapping[str, str],
        *,
        pspec: bool,
    ) -> None:
        self._text = text
        self._names = names
        self._obey = control
        self._macros = macros
        self._literals = literals
        self._pspec = pspec
        self._position = 0
        self._fresh_line = True
        self._open: list[tuple[str, int]] = []
        self._previous = ""
        self._type_seen = False
        self.line = 1
        """The line that is read."""
        self.region: Region | None = None
        """Part of a clause the lexer is in."""

    # -- items -------------------------------------------------------------------------------------------------------

    def item(self) -> str | None:
        """Go to the next item; return the grammar's start symbol for it, None at the end."""
        self._open.clear()
        self._previous, self._type_seen, self.region = "", False, None
        if not self._skip():
            return None
        match = _DESCRIPTION.match(self._text, self._position)
        word = match[0] if match else ""
        if ":" in word:
            return "clause"
        lead = word.partition("*")[0]
        if lead in _OPENS_DECLARATION or self._names.is_type(word) or (not self._pspec and self._names.is_type(lead)):
            return "external"
        return "clause"

    def tokens(self, start: str) -> Iterator[Token]:
        """Read the tokens of the item `item` has found."""
        if start == "clause":
            yield from self._clause()
        else:
            yield from self._until(";")

    def _clause(self) -> Iterator[Token]:
        while self._skip():
            match = _DESCRIPTION.match(self._text, self._position)
            if match is None:
                break
            self._position = match.end()
            self._fresh_line = False
            yield Token("DESCRIPTION", self._macros.expand_description(match[0]), self.line)
            if not self._skip() or self._text[self._position] != ",":
                break
            yield self._token()
        if not self._skip():
            return
        if self._text[self._position] == "/":
            self.region, self._previous = Region.PREDICATE, ""
            yield self._token()
            yield from self._until("PREDICATE_END")
            if not self._skip():
                return
        if self._text[self._position] == "{":
            self.region = Region.ACTIONS
            yield from self._until("}")
        else:
            # This is an error, which the grammar reports.
            yield self._token()

    def _until(self, end: str) -> Iterator[Token]:
        """Read tokens up to one with the text (or of the type) `end` outside all brackets."""
        while self._skip():
            token = self._token()
            yield token
            if not self._open and end in {token.text, token.type}:
                return
        if self._open:
            bracket, line = self._open[-1]
            raise CompileError(
                "D_SYNTAX", f"end of input before the '{bracket}' opened in line {line} is closed", self.line
            )

    # -- blanks, comments, control lines -----------------------------------------------------------------------------

    def _skip(self) -> bool:
        """Skip blanks, comments and control lines; return whether anything is left."""
        text = self._text
        while self._position < len(text):
            match = _TRIVIA.match(text, self._position)
            if match is None:
                if self._fresh_line and text[self._position] == "#":
                    self._control()
                    continue
                return True
            self._position = match.end()
            if match["newline"]:
                self.line += 1
                self._fresh_line = True
            elif match["comment"]:
                self._comment()
            else:
                self.line += match[0].count("\n")
        return False

    def _comment(self) -> None:
        start = self.line
        end = self._text.find("*/", self._position)
        body = self._text[self._position : end if end >= 0 else None]
        self.line += body.count("\n")
        if "/*" in body:
            raise CompileError("D_SYNTAX", "/* within a comment (comments do not nest)", self.line)
        if end < 0:
            raise CompileError("D_SYNTAX", f"end of input within the comment opened in line {start}", self.line)
        self._position = end + 2

    def _control(self) -> None:
        """Read a control line; a comment that it opens and does not close is read as any other."""
        match = _CONTROL.match(self._text, self._position)
        assert match is not None
        self._position = match.end()
        if not match[0].startswith("#!"):
            self._obey(_COMMENT.sub(" ", match[0])[1:].strip(), self.line)

    # -- tokens ------------------------------------------------------------------------------------------------------

    def _token(self) -> Token:
        """Read the token at the position; blanks have been skipped."""
        self._fresh_line = False
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            character = self._text[self._position]
            raise CompileError("D_SYNTAX", f'stray character near "{one_line(character)}"', self.line)
        self._position = match.end()
        kind = match.lastgroup or ""
        try:
            token = self._read(kind, match)
        except CompileError as error:
            error.line = error.line or self.line
            raise
        # A string is not a keyword, whatever its text is, and an empty one is not the end.
        self._previous = token.text if token.type != "STRING" else '"'
        return token

    def _read(self, kind: str, match: re.Match[str]) -> Token:
        text, line = match[0], self.line
        match kind:
            case "word":
                return self._word(text)
            case "integer":
                if not _LITERAL.fullmatch(text):
                    raise CompileError("D_SYNTAX", f'syntax error near "{text}": no integer literal')
                return Token("INTEGER", text, line, parse_integer(text, self._names.long_size))
            case "floating":
                raise CompileError("D_SYNTAX", f'D has no floating-point literals: syntax error near "{text}"')
            case "aggregation":
                return Token("AGGREGATION", match["aggregation"] or "_", line)
            case "string_end":
                if not match["string_end"]:
                    raise CompileError("D_STR_NL", "string literal is not closed on its line")
                return Token("STRING", parse_string(match["string"]), line)
            case "character_end":
                if not match["character_end"]:
                    raise CompileError("D_CHR_NL", "character constant is not closed on its line")
                return Token("INTEGER", text, line, (parse_character(match["character"]), INT))
            case "macro":
                return self._macro(text)
        return self._punctuation(text)

    def _punctuation(self, text: str) -> Token:
        if text in "([{":
            self._open.append((text, self.line))
            self._type_seen = False
        elif text in _CLOSING:
            bracket, line = self._open.pop() if self._open else ("", 0)
            if bracket != _CLOSING[text]:
                what = f"the '{bracket}' of line {line} is not closed" if bracket else f"'{text}' is unmatched"
                raise CompileError("D_SYNTAX", f'{what}: syntax error near "{text}"')
            self._type_seen = text == "}"
        elif text in {";", ",", "<", ">"}:
            self._type_seen = False
        if text in _ASSIGNMENTS:
            return Token("ASSIGN", text, self.line)
        if text in _OPERATORS:
            return Token("OPERATOR", text, self.line)
        if (
            text == "/"
            and self.region is Region.PREDICATE
            and not self._open
            and self._previous
            and _CLOSES_PREDICATE.match(self._text, self._position)
        ):
            return Token("PREDICATE_END", text, self.line)
        return Token(self._literals[text], text, self.line)

    def _word(self, word: str) -> Token:
        line = self.line
        if self._previous in {".", "->"}:
            return Token("IDENT", word, line)
        if self._previous in {"struct", "union", "enum"}:
            self._type_seen = True
            if _OPENS_BRACE.match(self._text, self._position) and self._names.is_complete(self._previous, word):
                raise CompileError("D_DECL_TYPERED", f"{self._previous} {word} is defined already")
            return Token("IDENT", word, line)
        if word in SPECIFIERS:
            self._type_seen = self._type_seen or word in TYPE_WORDS
            return Token("SPECIFIER", word, line)
        if word in self._literals:
            return Token(self._literals[word], word, line)
        if word in UNUSED_WORDS:
            return Token("UNUSED", word, line)
        names_type = not self._type_seen and not self._names.is_defined(word) and self._names.is_type(word)
        # In a clause, a type's name that is stepped, indexed or assigned becomes a variable.
        if names_type and (self.region is None or not _ASSIGNED_NEXT.match(self._text, self._position)):
            self._type_seen = True
            return Token("TYPE", word, line)
        return Token("IDENT", word, line)

    def _macro(self, text: str) -> Token:
        value = self._macros.argument(text)
        if text.startswith("$$"):
            return Token("STRING", parse_string(value or ""), self.line)
        if value is None:
            return Token("INTEGER", "0", self.line, (0, INT))
        number = parse_number(value)
        if number is not None:
            type_ = type_of_number(number, self._names.long_size)
            return Token("INTEGER", value, self.line, (number & WORD_MASK, type_))
        if is_identifier(value):
            return self._word(value)
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        return Token("STRING", parse_string(value), self.line)
