"""The checker: functions run with breakpoints in them, and the probes' programs call functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from trapline.lab.course.cpu import Cpu, ProbeError, RunError
from trapline.lab.course.work import Part, Work

# work(n) = n + 1 and lookup(n) = n + 2, each with a probe at the label.
_FUNCTION = {
    "x86_64": "probe: push rbp; mov rbp, rsp; lea rax, [rdi+{n}]; pop rbp; ret",
    "i386": "probe: push ebp; mov ebp, esp; mov eax, dword ptr [ebp+8]; add eax, {n}; pop ebp; ret",
    "aarch64": "probe: stp x29, x30, [sp, #-16]!; add x0, x0, #{n}; ldp x29, x30, [sp], #16; ret",
    "riscv64": "c.addi sp, -16; probe: c.sdsp ra, 8(sp); addi a0, a0, {n}; c.ldsp ra, 8(sp); c.addi sp, 16; ret",
}
_WORK, _LOOKUP = (0x1_0000, 1), (0x2_0000, 2)
_DEEPEST = 8


def check(work: Work) -> Iterator[Part]:
    """Check the class in worse and worse company."""
    yield Part("one probe", 2, lambda: _one(work), "first the probe's program, then the displaced instruction")
    yield Part(
        "a trap in a trap", 3, lambda: _nested(work),
        "remember that a probe's program runs; a hit meanwhile is missed, but its instruction is still displaced",
    )  # fmt: skip
    yield Part(
        "an error in the probe's program", 2, lambda: _error(work),
        "the probed program must not notice: what did you set before fire(), and who sets it back?",
    )  # fmt: skip
    yield Part(
        "two CPUs", 3, lambda: _two(work), "what one CPU does says nothing about the other: cpu.number tells them apart"
    )


class Processor:
    """What the student's handler sees of a CPU."""

    def __init__(self, work: Work, handler: Any, number: int) -> None:
        self.number = number
        self.fired: Counter[str] = Counter()
        self.program: Callable[[str], None] = lambda _name: None
        self._isa = work.isa
        self._handler = handler
        self._running: list[tuple[str, Cpu]] = []

    def call(self, name: str, number: int) -> None:
        """Call a probed function, and check its result."""
        if len(self._running) > _DEEPEST:
            raise RunError(f"the handler has entered itself {_DEEPEST} times: a kernel's stack would be exhausted")
        start, adds = _WORK if name == "work" else _LOOKUP
        cpu = Cpu(self._isa, _FUNCTION[self._isa].format(n=adds), start)
        breakpoint_ = _breakpoint(cpu)
        cpu.write(cpu.label("probe"), breakpoint_)
        cpu.flush(cpu.label("probe"), len(breakpoint_))
        self._running.append((name, cpu))
        try:
            found = cpu.call(number, trap=lambda _cpu, address: self._handler.trap(self, address))
        finally:
            self._running.pop()
        if found != number + adds:
            raise RunError(f"{name}({number}) returns {found}, not {number + adds}")
        if cpu.traps != 1:
            raise RunError(f"the breakpoint in {name} is hit {cpu.traps} times in one call")

    def fire(self, address: int) -> None:
        """Run the program of the probe at an address."""
        name = "work" if address < _LOOKUP[0] else "lookup"
        self.fired[name] += 1
        self.program(name)

    def displace(self, address: int) -> None:
        """Do the work of the displaced instruction."""
        self._running[-1][1].displace(address)


def _breakpoint(cpu: Cpu) -> bytes:
    size = next(len(one.code) for one in cpu.instructions if one.address == cpu.label("probe"))
    return next(code for code in cpu.breakpoints if len(code) <= size)


def _handler(work: Work) -> Any:
    return work.python("handler.py", "Handler")()


def _why(call: Callable[[], None]) -> str:
    try:
        call()
    except RunError as error:
        return str(error)
    except ProbeError as error:
        return f"the probed program gets the error of the probe's program: {error}"
    return ""


def _counts(handler: Any, processor: Processor, fired: dict[str, int], missed: int) -> str:
    if processor.fired != fired:
        told, wanted = dict(processor.fired), fired
        return f"CPU {processor.number}: the probes fired {told or 'never'}, not {wanted}"
    return "" if handler.missed == missed else f"handler.missed is {handler.missed}, and {missed} hits were missed"


def _one(work: Work) -> str:
    handler = _handler(work)
    cpu = Processor(work, handler, 0)
    why = _why(lambda: [cpu.call("work", number) for number in (3, 4, 5)] and None)
    return why or _counts(handler, cpu, {"work": 3}, 0)


def _nested(work: Work) -> str:
    handler = _handler(work)
    cpu = Processor(work, handler, 0)
    cpu.program = lambda _name: cpu.call("lookup", 7)
    why = _why(lambda: [cpu.call("work", number) for number in (3, 4)] and None)
    why = why or _counts(handler, cpu, {"work": 2}, 2)
    cpu.program = lambda _name: None
    why = why or _why(lambda: cpu.call("lookup", 8))
    return why or _counts(handler, cpu, {"work": 2, "lookup": 1}, 2)


def _error(work: Work) -> str:
    handler = _handler(work)
    cpu = Processor(work, handler, 0)

    def program(_name: str) -> None:
        if cpu.fired["work"] == 2:
            raise ProbeError("invalid address (0x0)")

    cpu.program = program
    why = _why(lambda: [cpu.call("work", number) for number in (3, 4, 5)] and None)
    return why or _counts(handler, cpu, {"work": 3}, 0)


def _two(work: Work) -> str:
    handler = _handler(work)
    first, second = (Processor(work, handler, number) for number in (0, 1))
    second.program = lambda _name: second.call("lookup", 9)

    def program(_name: str) -> None:
        """While this runs, the other CPU hits a breakpoint."""
        second.call("work", 6)
        first.call("lookup", 7)

    first.program = program
    why = _why(lambda: first.call("work", 3))
    return why or _counts(handler, second, {"work": 1}, 2) or _counts(handler, first, {"work": 1}, 2)
