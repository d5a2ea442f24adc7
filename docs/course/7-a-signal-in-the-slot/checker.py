"""The checker: a signal arrives before each instruction of a run, one after the other.

The program's handler does what a real one may do: it hits the same probe, so the slot is used for
something else before the handler returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trapline.lab.course.cpu import Cpu, RunError
from trapline.lab.course.work import Part, Work

# A function with two probed instructions, which must be executed once each, and one that faults.
_PROGRAMS = {
    "x86_64": "add rdi, 1; one: add rsi, rdi; two: add rdi, rsi; lea rax, [rdi+rsi]; cmp rdx, 0; je out; "
    "bad: mov rax, qword ptr [rdx]; out: ret",
    "i386": "mov edi, dword ptr [esp+4]; mov esi, dword ptr [esp+8]; mov edx, dword ptr [esp+12]; add edi, 1; "
    "one: add esi, edi; two: add edi, esi; lea eax, [edi+esi]; cmp edx, 0; je out; "
    "bad: mov eax, dword ptr [edx]; out: ret",
    "aarch64": "add x0, x0, #1; one: add x1, x1, x0; two: add x0, x0, x1; add x0, x0, x1; cbz x2, out; "
    "bad: ldr x0, [x2]; out: ret",
    "riscv64": "c.addi a0, 1; one: c.add a1, a0; two: add a0, a0, a1; c.add a0, a1; beqz a2, out; "
    "bad: ld a0, 0(a2); out: c.jr ra",
}
_BAD = 0x30
_LIMIT = 100


@dataclass(frozen=True)
class Slot:
    """What the student's functions are given."""

    address: int
    length: int
    start: int
    copied: int

    @property
    def inside(self) -> range:
        """The addresses of the copy and of the jump back."""
        return range(self.start, self.start + self.copied + 1)


def check(work: Work) -> Iterator[Part]:
    """Check both functions."""
    deliver = "outside of every slot there is nothing to correct"
    before = "the probe has fired and its instruction has not run: what happens if it starts again from the breakpoint?"
    after = "the copy has run, only the jump back is missing: where would it lead?"
    yield Part("a signal outside of the slots", 2, lambda: _signals(work, lambda _at, slot: slot is None), deliver)
    yield Part(
        "a signal before the copy", 3, lambda: _signals(work, lambda at, slot: slot is not None and at == slot.start),
        before,
    )  # fmt: skip
    yield Part(
        "a signal after the copy", 3, lambda: _signals(work, lambda at, slot: slot is not None and at != slot.start),
        after,
    )  # fmt: skip
    yield Part("a fault in the copy", 2, lambda: _fault(work), "the handler must see the program's own instruction")


class _Run:
    """A run of the program with its instructions in slots, and at most one signal."""

    def __init__(self, work: Work) -> None:
        self.cpu = Cpu(work.isa, _PROGRAMS[work.isa] + "; .8byte 0; " * 8)
        self.hits = 0
        self.seen: list[int] = []
        jump = len(self.cpu.jump(self.cpu.code_end - 64, self.cpu.code_end - 32))
        self.slots = []
        for number, name in enumerate(("one", "two", "bad")):
            address = self.cpu.label(name)
            code = next(one.code for one in self.cpu.instructions if one.address == address)
            start = self.cpu.code_end - 64 + 16 * number
            assert len(code) + jump <= 16
            self.slots.append(Slot(address, len(code), start, len(code)))
            self._fill(self.slots[-1])

    def _fill(self, slot: Slot) -> None:
        cpu = self.cpu
        copy = cpu.read(slot.address, slot.length)
        back = cpu.jump(slot.start + slot.copied, slot.address + slot.length)
        cpu.write(slot.start, copy + back)
        cpu.flush(slot.start, 16)

    def slot_at(self, pc: int) -> Slot | None:
        """Return the slot that an address is in."""
        return next((slot for slot in self.slots if pc in slot.inside), None)

    def steps(self, *arguments: int) -> Iterator[tuple[int, Slot | None]]:
        """Run, and yield each pc with the slot that it is in."""
        at = {slot.address: slot for slot in self.slots}
        for pc in self.cpu.steps(*arguments, limit=_LIMIT):
            if pc in at:
                self.hits += 1
                self.cpu["pc"] = at[pc].start
                self._fill(at[pc])
            else:
                yield pc, self.slot_at(pc)

    def handle(self, pc: int) -> str:
        """Let the program's handler run, which sees `pc`; return what is wrong with that."""
        self.seen.append(pc)
        if pc not in self._program():
            return f"the program's handler sees {pc:#x}, where the program has no instruction"
        for slot in self.slots:  # the handler hits probes, too: other copies come into the slots
            self.cpu.write(slot.start, bytes(16))
            self.cpu.flush(slot.start, 16)
        self.cpu["pc"] = pc
        return ""

    def _program(self) -> set[int]:
        return {one.address for one in self.cpu.instructions if one.address < self.cpu.code_end - 64}


def _signals(work: Work, here: Callable[[int, Slot | None], bool]) -> str:
    """Send a signal at each moment that `here` chooses, in a run for each."""
    plain = _Run(work)
    moments = [index for index, (pc, slot) in enumerate(plain.steps(3, 4, 0)) if here(pc, slot)]
    interrupted = work.python("slot.py", "interrupted")
    for moment in moments:
        run = _Run(work)
        try:
            why = _signal(run, interrupted, moment)
        except RunError as error:
            why = f"the program ends: {error}"
        if not why and run.cpu.result != plain.cpu.result:
            why = f"the program returns {run.cpu.result}, not {plain.cpu.result}"
        if not why and run.hits != plain.hits:
            why = f"the probes fire {run.hits} times, not {plain.hits}: an instruction is started twice"
        if why:
            return f"at step {moment}: {why}"
    return ""


def _signal(run: _Run, interrupted: Callable[[int, list[Slot]], Any], moment: int) -> str:
    pending, deferred = False, 0
    for index, (pc, slot) in enumerate(run.steps(3, 4, 0)):
        pending = pending or index == moment
        if not pending or run.seen:
            continue
        match interrupted(pc, run.slots):
            case ("deliver", int(seen)):
                if slot is None and seen != pc:
                    return f"outside of the slots the handler sees {seen:#x}, not {pc:#x}"
                why = run.handle(seen)
                if why:
                    return why
            case ("defer", None):
                deferred += 1
                if slot is None:
                    return f"the signal is deferred at {run.cpu.place(pc)}, which is in no slot"
            case other:
                return f"interrupted() returns {other!r}"
    return "" if run.seen else f"the signal is never delivered (deferred {deferred} times)"


def _fault(work: Work) -> str:
    run = _Run(work)
    faulted = work.python("slot.py", "faulted")
    bad = run.slots[-1]
    try:
        for _ in run.steps(3, 4, _BAD):
            pass
    except RunError:
        pc = run.cpu["pc"]
        if pc != bad.start:
            return f"the fault is at {run.cpu.place(pc)}"
        seen = faulted(pc, run.slots)
        if seen != bad.address:
            told = f"{seen:#x}" if isinstance(seen, int) else repr(seen)
            return f"the program's handler sees {told}, not {bad.address:#x}, where its instruction is"
        own = run.cpu.instructions[0].address
        return "" if faulted(own, run.slots) == own else "a fault outside of the slots is moved"
    return "there was no fault"
