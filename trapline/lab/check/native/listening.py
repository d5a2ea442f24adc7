"""A listener whose firings machine code serves too."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from emu.native import available
from emu.native.builder import Module
from emu.native.linking import Linked
from trapline.lab.check.listener import Listener


@cache
def _fired() -> Any:
    """Return a function that counts a firing: u64 fired(count, arguments, core)."""
    module = Module()
    f = module.function("fired", 3)
    count = f.parameters[0]
    f.store(count, f.add(f.load(count), 1))
    f.ret()
    linked = Linked(module.compiled("listener"))
    return linked, linked.address("fired")


class CountingListener(Listener):
    """Counts firings, in Python and in machine code; which probe fired is known of Python's alone."""

    def __init__(self) -> None:
        super().__init__()
        self._pair = (ctypes.c_uint64 * 2)()
        self._count = ctypes.c_uint64()
        self._runs = (ctypes.c_uint64 * 2)()
        if available():
            _, function = _fired()
            self._pair[:] = [function, ctypes.addressof(self._count)]
            self._runs[:] = [1, ctypes.addressof(self._pair)]

    @property
    def counted(self) -> int:
        """How often machine code fired a probe."""
        return self._count.value

    def native_runs(self, probe_id: int) -> int:
        """Return what machine code does when any probe fires (`Framework.native_runs`)."""
        del probe_id
        return ctypes.addressof(self._runs) if self._runs[0] else 0
