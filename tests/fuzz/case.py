"""The contract of a fuzzer, and cases that are kept."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from random import Random

REGRESSIONS = Path(__file__).parent / "regressions"


class Fuzzer(ABC):
    """One class of hostile input.

    `expected` are the errors that refuse a case in words; `seconds` and `megabytes` are what a case
    may take, the latter beside what the process has before its first case.
    """

    name: str
    expected: tuple[type[Exception], ...] = ()
    seconds: float = 5.0
    forks: bool = False
    """Whether each case is a fork of the child, which is as the parent has warmed it: what a case
    does to the machine that is ready there is gone with it."""
    patience: int = 12
    """A case that only waits may take so many times its limit, which is CPU time."""
    megabytes: int = 512
    whole: int = 1_000_000
    """Cases of a long run, in all."""
    quick: int = 100
    """Cases that `make test` runs."""
    compared: int = 10
    """Cases that `make test` runs alone and among others."""

    def warm(self) -> None:
        """Do once, in the parent, what all cases use: import, read seeds, compile.  Not timed."""
        self.case(0)

    def warm_for_long(self) -> None:  # noqa: B027  most have nothing more to warm
        """Do once, in the parent, what pays in a run of hours only.  Not timed."""

    def prepare(self, folder: Path) -> None:  # noqa: B027  most have nothing to prepare
        """Do what the cases of one child process share.  Not timed.

        `folder` is the child's own, and its working directory: messages do not name it.
        """

    @abstractmethod
    def make(self, random: Random) -> bytes:
        """Make a case."""

    @abstractmethod
    def run(self, case: bytes) -> str:
        """Run a case; return how it ended, in a word, or in a word, ": " and details.

        The details count when a case that ran alone is compared with itself among others.  Raises
        `expected`, or what is to be found.
        """

    def case(self, number: int) -> bytes:
        """Return the case of a number."""
        return self.make(Random(f"{self.name} {number}"))  # noqa: S311  reproducible, not secret

    def outcome(self, case: bytes) -> str:
        """Run a case; return "refused: why", or how it ended.  Raises what is to be found."""
        try:
            return self.run(case)
        except self.expected as error:
            message = str(error)
            if "\n" in message or not message:
                raise AssertionError(f"the message is not one line: {message!r}") from error
            return f"refused: {message}"


@dataclass(frozen=True)
class Finding:
    """A case that did not go well."""

    fuzzer: str
    number: int
    """-1: it was not made from a number."""
    why: str
    case: bytes

    def keep(self) -> bool:
        """Write it among the regression cases, one for each reason; return whether it is new."""
        reason = re.sub(r"0x[0-9a-f]+|\d+|'.*?'", "N", self.why)
        path = REGRESSIONS / self.fuzzer / f"{hashlib.sha256(reason.encode()).hexdigest()[:12]}.json"
        if path.exists():
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        shown = {"why": self.why, "number": self.number, "case": base64.b64encode(self.case).decode()}
        path.write_text(json.dumps(shown, indent=1) + "\n")
        return True


def kept(fuzzer: str) -> list[Finding]:
    """Return the regression cases of a class."""
    found = []
    for path in sorted((REGRESSIONS / fuzzer).glob("*.json")):
        shown = json.loads(path.read_text())
        found.append(Finding(fuzzer, shown["number"], shown["why"], base64.b64decode(shown["case"])))
    return found
