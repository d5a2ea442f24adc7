"""Plans of records: a step for each statement; and the form of a record for the user's program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from emu.support.immutable import immutable
from trapline.consumer.records.printf import Render
from trapline.consumer.records.values import Read
from trapline.consumer.text.columns import c_string, decode
from trapline.consumer.text.default_format import SIGNED
from trapline.framework.base.device import ProbeInfo, RecordDescription

# Statement numbers from here on are not the program's own: their data is not shown (`exporting`).
HIDDEN_STATEMENT: Final = 0xFFFF_FF00

Records: TypeAlias = Sequence["RecordDescription"]
Effect: TypeAlias = Callable[["Firing"], None]


@immutable
class Step:
    """One statement; it has either `text` or `effect`."""

    text: Render | None = None
    """Shows its data; its arguments are the buffer and the offset of the record."""
    effect: Effect | None = None
    """Acts on the consumer."""
    value: Read | None = None
    """Returns its data as a Python value; None: it has none."""
    records: Records = ()
    """Its data, one record after the other."""


@immutable
class RecordPlan:
    """The plan for the records of an EPID."""

    epid: int
    probe: ProbeInfo
    size: int
    lead: str
    """Probe number and name as they begin a line."""
    steps: tuple[Step, ...]
    texts: tuple[Render, ...] | None
    """The text of each step; None if a step does something else."""
    is_error: bool
    """Whether it is the consumer's own ERROR enabling."""
    identity: tuple[Read, ...] = ()
    """Read the thread's pid, tid and name, where these are recorded."""


@immutable
class Firing:
    """A record in its form for the user's program."""

    plan: RecordPlan
    cpu: int
    timestamp: int
    """Virtual nanoseconds."""
    data: bytes
    offset: int

    @property
    def probe(self) -> ProbeInfo:
        """The probe that fired."""
        return self.plan.probe

    @property
    def values(self) -> tuple[Any, ...]:
        """The value of each statement: int, str, bytes, a tuple of frames, a printf()'s text."""
        return tuple(step.value(self.data, self.offset) for step in self.plan.steps if step.value is not None)

    def act(self) -> None:
        """Execute the statements that act on the consumer, such as exit() and clear()."""
        for step in self.plan.steps:
            if step.effect is not None:
                step.effect(self)

    @property
    def identity(self) -> tuple[Any, ...]:
        """The pid, the tid and the name of the thread; nothing if they were not recorded."""
        return tuple(read(self.data, self.offset) for read in self.plan.identity)

    def integer(self, record: RecordDescription) -> int:
        """Read an integer of the record, signed."""
        return SIGNED[record.size](self.data, self.offset + record.offset)

    def text(self, record: RecordDescription) -> str:
        """Read a string of the record."""
        start = self.offset + record.offset
        return decode(c_string(self.data[start : start + record.size]))
