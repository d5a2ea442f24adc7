"""The cause of a difference between two runs.

The sites are bisected to the first one that causes the difference, and two runs are compared,
instruction by instruction, to the point where they diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from emu.guest.base import GuestError
from emu.isa import disassembly
from emu.isa.disassembly import Syntax
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import general_registers
from trapline.lab.check.run.guest_runs import GuestRun, RunSpec, make_run

# Instructions that are compared one by one.
_FOLLOWED: Final = 4_000_000
# Steps at one pc after which the registers must have changed.
_STANDING: Final = 10_000


def bisect(sites: Sequence[CheckSite], differs: Callable[[Sequence[CheckSite]], bool]) -> CheckSite:
    """Return the first site with which the list, from its start to there, makes a difference."""
    low, high = 0, len(sites)
    while high - low > 1:
        middle = (low + high) // 2
        if differs(sites[:middle]):
            high = middle
        else:
            low = middle
    return sites[high - 1]


def explain(spec: RunSpec, rules: Rules, culprit: CheckSite, syntax: Syntax) -> str:
    """Name a site, and the first instruction whose effect differs when the site is patched."""
    found = disassembly.first(spec.subject.isa, culprit.code, culprit.address, syntax)
    text = f"{culprit.name} ({found.text if found else disassembly.NO_INSTRUCTION})"
    trace: list[tuple[int, bytes]] = []
    plain = make_run(spec, rules)
    with suppress(_FollowedEnoughError):
        _follow(plain, trace.append)
    patched = make_run(spec, rules)
    patched.patch([culprit])
    index = 0
    part: list[str] = []

    def compare(seen: tuple[int, bytes]) -> None:
        nonlocal index
        if index == len(trace):  # the plain run has ended, or was followed as far as this
            raise _FollowedEnoughError
        if trace[index] != seen:
            part.extend(_tell(patched, trace[index - 1][0] if index else 0, trace[index], seen))
            raise _FollowedEnoughError
        index += 1

    try:
        _follow(patched, compare)
    except _StandsError as error:
        part.append(f"it stays at {_place(patched, error.pc)}")
    except _FollowedEnoughError:
        pass
    return f"{text}; {' '.join(part)}" if part else text


class _FollowedEnoughError(Exception):
    """The runs were compared far enough."""


class _StandsError(_FollowedEnoughError):
    """A run executes one address again and again, and changes no register."""

    def __init__(self, pc: int) -> None:
        super().__init__()
        self.pc = pc


def _state(run: GuestRun) -> tuple[int, bytes]:
    slots = [run.isa.registers.slots[name] for name in general_registers(run.isa)]
    return run.engine.pc, bytes(run.engine.cpu.general(slots[0], slots[-1] + 1))


def _follow(run: GuestRun, see: Callable[[tuple[int, bytes]], object]) -> None:
    """Run a guest one instruction at a time; call `see` with the state before each of them.

    Only the program's own instructions count; a string instruction that repeats counts once.
    """
    engine = run.engine
    last = -1
    shown = stands = 0
    before = b""

    def one(soft: int | None = None, hard: int | None = None) -> bool:  # noqa: ARG001  (the interface of `run`)
        nonlocal last, shown, stands, before
        pc = engine.pc
        if pc == last:
            stands += 1
            if stands % _STANDING == 0:
                registers = _state(run)[1]
                if registers == before:
                    raise _StandsError(pc)
                before = registers
        elif run.in_program(pc):
            see(_state(run))
            last, stands, before = pc, 0, b""
            shown += 1
            if shown > _FOLLOWED:
                raise _FollowedEnoughError
        waits: bool = engine.step()
        return waits

    engine.run = one
    with suppress(GuestError):
        run.go()


def _place(run: GuestRun, pc: int) -> str:
    found = run.locate(pc)
    if found is None or not found.symbol:
        return f"{pc:#x}" if found is None else f"{pc:#x} in {found.module}"
    return f"{found.module}`{found.symbol}+{found.offset:#x}"


def _tell(run: GuestRun, before: int, expected: tuple[int, bytes], seen: tuple[int, bytes]) -> Iterator[str]:
    if before:
        yield f"after the instruction at {_place(run, before)}:"
    if expected[0] != seen[0]:
        yield f"pc {expected[0]:#x} became {seen[0]:#x}"
    names = general_registers(run.isa)
    words = (memoryview(one[1]).cast("Q") for one in (expected, seen))
    for name, one, other in zip(names, *words, strict=True):
        if one != other:
            yield f"{name} {one:#x} became {other:#x}"
