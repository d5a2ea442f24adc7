"""Speculations: buffers that are kept or thrown away later, and their life.

speculation() makes one active, speculate() sends a clause's record to it, commit() copies its
records into the principal buffer, discard() forgets them.  The records of other CPUs are left to
the cleaner, which runs at the rate of option cleanrate; until then the speculation is busy.

Source: FreeBSD dtrace.c dtrace_speculation(), _buffer(), _commit(), _discard(), _clean(); states:
dtrace_impl.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final

from emu.support.plain import words
from trapline.framework.base.blocks import SpeculationWord
from trapline.framework.base.faults import ILLOP
from trapline.framework.base.memory import Memory
from trapline.framework.buffers.buffers import NO_SPACE, LinearBuffer, PrincipalBuffer

_ALIGNMENT: Final = 8
_HEADER: Final = struct.Struct("<III")


class SpeculationState(IntEnum):
    """State of a speculation (DTRACESPEC_*)."""

    INACTIVE = 0
    ACTIVE = 1
    ACTIVEONE = 2
    ACTIVEMANY = 3
    COMMITTING = 4
    COMMITTINGMANY = 5
    DISCARDING = 6


_S = SpeculationState
_STATES: Final = tuple(SpeculationState)
_BUSY: Final = frozenset({_S.COMMITTING, _S.COMMITTINGMANY, _S.DISCARDING})
_WRITABLE: Final = frozenset({_S.ACTIVE, _S.ACTIVEONE, _S.ACTIVEMANY})


class Speculation:
    """One speculation: its state, and a buffer per CPU; `block` is its words."""

    def __init__(self, memory: Memory, size: int, cpus: int, block: memoryview[int]) -> None:
        self._block = block
        self.buffers = [LinearBuffer(memory, size) for _ in range(cpus)]
        self._block[SpeculationWord.BUFFER] = self.buffers[0].address
        self.dropped = [0] * cpus
        """Per CPU, records that did not fit, of speculations committed since."""

    @property
    def state(self) -> SpeculationState:
        """The current decision of its records."""
        return _STATES[self._block[SpeculationWord.STATE]]

    @state.setter
    def state(self, state: SpeculationState) -> None:
        self._block[SpeculationWord.STATE] = state


class Speculations:
    """The speculations of one consumer."""

    def __init__(self, memory: Memory, record_size: Callable[[int], int], now: Callable[[], int]) -> None:
        self._memory = memory
        self._record_size = record_size
        self._now = now
        self._principal: Sequence[PrincipalBuffer] = ()
        self.words = words(len(SpeculationWord))
        """The `SpeculationWord` of all of them, one after the other."""
        self.all: list[Speculation] = []
        self.busy = 0
        """The number of times that speculation() failed because buffers were still busy."""
        self.unavailable = 0
        """The number of times that it failed because all were in use."""

    def start(self, count: int, size: int, principal: Sequence[PrincipalBuffer]) -> None:
        """Make the buffers; commits go to `principal`, a buffer per CPU."""
        self._principal = principal
        width = len(SpeculationWord)
        self.words = words(max(1, count) * width)
        blocks = (self.words[width * place : width * (place + 1)] for place in range(count))
        self.all = [Speculation(self._memory, size, len(principal), block) for block in blocks]

    def release(self) -> None:
        """Release the buffers."""
        for speculation in self.all:
            for buffer in speculation.buffers:
                buffer.release()
        self.all = []

    @property
    def drops(self) -> int:
        """Records that did not fit into speculations committed since."""
        return sum(sum(speculation.dropped) for speculation in self.all)

    def create(self) -> int:
        """Make a speculation active and return its id; 0, which is counted, if none is free."""
        for number, speculation in enumerate(self.all, 1):
            if speculation.state is _S.INACTIVE:
                speculation.state = _S.ACTIVE
                return number
        if any(speculation.state in _BUSY for speculation in self.all):
            self.busy += 1
        else:
            self.unavailable += 1
        return 0

    def _find(self, number: int) -> Speculation | None:
        """Return a speculation.

        None for id 0, and for an impossible id, which is an illegal operation.
        """
        if number > len(self.all):
            self._memory.core.flags |= ILLOP
            return None
        return self.all[number - 1] if number else None

    def buffer(self, number: int, cpu: int) -> LinearBuffer | None:
        """Return where speculate() sends records of a CPU.

        None if the speculation is not active.
        """
        speculation = self._find(number)
        if speculation is None or speculation.state not in _WRITABLE:
            return None
        buffer = speculation.buffers[cpu]
        if speculation.state is _S.ACTIVE:
            speculation.state = _S.ACTIVEONE
        elif speculation.state is _S.ACTIVEONE and buffer.offset == 0:
            speculation.state = _S.ACTIVEMANY
        return buffer

    def commit(self, number: int, cpu: int) -> None:
        """Copy the speculative records of this CPU into its principal buffer.

        The other CPUs' part waits for the cleaner.
        """
        speculation = self._find(number)
        if speculation is None:
            return
        state = speculation.state
        if state in (_S.INACTIVE, _S.DISCARDING, _S.COMMITTING):
            return
        at_once = state is _S.ACTIVE or (state is _S.ACTIVEONE and speculation.buffers[cpu].offset != 0)
        self._copy(speculation, cpu)
        if at_once:
            speculation.state = _S.INACTIVE
        else:
            speculation.state = _S.COMMITTINGMANY

    def _copy(self, speculation: Speculation, cpu: int) -> None:
        """Move the records of a CPU, with the current time.

        Without room for all of them they are lost.  That counts as a drop, besides the one that a
        switch or ring buffer counts itself.
        """
        source, target = speculation.buffers[cpu], self._principal[cpu]
        end = source.offset
        offset = target.reserve(end, _ALIGNMENT)
        if offset == NO_SPACE:
            target.drops += 1
        else:
            self._stamp(source, self._now())
            target.data[offset : offset + end] = source.data[:end]
            target.offset = offset + end
        source.offset = 0
        speculation.dropped[cpu] += source.drops
        source.drops = 0

    def _stamp(self, buffer: LinearBuffer, now: int) -> None:
        """Give all records the time of the commit, so that the principal buffer stays in order."""
        at = 0
        while at < buffer.offset:
            epid = int.from_bytes(buffer.data[at : at + 4], "little")
            if epid == 0:
                at += 4
                continue
            _HEADER.pack_into(buffer.data, at, epid, now >> 32, now & 0xFFFF_FFFF)
            at += self._record_size(epid)

    def discard(self, number: int, cpu: int) -> None:
        """Throw a speculation away."""
        speculation = self._find(number)
        if speculation is None or speculation.state not in _WRITABLE:
            return
        buffer = speculation.buffers[cpu]
        if speculation.state is _S.ACTIVEONE and buffer.offset != 0:
            speculation.state = _S.INACTIVE
        else:
            speculation.state = _S.DISCARDING
        buffer.offset = 0
        buffer.drops = 0

    def clean(self) -> None:
        """Finish commits and discards on all CPUs (dtrace_speculation_clean)."""
        for speculation in self.all:
            if speculation.state not in (_S.DISCARDING, _S.COMMITTINGMANY):
                continue
            for cpu, buffer in enumerate(speculation.buffers):
                if speculation.state is _S.DISCARDING:
                    buffer.offset = 0
                elif buffer.offset != 0:
                    self._copy(speculation, cpu)
            speculation.state = _S.INACTIVE
