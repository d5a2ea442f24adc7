"""The recorder of a guest whose probes fire: from the patched instruction to the resume.

The recorder puts itself in front of the engine's trap callback.  On a hit it has the engine call it
before every instruction until the program itself continues.  `HandlerWatch` adds the handlers of
the chains, and `ClauseWatch` the enablings of probes and each instruction of DIF; `HitRecorder`
keeps all in order.  Nothing of this changes what the guest does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from emu.engine.handlers import TrapTaker, WrappedTaker
from emu.engine.state import DELIVER
from emu.probe.trap import TrapHandler
from trapline.lab.step.clause_watch import ClauseWatch
from trapline.lab.step.handler_watch import HandlerWatch
from trapline.lab.step.hit_events import Hit, Kind
from trapline.lab.step.hit_recorder import HitRecorder
from trapline.lab.step.subject import Subject, Window

# The most instructions of one firing that are kept; a trap takes some hundred instructions.
MOST_INSTRUCTIONS: Final = 20_000
# The same where a mistake is made: what follows is often a panic of thousands of instructions.
MOST_OF_FAULT: Final = 400
# So many hits of one breakpoint, each within so many instructions of the last, are a loop.
_OFTEN: Final = 200
_LOOP: Final = 1000


class _RecordedTraps(WrappedTaker):
    """Lets a recorder see each breakpoint."""

    def __init__(self, inner: TrapTaker, recorder: Recorder) -> None:
        super().__init__(inner)
        self._recorder = recorder

    def breakpoint(self, address: int) -> int:
        """Record a breakpoint."""
        return self._recorder.take(address, partial(self.inner.breakpoint, address))

    def trap(self, number: int) -> int:
        """Record a breakpoint that arrives as another exception."""
        at = self._recorder.unseen_breakpoint()
        return self.inner.trap(number) if at is None else self._recorder.take(at, partial(self.inner.trap, number))


class Recorder:
    """Records the hits of one guest until `wanted` firings are recorded."""

    def __init__(self, subject: Subject, wanted: int, after: int = 0) -> None:
        """`after`: how many instructions behind the resume are recorded."""
        self.hit_recorder = HitRecorder(subject, wanted)
        self.clauses = ClauseWatch(subject, self.hit_recorder)
        self.hangs = False
        """Whether the guest has met the same breakpoint again and again after the last firing."""
        self.cut = False
        """Whether a firing was longer than a recording may be."""
        self._after = after
        self._again = self._again_at = 0
        self._subject = subject
        self._engine = subject.engine

    # -- where a recording begins

    def attach(self, chains: Sequence[TrapHandler]) -> None:
        """Watch breakpoints, and the handlers that are in the chains now."""
        watch = HandlerWatch(self._subject, self.hit_recorder)
        for chain in chains:
            chain.wrap(watch.wrap)
        handlers = self._engine.handlers
        handlers.taker = _RecordedTraps(handlers.taker, self)

    def begin(self) -> None:
        """Record from the next instruction on, without a breakpoint; `HitRecorder.crashed` ends it."""
        self.hit_recorder.hit = Hit(self._engine.pc, thread=self._subject.thread(), taken=True, fired=True, after=1)
        self._watch()

    def watch_stale(self, address: int, size: int, patch: bytes, times: int) -> None:
        """Make the CPU execute an old instruction after its patch was written; record that.

        `times`: how often, -1: forever.  The patch is written when the CPU comes there, so that
        the old instruction has been translated, which stands for the instruction cache.
        """
        engine, recorder, met = self._engine, self.hit_recorder, 0

        def at_site() -> None:
            nonlocal met
            met += 1
            if met == 1:
                engine.memory.write(address, patch)
            elif recorder.hit is None and not recorder.done and (times < 0 or met <= 1 + times):
                recorder.begin(address, taken=True, fired=True)
                recorder.add(Kind.STALE)

        def behind() -> None:
            hit = recorder.hit
            if hit is not None and hit.events and hit.events[-1].kind is Kind.STALE:
                recorder.close(hit)
            if times >= 0 and met == 1 + times:
                engine.write_code(address, patch)

        self._on_code(address, at_site)
        self._on_code(address + size, behind)

    def watch_window(self, window: Window) -> None:
        """Record from where the CPU comes to a window's start, if no hit is being recorded."""

        def begin() -> None:
            if self.hit_recorder.hit is not None or self.hit_recorder.done:
                return
            self.hit_recorder.begin(window.start, window=window.end, taken=True)
            self._watch()
            self._engine.running.leave()  # the hooked instruction is met once more, by the watcher

        self._on_code(window.start, begin)

    def _on_code(self, address: int, function: Callable[[], None]) -> None:
        self._engine.code.on_code(address, function)
        # It may have been translated without the hook.
        self._engine.write_code(address, self._engine.read(address, 1))

    def _watch(self) -> None:
        self._engine.running.watch(self._step, self.hit_recorder.accessed)

    # -- a hit

    def unseen_breakpoint(self) -> int | None:
        """Return the pc, if a breakpoint is there that has arrived as another exception."""
        pc = self._engine.pc
        return pc if self.hit_recorder.hit is None and self._subject.is_breakpoint(pc) else None

    def take(self, address: int, handle: Callable[[], int]) -> int:
        """Record a breakpoint, which `handle` takes."""
        recorder = self.hit_recorder
        if recorder.done:
            self._count_again(address)
            return handle()
        hit = recorder.hit
        if hit is None:
            hit = recorder.begin(address, taken=True)
            recorder.add(Kind.FETCH)
        elif not self._engine.watched:
            recorder.add(Kind.FETCH)
        try:
            answer = handle()
        except BaseException:
            recorder.close(hit)
            raise
        if answer == DELIVER:
            hit.handling = True
        elif hit.events and hit.events[-1].kind is Kind.FETCH:
            recorder.drop()  # no handler was asked
            return answer
        if hit.handling or self._subject.is_machinery(self._engine.pc):
            if not self._engine.watched:
                self._watch()
        elif not self._engine.watched:
            self._end(hit)
        return answer

    def _count_again(self, address: int) -> None:
        """Notice that the guest does not get past a breakpoint any more."""
        instructions = self._engine.instructions
        same = address == self.hit_recorder.hits[-1].address and instructions - self._again_at < _LOOP
        self._again, self._again_at = (self._again + 1 if same else 0), instructions
        if self._again > _OFTEN:
            self.hangs = True
            self._subject.interrupt()

    def _end(self, hit: Hit) -> None:
        """End a hit, or continue behind its resume."""
        if self._after and (hit.fired or self._engine.watched):
            self._watch()
        else:
            self.hit_recorder.close(hit)

    def _step(self) -> bool:
        """Record the instruction that comes next; return False if the program itself continues."""
        recorder, hit = self.hit_recorder, self.hit_recorder.hit
        if hit is None:
            return False
        recorder.leave_gate()
        pc = self._engine.pc
        left = hit.events and hit.events[-1].kind is Kind.EXECUTE and hit.events[-1].pc == self._subject.handler_end
        if left or not self._engine.isa.is_kernel_address(pc):
            hit.handling = False
        if pc == hit.window:
            recorder.close(hit)
            return False
        if hit.window is None and not hit.handling and not self._subject.is_machinery(pc):
            return self._step_behind(hit)
        if len(hit.events) > (MOST_OF_FAULT if self._after else MOST_INSTRUCTIONS):
            self.cut = True
            hit.broken = "The recording is cut here: the handler has not returned to the program."
            recorder.close(hit)
            return False
        recorder.add(Kind.EXECUTE)
        gate = self._subject.gates.get(pc)
        if gate is not None:
            recorder.enter_gate(gate)
        return True

    def _step_behind(self, hit: Hit) -> bool:
        """Record an instruction of the program behind the resume, or end the hit."""
        hit.after += 1
        if hit.after > self._after or not hit.fired:
            self.hit_recorder.close(hit)
            return False
        self.hit_recorder.add(Kind.RESUMED if hit.after == 1 else Kind.AFTER)
        return True
