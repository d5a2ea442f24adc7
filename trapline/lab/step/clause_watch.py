"""The watch over probes and their clauses: firings, instructions of DIF, records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from emu.support.words import BadAddressError
from trapline.d.codegen.disassemble import instruction_text
from trapline.framework.base.dif import Var
from trapline.framework.base.probes import Probe
from trapline.framework.device.state import ConsumerState
from trapline.framework.dif.interpreter import Loaded
from trapline.framework.probe.ecb import Ecb, Run
from trapline.lab.step.hit_events import Kind
from trapline.lab.step.hit_recorder import HitRecorder
from trapline.lab.step.subject import Subject


class ClauseWatch:
    """Adds the events of D, from the probe to the record, to a hit recorder."""

    def __init__(self, subject: Subject, recorder: HitRecorder) -> None:
        self._subject = subject
        self._engine = subject.engine
        self._recorder = recorder
        self._probe: Probe | None = None
        self._false = False
        self._state: ConsumerState | None = None
        self._enablings: Callable[[Probe], Sequence[Ecb]] = lambda _probe: ()

    def watch_dif(self, state: ConsumerState, enablings: Callable[[Probe], Sequence[Ecb]]) -> None:
        """Add each instruction of DIF that a consumer executes."""
        self._state = state
        self._enablings = enablings
        state.runtime.machine.watcher = self._dif

    def wrap_run(self, probe: Probe, run: Run) -> Run:
        """Return a function that runs a probe's enablings and is recorded (`DTrace.wrapped`)."""

        def recorded(arguments: tuple[int, ...]) -> None:
            self.fire(probe, arguments, lambda: run(arguments))

        return recorded

    def fire(self, probe: Probe | None, arguments: tuple[int, ...], run: Callable[[], object], name: str = "") -> None:
        """Record a firing while `run` runs the enablings.

        `name` is that of what fires if it is not a probe of DTrace.
        """
        recorder = self._recorder
        if recorder.hit is None and not recorder.done:
            recorder.begin(self._engine.pc)
        hit = recorder.hit
        self._probe, self._false = probe, False
        known = name if probe is None else str(probe.description)
        if hit is not None and not recorder.done:
            recorder.add(Kind.FIRED, name=known, arguments=arguments, probe_id=probe.id if probe else 0)
            fired = hit.events[-1]
        before = [(buffer, buffer.offset) for buffer in self._state.runtime.buffers] if self._state else []
        run()
        if hit is None or recorder.done:
            return
        if self._state is not None and probe is not None:
            number = Var.CALLER if self._subject.in_kernel else Var.UCALLER
            context = self._state.runtime.context
            context.probe, context.args = probe, arguments
            with suppress(BadAddressError):
                fired.caller = self._state.runtime.machine.builtins.scalar(context, number)
            record = b"".join(bytes(buffer.data[start : buffer.offset]) for buffer, start in before)
            recorder.add(Kind.UNWANTED if self._false and not record else Kind.RECORDED, record=record)
        hit.fired = hit.fired or not self._false
        if hit.fired and not self._engine.watched and not hit.taken:
            recorder.close(hit)

    def _dif(self, loaded: Loaded, at: int, registers: Sequence[int]) -> None:
        if self._recorder.running is None or self._probe is None:
            return
        role, text = self._role(loaded, self._probe), instruction_text(loaded.difo, loaded.difo.code[at])
        if role == "predicate" and text.startswith("ret"):
            self._false = not registers[int(text.split("%r")[1].split()[0])]
        self._recorder.add(Kind.DIF, dif=(role, at, " ".join(text.split()), tuple(registers)))

    def _role(self, loaded: Loaded, probe: Probe) -> str:
        """Return "predicate", or the number and kind of the action that a DIF object belongs to."""
        role = ""
        for ecb in self._enablings(probe):
            if loaded.difo == ecb.clause.predicate:
                role = "predicate"
            for number, placed in enumerate(ecb.clause.layout.actions, start=1):
                if loaded.difo == placed.action.difo and not role:
                    role = f"action {number}, {placed.action.kind.name.lower()}"
        return role
