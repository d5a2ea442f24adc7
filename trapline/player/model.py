"""The player model: a recorded firing as a row of moments, with what is known at each step.

A recording has the registers before the first step, and what each step changes.  The model adds the
changes up for the player in a terminal, as player.js does for the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trapline.lab.step.recording import Access, Recording, Stage, Step


@dataclass(frozen=True, slots=True)
class Played:
    """A recording with the label of its tab."""

    label: str
    recording: Recording
    note: str = ""
    """The text above its steps."""
    good: bool | None = None
    """Whether it is the right one of two; None: there is nothing to compare."""


def title_of(played: Sequence[Played]) -> str:
    """Return the title of recordings: their probe, and the ISAs."""
    recording = played[0].recording
    probe = recording.firings[0].probe if recording.firings else recording.clause
    return f"{probe} on {', '.join(dict.fromkeys(one.recording.isa for one in played))}"


# The words of the stack below and above a pointer that are always shown.
_AROUND: Final = range(-2, 5)


@dataclass(frozen=True, slots=True)
class StackWord:
    """A word of the stack at a moment."""

    address: int
    value: int
    field: str
    """The field of the trap frame that it is; "" if it is none."""
    written: bool
    """Whether the present step writes it."""
    read: bool
    marks: tuple[str, ...]
    """The registers that point to it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A handler that was asked."""

    name: str
    answer: int | None
    """None: it has not answered yet."""
    meaning: str
    present: bool
    """Whether the present step is this one."""


class FiringModel:
    """One firing; its steps are those of the patching, if recorded, and then those of the firing."""

    def __init__(self, recording: Recording, number: int = 0) -> None:
        self.recording = recording
        self.firing = recording.firings[number]
        self.steps: tuple[Step, ...] = (*recording.enabling, *self.firing.steps)

    def next_stage(self, index: int, direction: int) -> int:
        """Return the first step of another stage in a direction (1 or -1), or the last step there."""
        here, last = self.steps[index].stage, len(self.steps) - 1
        while 0 <= index + direction <= last and self.steps[index + direction].stage is here:
            index += direction
        return min(max(index + direction, 0), last)

    def aligned(self, index: int, other: FiringModel) -> int | None:
        """Return the step of another model that is as far in the same stage; None if there is none."""
        stage = self.steps[index].stage
        own, there = self.indices(stage), other.indices(stage)
        if not there:
            return None
        share = own.index(index) / max(len(own) - 1, 1)
        return there[round(share * (len(there) - 1))]

    def indices(self, stage: Stage) -> list[int]:
        """Return the indices of a stage's steps."""
        return [index for index, step in enumerate(self.steps) if step.stage is stage]

    def registers(self, index: int) -> Mapping[str, int]:
        """Return all registers behind a step."""
        values = dict(self.firing.registers)
        for step in self.steps[: index + 1]:
            values |= {name: after for name, (_, after) in step.registers.items()}
        return values

    def code(self, index: int) -> list[Step]:
        """Return the instructions of the present symbol that any step executes, by address."""
        at = self.instruction(index)
        symbol = at.where.partition("+")[0]
        rows = {
            step.pc: step
            for step in self.steps
            if step.code and step.text != "exception" and step.where.partition("+")[0] == symbol
        }
        return [rows[pc] for pc in sorted(rows)]

    def instruction(self, index: int) -> Step:
        """Return the instruction that is being executed; of a decision, the one before it."""
        past = (step for step in reversed(self.steps[: index + 1]) if step.code)
        return next(past, None) or next((step for step in self.steps if step.code), self.steps[index])

    def stack(self, index: int) -> list[StackWord]:
        """Return the used words of the stack and those of the trap frame, from the top."""
        size, firing, step = self.recording.word, self.firing, self.steps[index]
        words, written, built = self._memory(index)
        frame = firing.frame if built else None
        first, now = firing.registers[self.recording.sp], self.registers(index)[self.recording.sp]
        wanted = written | {pointer - pointer % size + word * size for pointer in (first, now) for word in _AROUND}
        fields = self.recording.frame_fields
        if frame is not None:
            wanted |= {frame + position * size for position in range(len(fields))}
        touched = {kind: {one.address - one.address % size for one in step.memory if one.write is kind}
                   for kind in (True, False)}  # fmt: skip
        found = []
        for address in sorted(wanted & words.keys(), reverse=True):
            position = -1 if frame is None else (address - frame) // size
            pointers = {self.recording.sp: now, "interrupted": first}
            found.append(
                StackWord(
                    address, words[address], fields[position] if 0 <= position < len(fields) else "",
                    address in touched[True], address in touched[False],
                    tuple(name for name, pointer in pointers.items() if address <= pointer < address + size),
                )
            )  # fmt: skip
        return found

    def _memory(self, index: int) -> tuple[dict[int, int], set[int], bool]:
        """Return the known words, which of them are written, and whether a trap frame has begun."""
        size = self.recording.word
        words = {word.address: word.value for word in self.firing.stack}
        written: set[int] = set()
        built = False
        for access in self._accesses(index):
            start = access.address - access.address % size
            if not access.write:
                if access.size == size:
                    words.setdefault(start, access.value)
                continue
            _store(words, size, access)
            if "`" not in access.name:
                written.add(start)
                built |= bool(access.name)
        return words, written, built

    def _accesses(self, index: int) -> Iterator[Access]:
        for step in self.steps[: index + 1]:
            yield from step.memory

    def asked(self, index: int) -> list[Asked]:
        """Return the handlers that have been asked, with their answers."""
        found = []
        for position, step in enumerate(self.steps[: index + 1]):
            if step.stage is not Stage.CHAIN or step.text.startswith("dtrace_"):
                continue
            if "answer" in step.facts:
                answer = int(step.facts["answer"])
                found.append(
                    Asked(step.text.removesuffix(" answers"), answer, str(step.facts["meaning"]), position == index)
                )
            elif step.text.endswith("()"):
                found.append(Asked(step.text.removesuffix("()"), None, "", position == index))
        return found

    def fired(self, index: int) -> Step | None:
        """Return the step at which the probe has fired; None before it."""
        probe = self.firing.probe
        past = (step for step in self.steps[: index + 1] if step.stage is Stage.PROBE and step.text == probe)
        return next(past, None)


def _store(words: dict[int, int], size: int, access: Access) -> None:
    """Put a write of any size into words of the machine's size."""
    for position, byte in enumerate((access.value & ((1 << 8 * access.size) - 1)).to_bytes(access.size, "little")):
        address = access.address + position
        start, shift = address - address % size, 8 * (address % size)
        words[start] = words.get(start, 0) & ~(0xFF << shift) | byte << shift
