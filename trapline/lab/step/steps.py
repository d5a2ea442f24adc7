"""From the events of a hit to the steps of a firing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from emu.isa.base import Isa
from trapline.lab.step.clause_steps import ClauseSteps
from trapline.lab.step.code_steps import CodeSteps
from trapline.lab.step.handler_steps import HandlerSteps
from trapline.lab.step.hit_events import Event, Hit, Kind
from trapline.lab.step.names import Names
from trapline.lab.step.recording import Access, Cost, Firing, Mode, Step, Word
from trapline.lab.step.step_draft import Draft, HitContext, Writers
from trapline.lab.step.subject import Subject


class Story:
    """Makes the firings of one run."""

    def __init__(self, subject: Subject, names: Names) -> None:
        self._subject = subject
        self._isa: Isa = subject.isa
        self._names = names

    def firing(self, hit: Hit, listing: Mapping[str, tuple[str, ...]]) -> Firing:
        """Return the firing that a hit's events tell of."""
        fired = next((event for event in hit.events if event.kind is Kind.FIRED), None)
        return Firing(
            fired.name if fired else "",
            fired.probe_id if fired else 0,
            *hit.thread,
            fired.arguments if fired else (),
            self._names.place(fired.caller) if fired and fired.caller else "",
            hit.events[0].registers,
            tuple(Word(address, value) for address, value in hit.stack),
            hit.frame,
            listing,
            tuple(self._steps(hit)),
            b"".join(event.record for event in hit.events),
        )

    def _steps(self, hit: Hit) -> list[Step]:
        context = HitContext(self._subject, self._names, hit)
        writers: Writers = {
            **CodeSteps(context).writers,
            **HandlerSteps(context).writers,
            **ClauseSteps(context).writers,
        }
        steps: list[Step] = []
        cost = Cost()
        for event, following in zip(hit.events, [*hit.events[1:], hit.events[-1]], strict=True):
            *early, last = writers[event.kind](event, following)
            for draft in early:
                cost += draft.cost
                steps.append(self._step(len(steps), event, draft, cost))
            # The last step of an event has all that the event changes.
            memory = tuple(context.accesses(event))
            cost += replace(last.cost, accesses=len(memory) if last.code else 0)
            steps.append(self._step(len(steps), event, last, cost, memory, _changes(event, following)))
        return steps

    def _step(
        self,
        index: int,
        event: Event,
        draft: Draft,
        cost: Cost,
        memory: tuple[Access, ...] = (),
        changes: Mapping[str, tuple[int, int]] = {},
    ) -> Step:
        return Step(
            index,
            draft.stage,
            draft.mode or (Mode.KERNEL if self._isa.is_kernel_address(event.pc) else Mode.USER),
            self._names.place(event.pc),
            event.pc,
            draft.code,
            draft.text,
            draft.sentence,
            self._names.source(event.pc) if draft.code else None,
            changes,
            memory,
            draft.facts or {},
            draft.dif,
            draft.patch,
            cost,
            draft.out_of_line,
            "fault" if draft.fault else "",
        )


def _changes(event: Event, following: Event) -> dict[str, tuple[int, int]]:
    """Return the registers that an event changes: (before, after)."""
    return {
        name: (value, following.registers[name])
        for name, value in event.registers.items()
        if following.registers.get(name, value) != value
    }


def listed_fields(isa: Isa) -> Sequence[str]:
    """Return the names of the words of a trap frame."""
    return tuple(name or "(padding)" for name in isa.traps.frame)
