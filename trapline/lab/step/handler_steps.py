"""The steps of handlers: the question, the answer, and the plan of the displaced instruction."""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import DisplacedTable
from trapline.lab.step.hit_events import Event, Kind
from trapline.lab.step.recording import Cost, Mode, Stage
from trapline.lab.step.step_writer import HitContext, StepDescription, Writers

# The request of the kernel when it calls a gate.
_GATES: Final = {
    "dtrace_invop": ", which asks the handlers of DTrace's providers in turn.",
    "dtrace_probe": " with the number of the probe and its arguments.",
    "dtrace_pid_probe": ", fasttrap's function for a breakpoint of a program.",
}

# The events at which the program itself continues.
_BEHIND: Final = frozenset({Kind.RESUMED, Kind.AFTER})


def invop_name(table: DisplacedTable, answer: int) -> str:
    """Return what a handler's answer to dtrace_invop() means."""
    if not answer:
        return "not mine"
    if not table.by_code:
        return "the saved instruction word"
    names = [row.code for row in table.rows if row.invop == answer]
    return f"DTRACE_INVOP_{names[0]}" if names else "a number that the stub has no case for"


class HandlerSteps:
    """Writes the steps of the chain of handlers."""

    def __init__(self, context: HitContext) -> None:
        self._context = context
        self.writers: Writers = {
            Kind.CALLED: self._called,
            Kind.ASKED: self._asked,
            Kind.ANSWERED: self._answered,
            Kind.PLANNED: self._planned,
        }

    def _called(self, event: Event, _following: Event) -> list[StepDescription]:
        probe = event.name == "dtrace_probe"
        self._context.stage = Stage.PROBE if probe else Stage.CHAIN
        self._context.called_probe = self._context.called_probe or probe
        said = f"The kernel calls {event.name}(){_GATES[event.name]} It is a gate: the emulator does it."
        return [StepDescription(self._context.stage, said, f"{event.name}()", mode=Mode.EMULATOR)]

    def _asked(self, event: Event, _following: Event) -> list[StepDescription]:
        address, frame = event.arguments
        facts: dict[str, int | str] = {"address": address, "at": self._context.names.location(address)}
        if frame:
            facts["frame"] = frame
        where = "the trap frame" if frame else "the CPU's registers"
        return [
            StepDescription(
                Stage.CHAIN, f"Asks {event.name}: is this breakpoint yours? It reads {where}.", f"{event.name}()",
                mode=Mode.EMULATOR, facts=facts, cost=Cost(handlers=1),
            )
        ]  # fmt: skip

    def _answered(self, event: Event, following: Event) -> list[StepDescription]:
        context = self._context
        context.stage = Stage.DISPLACED
        address = event.arguments[0]
        meaning = self._meaning(event, address)
        displaced = context.original(address)[2]
        # The answer for a program may be an address in the emulator's own memory, which differs between runs.
        program = not context.isa.is_kernel_address(context.hit.address)
        # A program's plan is executed at once, by machine code perhaps.
        moved = event.moved or (program and following.kind in _BEHIND and following.pc != address)
        answer = 1 if event.answer and program else event.answer
        facts: dict[str, int | str] = {"answer": answer, "meaning": meaning}
        claimed = f"{event.name} claims the breakpoint"
        emulated = ""
        if not event.answer:
            said = f"{event.name} answers 0: the breakpoint is not its own."
        elif not moved:
            said = f"{claimed}." if program else f"{claimed} and answers {answer:#x}: {meaning}."
        elif context.hit.frame or context.subject.is_machinery(following.pc):
            where = "where it is to continue" if context.hit.frame else context.names.location(following.pc)
            said = f"{claimed}, and has set the interrupted pc to {where}."
            if context.hit.frame and context.isa.is_kernel_address(context.hit.address):
                said += f" Its answer, {meaning}, makes the stub do no more than a nop would."
            said += self._replaced_return(event, following)
        elif not context.subject.is_machinery(address):
            said = f"{claimed}."
            emulated = (
                f"{event.name} has emulated {displaced} itself, on the interrupted registers, and the "
                f"program will continue at {context.names.location(following.pc)}."
            )
            emulated += self._replaced_return(event, following)
        else:
            back = any(one.kind is Kind.ELSEWHERE for one in context.hit.events)
            done = "The function has returned" if back else "The copy is done"
            said = f"{claimed}. {done}: the program will continue at {context.names.location(following.pc)}."
        made = [StepDescription(Stage.CHAIN, said, f"{event.name} answers", mode=Mode.EMULATOR, facts=facts)]
        if emulated:
            made.append(StepDescription(Stage.DISPLACED, emulated, displaced, mode=Mode.EMULATOR))
        return made

    def _meaning(self, event: Event, address: int) -> str:
        table = self._context.isa.stub
        if event.answer and not self._context.isa.is_kernel_address(self._context.hit.address):
            return "claimed"
        if event.answer and event.moved and not table.by_code:
            return "the word of a nop, for the handler has set the pc itself"
        code, size, _ = self._context.original(address)
        # The answer may have the bytes behind a shorter instruction, too.
        if event.answer and not table.by_code and event.answer.to_bytes(8, "little")[:size] != code[:size]:
            return "a word that is not the displaced instruction"
        return invop_name(table, event.answer)

    def _replaced_return(self, event: Event, following: Event) -> str:
        """Return whether a return address became that of a trampoline, as a sentence."""
        link = self._context.isa.registers.link
        pairs = [(one.before, one.value) for one in event.accesses if one.write]
        if link is not None:
            pairs.append((event.registers[link], following.registers.get(link, 0)))
        for before, after in pairs:
            if (
                before
                and after
                and before != after
                and self._is_code(before)
                and not self._context.subject.locate(after)
            ):
                location = self._context.names.location(before)
                return (
                    f" It has replaced the return address {location} by {after:#x}, where there is another breakpoint: "
                    "the probe will fire when the function returns."
                )
        return ""

    def _is_code(self, address: int) -> bool:
        found = self._context.subject.locate(address)
        return found is not None and bool(found.symbol)

    def _planned(self, event: Event, _following: Event) -> list[StepDescription]:
        text = self._context.original(event.arguments[0])[2]
        said = f"The emulator executes the plan of {text} on the CPU's registers: {event.plan}."
        facts: dict[str, int | str] = {"instruction": text, "plan": str(event.plan)}
        return [StepDescription(Stage.DISPLACED, said, text, mode=Mode.EMULATOR, facts=facts)]
