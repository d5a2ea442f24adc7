"""Enabling control blocks: a clause at one probe, and the form that equal clauses share.

Source: FreeBSD dtrace.c dtrace_ecb_add().
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trapline.framework.base.probes import Probe
from trapline.framework.base.program import Difo
from trapline.framework.buffers.layout import Placed, RecordLayout

# (arguments of the probe, the same object for all enablings of one firing)
Run = Callable[[tuple[int, ...]], None]


@dataclass(slots=True, eq=False)
class Ecb:
    """One enabling of one probe (dtrace_ecb_t)."""

    epid: int
    probe: Probe
    clause: Clause
    aggregation_ids: tuple[int, ...]
    """Ids of its aggregating actions, in order."""
    make: Callable[[Ecb], Run]
    """Returns what runs it."""
    _run: Run | None = None

    @property
    def run(self) -> Run:
        """What runs it; made at its first firing, because most of many probes never fire."""
        if self._run is None:
            self._run = self.make(self)
        return self._run

    def forget(self) -> None:
        """Let what runs it be made anew: its clause has become machine code."""
        self._run = None


class MachineCode(Protocol):
    """The machine code of equal clauses."""

    @property
    def address(self) -> int:
        """The address of the function."""
        ...

    @property
    def start(self) -> tuple[int, ...]:
        """A function, and its argument, to be called before the first such enabling of a firing."""
        ...

    def words(self, ecb: Ecb) -> int:
        """Return the address of an enabling's words."""
        ...

    def run(self, ecb: Ecb) -> Run:
        """Return what fires an enabling from Python."""
        ...


@dataclass(slots=True, eq=False)
class Form:
    """What equal clauses share: what runs an enabling of them in Python, and perhaps machine code."""

    make: Callable[[Ecb], Run] = field(init=False)
    native: MachineCode | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """A clause ready to be put at probes: all of them share what it compiles to."""

    predicate: Difo | None
    layout: RecordLayout
    form: Form

    @property
    def objects(self) -> Sequence[Difo]:
        """Its DIF objects."""
        found = (self.predicate, *(placed.action.difo for placed in self.layout.actions))
        return [difo for difo in found if difo is not None]

    @property
    def aggregating(self) -> Iterator[Placed]:
        """The aggregating actions, in order."""
        return (placed for placed in self.layout.actions if placed.aggregating is not None)
