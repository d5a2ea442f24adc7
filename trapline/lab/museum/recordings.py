"""An exhibit as two recordings for the player: its code under the old rule and under the right one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from emu.displaced.plans import Plan
from emu.engine.engine import Engine
from emu.guest.base import Location, Thread
from emu.isa.base import Isa
from emu.isa.disassembly import Syntax
from emu.probe.trap import TrapHandler
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit, Playable
from trapline.lab.step.faults import difference
from trapline.lab.step.hit_events import Kind
from trapline.lab.step.names import Names
from trapline.lab.step.recorder import Recorder
from trapline.lab.step.recording import Recording
from trapline.lab.step.steps import FiringSteps, listed_fields
from trapline.lab.step.subject import Subject

# Instructions that are recorded: most exhibits loop or end before.
_RECORDED: Final = 24
_UNSEEN: Final = (
    "This recording does not show the bug: to record, the emulator has to translate the code anew, which is what the "
    "old rule forgets."
)


@dataclass(slots=True)
class _ExhibitGuest:
    """An exhibit's few instructions, as a guest whose addresses have names."""

    isa: Isa
    start: int
    size: int

    def thread(self) -> Thread:
        """Return a thread that stands for whatever calls the exhibit."""
        return Thread(address=0, tid=1, pid=1, ppid=0, execname="exhibit")

    def locate(self, address: int) -> Location | None:
        """Name an address of the code."""
        return self.locate_user(address)

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name an address of the code."""
        del pid
        inside = self.start <= address < self.start + self.size
        return Location("museum", "exhibit", address - self.start) if inside else None

    def interrupt(self) -> None:
        """Do nothing: the run is short."""


class _ExhibitSubject(Subject):
    """An exhibit for the recorder: all code that is not its own exists because of the probe.

    `rules`: FBT's, whose table says what is done in place of an instruction; None: it has another
    provider.
    """

    def __init__(self, guest: _ExhibitGuest, engine: Engine, code: bytes, rules: Rules | None) -> None:
        super().__init__(guest, engine, None)
        self._code = code
        self._start = guest.start
        self._table = None if rules is None else rules.displaced or guest.isa.stub

    def original(self, address: int, size: int) -> bytes:
        """Return the exhibit's own bytes."""
        offset = address - self._start
        return self._code[offset : offset + size] if 0 <= offset < len(self._code) else self.read(address, size)

    def plan(self, address: int, answer: int) -> Plan | None:
        """Return what FBT's stub does."""
        if self._table is None:
            return None
        return self._table.invop(answer, int.from_bytes(self.original(address, 4), "little"), address)

    def function(self, address: int) -> tuple[int, int] | None:
        """Return where the exhibit is."""
        inside = self._start <= address < self._start + len(self._code)
        return (self._start, len(self._code)) if inside else None


def play(exhibit: Exhibit, syntax: Syntax = Syntax.INTEL) -> tuple[Recording, Recording]:
    """Return the recordings under the old rule and under the right one.

    The first step that differs under the old rule says what is wrong.
    """
    old = _recorded(exhibit, exhibit.old, exhibit.was, syntax)
    right = _recorded(exhibit, Rules(), exhibit.now, syntax)
    firing = old.firings[0]
    index = difference(firing.steps, right.firings[0].steps)
    if index is None:
        return replace(old, notes=(*old.notes, _UNSEEN)), right
    verdict = "; ".join(exhibit.check.verdict(exhibit, exhibit.old).lines)
    steps = list(firing.steps)
    steps[index] = replace(steps[index], fault=f"Here the old rule goes wrong: {exhibit.was} ({verdict}).")
    return replace(old, firings=(replace(firing, steps=tuple(steps)),)), right


def _recorded(exhibit: Exhibit, rules: Rules, rule: str, syntax: Syntax) -> Recording:
    check, isa = exhibit.check, exhibit.isa
    assert isinstance(check, Playable)
    found: list[tuple[Recorder, _ExhibitSubject, Mapping[str, tuple[str, ...]]]] = []

    def watch(engine: Engine, chain: TrapHandler) -> None:
        guest = _ExhibitGuest(isa, check.address, len(exhibit.code))
        subject = _ExhibitSubject(guest, engine, exhibit.code, rules if exhibit.provider == "fbt" else None)
        recorder = Recorder(subject, 1, _RECORDED)
        recorder.attach((chain,))
        recorder.begin()
        found.append((recorder, subject, Names(subject, syntax).listings(check.address)))

    end = check.play(exhibit, rules, watch)
    recorder, subject, listing = found[0]
    recorder.hit_recorder.crashed("The run ends here.")
    (hit,) = recorder.hit_recorder.hits
    returned = next((number for number, event in enumerate(hit.events) if event.pc == check.returns), None)
    if returned is not None:
        hit.broken = "The exhibit has returned to its caller: the run ends here."
        hit.events[returned].kind = Kind.RESUMED
        del hit.events[returned + 1 :]
    firing = FiringSteps(subject, Names(subject, syntax)).firing(hit, listing)
    return Recording(
        isa.name, "museum", "host", exhibit.title, "", recorder.hit_recorder.names, isa.registers.pc, isa.registers.sp,
        tuple(listed_fields(isa)), isa.word, "", (), (firing,), "", (f"The rule: {rule}.", f"How it ended: {end}."),
    )  # fmt: skip
