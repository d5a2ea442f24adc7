"""Handlers that only count: in machine code if it is available, otherwise in Python."""

from __future__ import annotations

import ctypes
from functools import cache

from emu.native import available
from emu.native.block import Block
from emu.native.builder import Module
from emu.native.link import Linked
from trapline.lab.check.cpu.listener import Listener


class _Words(Block):
    """A count, and the words for a hit: the number of functions, and the address of their list."""

    count: int
    functions: int
    pairs: int


@cache
def _counting() -> Linked:
    """Return `u64 count(words, arguments, core)`."""
    module = Module()
    f = module.function("count", 3)
    words = f.parameters[0]
    f.store(words, f.add(f.load(words), 1))
    f.ret()
    return Linked(module.compiled("benchmark"))


class Hits:
    """Counts the hits of one probe; `native`: in machine code, except for the first hit."""

    def __init__(self, *, native: bool) -> None:
        self._words = _Words()
        self._pair = (ctypes.c_uint64 * 2)()
        self.runs = 0
        """The machine code of a hit (`Framework.native_runs`); 0: none."""
        if native and available():
            self._pair[:] = [_counting().address("count"), self._words.address]
            self._words.functions, self._words.pairs = 1, ctypes.addressof(self._pair)
            self.runs = self._words.address + _Words.offset("functions")

    @property
    def number(self) -> int:
        """The number of hits."""
        return self._words.count

    def hit(self, *_: object) -> None:
        """Count a hit that Python serves."""
        self._words.count += 1


class CountingFramework(Listener):
    """Counts all firings."""

    def __init__(self, hits: Hits) -> None:
        super().__init__()
        self._hits = hits

    def native_runs(self, probe_id: int) -> int:
        """Return the machine code that counts."""
        del probe_id
        return self._hits.runs

    def probe(self, probe_id: int, arg0: int = 0, arg1: int = 0, arg2: int = 0, arg3: int = 0, arg4: int = 0) -> None:
        """Count a firing that Python serves."""
        del probe_id, arg0, arg1, arg2, arg3, arg4
        self._hits.hit()
