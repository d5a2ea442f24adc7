"""The description of a step, and the context of a hit that the writers of steps share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from trapline.lab.step.hit_events import Event, Hit, Kind
from trapline.lab.step.names import Names
from trapline.lab.step.recording import Access, Cost, DifStep, Mode, Patch, Stage
from trapline.lab.step.subject import Subject

# Bytes of code in which the displaced instruction is looked for.
_BEHIND: Final = 16


@dataclass(frozen=True, slots=True)
class StepDescription:
    """A step without its number, its changes and its costs."""

    stage: Stage
    sentence: str
    text: str = ""
    code: bytes = b""
    mode: Mode | None = None
    """None: the mode in which the CPU is."""
    facts: Mapping[str, int | str] | None = None
    dif: DifStep | None = None
    patch: Patch | None = None
    cost: Cost = field(default_factory=Cost)
    """The cost of this step; the accesses are counted later."""
    out_of_line: bool = False
    fault: bool = False
    """Whether a correct run does not have this step."""


# (an event, the event after it) -> the steps that describe it.
Writer = Callable[[Event, Event], list[StepDescription]]
Writers = Mapping[Kind, Writer]


# The sentence of the resume; after a mistake it is not true.
RESUMED: Final = "The program continues as if the displaced instruction had run in its place."


class HitContext:
    """One hit, and the stage up to which its steps are written."""

    def __init__(self, subject: Subject, names: Names, hit: Hit) -> None:
        self.subject = subject
        self.isa = subject.isa
        self.names = names
        self.hit = hit
        self.stage = Stage.FRAME
        self.called_probe = False
        """Whether the kernel has called dtrace_probe()."""

    def instruction(self, event: Event) -> tuple[bytes, str]:
        """Return the bytes and the text of the instruction at an event's pc."""
        size, text = self.names.instruction(event.code, event.pc)
        return event.code[:size], text

    def is_breakpoint(self, code: bytes) -> bool:
        """Return whether an instruction is one of the ISA's breakpoints."""
        return any(code == one for one in self.isa.traps.breakpoints)

    def original(self, address: int) -> tuple[bytes, int, str]:
        """Return the program's own code at an address, and its first instruction: size and text."""
        code = self.subject.original(address, _BEHIND)
        return code, *self.names.instruction(code, address)

    def accesses(self, event: Event) -> list[Access]:
        """Return an event's accesses to memory, with the names of the addresses."""
        return [
            Access(one.write, one.address, one.size, one.value, one.before, self._name(one.address))
            for one in event.accesses
        ]

    def _name(self, address: int) -> str:
        """Return the name of a field of the trap frame, or the symbol at an address; "": neither."""
        frame, word = self.hit.frame, self.isa.word
        fields = self.isa.traps.frame
        if frame is not None and 0 <= address - frame < word * len(fields):
            return fields[(address - frame) // word] or "(padding)"
        return self.subject.object_at(address)
