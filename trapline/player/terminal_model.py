"""The recordings of the player in a terminal: a recorded firing, or a race of several CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from textual.content import Content

from trapline.player.model import FiringModel, Played
from trapline.player.panes import HERE, NEW, PANES, SOFT, Shown, run


class TerminalRecording(Protocol):
    """A row of steps, with panes for each."""

    @property
    def label(self) -> str:
        """The name of its tab."""

    @property
    def note(self) -> str:
        """The text above its first step."""

    @property
    def good(self) -> bool | None:
        """Whether it is the right one of two; None: there is nothing to compare."""

    def __len__(self) -> int:
        """Return the number of steps."""

    def position(self, index: int) -> str:
        """Return the stage and the address of a step."""

    def sentence(self, index: int) -> str:
        """Return what happens at a step, and why."""

    def fault(self, index: int) -> str:
        """Return what goes wrong at a step; "" if nothing does."""

    def panes(self, index: int) -> Mapping[str, Shown]:
        """Return the panes by their titles; the first one is always in view."""

    def next_stage(self, index: int, direction: int) -> int:
        """Return the first step of another stage in a direction (1 or -1)."""

    def aligned(self, index: int, other: TerminalRecording) -> int:
        """Return the step of another recording that corresponds to a step of this one."""


@dataclass(frozen=True, slots=True)
class TerminalFiring:
    """A firing of a recording."""

    label: str
    note: str
    good: bool | None
    model: FiringModel
    others: list[TerminalFiring] = field(default_factory=list)
    """The recordings that are played with it."""

    def __len__(self) -> int:
        return len(self.model.steps)

    def position(self, index: int) -> str:
        """Return the stage and the address of a step."""
        step = self.model.steps[index]
        return " | ".join(text for text in (step.stage, step.mode, step.where, step.text) if text)

    def sentence(self, index: int) -> str:
        """Return what happens at a step, and why."""
        return self.model.steps[index].sentence

    def fault(self, index: int) -> str:
        """Return what goes wrong at a step."""
        return self.model.steps[index].fault

    def panes(self, index: int) -> Mapping[str, Shown]:
        """Return the panes by their titles."""
        others = [(one.label, one.model) for one in self.others]
        shown = {title: pane(self.model, index) for title, pane in PANES.items()}
        return shown | {"Run" if not others else "Run, others": run(self.model, others, index)}

    def next_stage(self, index: int, direction: int) -> int:
        """Return the first step of another stage in a direction (1 or -1)."""
        return self.model.next_stage(index, direction)

    def aligned(self, index: int, other: TerminalRecording) -> int:
        """Return the step of another recording that is as far in the same stage, or 0."""
        assert isinstance(other, TerminalFiring)
        return self.model.aligned(index, other.model) or 0


@dataclass(frozen=True, slots=True)
class TerminalRace:
    """A race, whose data `trapline.lab.race.report.player_data` returns."""

    race: Mapping[str, Any]
    note: str
    label: str = "race"
    good: bool | None = None

    def __len__(self) -> int:
        return len(self.race["rows"])

    def _who(self, index: int) -> str:
        lane = self.race["rows"][index]["lane"]
        return "" if lane < 0 else str(self.race["lanes"][lane])

    def position(self, index: int) -> str:
        """Return the CPU that takes a step."""
        return self._who(index) or "before the race"

    def sentence(self, index: int) -> str:
        """Return what the CPU does."""
        return str(self.race["rows"][index]["text"])

    def fault(self, index: int) -> str:
        """Return what goes wrong at a step."""
        return str(self.race["rows"][index]["failure"])

    def panes(self, index: int) -> Mapping[str, Shown]:
        """Return the lanes, and what each CPU may fetch at the patch."""
        lines = []
        width = max(map(len, self.race["lanes"])) + 1
        for number, row in enumerate(self.race["rows"]):
            style = HERE if number == index else SOFT if number > index else ""
            mark = "> " if number == index else "  "
            lines.append(Content.assemble(mark, (f"{number:3} {self._who(number):{width}} {row['text']}", style)))
        views = [Content(f"memory  {self.race['rows'][index]['memory']}")]
        for number, cpu in enumerate(self.race["rows"][index]["cpus"], 1):
            views.append(Content(f"CPU {number}   {cpu['where']}"))
            views.append(Content.assemble("  may fetch ", (" or ".join(cpu["sees"]) or "nothing", NEW)))
        return {"The lanes": Shown(lines, index), "At the patch": Shown(views)}

    def next_stage(self, index: int, direction: int) -> int:
        """Return the next step of another CPU in a direction (1 or -1)."""
        here, last = self._who(index), len(self) - 1
        while 0 <= index + direction <= last and self._who(index + direction) == here:
            index += direction
        return min(max(index + direction, 0), last)

    def aligned(self, index: int, other: TerminalRecording) -> int:
        """Return the same step."""
        return min(index, len(other) - 1)


def terminal_race(race: Mapping[str, Any]) -> TerminalRace:
    """Return the recording of a race."""
    return TerminalRace(race, f"{race['method']}. At {race['site']}, {race['old']} becomes {race['new']}.")


def terminal_firings(played: Sequence[Played]) -> list[TerminalFiring]:
    """Return a recording for each firing of some recordings."""
    recordings = [
        TerminalFiring(one.label if len(one.recording.firings) == 1 else f"{one.label}, firing {number + 1}",
                   one.note, one.good, FiringModel(one.recording, number))
        for one in played for number in range(len(one.recording.firings))
    ]  # fmt: skip
    for recording in recordings:
        recording.others.extend(one for one in recordings if one is not recording)
    return recordings
