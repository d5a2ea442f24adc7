"""The prose of the tree: lines that fit, comments above constants, and plain English.

A rule is a function from a file to the lines that break it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
WIDTH = 100
PLACES = ("emu", "providers", "trapline", "docs", "benchmarks", "README.md")
# Beginnings of docstrings that are not how a plain sentence begins.
BEGINNINGS = ("Tell whether", "Have ", "Tell that", "Tell if")
# A negation that plain English writes with "not".
IS_NO = re.compile(r"(?<![Tt]here )\b(is|are|was|were) no\b(?! (longer|more|less|fewer|matter))")
# Words that hide who is meant: name the thread, the process, the user, the caller.
VAGUE = re.compile(r"\b(somebody|whoever|whosever)\b", re.IGNORECASE)
# Expressions that are not plain technical English.  Write instead: forever; none is available; and the like; is
# resumed; no thread, no caller; decoded; keeps records; cannot be combined; cannot be found; the current run.
DIALECT = re.compile(
    r"\b(for ever|to be had|(its|their) (kin|like)|gone on with|(no|any|every)body('s)?|taken apart"
    r"|keeps? the books|cannot stand|(that|which) is nowhere|(run|block|firing|hook|call) under way)\b",
    re.IGNORECASE,
)
# The same in docstrings.  Write instead: is stopped; corrected; the result; compared with; forever; the content.
DIALECT_IN_DOCSTRINGS = re.compile(
    r"\b(stands?\s+still|put\s+right|what\s+(comes|came)\s+of|(held|holds?)\s+(equal|against)|for\s+ever|what\s+is\s+there)\b",
    re.IGNORECASE,
)
# An item of a list that a rewrap has moved into the line of the one before it.
JOINED = re.compile(r"[;.,] [2-9]\.(?: [a-z`]|$)")
# A module is a thing: its docstring begins with a noun, not with a relative clause.
RELATIVE = re.compile(r"(What|Who|Whose|Where|How|Why|Which|That) ")
RELATIVE_COMMENT = re.compile(r"# (What|Of|Those|Who|Whose) [a-z]")
# A paragraph that begins so is a fragment of the one before it.
FRAGMENT = re.compile(
    r"^(Of (several|two|anything|other|these|those)|And what|Or to|Or by|By its|Those that begin with `)\b"
)


# A docstring stands by itself.  Beginnings that lean on the docstring above, or on the name below.
LEANING = re.compile(
    r"(The (same|others?|rest)|Same|Likewise|Similarly|Also|Again|As (above|before|below|written|there|in the)|Ditto"
    r"|Idem|This too|So (does|do|is|are)|Neither|Nor|And|But|Or|Instead|Otherwise|Besides|However|Therefore|Hence"
    r"|Those|These|That|They|It|See)\b"
)
SEE_THE_MODULE = re.compile(r"\bsee the (module|class|function)\b", re.IGNORECASE)
# What users and developers read: tests may begin a sentence where the last one ends.
PRODUCT = ("emu", "providers", "trapline")
# Words in -ing that name a thing of the field, not an activity.
THINGS = {
    "enabling",  # dtrace_enabling_t
    "ring",
    "string",
    "strings",
    "thing",
    "timing",
    "padding",
    "recording",
    "mapping",
    "mappings",
    "encoding",
    "encodings",
}


class Offence(NamedTuple):
    """A line that breaks a rule."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text.strip()[:110]}"


Rule = Callable[[Path], Iterator[Offence]]


def _offence(path: Path, line: int, text: str) -> Offence:
    return Offence(path.relative_to(ROOT).as_posix(), line, text)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _docstrings(path: Path) -> tuple[tuple[int, str], ...]:
    """Return (first line, its lines as they stand in the file) of each docstring, those of attributes too."""
    return tuple(_find_docstrings(path))


def _find_docstrings(path: Path) -> Iterator[tuple[int, str]]:
    lines = path.read_text().splitlines()
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for number, statement in enumerate(node.body):
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if is_text and isinstance(statement.value.value, str) and (not number or isinstance(node, ast.ClassDef)):
                text = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
                yield statement.lineno, text.lstrip()


def long_docstring_lines(path: Path) -> Iterator[Offence]:
    """A line of a docstring has at most 100 columns; long addresses of pages are excepted."""
    if path.suffix != ".py":
        return
    lines = path.read_text().splitlines()
    for first, text in _docstrings(path):
        for number in range(first, first + text.count("\n") + 1):
            line = lines[number - 1]
            if (
                len(line.rstrip().removesuffix('"""')) > WIDTH
                and "://" not in line
                and not line.lstrip().startswith("|")
            ):
                yield _offence(path, number, line)


def long_markdown_lines(path: Path) -> Iterator[Offence]:
    """A line of Markdown has at most 100 columns; tables, code blocks and addresses of pages are excepted."""
    if path.suffix != ".md":
        return
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
        elif len(line) > WIDTH and not in_code and not line.startswith("|") and "](" not in line and "://" not in line:
            yield _offence(path, number, line)


def strings_below_constants(path: Path) -> Iterator[Offence]:
    """A constant of a module is documented by a comment above it."""
    if path.suffix != ".py":
        return
    for statement in _tree(path).body[1:]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield _offence(path, statement.lineno, str(statement.value.value))


def relative_comments(path: Path) -> Iterator[Offence]:
    """A comment above a constant is a noun, like the constant: "The flags that ...", not "What ..."."""
    if path.suffix != ".py":
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if RELATIVE_COMMENT.match(line):
            yield _offence(path, number, line)


def dialect_docstrings(path: Path) -> Iterator[Offence]:
    """A docstring is a plain sentence: "Return whether", "Make X do"."""
    if path.suffix != ".py":
        return
    for first, text in _docstrings(path):
        if text.lstrip("\"'r").startswith(BEGINNINGS):
            yield _offence(path, first, text.partition("\n")[0])


def is_no(path: Path) -> Iterator[Offence]:
    """Messages, docstrings and pages say "is not a ...", never "is no ..."."""
    if path.suffix == ".md":
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if IS_NO.search(line):
                yield _offence(path, number, line)
    elif path.suffix == ".py":
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for number, line in enumerate(node.value.splitlines()):
                    if IS_NO.search(line):
                        yield _offence(path, node.lineno + number, line)


def dialect(path: Path) -> Iterator[Offence]:
    """Messages and pages use the words of the field."""
    texts = [(1, path.read_text())] if path.suffix == ".md" else []
    if path.suffix == ".py":
        nodes = list(ast.walk(_tree(path)))
        documentation = {node.value for node in nodes if isinstance(node, ast.Expr)}
        constants = (node for node in nodes if isinstance(node, ast.Constant) and node not in documentation)
        texts = [(node.lineno, node.value) for node in constants if isinstance(node.value, str)]
    for first, text in texts:
        for found in DIALECT.finditer(text.replace("\n", " ")):
            yield _offence(path, first + text.count("\n", 0, found.start()), found.group())


def relative_openings(path: Path) -> Iterator[Offence]:
    """The docstring of a module begins with a noun: "The errors of ...", never "What goes wrong ..."."""
    if path.suffix == ".py" and RELATIVE.match(text := ast.get_docstring(_tree(path)) or ""):
        yield _offence(path, 1, text.partition("\n")[0])


def dialect_in_docstrings(path: Path) -> Iterator[Offence]:
    """Docstrings use the words of the field, too."""
    for first, text in _docstrings(path) if path.suffix == ".py" else ():
        for found in DIALECT_IN_DOCSTRINGS.finditer(text.replace("\n", " ")):
            yield _offence(path, first + text.count("\n", 0, found.start()), found.group())


def joined_lists(path: Path) -> Iterator[Offence]:
    """Each item of a numbered list in a docstring begins a line."""
    for first, text in _docstrings(path) if path.suffix == ".py" else ():
        for number, line in enumerate(text.splitlines()):
            if JOINED.search(line):
                yield _offence(path, first + number, line)


def vague_people(path: Path) -> Iterator[Offence]:
    """Docstrings and pages name whom they mean, and not "somebody" or "whoever"."""
    texts: dict[str, Callable[[Path], Iterable[tuple[int, str]]]]
    texts = {".md": lambda page: [(1, page.read_text())], ".py": _docstrings}
    for first, text in texts[path.suffix](path):
        for number, line in enumerate(text.splitlines()):
            if VAGUE.search(line):
                yield _offence(path, first + number, line)


def fragments(path: Path) -> Iterator[Offence]:
    """A paragraph of a docstring begins with a whole sentence, not with the rest of the one before it."""
    if path.suffix != ".py":
        return
    for first, text in _docstrings(path):
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if number and not lines[number - 1].strip() and FRAGMENT.match(line.strip()):
                yield _offence(path, first + number, line)


def leaning_docstrings(path: Path) -> Iterator[Offence]:
    """A docstring stands by itself: it does not begin as a continuation of another one."""
    for first, text in _docstrings(path) if path.suffix == ".py" else ():
        if LEANING.match(text.lstrip("\"'r")):
            yield _offence(path, first, text.partition("\n")[0])


def see_the_module(path: Path) -> Iterator[Offence]:
    """The docstring of a class says what one object is, and does not send the reader to the module."""
    for first, text in _docstrings(path) if path.suffix == ".py" else ():
        for number, line in enumerate(text.splitlines()):
            if SEE_THE_MODULE.search(line):
                yield _offence(path, first + number, line)


def gerunds(path: Path) -> Iterator[Offence]:
    """A module is a thing, and its name a noun that is not a gerund."""
    words = path.stem.strip("_").split("_")
    if path.suffix == ".py" and words[-1].endswith("ing") and words[-1] not in THINGS:
        yield _offence(path, 1, path.name)


RULES: tuple[Rule, ...] = (
    long_docstring_lines,
    long_markdown_lines,
    strings_below_constants,
    relative_comments,
    dialect_docstrings,
    is_no,
    dialect,
    dialect_in_docstrings,
    joined_lists,
    relative_openings,
    vague_people,
    fragments,
)


INDEPENDENT: tuple[Rule, ...] = (leaning_docstrings, see_the_module)


def files(places: tuple[str, ...] = PLACES) -> Iterator[Path]:
    """Yield the Python modules and the Markdown pages of some places."""
    for place in places:
        path = ROOT / place
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (one for one in found if one.suffix in {".py", ".md"})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule):
    offences = [str(offence) for path in files() for offence in rule(path)]
    assert not offences, "\n".join((f"{rule.__doc__}  {len(offences)} lines do not:", *offences))


@pytest.mark.parametrize("rule", INDEPENDENT, ids=lambda rule: rule.__name__)
def test_docstrings_stand_by_themselves(rule):
    offences = [str(offence) for path in files(PRODUCT) for offence in rule(path)]
    assert not offences, "\n".join((f"{rule.__doc__}  {len(offences)} lines do not:", *offences))


def test_modules_are_not_named_by_gerunds():
    offences = [str(offence) for path in files(PRODUCT) for offence in gerunds(path)]
    assert not offences, "\n".join((f"{gerunds.__doc__}  {len(offences)} are:", *offences))


@pytest.mark.parametrize(
    ("rule", "name", "text", "found"),
    [
        (leaning_docstrings, "a.py", 'class A:\n    x = 1\n    """The same for y."""\n', True),
        (leaning_docstrings, "a.py", 'class A:\n    r"""Likewise, raw."""\n', True),
        (leaning_docstrings, "a.py", 'class A:\n    x = 1\n    """Iterations, and the same for y."""\n', False),
        (see_the_module, "a.py", 'class A:\n    """See the module; it has one."""\n', True),
        (see_the_module, "a.py", 'class A:\n    """One of the module."""\n', False),
        (gerunds, "carrying.py", "", True),
        (gerunds, "line_editing.py", "", True),
        (gerunds, "string.py", "", False),
        (gerunds, "timing_table.py", "", False),
    ],
)
def test_a_rule_finds_what_it_is_for(rule, name, text, found, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_prose.ROOT", tmp_path)
    (tmp_path / name).write_text(text)
    assert bool([*rule(tmp_path / name)]) == found
