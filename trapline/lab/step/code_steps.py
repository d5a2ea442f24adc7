"""The steps of code: the breakpoint and its exception, the instructions after it, the resume."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from emu.isa.base import Events
from emu.isa.disassembly import NO_INSTRUCTION
from trapline.lab.step.hit_events import Event, Kind
from trapline.lab.step.recording import Cost, Mode, Patch, Stage
from trapline.lab.step.sentences import Instruction, sentence
from trapline.lab.step.step_writer import RESUMED, HitContext, StepDescription, Writers

# The exception that illumos' SDT uses on x86-64.
_LOCK: Final = b"\xf0"
_LOCK_NOP: Final = "#UD, vector 6: LOCK before a nop is a fault, so the saved rip points at it."


class CodeSteps:
    """Writes the steps of what the CPU does."""

    def __init__(self, context: HitContext) -> None:
        self._context = context
        self.writers: Writers = {
            Kind.FETCH: self._fetch,
            Kind.EXECUTE: self._execute,
            Kind.ELSEWHERE: self._elsewhere,
            Kind.RESUMED: self._resumed,
            Kind.AFTER: self._behind_resume,
            Kind.STALE: self._stale,
        }

    def _fetch(self, event: Event, following: Event) -> list[StepDescription]:
        code, text = self._context.instruction(event)
        guest = following.kind is Kind.EXECUTE
        exception = StepDescription(
            Stage.EXCEPTION, self._exception(event, following, guest=guest), "exception", code, cost=Cost(1, traps=1)
        )
        if self._context.subject.is_machinery(event.pc):
            self._context.stage = Stage.FRAME
            return [replace(exception, text=text)]
        patch = self._patch(event)
        made = [StepDescription(Stage.PATCHED, self._patched(patch), text, code, patch=patch), exception]
        if not guest:
            said = "No trap frame is built: the handlers read the interrupted registers in the CPU itself."
            made.append(StepDescription(Stage.FRAME, said, "no frame", mode=Mode.EMULATOR))
        return made

    def _patch(self, event: Event) -> Patch:
        now = event.code
        original, size, before = self._context.original(event.pc)
        new, after = self._context.names.instruction(now, event.pc)
        longest = next((len(one) for one in self._context.isa.traps.breakpoints if now.startswith(one)), new)
        size = max(size, longest)
        return Patch(event.pc, self._context.names.location(event.pc), original[:size], now[:size], before, after)

    def _patched(self, patch: Patch) -> str:
        changed = [offset for offset, (a, b) in enumerate(zip(patch.before, patch.after, strict=False)) if a != b]
        if not changed:
            return "The CPU fetches the program's own instruction."
        what = "the first byte" if changed == [0] else f"{len(patch.after)} bytes"
        if changed == [0] and len(patch.before) == 1:
            what = "the only byte"
        if self._context.hit.window is not None:
            return (
                f"The CPU fetches {patch.after_text}: the provider has written it over {what} that do nothing, from "
                f"{patch.before_text} on, so there is nothing to do in their place."
            )
        return (
            f"The CPU fetches {patch.after_text}: the provider has written it over {what} of "
            f"{patch.before_text}, which is now the displaced instruction."
        )

    def _exception(self, event: Event, following: Event, *, guest: bool) -> str:
        model = self._context.isa.traps.exception
        if event.code[:1] == _LOCK and not self._context.is_breakpoint(_LOCK):
            model = _LOCK_NOP
        if not guest:
            return f"{model} The emulator takes this exception itself: the kernel's vector does not run."
        pushed = [one for one in event.accesses if one.write]
        stack = ""
        if pushed:
            stack = f" The CPU itself pushes {len(pushed)} words on the stack, as each x86 does."
        return f"{model}{stack} The CPU continues in the kernel's vector, {self._context.names.location(following.pc)}."

    def _execute(self, event: Event, following: Event) -> list[StepDescription]:
        code, text = self._context.instruction(event)
        out_of_line = self._context.subject.is_machinery(event.pc)
        patch = self._patch(event) if self._context.hit.window and event is self._context.hit.events[0] else None
        stage = self._context.stage = self._stage(event, out_of_line=out_of_line)
        if self._context.is_breakpoint(code):
            said = "A second breakpoint ends the copy. The handlers are asked again, to lead back."
            return [StepDescription(Stage.EXCEPTION, said, text, code, cost=Cost(1, traps=1), out_of_line=True)]
        said = self._said(self._as_instruction(event, following, code, text, stage), code, out_of_line=out_of_line)
        made = StepDescription(stage, said, text, code, cost=Cost(1), out_of_line=out_of_line)
        if patch is not None and patch.before != patch.after:
            said = f"{self._patched(patch)} A jump raises no exception: {said[0].lower()}{said[1:]}"
            made = replace(made, stage=Stage.PATCHED, sentence=said, patch=patch)
        return [made]

    def _said(self, one: Instruction, code: bytes, *, out_of_line: bool) -> str:
        """Return the sentence of an instruction; a copy may be executed in a single step."""
        if not out_of_line:
            return sentence(one)
        context, ended, behind = self._context, "", one.pc + one.size
        branch = Events.BRANCH & context.isa.events(code)
        if not branch and one.next_pc != behind and not context.subject.is_machinery(one.next_pc):
            where = context.names.location(one.next_pc)
            if one.next_pc == context.hit.address:
                return f"Out of line: {one.text} raises an exception, and the pc is put back to {where}."
            ended = f" The step's exception follows, and the program will continue at {where}."
            one = replace(one, next_pc=behind)
        said = sentence(one)
        return f"Out of line: {said[0].lower()}{said[1:]}{ended}"

    def _stage(self, event: Event, *, out_of_line: bool) -> Stage:
        """Return the stage that an instruction belongs to."""
        context = self._context
        if context.hit.window is not None:
            return Stage.RETURN if context.called_probe else Stage.PROBE
        if event.pc == context.subject.handler_end:
            return Stage.RETURN
        if out_of_line:
            return Stage.DISPLACED
        return Stage.FRAME if context.stage is Stage.RETURN else context.stage

    def _as_instruction(self, event: Event, following: Event, code: bytes, text: str, stage: Stage) -> Instruction:
        accesses = self._context.accesses(event)
        behind = event.pc + len(code)
        link = self._context.isa.registers.link
        called = (link is not None and following.registers.get(link) == behind != event.registers.get(link)) or any(
            one.write and one.value == behind for one in accesses
        )
        return Instruction(
            self._context.isa, stage, text, event.pc, len(code), following.pc, event.registers, following.registers,
            accesses, self._context.names.location, called,
        )  # fmt: skip

    def _elsewhere(self, event: Event, following: Event) -> list[StepDescription]:
        count = following.instructions - event.instructions
        return [
            StepDescription(
                Stage.RETURN,
                f"The function runs ({count:,} instructions, which are not shown) and returns to the trampoline.",
                "the function runs",
                mode=Mode.USER,
            )
        ]

    def _behind_resume(self, event: Event, following: Event) -> list[StepDescription]:
        code, text = self._context.instruction(event)
        if following is event:
            return [StepDescription(Stage.RESUME, "The recording ends here.", text, code)]
        if self._context.is_breakpoint(code):
            said = f"The CPU executes {text} and takes the exception."
            return [StepDescription(Stage.EXCEPTION, said, text, code, cost=Cost(1, traps=1))]
        if following.kind is Kind.RESUMED and following.pc == event.pc:
            said = "These bytes raise an exception." if text == NO_INSTRUCTION else f"{text} raises an exception."
            return [StepDescription(Stage.RESUME, said, text, code)]
        one = self._as_instruction(event, following, code, text, Stage.RESUME)
        return [StepDescription(Stage.RESUME, sentence(one), text, code)]

    def _stale(self, event: Event, _following: Event) -> list[StepDescription]:
        patch = self._patch(event)
        said = (
            f"Memory has {patch.after_text} here, but the CPU executes {patch.before_text}, the instruction that it "
            "has in its instruction cache."
        )
        return [StepDescription(Stage.PATCHED, said, patch.before_text, patch.before, patch=patch, fault=True)]

    def _resumed(self, event: Event, _following: Event) -> list[StepDescription]:
        code, text = self._context.instruction(event)
        said = RESUMED
        if self._context.hit.broken and event is self._context.hit.events[-1]:
            said = self._context.hit.broken
            if self._context.subject.locate(event.pc) is None:  # nothing that is known
                code, text = b"", ""
        elif self._context.hit.window is not None:
            said = "The kernel continues behind the probe."
        return [StepDescription(Stage.RESUME, said, text, code)]
