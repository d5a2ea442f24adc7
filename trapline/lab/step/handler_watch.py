"""Watching the handlers of a chain: what each is asked, what it answers, what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.displaced.frame import Frame
from emu.displaced.plans import Plan
from emu.engine.engine import Engine
from emu.probe.execute_plan import interpret
from emu.probe.trap import Handler
from emu.probe.trap_frames import SavedFrame
from emu.support.words import WORD_MASK, BadAddressError
from trapline.lab.step.hit_events import Hit, Kind, RawAccess
from trapline.lab.step.hit_recorder import HitRecorder
from trapline.lab.step.subject import Subject

# The name by which a handler's own system knows it, by the package of its provider.
_HANDLERS: Final = {
    "fbt": "fbt_invop",
    "kinst": "kinst_invop",
    "sdt": "sdt_invop",
    "fasttrap": "fasttrap_pid_probe",
    "uprobes": "handle_swbp",
    "linux_kernel": "the breakpoints of the Linux kernel's text",
}


class _Rehearsal:
    """A CPU that tries a plan: it reads the real memory, and only notes what would be written."""

    def __init__(self, engine: Engine, registers: Mapping[str, int]) -> None:
        self.words = memoryview(bytearray(engine.words)).cast("Q")
        for name, value in registers.items():
            if name in engine.isa.registers.slots:
                self.words[engine.isa.registers.slots[name]] = value
        self.load = engine.load
        self.read_register = engine.read_register
        self.stores: list[tuple[int, int, int]] = []

    def store(self, address: int, size: int, value: int) -> None:
        self.stores.append((address, size, value & (1 << 8 * size) - 1))

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Ignore the write: vector registers are not shown."""


class HandlerWatch:
    """Puts a function around each handler, which adds events to a recorder."""

    def __init__(self, subject: Subject, recorder: HitRecorder) -> None:
        self._subject = subject
        self._engine = subject.engine
        self._recorder = recorder

    def wrap(self, handler: Handler) -> Handler:
        """Return a handler that does the same and is recorded (`TrapHandler.wrap`).

        Only handlers of providers are recorded.
        """
        package = handler.__module__.split(".")
        if package[0] != "providers":
            return handler
        name = _HANDLERS.get(package[1], package[1])

        def recorded(address: int, frame: Frame, extra: int) -> int:
            saved = frame.address if isinstance(frame, SavedFrame) else None
            hit = self._recorder.hit
            if hit is not None and saved is not None:
                hit.frame = saved
            self._recorder.add(Kind.ASKED, name=name, arguments=(address, saved or 0))
            before = self._interrupted_pc(frame)
            answer = handler(address, frame, extra)
            self._answered(name, address, frame, answer, moved=self._interrupted_pc(frame) != before)
            return answer

        return recorded

    def _interrupted_pc(self, frame: Frame) -> int:
        """Return the pc at which the program will continue, unless a stub adds to it."""
        return frame.register(self._engine.isa.registers.pc) if isinstance(frame, SavedFrame) else self._engine.pc

    def _answered(self, name: str, address: int, frame: Frame, answer: int, *, moved: bool) -> None:
        hit = self._recorder.running
        if hit is None:
            return
        in_cpu = not isinstance(frame, SavedFrame)
        plan = self._subject.plan(address, answer) if answer and not moved else None
        before = hit.events[-1] if hit.events else None
        self._recorder.add(Kind.ANSWERED, name=name, answer=answer, plan=plan, moved=moved)
        answered = hit.events[-1]
        if before is not None:
            # The handler's changes belong to its answer.
            answered.registers, answered.pc = before.registers, before.pc
        if moved and in_cpu and not self._subject.is_machinery(self._engine.pc):
            answered.accesses = self._written(hit)
        if plan is not None and in_cpu:
            event = self._recorder.snapshot(Kind.PLANNED, plan=plan)
            event.accesses = self._rehearse(plan, event.registers)
            hit.events.append(event)

    def _written(self, hit: Hit) -> list[RawAccess]:
        """Return the words of the stack that a handler has changed."""
        size, load = self._engine.isa.word, self._engine.load
        now = ((address, before, load(address, size)) for address, before in hit.stack)
        return [
            RawAccess(write=True, address=address, size=size, value=value, before=before)
            for address, before, value in now
            if value != before
        ]

    def _rehearse(self, plan: Plan, registers: Mapping[str, int]) -> list[RawAccess]:
        """Return what a plan will write; nothing if it cannot be executed."""
        rehearsal, isa = _Rehearsal(self._engine, registers), self._engine.isa
        try:
            interpret(plan, isa, rehearsal, registers[isa.registers.pc])
        except BadAddressError:
            return []
        load = self._engine.load
        return [
            RawAccess(write=True, address=address & WORD_MASK, size=size, value=value, before=load(address, size))
            for address, size, value in rehearsal.stores
        ]
