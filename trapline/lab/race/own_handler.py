"""The user's own handler of breakpoints, in the model: what it does for a CPU that has trapped.

The handler is given the registers of the CPU, and sees the newest code and the patcher's data as
they are at that moment.  What it leads to is compared with the old and the new instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from trapline.lab.race.memory import CodeView, Content
from trapline.lab.race.patch import Patch
from trapline.lab.race.processor import Executed, Processor
from trapline.lab.race.state import NEW, OLD, Cpu

# Instructions that an emulation may stand for.
_LONGEST: Final = 4


class Answer(NamedTuple):
    """What a handler has done."""

    claimed: bool
    """Whether it says that the breakpoint is its own."""
    registers: Mapping[str, int]
    """The registers that it leaves to the interrupted code, and the pc."""
    memory: bytes
    """The page of the interrupted code's data (`trapline.lab.race.processor.DATA`)."""
    fault: str = ""
    """How the handler itself has failed; "" if it has returned."""


class Handler(Protocol):
    """A handler that can be run."""

    name: str
    """The function's name."""

    def begin(self) -> None:
        """Begin a race: the patcher, whose data the handler reads, has not run yet."""
        ...

    def answer(self, data: int, code: bytes, registers: Mapping[str, int], memory: bytes) -> Answer:
        """Run the handler.

        `data`: the number of the patcher's data (`trapline.lab.race.operations.Data`); `code`: the
        newest bytes at the patch; `registers`, `memory`: those of the interrupted code.
        """
        ...


class Outcome(NamedTuple):
    """What a handler has done for a CPU."""

    done: Executed | None
    """Where the CPU goes on; None: the handler did not claim the breakpoint."""
    paths: int
    """The images (OLD, NEW) whose instruction it has executed; 0: of neither, or of none."""
    text: str
    wrong: str = ""
    """Why that is wrong; "" if it is not."""


class HandlerSteps:
    """The steps of a handler."""

    def __init__(
        self, patch: Patch, processor: Processor, view: CodeView, handler: Handler,
        instruction: Callable[[int, int], bool],
    ) -> None:  # fmt: skip
        """`instruction`: whether an image (OLD, NEW) has an instruction at an address."""
        self._patch, self._processor, self._view, self._handler = patch, processor, view, handler
        self._instruction = instruction
        self._known: dict[tuple[int, int, int, bytes], Outcome] = {}

    def outcome(self, cpu: Cpu, data: int, code: bytes) -> Outcome:
        """Return what the handler does for a CPU; the same question is asked once."""
        key = cpu.state, cpu.pc, data, code
        if key not in self._known:
            self._known[key] = self._ask(cpu, data, code)
        return self._known[key]

    def _ask(self, cpu: Cpu, data: int, code: bytes) -> Outcome:
        patch, processor, name = self._patch, self._processor, self._handler.name
        pc = patch.isa.registers.pc
        registers = {**processor.registers(cpu.state), pc: cpu.pc}
        answer = self._handler.answer(data, code, registers, processor.page(cpu.state))
        if answer.fault:
            return Outcome(None, 0, f"{name} is called", f"{name} fails: {answer.fault}")
        if not answer.claimed:
            return Outcome(None, 0, f"{name} does not claim the breakpoint")
        after = answer.registers[pc]
        done = Executed(processor.resumed(cpu.state, answer.registers, answer.memory), after, "")
        if done == Executed(cpu.state, cpu.pc, ""):
            return Outcome(done, OLD | NEW, f"{name} returns to the same address")
        ways = {path: self._way(path, cpu) for path in (OLD, NEW)}
        paths = sum(path for path, way in ways.items() if done in way)
        text = f"{name} leads to {patch.where(after)}"
        if paths:
            return Outcome(done, paths, text)
        right = " or ".join(dict.fromkeys(patch.where(way[0].pc) for way in ways.values() if way))
        registers_too = any(after == one.pc for way in ways.values() for one in way)
        why = "its registers or memory are not those of the instruction" if registers_too else f"not to {right}"
        return Outcome(done, 0, text, f"{text}: {why}")

    def _way(self, path: int, cpu: Cpu) -> list[Executed]:
        """Return where an image's instructions lead, one after the other within the patch."""
        content = (Content(0, self._patch.old if path == OLD else self._patch.new),)
        found: list[Executed] = []
        state, pc = cpu.state, cpu.pc
        while self._patch.site <= pc < self._patch.end and len(found) < _LONGEST and self._instruction(path, pc):
            found.append(self._processor.execute(state, pc, self._view.fetches(content, pc)[0].code))
            state, pc, _ = found[-1]
        return found
