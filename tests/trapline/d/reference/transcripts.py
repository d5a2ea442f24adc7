"""Reading and running the files of this folder (README.md describes them)."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.trapline.d.reference.scene import run_scene

if TYPE_CHECKING:
    from pathlib import Path

ELIDED = re.compile(
    r"(dtrace: (?:invalid probe specifier|failed to compile script)) .*?: (?=\[D_|Preprocessor |in |line |\")",
    re.DOTALL,
)
MATCHED = re.compile(r"^dtrace: (?:description|script) '[^']*' matched \d+ probes?\n", re.MULTILINE)


@dataclass
class Transcript:
    """A command and what it prints."""

    line: int
    command: str
    files: dict[str, list[str]] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    status: int = 0

    @property
    def name(self) -> str:
        return f"{self.line}: {self.command}"


def read_transcripts(path: Path) -> list[Transcript]:
    """Read the transcripts of a file."""
    found: list[Transcript] = []
    files: dict[str, list[str]] = {}
    into: list[str] | None = None
    for number, line in enumerate(path.read_bytes().decode().split("\n"), start=1):
        mark, rest = line[:1], line[1:]
        if mark == ">":
            into = files.setdefault(rest.strip(), [])
        elif mark == "$":
            found.append(Transcript(number, rest.strip(), files))
            files, into = {}, found[-1].output
        elif mark == "|":
            assert into is not None, f"{path}:{number}"
            into.append(rest)
        elif mark == "!":
            found[-1].errors.append(rest)
        elif mark == "=":
            found[-1].status = int(rest)
        else:
            assert not line.strip() or mark == "#", f"{path}:{number}: {line}"
    return found


def run(transcript: Transcript) -> tuple[list[str], list[str], int]:
    """Run a transcript's command; return the lines of its output and of standard error, and its status."""
    stdout, stderr, status = run_scene(shlex.split(transcript.command))
    if not any(" matched " in line for line in transcript.errors):
        stderr = MATCHED.sub("", stderr)
    return lines(stdout), lines(ELIDED.sub(r"\1 ...: ", stderr)), status


def lines(text: str) -> list[str]:
    """Cut a text into lines; one that has no newline at its end is marked."""
    cut = text.split("\n")
    last = cut.pop()
    return [*cut, f"{last}\\"] if last else cut


def evaluate(text: str) -> str:
    """Return what print() shows of an expression, or the tag of its error, or its fault."""
    declarations, _, rest = text.rpartition(";;")
    statements, _, expression = rest.rpartition("::") if "::" in rest else ("", "", rest)
    program = f"{declarations} BEGIN {{ {statements} print({expression}); exit(0); }}"
    stdout, stderr, _status = run_scene(["-q", "-x", "errtags", "-n", program])
    tag = re.search(r"\[(D_\w+)\]", stderr)
    fault = re.search(r"dtrace:::BEGIN\): (.*) in action", stderr)
    return tag[1] if tag else fault[1] if fault else stdout.strip("\n")
