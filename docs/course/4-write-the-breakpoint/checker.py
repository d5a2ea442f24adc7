"""The checker: the function runs on a CPU with the student's breakpoint in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trapline.lab.course.cpu import Cpu, RunError
from trapline.lab.course.work import Part, Work

_STARTER = Path(__file__).parent / "starter"
_ARGUMENTS = ((2, 3), (0, 0), (1 << 30, 77))


def check(work: Work) -> Iterator[Part]:
    """Check the three functions."""
    yield Part("the CPU takes it", 1, lambda: _takes(work), "install() writes BREAKPOINT with cpu.write")
    yield Part(
        "its length", 2, lambda: _length(work),
        "a patch may not be longer than the instruction: trapline displace {isa} ... shows the bytes of each"
        .replace("{isa}", work.isa),
    )  # fmt: skip
    yield Part(
        "code that has run before", 2, lambda: _hot(work),
        "cpu.write stores to memory; what makes the CPU fetch the instruction again?",
    )  # fmt: skip
    yield Part(
        "the displaced instruction", 3, lambda: _handled(work),
        "a push stores below sp and moves sp; its operands are in the bytes; the pc does not move by itself",
    )  # fmt: skip
    yield Part("taken out", 2, lambda: _removed(work), "the old bytes, and the instruction cache again")


class _Try:
    """A CPU with the function, and the student's file."""

    def __init__(self, work: Work) -> None:
        self.cpu = Cpu(work.isa, (_STARTER / work.isa / "function.s").read_text("utf-8"))
        self.site = self.cpu.label("probe")
        self.place = self.site - self.cpu.instructions[0].address
        self.size = next(len(one.code) for one in self.cpu.instructions if one.address == self.site)
        self._install, self._remove, self._handle = (
            work.python("breakpoint.py", name) for name in ("install", "remove", "handle")
        )
        self._saved: Any = None

    def install(self) -> None:
        self._saved = self._install(self.cpu, self.site)

    def remove(self) -> None:
        self._remove(self.cpu, self.site, self._saved)

    def hits(self) -> bool:
        """Call the function, and return whether the CPU has taken a breakpoint at the site."""
        hit = []

        def trap(_cpu: Cpu, address: int) -> None:
            hit.append(address)
            raise RunError("seen")

        try:
            self.cpu.call(1, 2, trap=trap)
        except RunError as error:
            if not hit:
                raise RunError(f"the CPU takes no breakpoint: {error}") from None
        return hit == [self.site]

    def call(self, *arguments: int) -> tuple[int, int]:
        """Call the function with the student's handler; return the result and sp afterwards."""
        return self.cpu.call(*arguments, trap=self._handle), self.cpu["sp"]


def _takes(work: Work) -> str:
    one = _Try(work)
    one.install()
    try:
        return "" if one.hits() else "the function runs, and no breakpoint is hit"
    except RunError as error:
        return str(error)


def _length(work: Work) -> str:
    one = _Try(work)
    one.install()
    now = one.cpu.read(one.cpu.instructions[0].address, len(one.cpu.code))
    changed = [place for place, byte in enumerate(now) if byte != one.cpu.code[place]]
    outside = [place for place in changed if not one.place <= place < one.place + one.size]
    if outside:
        return f"the byte at +{outside[0]:#x}, which belongs to another instruction, is changed"
    return "" if changed else "no byte is changed"


def _hot(work: Work) -> str:
    one = _Try(work)
    one.cpu.call(1, 2)
    one.install()
    try:
        if one.hits():
            return ""
    except RunError as error:
        return str(error)
    if one.cpu.read(one.site, one.size) == one.cpu.code[one.place : one.place + one.size]:
        return "no byte is changed"
    return "the function has run before, and executes the old instruction although memory has the breakpoint"


def _handled(work: Work) -> str:
    for arguments in _ARGUMENTS:
        plain = _Try(work).call(*arguments)
        one = _Try(work)
        one.install()
        try:
            found = one.call(*arguments)
        except RunError as error:
            return f"f{arguments}: {error}"
        if one.cpu.traps != 1:
            return f"f{arguments}: the breakpoint is hit {one.cpu.traps} times"
        if found != plain:
            what = "the result" if found[0] != plain[0] else "sp"
            after, before = (pair[what == "sp"] for pair in (found, plain))
            return f"f{arguments}: {what} is {after:#x} and not {before:#x}"
    return _stack(work)


def _stack(work: Work) -> str:
    """Compare what the displaced instruction stores, and where."""
    seen = []
    for probed in (False, True):
        one = _Try(work)
        if probed:
            one.install()
        cpu = one.cpu
        written = []
        for pc in cpu.steps(5, 6):
            if pc == one.site:
                cpu["fp"], before = 0x1234, cpu["sp"]
                if probed:
                    one._handle(cpu, pc)  # noqa: SLF001
                else:
                    cpu.step()
                written = [cpu["sp"] - before, cpu["pc"] - pc, cpu.read(before - 64, 128)]
                break
        seen.append(written)
    for name, plain, found in zip(("sp moves by", "the pc moves by", "memory"), *seen, strict=True):
        if plain != found:
            return (
                f"{name} {found}, not {plain}" if isinstance(plain, int) else "the stack has other words than it should"
            )
    return ""


def _removed(work: Work) -> str:
    one = _Try(work)
    one.install()
    try:
        if not one.hits():
            return "no breakpoint was hit before"
        one.remove()
        if one.cpu.read(one.cpu.instructions[0].address, len(one.cpu.code)) != one.cpu.code:
            return "the code in memory is not what it was"
        return "a breakpoint is hit that memory does not have any more" if one.hits() else ""
    except RunError as error:
        return str(error)
