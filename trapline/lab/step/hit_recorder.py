"""The record of a guest's hits: snapshots of the CPU, put in order.

A hit recorder does not know what makes events: `trapline.lab.step.recorder` adds those of the CPU,
`handler_watch` those of handlers, and `clause_watch` those of probes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from emu.engine.errors import GuestCrashError
from emu.isa.base import Isa
from emu.support.words import BadAddressError
from trapline.lab.step.hit_events import Event, Hit, Kind, RawAccess
from trapline.lab.step.subject import Subject

# Words of the stack that are shown below and above the stack pointer.
_STACK_WORDS: Final = 64
_LONGEST_INSTRUCTION: Final = 16


def shown_registers(isa: Isa) -> tuple[str, ...]:
    """Return the registers that a recording has: what a trap frame holds, pc and flags."""
    roles = {isa.registers.pc, isa.registers.sp, isa.registers.fp, isa.registers.link, isa.traps.flags}
    held = {*isa.traps.frame, *roles} - {isa.registers.zero}
    kept = [name for name, register in isa.registers.by_name.items() if name in held and register.slot is not None]
    return (*kept, *([isa.traps.flags] if isa.traps.flags and isa.traps.flags not in kept else []))


class HitRecorder:
    """The hits of one guest: the one that is being recorded, and those that are complete."""

    def __init__(self, subject: Subject, wanted: int) -> None:
        self.names = shown_registers(subject.isa)
        self.hits: list[Hit] = []
        self.hit: Hit | None = None
        """The hit that is being recorded."""
        self._subject = subject
        self._engine = subject.engine
        self._wanted = wanted
        self._before: dict[int, Hit] = {}
        """The latest hit of each thread that fired nothing, such as the entry of a return probe."""
        self._gate: Event | None = None

    @property
    def done(self) -> bool:
        """Whether all wanted firings are recorded."""
        return len(self.hits) >= self._wanted

    @property
    def running(self) -> Hit | None:
        """The hit to which events are added; None: there is none, or all is recorded."""
        return None if self.done else self.hit

    def begin(self, address: int, **marks: Any) -> Hit:
        """Begin a hit; `marks` are fields of `Hit`."""
        self.hit = Hit(address, stack=self._stack(), thread=self._subject.thread(), **marks)
        return self.hit

    def drop(self) -> None:
        """Forget the hit that is being recorded."""
        self.hit = None

    # -- events

    def snapshot(self, kind: Kind, **details: Any) -> Event:
        """Return an event of the present state; `details` are fields of `Event`."""
        registers = self._registers()
        pc = registers[self._engine.isa.registers.pc]
        code = b""
        with suppress(BadAddressError):
            code = self._subject.read(pc, _LONGEST_INSTRUCTION)
        return Event(kind, pc, registers, self._engine.instructions, code, **details)

    def add(self, kind: Kind, **details: Any) -> None:
        """Add an event of the present state, if a hit is being recorded."""
        hit = self.running
        if hit is None:
            return
        event = self.snapshot(kind, **details)
        if self._gate is not None:
            # The gate's return instruction comes after what the emulator does in the gate.
            event.pc, event.code, event.registers = self._gate.pc, b"", self._gate.registers
        hit.events.append(event)

    def accessed(self, write: bool, physical: int, size: int, value: int) -> None:
        """Add an access of `size` bytes of memory to the latest event (`Engine.running.watch`)."""
        hit = self.running
        if hit is None or not hit.events:
            return
        event = hit.events[-1]
        address = self._subject.virtual(physical, event.registers.values())
        data = self._subject.physical(physical, size)
        event.accesses.append(RawAccess(write, address, size, value if write else data, data if write else None))

    def enter_gate(self, name: str) -> None:
        """Make the latest event a call of a gate; its instruction is added by `leave_gate`."""
        assert self.hit is not None
        self._gate = self.hit.events.pop()
        self.hit.events.append(self.snapshot(Kind.CALLED, name=name))
        self.hit.events[-1].code = b""

    def leave_gate(self) -> None:
        """Put the return instruction of a gate behind what the emulator did in it."""
        gate, self._gate = self._gate, None
        if gate is None or self.hit is None:
            return
        events = self.hit.events
        results = set(self._engine.isa.calling.results)
        now = self._registers()
        gate.registers = {name: now[name] if name in results else old for name, old in gate.registers.items()}
        calls = [event for event in events if event.kind is Kind.CALLED]
        gate.accesses = [one for event in calls for one in event.accesses]
        for event in calls:
            event.accesses = []
        events.append(gate)

    def _registers(self) -> dict[str, int]:
        return {name: self._engine.read_register(name) for name in self.names}

    def _stack(self) -> tuple[tuple[int, int], ...]:
        engine, size = self._engine, self._engine.isa.word
        top = engine.read_register(engine.isa.registers.sp)
        words = []
        for index in range(-_STACK_WORDS, _STACK_WORDS):
            with suppress(BadAddressError):
                words.append((top + index * size, engine.load(top + index * size, size)))
        return tuple(words)

    # -- the end of a hit

    def close(self, hit: Hit) -> None:
        """End a hit: keep it if it has fired."""
        self.hit = None
        hit.over = True
        hit.events.append(self.snapshot(Kind.AFTER if hit.after > 1 else Kind.RESUMED))
        if not hit.fired:
            told = {Kind.FIRED, Kind.UNWANTED}
            if not any(event.kind in told for event in hit.events):
                self._before[hit.thread[1]] = hit
            return
        if self.done:
            return
        earlier = self._before.pop(hit.thread[1], None)
        if earlier is not None and self._subject.is_machinery(hit.address):
            between = earlier.events.pop()
            elsewhere = Event(Kind.ELSEWHERE, between.pc, between.registers, between.instructions)
            hit.events = [*earlier.events, elsewhere, *hit.events]
            hit.stack, hit.address = earlier.stack, earlier.address
        self.hits.append(hit)
        if self.done:
            self._subject.interrupt()

    def crashed(self) -> Hit | None:
        """Keep the hit in which the guest has crashed or hung; None: no hit was being recorded."""
        hit = self.hit
        if hit is None:
            return None
        self.leave_gate()
        self.hit = None
        hit.broken = "The guest does not get any further."
        with suppress(BadAddressError, GuestCrashError):
            hit.events.append(self.snapshot(Kind.RESUMED))
        self.hits.append(hit)
        return hit
