"""Mistakes that are made on purpose: what a trap handler or a patcher does wrong, and what follows.

Each is a real change of the machine: the table of displaced instructions, the answer of a handler,
or the memory that the patcher writes.  The recording of the wrong run is compared with that of a
right one; the explanation is put at the first step that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Final

from emu.displaced.decision import Displaced, DisplacedRow, DisplacedTable, Otherwise
from emu.displaced.frame import Frame
from emu.displaced.plans import Operation, Plan, Set
from emu.engine.engine import Engine
from emu.guest.kernel.trap_path import TrapPath
from emu.isa.base import Isa
from emu.probe.trap import Handler
from trapline.lab.step.recording import Recording, Step
from trapline.lab.step.step_writer import RESUMED

# Instructions that are recorded after the resume, to see what follows.
AFTER: Final = 40

# Conditions that an instruction can name.
_CONDITIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake."""

    name: str
    what: str
    """The mistake."""
    follows: str
    """Why that goes wrong, where it begins."""
    silent: str
    """The explanation if no difference is seen."""
    reason: str = ""
    """Why it cannot occur on some ISAs."""
    possible: Callable[[Isa], bool] = lambda _isa: True
    """Whether it can occur on an ISA."""
    path: TrapPath = TrapPath.HOST
    """The trap path that has the mistake."""
    table: Callable[[Isa], DisplacedTable] | None = None
    """Makes the wrong table of displaced instructions."""
    handler: Callable[[Engine, Handler], Handler] | None = None
    """Puts the mistake around a handler."""
    stale: int = 0
    """The number of executions of the old instruction after the patch was written; -1: the patch is
    never seen."""


def _without_pc(isa: Isa) -> DisplacedTable:
    pc = isa.registers.pc

    def cut(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
        return tuple(one for one in operations if not (isinstance(one, Set) and one.target == pc))

    return _changed(isa.stub, cut)


def _wrong_length(isa: Isa) -> DisplacedTable:
    pc, alignment = isa.registers.pc, isa.instruction_alignment

    def longer(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
        return tuple(
            one._replace(offset=one.offset + alignment)
            if isinstance(one, Set) and one.target == pc and one.source == pc
            else one
            for one in operations
        )

    return _changed(isa.stub, longer)


def _changed(table: DisplacedTable, change: Callable[[tuple[Operation, ...]], tuple[Operation, ...]]) -> DisplacedTable:
    def row(old: DisplacedRow) -> DisplacedRow:
        make = old.what
        if isinstance(make, Otherwise):
            return old

        def plan(insn: Displaced) -> Plan:
            return Plan(change(make(insn).operations))

        return replace(old, what=plan)

    return replace(table, rows=tuple(map(row, table.rows)))


def _unknown_answer(engine: Engine, handler: Handler) -> Handler:
    """Answer with what the stub has no case for: an unused code, or a word it does not know."""
    answer = 0x7F if engine.isa.stub.by_code else 1

    @wraps(handler)
    def wrong(address: int, frame: Frame, extra: int) -> int:
        return answer if handler(address, frame, extra) else 0

    return wrong


def _condition_flags(isa: Isa) -> int:
    """Return the flags that a condition asks about."""
    holds, found = isa.condition, 0
    assert holds is not None
    for number in range(32):
        bit = 1 << number & isa.traps.settable
        if bit and any(holds(number, 0) is not holds(number, bit) for number in range(_CONDITIONS)):
            found |= bit
    return found


def _flags_lost(engine: Engine, handler: Handler) -> Handler:
    """Leave other condition flags behind than the program had."""
    flags, conditions = engine.isa.traps.flags, _condition_flags(engine.isa)

    @wraps(handler)
    def wrong(address: int, frame: Frame, extra: int) -> int:
        found = handler(address, frame, extra)
        if found:
            engine.write_register(flags, engine.read_register(flags) ^ conditions)
        return found

    return wrong


def _needs_flush(isa: Isa) -> bool:
    return not isa.traps.coherent


FAULTS: Final[Mapping[str, Fault]] = {
    fault.name: fault
    for fault in (
        Fault(
            "no-icache-flush",
            "The patch is written to memory, and the instruction cache is left alone.",
            "The CPU executes the old instruction from its instruction cache, although memory has the breakpoint: "
            "nothing traps, and the probe is silent.",
            "The site was not executed again.",
            "the CPU keeps its instruction cache in step with its own stores",
            _needs_flush,
            stale=-1,
        ),
        Fault(
            "missing-barrier",
            "The patch is written and the instruction cache is flushed, but the CPU that executes the code is not "
            "made to fetch it again (isb, fence.i).",
            "The CPU has fetched the old instruction before, and may execute it: this hit is lost, and no rule says "
            "how many more. (Here it is one.)",
            "The site was not executed again.",
            "the CPU sees its own stores to code at once, and the machine has one CPU",
            _needs_flush,
            stale=1,
        ),
        Fault(
            "pc-not-advanced",
            "The displaced instruction is emulated, but the pc is left at the breakpoint.",
            "The pc is still at the breakpoint. The CPU traps again, the probe fires again, and what the instruction "
            "does is done again, without end.",
            "This displaced instruction sets the pc by itself, so nothing is different.",
            table=_without_pc,
        ),
        Fault(
            "wrong-length",
            "The pc is advanced by more than the length of the displaced instruction.",
            "The pc is too far: the program continues inside, or behind, the next instruction.",
            "This displaced instruction sets the pc by itself, so nothing is different.",
            table=_wrong_length,
        ),
        Fault(
            "no-plan",
            "The handler claims the breakpoint, but its answer is one that the kernel's stub has no case for.",
            "The stub does not know this answer, so nothing does the displaced instruction's work.",
            "The stub has found a case for the answer after all.",
            path=TrapPath.GUEST,
            handler=_unknown_answer,
        ),
        Fault(
            "flags-not-saved",
            "The handler's own comparisons have changed the flags, and they are not put back.",
            "The program gets the handler's flags instead of its own.",
            "The program sets the flags before it reads them again.",
            "the ISA has no flags",
            lambda isa: bool(isa.traps.flags),
            handler=_flags_lost,
        ),
    )
}


def explained(fault: Fault, wrong: Recording, right: Recording) -> Recording:
    """Return the wrong recording with the explanation at the first step that differs."""
    if not wrong.firings:
        return wrong
    firing = wrong.firings[0]
    index = difference(firing.steps, right.firings[0].steps if right.firings else ())
    text = f"{fault.what} {fault.follows}"
    notes = list(wrong.notes)
    steps = list(firing.steps)
    if index is None:
        notes.append(f"{fault.name}: {fault.what} No difference is seen in this recording. {fault.silent}")
    else:
        steps[index] = replace(steps[index], fault=text)
    steps = [
        replace(step, sentence="The program continues, with the mistake behind it.")
        if step.sentence == RESUMED and index is not None and number >= index
        else step
        for number, step in enumerate(steps)
    ]
    if wrong.ending and steps:
        said = f"{steps[-1].fault} What follows: {wrong.ending}.".strip()
        steps[-1] = replace(steps[-1], fault=said)
    return replace(wrong, firings=(replace(firing, steps=tuple(steps)), *wrong.firings[1:]), notes=tuple(notes))


def difference(wrong: tuple[Step, ...], right: tuple[Step, ...]) -> int | None:
    """Return the index of the first step that is not as in the right run; None: all are."""
    for index, step in enumerate(wrong):
        if step.fault:
            return index
        if index >= len(right):
            return index
        other = right[index]
        if (step.pc, step.text, step.facts) != (other.pc, other.text, other.facts):
            return index
        if {**step.registers} != {**other.registers}:
            return index
    return None if len(wrong) >= len(right) else len(wrong) - 1
