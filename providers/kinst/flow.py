"""The instructions of a function at which its stack frame exists.

They are found by following the instructions along all paths through the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from emu.displaced.decision import ALWAYS, Decision, Emulated, OutOfLine
from emu.displaced.plans import Branch, Plan, Set, Store
from emu.isa.base import Isa
from providers.kinst.port import ENTERED, FRAMED, Frames, Port


def follow(port: Port, isa: Isa, code: bytes, address: int, decisions: Mapping[int, Decision]) -> Mapping[int, Frames]:
    """Return the known state of the frame before each instruction, by its offset.

    Code that is reached only by a table of jumps is assumed to have its frame: a switch is in the
    middle of a function.
    """
    after = dict(pairwise([*decisions, len(code)]))
    known: dict[int, Frames] = {}
    waiting = [(0, ENTERED)]
    while waiting:
        offset, frames = waiting.pop()
        while offset in decisions and offset not in known:
            known[offset] = frames
            frames = port.frame_after(code[offset : after[offset]], frames)
            goes_on = False
            for target in _targets(isa, decisions[offset], address + offset, address + after[offset]):
                if target - address == after[offset]:
                    goes_on = True
                else:
                    waiting.append((target - address, frames))
            if not goes_on:
                break
            offset = after[offset]
    return {offset: known.get(offset, FRAMED) for offset in decisions}


def _targets(isa: Isa, decision: Decision, address: int, after: int) -> Iterator[int]:
    """Yield the targets of an instruction that its encoding contains; a call returns."""
    if isinstance(decision, OutOfLine):
        if decision.leaves != ALWAYS:
            yield after
        if decision.leaves is not None and decision.place >= 0:
            yield address + decision.target
    elif isinstance(decision, Emulated):
        yield from _planned(isa, decision.plan, address, after)
    else:
        yield after


def _planned(isa: Isa, plan: Plan, address: int, after: int) -> Iterator[int]:
    registers = isa.registers
    if any(
        isinstance(operation, Store) or (isinstance(operation, Set) and operation.target == registers.link)
        for operation in plan.operations
    ):
        yield after
        return
    last = plan.operations[-1]
    if isinstance(last, Branch):
        yield from (address + last.taken, address + last.missed)
    elif isinstance(last, Set) and (last.target, last.source) == (registers.pc, registers.pc):
        yield address + last.offset
