"""The steps of the D side: the probe that fires, the instructions of DIF, the record."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trapline.lab.step.hit_events import Event, Kind
from trapline.lab.step.recording import Cost, DifStep, Mode, Stage
from trapline.lab.step.step_writer import HitContext, StepDescription, Writers


class ClauseSteps:
    """Writes the steps of probes and their clauses."""

    def __init__(self, context: HitContext) -> None:
        self._context = context
        self.writers: Writers = {
            Kind.FIRED: self._fired,
            Kind.DIF: self._dif,
            Kind.RECORDED: self._recorded,
            Kind.UNWANTED: self._unwanted,
        }

    def _fired(self, event: Event, _following: Event) -> list[StepDescription]:
        execname, pid = self._context.hit.thread
        facts: dict[str, int | str] = {f"arg{index}": value for index, value in enumerate(event.arguments)}
        if event.caller:
            facts["caller"] = self._context.names.location(event.caller)
        call = f"dtrace_probe({event.probe_id}, ...)" if event.probe_id else "The handler"
        said = f"{call} fires {event.name} in {execname}, pid {pid}."
        return [StepDescription(Stage.PROBE, said, event.name, mode=Mode.EMULATOR, facts=facts)]

    def _dif(self, event: Event, _following: Event) -> list[StepDescription]:
        assert event.dif is not None
        role, offset, text, registers = event.dif
        operands = text.split("!")[0]
        if text.startswith("ret"):
            value = registers[int(operands.split("%r")[1])]
            said = f"The value of the {role} is {value:#x}."
            if role == "predicate":
                said = f"The predicate is {value:#x}: the clause {'runs' if value else 'does not run'}."
        else:
            comment = f" ({text.split('!')[1].strip()})" if "!" in text else ""
            said = f"DIF of the {role}: {_dif_effect(operands.strip(), registers)}{comment}."
        return [
            StepDescription(
                Stage.CLAUSE, said, text, mode=Mode.DIF, dif=DifStep(role, offset, text, registers), cost=Cost(dif=1),
            )
        ]  # fmt: skip

    def _recorded(self, event: Event, _following: Event) -> list[StepDescription]:
        size = len(event.record)
        said = (
            f"The clause has written a record of {size} bytes into the buffer of this CPU: "
            "the number of the enabling, the time, and the values."
            if size
            else "The clause is over; it has written no record of its own into the buffer."
        )
        return [
            StepDescription(Stage.CLAUSE, said, "record", mode=Mode.EMULATOR, facts={"record": event.record.hex(" ")})
        ]

    def _unwanted(self, _event: Event, _following: Event) -> list[StepDescription]:
        return [
            StepDescription(
                Stage.CLAUSE, "The predicate is false: nothing is recorded.", "no record", mode=Mode.EMULATOR
            )
        ]


def _dif_effect(text: str, registers: Sequence[int]) -> str:
    """Return what an instruction of DIF has done; its last register is what it sets."""
    name = text.split(" ", 1)[0]
    numbers = [int(number) for number in re.findall(r"%r(\d)", text)]
    if name in {"cmp", "tst", "scmp"}:
        return f"compares {' and '.join(f'{registers[number]:#x}' for number in numbers)}, and sets the flags"
    if not numbers:
        return f"{text.split(' ', 1)[-1]} is where it continues if the flags say so" if name.startswith("b") else name
    if name.startswith(("st", "push")):
        return f"stores %r{numbers[0]}, {registers[numbers[0]]:#x}"
    return f"%r{numbers[-1]} becomes {registers[numbers[-1]]:#x}"
