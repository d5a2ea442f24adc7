"""Exhibits of the museum: a bug, the code that shows it, and the rule that had it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from emu.isa import ISAS
from emu.isa.base import Isa
from trapline.lab.check.rules import Rules


class Showing(NamedTuple):
    """The result of running an exhibit's code under some rules."""

    agrees: bool
    """Whether the probed code does what it does without probes, and the probes fire as they
    should."""
    lines: tuple[str, ...]
    """The difference, or what agreed."""


class ExhibitCheck(Protocol):
    """The check that shows an exhibit's difference (`trapline.lab.museum.checks`)."""

    def verdict(self, exhibit: Exhibit, rules: Rules) -> Showing:
        """Try the exhibit's code under rules."""
        ...


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One bug."""

    path: str
    """The module's file: it names the exhibit."""
    text: str
    """The module's docstring: a line that says what went wrong, and the story."""
    system: str
    """Who had the bug, and when."""
    references: tuple[str, ...]
    """Public pages about it."""
    isa_name: str
    provider: str
    """fbt, pid or uprobe: the part of the package that has the rule in question."""
    code: bytes
    """One function of a few instructions."""
    old: Rules
    """The package's rules with the wrong one in its place."""
    was: str
    """What the old rule decides."""
    now: str
    """What the right one decides."""
    check: ExhibitCheck

    @property
    def name(self) -> str:
        """The name that `--museum` takes."""
        return Path(self.path).stem.replace("_", "-")

    @property
    def title(self) -> str:
        """What went wrong, on one line."""
        return self.text.partition("\n")[0].strip()

    @property
    def story(self) -> tuple[str, ...]:
        """The paragraphs of the story, each on one line."""
        paragraphs = self.text.partition("\n")[2].strip().split("\n\n")
        return tuple(" ".join(one.split()) for one in paragraphs)

    @property
    def isa(self) -> Isa:
        """The ISA of the code."""
        return ISAS[self.isa_name]

    def run(self) -> tuple[Showing, Showing]:
        """Return the verdicts under the old rule and under the package's own."""
        return self.check.verdict(self, self.old), self.check.verdict(self, Rules())
