"""The checker: each function runs with a probe at each of its instructions, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trapline.lab.course.cpu import Cpu, RunError
from trapline.lab.course.work import Part, Work

_HERE = Path(__file__).parent
_STEPS = 200


@dataclass(frozen=True)
class Instruction:
    """What the student's functions see."""

    address: int
    size: int
    text: str
    target: int | None


def check(work: Work) -> Iterator[Part]:
    """Check both functions, with the function that the student has and with others."""
    shown = [(_HERE / "starter" / work.isa / "counter.s").read_text("utf-8")]
    others = (_HERE / "more" / f"{work.isa}.s").read_text("utf-8").split("---")
    step = "a single step ends with an exception; which instructions need that there is none since another one?"
    middle = "who jumps into the bytes that the jump has replaced? does it end in the function?"
    for name, functions, points in (("counter.s", shown, 2), ("other functions", others, 3)):
        yield Part(f"breakpoints in {name}", points, lambda some=functions: _wrong(work, some, "breakpoints"), step)
        yield Part(f"jumps in {name}", points, lambda some=functions: _wrong(work, some, "jumps"), middle)


def _wrong(work: Work, functions: list[str], kind: str) -> str:
    answer = work.python("sites.py", kind)
    for text in functions:
        size = _jump_size(work.isa) if kind == "jumps" else 0
        instructions = _instructions(work.isa, text)
        found = answer(instructions, size) if size else answer(instructions)
        if not isinstance(found, (list, tuple, set, frozenset)):
            return f"{kind}() returns {type(found).__name__}, not a list of addresses"
        for one in instructions:
            harm = _run(work.isa, text, one.address, size)
            if harm and one.address in found:
                return f"'{one.text}' ({_title(text)}): {harm}"
            if not harm and one.address not in found:
                return f"'{one.text}' ({_title(text)}): a probe there does no harm"
        strange = {*found} - {one.address for one in instructions}
        if strange:
            return f"{min(strange):#x} is not the address of an instruction"
    return ""


def _title(text: str) -> str:
    return _lines(text)[0].lstrip("/ ").partition(":")[0]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _jump_size(isa: str) -> int:
    cpu = Cpu(isa, "nop")
    return len(cpu.jump(0x10000, 0x10100))


def _instructions(isa: str, text: str) -> list[Instruction]:
    cpu, _ = _cpu(isa, text)
    return [
        Instruction(one.address, len(one.code), one.text, cpu.labels.get(one.written.split()[-1]))
        for one in cpu.instructions
    ]


@dataclass(frozen=True)
class Try:
    """One run of a function: what memory has, what is expected, and when another CPU stores."""

    word: int
    expected: int
    disturbed: int = -1
    """The instruction before which another CPU stores to the word once; -1: none does."""


_TRIES = (*(Try(word, expected) for word in (0, 2) for expected in (0, 5)), *(Try(0, 0, step) for step in range(1, 12)))


@cache
def _cpu(isa: str, text: str) -> tuple[Cpu, int]:
    cpu = Cpu(isa, text)
    return cpu, cpu.allocate(8)


@cache
def _plain(isa: str, text: str, one: Try) -> tuple[int, int]:
    cpu, word = _cpu(isa, text)
    for _ in _steps(cpu, word, one):
        pass
    return cpu.result, cpu.load(word)


def _steps(cpu: Cpu, word: int, one: Try) -> Iterator[int]:
    """Call the function, and yield the pc before each instruction."""
    left = [cpu.instructions[one.disturbed].address] if 0 <= one.disturbed < len(cpu.instructions) else []

    def other(pc: int) -> None:
        if pc in left:
            left.clear()
            cpu.store(word, one.word + 16)
            cpu.lose_reservation()

    cpu.store(word, one.word)
    cpu.lose_reservation()
    cpu.before = other
    yield from cpu.steps(word, one.expected, limit=_STEPS)


@cache
def _run(isa: str, text: str, site: int, size: int) -> str:
    """Return the harm that a probe does; `size` is that of a jump, 0 for a breakpoint."""
    cpu, _ = _cpu(isa, text)
    last = cpu.instructions[-1]
    if size and site + size > last.address + len(last.code):
        return "the jump reaches beyond the function"
    covered = [one for one in cpu.instructions if site <= one.address < site + max(size, 1)]
    middle = [one.address for one in covered[1:]]
    try:
        harms = (_harm(isa, text, one, covered[0].address, middle, jump=size > 0) for one in _TRIES)
        return next(filter(None, harms), "")
    except RunError as error:
        return f"with a probe, {error}"


def _harm(isa: str, text: str, one: Try, site: int, middle: list[int], *, jump: bool) -> str:
    cpu, word = _cpu(isa, text)
    for pc in _steps(cpu, word, one):
        if pc in middle:
            return f"the program comes to {cpu.place(pc)} by a jump, into the middle of the patch"
        if pc != site:
            continue
        cpu.lose_reservation()
        cpu.step()
        for place in middle:  # they are executed in the trampoline; a jump to one of them is not
            if cpu["pc"] != place:
                break
            cpu.step()
        if not jump:
            cpu.lose_reservation()
        if cpu["pc"] in middle:
            return f"the program comes to {cpu.place(cpu['pc'])} by a jump, into the middle of the patch"
    same = (cpu.result, cpu.load(word)) == _plain(isa, text, one)
    return "" if same else "with a probe the function computes something else"
