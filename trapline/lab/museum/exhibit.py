"""Exhibits of the museum: a bug, the code that shows it, and the rule with the bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from emu.engine.engine import Engine
from emu.isa import ISAS
from emu.isa.base import Isa
from emu.probe.trap import TrapHandler
from trapline.lab.check.cpu.rules_under_test import Rules


class Showing(NamedTuple):
    """The result of running an exhibit's code under some rules."""

    agrees: bool
    """Whether the probed code behaves as without probes, and the probes fire as they should."""
    lines: tuple[str, ...]
    """The differences, or the equal results."""


class ExhibitCheck(Protocol):
    """The check that shows an exhibit's difference (`trapline.lab.museum.checks`)."""

    def verdict(self, exhibit: Exhibit, rules: Rules) -> Showing:
        """Try the exhibit's code under rules."""
        ...


@runtime_checkable
class Playable(ExhibitCheck, Protocol):
    """A check of one CPU's run, which can be recorded step by step."""

    address: ClassVar[int]
    """The address of the exhibit's code."""
    returns: ClassVar[int | None]
    """The address to which it returns; None: the run does not end there."""

    def play(self, exhibit: Exhibit, rules: Rules, watch: Callable[[Engine, TrapHandler], object]) -> str:
        """Run the exhibit's code once with its probe, and return how that ended.

        `watch` is called right before the run, with the handlers that are asked in it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One bug."""

    path: str
    """The module's file: it names the exhibit."""
    text: str
    """The module's docstring: one line about the bug, and its description."""
    system: str
    """The system that had the bug, and the time."""
    references: tuple[str, ...]
    """Public pages about it."""
    isa_name: str
    provider: str
    """fbt, pid or uprobe: the part of the package that has the rule in question."""
    code: bytes
    """The bytes of one function of a few instructions."""
    old: Rules
    """The package's rules with the wrong one in its place."""
    was: str
    """The decision of the old rule."""
    now: str
    """The decision of the correct rule."""
    check: ExhibitCheck
    glue: str = ""
    """The glue of the exhibit's C file (`trapline.lab.museum.in_c`); "": there is none."""

    @property
    def name(self) -> str:
        """The name that `--museum` takes."""
        return Path(self.path).stem.replace("_", "-")

    @property
    def title(self) -> str:
        """The bug, on one line."""
        return self.text.partition("\n")[0].strip()

    @property
    def description(self) -> tuple[str, ...]:
        """The paragraphs that describe the bug, each on one line."""
        paragraphs = self.text.partition("\n")[2].strip().split("\n\n")
        return tuple(" ".join(one.split()) for one in paragraphs)

    @property
    def isa(self) -> Isa:
        """The ISA of the code."""
        return ISAS[self.isa_name]

    def run(self) -> tuple[Showing, Showing]:
        """Return the verdicts under the old rule and under the package's own."""
        return self.check.verdict(self, self.old), self.check.verdict(self, Rules())
