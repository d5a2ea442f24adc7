"""The checker: programs run with their return addresses replaced, by the student's bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trapline.lab.course.cpu import Cpu, RunError
from trapline.lab.course.work import Part, Work

_STARTER = Path(__file__).parent / "starter"
_TRAMPOLINE = 0x5000_0800


def check(work: Work) -> Iterator[Part]:
    """Check the class with harder and harder programs."""
    yield Part(
        "one call", 1, lambda: _wrong(work, ["down"], (0, 0)),
        "entered() keeps the address, returned() gives it back, with the number 1",
    )  # fmt: skip
    yield Part(
        "recursion", 2, lambda: _wrong(work, ["down"], (3, 0)),
        "several calls are under way at the same time; which of them returns first?",
    )  # fmt: skip
    yield Part(
        "longjmp", 3,
        lambda: _wrong(work, ["down"], (3, 1)) or _wrong(work, ["program", "down"], (3, 2)),
        "functions that longjmp leaves never return: compare their sp with the one that you are given",
    )  # fmt: skip
    yield Part(
        "a jump to another function", 2, lambda: _wrong(work, ["down", "tail"], (3, 1)),
        "what is the return address that the second one of them sees?",
    )  # fmt: skip
    yield Part("two processes", 2, lambda: _tasks(work), "both have the same stack addresses: who calls, is in `task`")


class _Program:
    """A program with probes at the entries of some functions; `run` yields after each instruction."""

    def __init__(self, work: Work, returns: Any, probed: list[str], task: int) -> None:
        self.cpu = Cpu(work.isa, (_STARTER / work.isa / "program.s").read_text("utf-8"))
        self.task = task
        self.count = 0
        self._returns = returns
        self._probed = {self.cpu.label(name) for name in probed}

    def run(self, arguments: tuple[int, int]) -> Iterator[None]:
        """Run the program."""
        cpu = self.cpu
        for pc in cpu.steps(*arguments):
            if pc == _TRAMPOLINE:
                self._return()
            elif pc in self._probed and self._returns is not None:
                sp, address = cpu.return_slot()
                self._returns.entered(self.task, sp, address)
                cpu.set_return(_TRAMPOLINE)
            if cpu["pc"] == _TRAMPOLINE:
                raise RunError("returned() sends the program back to the trampoline")
            yield

    def _return(self) -> None:
        found = self._returns.returned(self.task, self.cpu["sp"])
        if not (isinstance(found, tuple) and len(found) == 2 and all(isinstance(one, int) for one in found)):
            raise RunError(f"returned() returns {found!r}, not an address and a number")
        self.cpu["pc"], count = found
        self.count += count


def _calls(work: Work, probed: list[str], arguments: tuple[int, int]) -> tuple[int, int]:
    """Return the result of the plain program, and how many calls of probed functions return."""
    cpu = _Program(work, None, probed, 0).cpu
    entries = {cpu.label(name) for name in probed}
    waiting: list[tuple[int, int]] = []
    returned = 0

    def come_to(pc: int) -> int:
        """Take out the calls that return to a place, and those that were left for good."""
        found = 0
        while waiting and (waiting[-1] == (cpu["sp"], pc) or waiting[-1][0] < cpu["sp"]):
            found += waiting.pop() == (cpu["sp"], pc)
        return found

    for pc in cpu.steps(*arguments):
        returned += come_to(pc)
        if pc in entries:
            slot = cpu.return_slot()
            while waiting and waiting[-1][0] <= slot[0] and waiting[-1] != slot:
                waiting.pop()  # it was left for good
            waiting.append(slot)
    return cpu.result, returned + come_to(cpu["pc"])


def _wrong(work: Work, probed: list[str], arguments: tuple[int, int]) -> str:
    program = _Program(work, work.python("returns.py", "Returns")(_TRAMPOLINE), probed, 1)
    return _outcome(work, program, probed, arguments, _all(program.run(arguments)))


def _all(run: Iterator[None]) -> str:
    try:
        for _ in run:
            pass
    except RunError as error:
        return str(error)
    return ""


def _outcome(work: Work, program: _Program, probed: list[str], arguments: tuple[int, int], ended: str) -> str:
    result, count = _calls(work, probed, arguments)
    if ended:
        return f"program{arguments}: {ended}"
    if program.cpu.result != result:
        return f"program{arguments} returns {program.cpu.result:#x}, and {result:#x} without probes"
    if program.count != count:
        return f"program{arguments}: {program.count} returns are told, and there are {count}"
    return ""


def _tasks(work: Work) -> str:
    """Run two processes, an instruction of each in turn."""
    returns = work.python("returns.py", "Returns")(_TRAMPOLINE)
    arguments = ((3, 1), (4, 0))
    programs = [_Program(work, returns, ["down"], task) for task in (1, 2)]
    runs = [program.run(one) for program, one in zip(programs, arguments, strict=True)]
    ended: dict[int, str] = {}
    while len(ended) < len(runs):
        for index, run in enumerate(runs):
            if index in ended:
                continue
            try:
                next(run)
            except StopIteration:
                ended[index] = ""
            except RunError as error:
                ended[index] = str(error)
    found = (_outcome(work, programs[at], ["down"], arguments[at], ended[at]) for at in range(len(programs)))
    return next((f"process {at}: {why}" for at, why in enumerate(found, 1) if why), "")
