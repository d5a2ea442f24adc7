"""The museum: real bugs of real probe implementations, red under the rule that had them, green under the right one.

An exhibit is a module of `trapline/lab/museum`: its docstring tells the story, and its `EXHIBIT`
has the code, the old rule put in the place of the package's own, and how the difference is shown.
The package's own rules are the right ones.
"""

from __future__ import annotations

import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import capstone

from emu.elf import nearest
from emu.isa import ISAS
from emu.isa.base import Isa
from trapline.lab import museum
from trapline.lab.check.rules import Rules

_WIDTH: Final = 100


class MuseumError(Exception):
    """An exhibit, or all of them, cannot be found: the message says why, on one line."""


class Verdict(NamedTuple):
    """What came of an exhibit's code under some rules."""

    agrees: bool
    """Whether the probed code does what it does without probes, and the probes fire as they
    should."""
    lines: tuple[str, ...]
    """Where they part, or what agreed."""


class Check(Protocol):
    """How an exhibit's difference is shown (`trapline.lab.check.shown`)."""

    def verdict(self, exhibit: Exhibit, rules: Rules) -> Verdict:
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
    """Where the public reads of it."""
    isa_name: str
    provider: str
    """fbt, pid or uprobe: the part of the package that has the rule in question."""
    code: bytes
    """A few instructions, one function."""
    old: Rules
    """The package's rules but for the one that was wrong."""
    was: str
    """What the old rule decides."""
    now: str
    """What the right one decides."""
    check: Check

    @property
    def name(self) -> str:
        """What `--museum` calls it."""
        return Path(self.path).stem.replace("_", "-")

    @property
    def title(self) -> str:
        """What went wrong, in a line."""
        return self.text.partition("\n")[0].strip()

    @property
    def story(self) -> tuple[str, ...]:
        """The paragraphs of the story, each on one line."""
        paragraphs = self.text.partition("\n")[2].strip().split("\n\n")
        return tuple(" ".join(one.split()) for one in paragraphs)

    @property
    def isa(self) -> Isa:
        """Whose code it is."""
        return ISAS[self.isa_name]

    def run(self) -> tuple[Verdict, Verdict]:
        """Return what comes of the code under the old rule, and under the package's own."""
        return self.check.verdict(self, self.old), self.check.verdict(self, Rules())


# -- finding them


def exhibits() -> dict[str, Exhibit]:
    """Return the exhibits by name: every module of this folder that has an `EXHIBIT`."""
    modules = (import_module(f"{__package__}.{module.name}") for module in pkgutil.iter_modules(museum.__path__))
    found = [module.EXHIBIT for module in modules if hasattr(module, "EXHIBIT")]
    return {exhibit.name: exhibit for exhibit in found}


def find(name: str) -> Exhibit:
    """Return an exhibit.  Raises `MuseumError`."""
    known = exhibits()
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean '{near}'?" if near else "--museum list names them"
        raise MuseumError(f"no exhibit '{name}' ({hint})")
    return known[name]


# -- telling


def listing() -> Iterator[str]:
    """Yield a line for each exhibit.  Raises `MuseumError`."""
    known = exhibits()
    width = max(map(len, known))
    for name, exhibit in known.items():
        yield f"{name:{width}}  {exhibit.isa_name:7}  {exhibit.provider:6}  {exhibit.title}"


def show(name: str, echo: Callable[[str], object]) -> int:
    """Print an exhibit, both verdicts included, or, for the name "list", all names; return the exit status.

    It is 0 if the old rule fails and the right one does not.  Raises `MuseumError`.
    """
    if name == "list":
        for line in listing():
            echo(line)
        return 0
    exhibit = find(name)
    old, right = exhibit.run()
    for line in _label(exhibit):
        echo(line)
    echo("")
    for title, rule, verdict in (("old rule", exhibit.was, old), ("right rule", exhibit.now, right)):
        echo(f"{title + ':':12}{rule}")
        echo(f"{'':12}{'agrees' if verdict.agrees else 'DIVERGES'}")
        for line in verdict.lines:
            echo(f"{'':14}{line}")
    shown = not old.agrees and right.agrees
    if not shown:
        echo(f"{name}: " + ("the old rule shows nothing" if old.agrees else "the right rule fails as well"))
    return 0 if shown else 1


def _label(exhibit: Exhibit) -> Iterator[str]:
    yield f"{exhibit.name}: {exhibit.title}"
    yield f"{exhibit.system}"
    yield f"shown here on {exhibit.isa_name}, in the rules of {exhibit.provider}"
    for paragraph in exhibit.story:
        yield ""
        yield from textwrap.wrap(paragraph, _WIDTH, break_long_words=False)
    yield ""
    yield from exhibit.references
    yield ""
    for offset, data, text in disassembled(exhibit):
        yield f"  +{offset:#04x}  {data.hex():18}  {text}"


def disassembled(exhibit: Exhibit) -> Iterator[tuple[int, bytes, str]]:
    """Yield offset, bytes and assembly of each instruction; bytes that are none at the end are left out."""
    decoder = capstone.Cs(*exhibit.isa.capstone)
    if exhibit.isa.capstone[0] == capstone.CS_ARCH_X86:
        decoder.syntax = capstone.CS_OPT_SYNTAX_ATT
    for at, length, mnemonic, operands in decoder.disasm_lite(exhibit.code, 0):
        yield at, exhibit.code[at : at + length], f"{mnemonic} {operands}".rstrip()
