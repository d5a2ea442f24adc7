"""Enablings in machine code, as small as tests need them: they count, and keep the arguments."""

import ctypes
from functools import cache

from emu.native.block import Block
from emu.native.builder import Module
from emu.native.linking import Linked

KEPT = 64
_UPCALL = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)


class _Words(Block):
    count: int
    upcall: int
    seen: int


@cache
def _code():
    module = Module()
    f = module.function("run", 3)
    first, arguments, core = f.parameters
    count = f.load(first, _Words.offset("count"))
    f.store(first, f.add(count, 1), _Words.offset("count"))
    with f.when(f.ult(count, KEPT)):
        f.copy(f.add(f.load(first, _Words.offset("seen")), f.mul(count, 40)), arguments, 40)
    with f.when(f.ne(f.load(first, _Words.offset("upcall")), 0)):
        f.call(f.load(first, _Words.offset("upcall")), arguments, core)
    f.ret()
    return Linked(module.compiled("test"))


class Enabling:
    """An enabling that calls `upcall(arguments, core)`, addresses both, if there is one."""

    def __init__(self, upcall=None):
        self._array = (ctypes.c_uint64 * (5 * KEPT))()
        self._upcall = _UPCALL(upcall) if upcall else None
        at = ctypes.cast(self._upcall, ctypes.c_void_p).value if upcall else 0
        self.words = _Words(0, at, ctypes.addressof(self._array))

    @property
    def count(self):
        return self.words.count

    def seen(self):
        """The arguments of each firing, in order."""
        return [tuple(self._array[5 * index : 5 * index + 5]) for index in range(min(self.count, KEPT))]


_KEPT = []


def runs(*enablings):
    """What `Framework.native_runs` returns for a probe with these enablings."""
    pairs = (ctypes.c_uint64 * (2 * len(enablings)))()
    for index, enabling in enumerate(enablings):
        pairs[2 * index] = _code().address("run")
        pairs[2 * index + 1] = enabling.words.address
    words = (ctypes.c_uint64 * 2)(len(enablings), ctypes.addressof(pairs))
    _KEPT.append((words, pairs, enablings))
    return ctypes.addressof(words)
