"""A recording that is played: the players' common data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trapline.lab.step.recording import Recording


@dataclass(frozen=True, slots=True)
class Played:
    """A recording with the label of its tab."""

    label: str
    recording: Recording
    note: str = ""
    """The text above its steps."""
    good: bool | None = None
    """Whether it is the right one of two; None: there is nothing to compare."""


def title_of(played: Sequence[Played]) -> str:
    """Return the title of recordings: their probe, and the ISAs."""
    recording = played[0].recording
    probe = recording.firings[0].probe if recording.firings else recording.clause
    return f"{probe} on {', '.join(dict.fromkeys(one.recording.isa for one in played))}"
