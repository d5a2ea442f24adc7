"""The parts of one hit, from its recording (`trapline.lab.step`).

No ISA is named here.  A trap's entry ends with the last register that is saved in the trap frame;
the stub's work on the displaced instruction begins with its first look into the frame, and ends
with the last word that it writes; what follows restores registers and returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from trapline.cost.rows import LINE, PAGE, Anatomy, Part
from trapline.lab.step.recording import Firing, Recording, Stage, Step


class _Counted(NamedTuple):
    """A step, and the instructions that it adds."""

    step: Step
    instructions: int


def anatomy(recording: Recording) -> Anatomy:
    """Return the parts of a recording's last firing."""
    firing = recording.firings[-1]
    frame = range(0)
    if firing.frame is not None:
        frame = range(firing.frame, firing.frame + recording.word * len(recording.frame_fields))
    steps = [one for one in _counted(firing) if one.step.stage is not Stage.RESUME]
    parts: Counter[Part] = Counter()
    for trap in _rounds(steps):
        for (_, instructions), part in zip(trap, _parts(trap, frame), strict=True):
            parts[part] += instructions
    if steps and steps[0].step.patch is not None and any(one.step.stage is Stage.EXCEPTION for one in steps):
        parts[Part.ENTRY] -= 1  # the breakpoint stands where the displaced instruction stood
    final = firing.steps[-1].cost
    lines, pages = (_touched(steps, size) for size in (LINE, PAGE))
    return Anatomy({part: parts[part] for part in Part}, final.dif, final.accesses, lines, pages)


def _counted(firing: Firing) -> Iterator[_Counted]:
    before = 0
    for step in firing.steps:
        yield _Counted(step, step.cost.instructions - before)
        before = step.cost.instructions


def _rounds(steps: Sequence[_Counted]) -> Iterator[Sequence[_Counted]]:
    """Return the parts of a hit that its further exceptions divide."""
    starts = [index for index, one in enumerate(steps) if index and one.step.stage is Stage.EXCEPTION]
    for start, end in pairwise([0, *starts, len(steps)]):
        yield steps[start:end]


def _parts(trap: Sequence[_Counted], frame: range) -> Iterator[Part]:
    """Yield the part of each step from one exception to the next."""
    gate = next((at for at, one in enumerate(trap) if one.step.stage in {Stage.CHAIN, Stage.CLAUSE}), len(trap))
    exception = any(one.step.stage is Stage.EXCEPTION for one in trap)
    if not exception:
        site = trap[0].step.where.partition("+")[0] if trap else ""
        for at, (step, _) in enumerate(trap):
            own = step.where.partition("+")[0] == site
            called = Part.ARGUMENTS if own else Part.DISPATCH
            yield Part.RETURN if at >= gate else Part.ENTRY if step.stage is Stage.PATCHED else called
        return
    saved = _last(at for at, one in enumerate(trap[:gate]) if _touches(one.step, frame, write=True))
    looked = next((at for at in range(gate, len(trap)) if _touches(trap[at].step, frame)), len(trap))
    worked = _last(at for at in range(gate, len(trap)) if any(one.write for one in trap[at].step.memory))
    for at, (step, _) in enumerate(trap):
        if step.out_of_line:
            yield Part.RETURN if step.stage is Stage.EXCEPTION else Part.DISPLACED
        elif at < gate:
            yield Part.ENTRY if at <= max(saved, 0) else Part.DISPATCH
        elif at < looked:
            yield Part.DISPATCH
        else:
            yield Part.DISPLACED if at <= worked else Part.RETURN


def _last(indices: Iterable[int]) -> int:
    return max(indices, default=-1)


def _touches(step: Step, frame: range, *, write: bool = False) -> bool:
    return any(one.address in frame and (one.write or not write) for one in step.memory)


def _touched(steps: Sequence[_Counted], size: int) -> int:
    """Return the number of aligned blocks that are accessed, without that of the probe's site."""
    blocks: set[int] = set()
    for step, instructions in steps:
        spans = [(one.address, one.size) for one in step.memory] if step.code else []
        if instructions:
            spans.append((step.pc, len(step.code)))
        for address, length in spans:
            blocks.update(range(address // size, (address + max(1, length) - 1) // size + 1))
    return len(blocks - {steps[0].step.pc // size}) if steps else 0
