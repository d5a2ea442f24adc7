"""The programs of the judge's cases, by kind, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from tests.fuzz.judge.calls import calls
from tests.fuzz.judge.case import CODE, Case
from tests.fuzz.judge.encoders import ENCODERS
from tests.fuzz.judge.judges import by_guest, by_judge
from tests.fuzz.judge.known import unexplained
from tests.fuzz.judge.pages import pages

_SIGILL: Final = 4


def _instructions(random: Random, isa: str) -> Case:
    return ENCODERS[isa].instructions(random, isa)


# By kind, the maker of a program for an ISA.
KINDS: Final[dict[str, Callable[[Random, str], Case]]] = {
    "instructions": _instructions,
    "pages": pages,
    "calls": calls,
}


def programs(isa: str, kind: str, seed: int, count: int) -> list[Case]:
    """Return programs of a kind: the same ones for the same seed."""
    random = Random(f"{isa} {kind} {seed}")  # noqa: S311  reproducible, not secret
    return [KINDS[kind](random, isa) for _ in range(count)]


def differences(isa: str, cases: Sequence[Case]) -> Iterator[str]:
    """Yield, in a line each, the programs whose results here and from the judge differ for no known reason.

    Raises `tests.fuzz.judge.judges.JudgeError`.
    """
    judged = iter(by_judge(isa, [case for case in cases if not case.refused]))
    executed = iter(by_guest(isa, cases))
    for number, case in enumerate(cases):
        for _ in range(case.results):
            guest = next(executed)
            if case.refused:
                refused = guest.signal == _SIGILL and guest.pc == CODE + case.offset
                found = {} if refused else {"signal": (_SIGILL, guest.signal)}
            else:
                found = unexplained(isa, case, next(judged), guest)
            if found:
                yield f"{_told(isa, case, found)} (program {number})"


def _told(isa: str, case: Case, found: dict[str, tuple[int, int]]) -> str:
    text = "; ".join(ENCODERS[isa].disassembly(isa, case.code))
    fields = ", ".join(f"{name} {ours:#x} instead of {judge:#x}" for name, (judge, ours) in list(found.items())[:4])
    return f"{isa}: {' '.join(case.mnemonics)}: {fields}: {text}"
