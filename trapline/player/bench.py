"""The HTML page of the assembly bench: the decisions about each instruction, and its run."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final, NamedTuple

import jinja2
from markupsafe import Markup

from trapline.lab.displace.bench import DisplacedCode, DisplacedInstruction
from trapline.lab.displace.decisions import ProviderDecision
from trapline.lab.displace.run import Executed, Run

# The style of each decision: the instruction gets a probe, or it does not.
_CLASSES: Final = {
    "emulated": "good", "out of line": "good", "single-stepped": "good", "refused": "old", "not a site": "soft",
}  # fmt: skip
# So many changes are named in a sentence, and so many instructions in the title.
_NAMED: Final = 4


class _Cell(NamedTuple):
    """A value behind the patched instruction."""

    text: str
    same: bool


class _Row(NamedTuple):
    """A register, or a word of memory, that some CPU has changed."""

    what: str
    before: str
    original: str
    patched: tuple[_Cell, ...]


class _Step(NamedTuple):
    """One step: an instruction, and its execution if there is a run."""

    row: int
    """The row of the instruction in the code."""
    one: DisplacedInstruction
    executed: Executed | None
    rows: tuple[_Row, ...]
    sentence: str


def bench_page(isa: str, found: DisplacedCode, run: Run | None = None) -> str:
    """Return a page that shows the decision of each instruction; with a run, its steps."""
    folder = files(__package__)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "bench.html.j2").read_text("utf-8"))
    style, own, script = (
        Markup((folder / name).read_text("utf-8"))  # noqa: S704  files of this package
        for name in ("player.css", "bench.css", "bench.js")
    )
    steps = tuple(_executed(found, run) if run and run.executed else _displaced(found))
    title = f"{isa}: {'; '.join(one.text for one in found[:_NAMED])}{'; ...' if len(found) > _NAMED else ''}"
    return template.render(
        title=title, found=found, providers=[one.provider for one in found[0].decisions], steps=steps, run=run,
        classes=_CLASSES, style=style, own_style=own, script=script,
    )  # fmt: skip


def _displaced(found: DisplacedCode) -> Iterator[_Step]:
    for number, one in enumerate(found):
        yield _Step(number, one, None, (), f"{one.text}: {_told(one.decisions)}.")


def _told(decisions: tuple[ProviderDecision, ...]) -> str:
    return ", ".join(f"{decision.provider} {decision.what}" for decision in decisions)


def _executed(found: DisplacedCode, run: Run) -> Iterator[_Step]:
    rows = {one.address: number for number, one in enumerate(found)}
    for executed in run.executed:
        number = rows[executed.address]
        wrong = [each.provider for each in executed.probed if each.differences]
        verdict = (
            f"NOT the same under {', '.join(wrong)}"
            if wrong
            else "the same wherever it is patched"
            if any(each.probed for each in executed.probed)
            else "probed by none"
        )
        sentence = f"{executed.text} changes {_changed(executed)}: {verdict}."
        yield _Step(number, found[number], executed, tuple(_rows(executed)), sentence)


def _changed(executed: Executed) -> str:
    """Return the names of what an instruction has changed."""
    names = [change.what for change in executed.changes]
    if len(names) > _NAMED:
        return f"{len(names)} registers and words of memory"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names) or "nothing"


def _rows(executed: Executed) -> Iterator[_Row]:
    """Yield what the original or any patched CPU has changed."""
    original = {change.what: change for change in executed.changes}
    patched = [{change.what: change for change in each.changes} for each in executed.probed]
    for what in dict.fromkeys(name for changes in (original, *patched) for name in changes):
        change = next(changes[what] for changes in (original, *patched) if what in changes)
        right = original[what].after if what in original else change.before
        after = [changes[what].after if what in changes else change.before for changes in patched]
        yield _Row(
            what, f"{change.before:#x}", f"{right:#x}", tuple(_Cell(f"{value:#x}", value == right) for value in after)
        )
