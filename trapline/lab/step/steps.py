"""The steps of a firing, made from the events of a hit, and those of the patching before it.

The patching shows what is written, byte by byte, and what makes the CPU see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from emu.isa.base import Isa
from trapline.lab.step.clause_steps import ClauseSteps
from trapline.lab.step.code_steps import CodeSteps
from trapline.lab.step.handler_steps import HandlerSteps
from trapline.lab.step.hit_events import Event, Hit, Kind
from trapline.lab.step.names import Names
from trapline.lab.step.recording import Access, Cost, Firing, Mode, Patch, Stage, Step, Word
from trapline.lab.step.step_writer import HitContext, StepDescription, Writers
from trapline.lab.step.subject import Subject


class FiringSteps:
    """The writer of the firings of one run, with their steps."""

    def __init__(self, subject: Subject, names: Names) -> None:
        self._subject = subject
        self._isa: Isa = subject.isa
        self._names = names

    def firing(self, hit: Hit, listing: Mapping[str, tuple[str, ...]]) -> Firing:
        """Return the firing that the events of a hit describe."""
        fired = next((event for event in hit.events if event.kind is Kind.FIRED), None)
        return Firing(
            fired.name if fired else "",
            fired.probe_id if fired else 0,
            *hit.thread,
            fired.arguments if fired else (),
            self._names.location(fired.caller) if fired and fired.caller else "",
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
            for description in early:
                cost += description.cost
                steps.append(self._step(len(steps), event, description, cost))
            # The last step of an event has all that the event changes.
            memory = tuple(context.accesses(event))
            cost += replace(last.cost, accesses=len(memory) if last.code else 0)
            steps.append(self._step(len(steps), event, last, cost, memory, _changes(event, following)))
        return steps

    def _step(
        self,
        index: int,
        event: Event,
        description: StepDescription,
        cost: Cost,
        memory: tuple[Access, ...] = (),
        changes: Mapping[str, tuple[int, int]] = {},
    ) -> Step:
        return Step(
            index,
            description.stage,
            description.mode or (Mode.KERNEL if self._isa.is_kernel_address(event.pc) else Mode.USER),
            self._names.location(event.pc),
            event.pc,
            description.code,
            description.text,
            description.sentence,
            self._names.source(event.pc) if description.code else None,
            changes,
            memory,
            description.facts or {},
            description.dif,
            description.patch,
            cost,
            description.out_of_line,
            "fault" if description.fault else "",
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


_LONGEST: Final = 16
# The bytes of code that a CPU always fetches as they were before a store, or as they are after it.
_WHOLE: Final = 4
# The way in which a patch is written that CPUs see whole, and a longer one.
_ONE: Final = "by one store, so no CPU ever sees half of it"
_SEVERAL: Final = "while the other CPUs wait at a rendezvous on a real machine, since they could see half of it"


def patching(subject: Subject, names: Names, address: int) -> Iterator[Step]:
    """Yield the steps of patching a site, which is patched now."""
    original, now = subject.original(address, _LONGEST), subject.read(address, _LONGEST)
    changed = [offset for offset, (old, new) in enumerate(zip(original, now, strict=False)) if old != new]
    if not changed:
        return
    own, before = names.instruction(original, address)
    new, after = names.instruction(now, address)
    # A breakpoint of one byte may be the prefix of a longer instruction; the end of a jump may be as it was.
    size = max(changed[-1] + 1, new if len(changed) > 1 else 0)
    length = max(own, size)
    patch = Patch(address, names.location(address), original[:length], now[:length], before, after)
    first = (
        f"The probe is enabled. Its site is {_site(before, own, length)}. "
        f"{size} of them will be overwritten, {_SEVERAL if size > _WHOLE else _ONE}."
    )
    yield _step(0, names, address, "enable", first, patch)
    shown = bytearray(original[:length])
    for number, offset in enumerate(changed, start=1):
        shown[offset] = now[offset]
        _, text = names.instruction(bytes(shown) + original[length:], address)
        said = f"Byte {offset} of the site becomes {now[offset]:02x}; it was {original[offset]:02x}."
        if number == len(changed):
            said += f" The CPU will read {text}."
        access = Access(write=True, address=address + offset, size=1, value=now[offset], before=original[offset])
        yield _step(number, names, address, "the store", said, patch, access)
    # FreeBSD's actions after the store: sys/cddl/dev/fbt/<machine>/fbt_isa.c, fbt_patch_tracepoint().
    told = subject.isa.traps.flush
    if size > _WHOLE:  # its words on other CPUs are about one breakpoint
        told = f"{told.partition('. ')[0].rstrip('.')}."
    flush = f"{told} Here the emulator drops its translation of this code."
    yield _step(len(changed) + 1, names, address, "instruction cache", flush, patch)


def _site(before: str, own: int, length: int) -> str:
    """Return what stands at a site: an instruction, or several."""
    if length > own:
        return f"{length} bytes, which begin with the instruction {before}"
    return f"the instruction {before}, of {length} byte{'s' if length > 1 else ''}"


def _step(index: int, names: Names, address: int, text: str, sentence: str, patch: Patch, *memory: Access) -> Step:
    where = names.location(address)
    return Step(index, Stage.ENABLE, Mode.EMULATOR, where, address, b"", text, sentence, memory=memory, patch=patch)
