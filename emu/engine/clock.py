"""Virtual time: instructions turned into nanoseconds.

A clock rate says how many instructions make a second.  Two things are added or taken away:

* time skipped while the CPU waits for an interrupt, which costs no instructions;
* instructions a guest's trap handler spends on a probe (`pause` to `resume`), so that a probed
  program sees the same time, and is scheduled the same way, as one that is not probed.
"""

from __future__ import annotations

from typing import Final

from emu.engine.engine import Engine

NANOSECONDS: Final = 1_000_000_000
# 100 MHz: a clock interrupt every 100,000 instructions at 1000 Hz.
DEFAULT_RATE: Final = 100_000_000


class VirtualClock:
    """The clock of one engine."""

    def __init__(self, engine: Engine, rate: int = DEFAULT_RATE) -> None:
        self._counter = engine.counter
        engine.special.time = self.now
        self.rate = rate
        # Most rates make whole nanoseconds: no division then.
        self._period = NANOSECONDS // rate if NANOSECONDS % rate == 0 else 0
        self._hidden = 0
        self._skipped = 0
        self._paused: int | None = None

    def now(self) -> int:
        """Return nanoseconds since the machine started."""
        count = (self._counter.instructions if self._paused is None else self._paused) - self._hidden
        return (count * self._period if self._period else count * NANOSECONDS // self.rate) + self._skipped

    def at_block(self) -> int:
        """Return the time at the start of the block under way.

        A guest's own clock is read by instructions inside blocks, very often.
        """
        count = (self._counter.before_block if self._paused is None else self._paused) - self._hidden
        return count * NANOSECONDS // self.rate + self._skipped

    def instructions_at(self, time: int) -> int:
        """Return the instruction count at which `now()` reaches `time`, unless the CPU waits."""
        hidden = self._hidden
        if self._paused is not None:
            hidden += self._counter.instructions - self._paused
        return -(-(time - self._skipped) * self.rate // NANOSECONDS) + hidden

    def skip_to(self, time: int) -> None:
        """Let time pass while the CPU waits."""
        self._skipped += max(0, time - self.now())

    @property
    def stands_still(self) -> bool:
        """Whether the clock is stopped: what runs serves a probe."""
        return self._paused is not None

    def pause(self) -> None:
        """Stop the clock: what runs from here serves a probe."""
        if self._paused is None:
            self._paused = self._counter.instructions

    def state(self) -> tuple[int, int, int | None]:
        """Return the state for `set_state` after instructions that are not the guest's."""
        return self._hidden, self._skipped, self._paused

    def set_state(self, state: tuple[int, int, int | None]) -> None:
        """Go back to a state.

        The instructions executed since are to be taken off the count by then.
        """
        self._hidden, self._skipped, self._paused = state

    def discount(self, instructions: int) -> None:
        """Take instructions off the count (`Counter.discount`); the clock may stand still."""
        self._counter.discount(instructions)
        if self._paused is not None:
            self._paused -= instructions

    def resume(self, extra: int = 0) -> None:
        """Start it again; `extra` instructions still belong to the probe.

        The return instruction under way.
        """
        if self._paused is not None:
            self._hidden += self._counter.instructions + extra - self._paused
            self._paused = None

    def hide(self, instructions: int) -> None:
        """Take instructions out of the time: they are about to be executed, and serve a probe."""
        self._hidden += instructions
