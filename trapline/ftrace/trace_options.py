"""The selection of the events to show, and their details."""

from __future__ import annotations

from dataclasses import dataclass

from providers.fidelity import Fidelity
from trapline.ftrace.filter import Filter


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The selection of events, and the details to show."""

    wanted: Filter | None = None
    """Selects events by the values of their arguments."""
    pid: int | None = None
    tid: int | None = None
    stacks: bool = False
    fidelity: Fidelity = Fidelity.EXACT
    """Whether uprobes have Linux' quirks."""
