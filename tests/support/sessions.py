"""Sessions in plain text: a command and its output (tests/sessions/README.md describes the format)."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ISAS = ("x86_64", "aarch64", "riscv64", "i386")
ANY_LINES = "{{...}}"
BUILT = Path(__file__).parents[2] / "testbins" / "built"
PIECE = re.compile(r"\{\{(.*?)\}\}")


class SessionError(Exception):
    """A session file that is not in the format; the message names file and line."""


@dataclass
class Session:
    """One session of a file."""

    name: str
    line: int
    isas: tuple[str, ...] = ISAS
    command: tuple[str, ...] = ()
    files: dict[str, list[str]] = field(default_factory=dict)
    expect: list[str] = field(default_factory=list)
    stderr: list[str] | None = None
    exit: int = 0

    def arguments(self, isa: str) -> list[str]:
        """Give the arguments of trapline, the ISA among them, and the Linux test program for $ZOO."""
        zoo = BUILT / isa / "linux" / "zoo"
        subcommand, *rest = (word.replace("$ZOO", str(zoo)) for word in self.command)
        return [subcommand, "--isa", isa, *rest]


def read_sessions(path: Path) -> list[Session]:
    """Read the sessions of a file.  Raises `SessionError`."""
    return parse_sessions(path.read_text(encoding="utf-8"), str(path))


def parse_sessions(text: str, name: str = "session") -> list[Session]:
    """Read sessions from text.  Raises `SessionError`."""
    sessions: list[Session] = []
    block: list[str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{name}:{number}"
        if line.startswith("|"):
            if block is None:
                raise SessionError(f"{place}: a line of text outside EXPECT, STDERR and FILE")
            block.append(line[1:])
            continue
        if not line.strip() or line.startswith("#"):
            continue
        keyword, _, rest = line.partition(" ")
        block = None
        if keyword == "NAME":
            sessions.append(Session(rest, number))
        elif not sessions:
            raise SessionError(f"{place}: a session begins with NAME")
        else:
            block = _set(sessions[-1], keyword, rest, place)
    for session in sessions:
        if not session.command:
            raise SessionError(f"{name}:{session.line}: {session.name}: no RUN and no PROG")
    return sessions


def _set(session: Session, keyword: str, rest: str, place: str) -> list[str] | None:
    """Do what one line says; return the block that the following lines belong to."""
    match keyword:
        case "ISAS":
            session.isas = tuple(rest.split())
            if unknown := set(session.isas) - set(ISAS):
                raise SessionError(f"{place}: no ISA {', '.join(sorted(unknown))}; there are {', '.join(ISAS)}")
        case "PROG":
            session.command = ("dtrace", "-n", rest)
        case "RUN":
            program, *session.command = shlex.split(rest)
            if program != "trapline":
                raise SessionError(f"{place}: only trapline can be run, not {program}")
        case "EXIT":
            if not rest.isdecimal():
                raise SessionError(f"{place}: EXIT {rest}: not a number")
            session.exit = int(rest)
        case "FILE":
            return session.files.setdefault(rest, [])
        case "EXPECT":
            return session.expect
        case "STDERR":
            session.stderr = []
            return session.stderr
        case _:
            raise SessionError(f"{place}: unknown line {keyword}")
    return None


def line_pattern(line: str) -> re.Pattern[str]:
    """Make the pattern of an expected line: regular expressions between {{ and }}, the rest as it is."""
    parts = PIECE.split(line)
    return re.compile("".join(part if odd % 2 else re.escape(part) for odd, part in enumerate(parts)))


def matches(expected: Sequence[str], lines: Sequence[str]) -> bool:
    """Return whether lines are as expected."""
    if not expected:
        return not lines
    first, rest = expected[0], expected[1:]
    if first == ANY_LINES:
        return any(matches(rest, lines[start:]) for start in range(len(lines) + 1))
    return bool(lines) and line_pattern(first).fullmatch(lines[0]) is not None and matches(rest, lines[1:])


def difference(expected: Iterable[str], lines: Iterable[str], title: str) -> str:
    """Show how output differs from what was expected; a $ marks the end of each line."""
    return "\n".join(
        unified_diff(
            [f"{line}$" for line in expected],
            [f"{line}$" for line in lines],
            f"expected {title}",
            f"actual {title}",
            lineterm="",
        )
    )


def check(session: Session, stdout: str, stderr: str, status: int) -> list[str]:
    """Compare a run with its session; return what is wrong, nothing if all is as it should be."""
    wrong = []
    lines = stdout.split("\n")[:-1] if stdout.endswith("\n") else stdout.split("\n") if stdout else []
    if not matches(session.expect, lines):
        wrong.append(difference(session.expect, lines, "output"))
    errors = stderr.splitlines()
    if session.stderr is not None and not matches(session.stderr, errors):
        wrong.append(difference(session.stderr, errors, "standard error"))
    if status != session.exit:
        wrong.append(f"exit status {status}, expected {session.exit}; standard error:\n{stderr}")
    return wrong
