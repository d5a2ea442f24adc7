"""The machine code that runs a probe's enablings, for the callbacks that fire without Python.

A probe has words at an address that is valid as long as the framework exists.  The first is the
number of enablings, the second the address of their pairs of addresses, (run, ecb). 0: Python runs
them.  After the two there is room for one pair, because most probes have one enabling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from emu.support.plain import WORD, address_of, words

# Probes whose words are made together.
_TOGETHER: Final = 1 << 10
_WORDS: Final = 4
_PAIR: Final = 2
# Pairs that stay in memory after they were replaced.
_KEPT: Final = 1 << 10


class NativeRuns:
    """The machine code of one probe registry: by probe, what its enablings run."""

    def __init__(self) -> None:
        self._tables: list[tuple[memoryview[int], int]] = []
        self._set: set[int] = set()
        self._pairs: dict[int, memoryview[int]] = {}
        # An operation of a firing may change the enablings of the probe: machine code then continues with the old
        # pairs.
        self._replaced: deque[memoryview[int]] = deque(maxlen=_KEPT)

    def address(self, probe_id: int) -> int:
        """Return the address of a probe's words."""
        table, place = self._place(probe_id)
        return self._tables[table][1] + WORD * place

    def __contains__(self, probe_id: int) -> bool:
        """Return whether `set` was called for a probe: the others' words are not in use."""
        return probe_id in self._set

    def set(self, probe_id: int, pairs: Sequence[int]) -> None:
        """Let machine code run a probe's enablings, (run, ecb) for each; none: Python runs them."""
        self._set.add(probe_id)
        table, place = self._place(probe_id)
        view = self._tables[table][0]
        view[place] = 0
        if not pairs:
            return
        if len(pairs) == _PAIR:
            view[place + 2], view[place + 3] = pairs
            view[place + 1] = self._tables[table][1] + WORD * (place + 2)
        else:
            view[place + 1] = self._several(probe_id, pairs)
        view[place] = len(pairs) // 2

    def _several(self, probe_id: int, pairs: Sequence[int]) -> int:
        """Return the address of the pairs of several enablings."""
        if probe_id in self._pairs:
            self._replaced.append(self._pairs[probe_id])
        made = self._pairs[probe_id] = words(len(pairs))
        for index, word in enumerate(pairs):
            made[index] = word
        return address_of(made)

    def _place(self, probe_id: int) -> tuple[int, int]:
        """Return which table a probe's words are in, and the index of the first."""
        table, place = divmod(probe_id, _TOGETHER)
        while len(self._tables) <= table:
            made = words(_WORDS * _TOGETHER)
            self._tables.append((made, address_of(made)))
        return table, _WORDS * place
