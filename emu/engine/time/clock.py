"""Virtual time: instructions turned into nanoseconds.

The clock rate is the number of instructions per second. Two corrections are applied:

* time skipped while the CPU waits for an interrupt, which costs no instructions;
* instructions that a guest's trap handler spends on a probe (`pause` to `resume`), so that a probed
  program sees the same time, and is scheduled the same way, as one that is not probed.
"""

from __future__ import annotations

from typing import Final

from emu.engine.engine import Engine
from emu.engine.time.clock_words import ClockState, ClockWord
from emu.support.immutable import immutable
from emu.support.plain import address_of
from emu.support.words import WORD_MASK

NANOSECONDS: Final = 1_000_000_000
# 100 MHz: a clock interrupt every 100,000 instructions at 1000 Hz.
DEFAULT_RATE: Final = 100_000_000

_HIDDEN: Final = int(ClockWord.HIDDEN)
_SKIPPED: Final = int(ClockWord.SKIPPED)
_STANDS: Final = int(ClockWord.STANDS)
_PAUSED: Final = int(ClockWord.PAUSED)


@immutable
class KeptClock:
    """The clock of a CPU that shares its engine with others, while one of them runs."""

    state: tuple[int, ...]
    instructions: int
    """The engine's count of instructions when it was kept."""


class VirtualClock:
    """The clock of one engine."""

    def __init__(self, engine: Engine, rate: int = DEFAULT_RATE) -> None:
        self._counter = engine.counter
        engine.emulated.time = self.now
        self.rate = rate
        # Most rates make whole nanoseconds: no division then.
        self.period = NANOSECONDS // rate if NANOSECONDS % rate == 0 else 0
        """Nanoseconds of an instruction, 0 if they are not whole."""
        memory = bytearray(8 * len(ClockWord))
        self.address = address_of(memory)
        """The address of the words."""
        self._words = memoryview(memory).cast("q")

    def now(self) -> int:
        """Return nanoseconds since the machine started."""
        words = self._words
        count = (words[_PAUSED] if words[_STANDS] else self._counter.instructions) - words[_HIDDEN]
        return (count * self.period if self.period else count * NANOSECONDS // self.rate) + words[_SKIPPED]

    @property
    def executed(self) -> int:
        """Instructions executed so far, except those that served a probe."""
        words = self._words
        return (words[_PAUSED] if words[_STANDS] else self._counter.instructions) - words[_HIDDEN]

    @property
    def executed_before_block(self) -> int:
        """`executed` at the start of the current block."""
        words = self._words
        return (words[_PAUSED] if words[_STANDS] else self._counter.before_block) - words[_HIDDEN]

    def at_block(self) -> int:
        """Return the time at the start of the current block.

        Instructions inside blocks read a guest's own clock very often.
        """
        return self.executed_before_block * NANOSECONDS // self.rate + self._words[_SKIPPED]

    def instructions_at(self, time: int) -> int:
        """Return the instruction count at which `now()` reaches `time`, unless the CPU waits."""
        return -(-(time - self._words[_SKIPPED]) * self.rate // NANOSECONDS) + self._hidden_so_far()

    def _hidden_so_far(self) -> int:
        """Return the number of instructions without time, with those since the clock was stopped."""
        hidden = self._words[_HIDDEN]
        if self._words[_STANDS]:
            hidden += self._counter.instructions - self._words[_PAUSED]
        return hidden

    def of_deadlines(self) -> ClockState:
        """Return the state for `Engine.run` whose deadlines `instructions_at` has just computed."""
        return ClockState(self.address, self._hidden_so_far() & WORD_MASK, self._words[_SKIPPED])

    def skip_to(self, time: int) -> None:
        """Let time pass while the CPU waits."""
        self._words[_SKIPPED] += max(0, time - self.now())

    def let_pass(self, nanoseconds: int) -> None:
        """Let this much time pass in which no instruction is executed."""
        self._words[_SKIPPED] += nanoseconds

    @property
    def stands_still(self) -> bool:
        """Whether the clock is stopped, because the code that runs serves a probe."""
        return bool(self._words[_STANDS])

    def pause(self) -> None:
        """Stop the clock: the code that runs from here on serves a probe."""
        if not self._words[_STANDS]:
            self._words[_PAUSED] = self._counter.instructions
            self._words[_STANDS] = 1

    def state(self) -> tuple[int, ...]:
        """Return the state for `set_state` after instructions that are not the guest's."""
        return tuple(self._words)

    def set_state(self, state: tuple[int, ...]) -> None:
        """Go back to a state.

        The instructions executed since then must be subtracted from the count before this call.
        """
        for word, value in enumerate(state):
            self._words[word] = value

    def kept(self) -> KeptClock:
        """Return the state of a CPU's clock, for `go_on`, while the engine executes another CPU."""
        return KeptClock(self.state(), self._counter.instructions)

    def go_on(self, kept: KeptClock) -> int:
        """Go on with a CPU's clock; return the instructions of other CPUs since it was kept."""
        others = self._counter.instructions - kept.instructions
        self.set_state(kept.state)
        self._words[_HIDDEN] += others
        self._words[_PAUSED] += others
        return others

    def discount(self, instructions: int, executed: int = 0) -> None:
        """Subtract instructions from the count (`Counter.discount`); the clock may be stopped."""
        self._counter.discount(instructions, executed)
        if self._words[_STANDS]:
            self._words[_PAUSED] -= instructions

    def resume(self, extra: int = 0) -> None:
        """Start it again.

        `extra` instructions still belong to the probe, such as the current return instruction.
        """
        if self._words[_STANDS]:
            self._words[_HIDDEN] += self._counter.instructions + extra - self._words[_PAUSED]
            self._words[_STANDS] = 0

    @property
    def hidden(self) -> int:
        """The address of the word that `hide` adds to."""
        return self.address + 8 * ClockWord.HIDDEN

    def hide(self, instructions: int) -> None:
        """Exclude instructions from the time: they are about to be executed, and serve a probe."""
        self._words[_HIDDEN] += instructions
